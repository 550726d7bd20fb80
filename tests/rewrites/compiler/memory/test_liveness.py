"""Live intervals of programs: by hand, and by running random programs in the memory that they are planned for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewrites.compiler.memory.liveness import Step, live_intervals
from rewrites.compiler.memory.plan import plan_memory
from rewrites.compiler.memory.problem import Buffer, MemoryProblem
from tests.rewrites.compiler.memory.memory_problems import lost_values

STEPS = [Step("a", ("x",), ("p",)), Step("b", ("p",), ("q", "unused")), Step("c", ("q", "p"), ("y",))]


def test_intervals_of_a_small_program() -> None:
    assert live_intervals(STEPS, ("x", "w"), ("y", "q")) == {
        "x": (0, 1),
        "w": (0, 1),
        "p": (0, 3),
        "q": (1, 4),
        "unused": (1, 2),
        "y": (2, 4),
    }


def test_an_input_that_is_an_output_lives_throughout() -> None:
    assert live_intervals(STEPS, ("x",), ("x",))["x"] == (0, 4)
    assert live_intervals([], ("x",), ("x",)) == {"x": (0, 1)}


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Step], list[str], list[str]]:
    """Programs of up to seven steps over two inputs; values are named in order of definition."""
    inputs = ["v0", "v1"]
    names = list(inputs)
    steps = []
    for number in range(draw(st.integers(0, 7))):
        reads = draw(st.lists(st.sampled_from(names), max_size=3))
        writes = [f"v{len(names) + k}" for k in range(draw(st.integers(0, 2)))]
        steps.append(Step(f"s{number}", tuple(reads), tuple(writes)))
        names += writes
    return steps, inputs, draw(st.lists(st.sampled_from(names), max_size=3))


@given(programs(), st.data())
def test_planned_programs_lose_no_value(program: tuple[list[Step], list[str], list[str]], data: st.DataObject) -> None:
    steps, inputs, outputs = program
    intervals = live_intervals(steps, inputs, outputs)
    sizes = {name: data.draw(st.integers(1, 5)) for name in intervals}
    plan = plan_memory(MemoryProblem([Buffer(name, sizes[name], *times) for name, times in intervals.items()]))
    assert lost_values(steps, inputs, outputs, sizes, plan.addresses) == []


@pytest.mark.parametrize(
    ("steps", "inputs", "outputs", "message"),
    [
        ([], ("x", "x"), (), "input 'x' must be named once, but it is there twice. Remove one."),
        (
            [Step("a", ("t",), ("y",))],
            (),
            (),
            "step 'a' (time 0): what it reads must be an input or written by an earlier step, but 't' is neither. "
            "Order the steps, or name it as an input.",
        ),
        (
            [Step("a", (), ("y",)), Step("b", (), ("y",))],
            (),
            (),
            "step 'b' (time 1): a value must be defined once, but 'y' is defined before. Rename it.",
        ),
        ([], (), ("y",), "output 'y' must be an input or written by a step, but it is neither. Remove it or write it."),
    ],
)
def test_programs_that_make_no_sense(
    steps: list[Step], inputs: tuple[str, ...], outputs: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        live_intervals(steps, inputs, outputs)
