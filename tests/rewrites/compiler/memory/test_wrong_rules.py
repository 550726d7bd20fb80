"""Wrong reasoning about memory plans, refuted by small problems; M1 ... M11 are the names of the documentation.

Every test follows the wrong reasoning to its end and has the result refused. Where a program is concerned, it runs, and
a value is lost. Then the planner does it right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

from rewrites.compiler.memory.liveness import Step, live_intervals
from rewrites.compiler.memory.plan import first_fit, plan_memory
from rewrites.compiler.memory.plan_checker import PlanError, check_memory_plan
from rewrites.compiler.memory.problem import Buffer, MemoryPlan, MemoryProblem
from tests.rewrites.compiler.memory.memory_problems import GAP, largest_load, lost_values, smallest_peak

Fit = Callable[[Buffer, Sequence[tuple[int, int]]], int]


def _plan(problem: MemoryProblem, addresses: dict[str, int]) -> MemoryPlan:
    return MemoryPlan(addresses, max(addresses[b.name] + b.size for b in problem.buffers))


def _in_turn(order: Sequence[Buffer], fit: Fit) -> dict[str, int]:
    """Buffers in the given order by a rule, which may be wrong."""
    addresses: dict[str, int] = {}
    for buffer in order:
        near = [b for b in order if b.name in addresses and b.start < buffer.end and buffer.start < b.end]
        taken = [(addresses[b.name], addresses[b.name] + b.size) for b in near]
        addresses[buffer.name] = fit(buffer, sorted(taken, key=lambda span: span[0]))
    return addresses


def _smallest_gap_of_consecutive(buffer: Buffer, taken: Sequence[tuple[int, int]]) -> int:
    """The wrong rule of M1: what lies between one neighbour's end and the next one's begin counts as free."""
    ends = [0, *(end for _, end in taken)]
    gaps = [(begin - end, end) for end, (begin, _) in zip(ends, taken, strict=False) if begin - end >= buffer.size]
    return min(gaps)[1] if gaps else ends[-1]


def _first_place_before_a_region(buffer: Buffer, taken: Sequence[tuple[int, int]]) -> int:
    """The other wrong rule of M1: the scan stops at the first region that does not meet the candidate."""
    candidate = 0
    for begin, end in taken:
        if candidate + buffer.size <= begin or end <= candidate:
            break
        candidate = end
    return candidate


def _unsigned_gap(buffer: Buffer, taken: Sequence[tuple[int, int]]) -> int:
    """The wrong rule of M3: a gap that alignment made negative is compared as a 64-bit unsigned number."""
    end = 0
    gaps: list[tuple[int, int]] = []
    for begin, following in taken:
        aligned = -(-end // buffer.alignment) * buffer.alignment
        if (begin - aligned) % 2**64 >= buffer.size:
            gaps.append(((begin - aligned) % 2**64, aligned))
        end = following
    return min(gaps)[1] if gaps else -(-end // buffer.alignment) * buffer.alignment


@pytest.mark.parametrize(
    ("fit", "order", "message"),
    [
        (
            _smallest_gap_of_consecutive,
            [Buffer("a", 5, 3, 4), Buffer("b", 4, 4, 5), Buffer("c", 1, 0, 5)],
            "buffers 'a' and 'c' are both live at time 3, so they must not share a cell, but both have cell 4: "
            "'a' is 0..4, 'c' is 4..4.",
        ),
        (
            _first_place_before_a_region,
            [Buffer("a", 4, 3, 6), Buffer("b", 4, 2, 3), Buffer("c", 2, 0, 5), Buffer("d", 1, 0, 5)],
            "buffers 'c' and 'd' are both live at time 0, so they must not share a cell, but both have cell 4: "
            "'c' is 4..5, 'd' is 4..4.",
        ),
    ],
)
def test_m1_between_consecutive_regions_there_need_be_no_gap(fit: Fit, order: list[Buffer], message: str) -> None:
    """The regions may belong to buffers that are never live together, and overlap."""
    problem = MemoryProblem(order)
    with pytest.raises(PlanError, match="^" + re.escape(message) + "$"):
        check_memory_plan(problem, _plan(problem, _in_turn(order, fit)))
    check_memory_plan(problem, _plan(problem, _in_turn(order, first_fit)))


def test_m3_a_gap_after_alignment_may_be_negative() -> None:
    order = [Buffer("x", 2, 3, 6), Buffer("y", 6, 3, 5), Buffer("z", 2, 4, 5, alignment=4)]
    problem = MemoryProblem(order)
    wrong = _in_turn(order, _unsigned_gap)
    assert wrong == {"x": 0, "y": 2, "z": 4}
    with pytest.raises(
        PlanError, match=r"^buffers 'y' and 'z' are both live at time 4, .* both have cell 4: 'y' is 2\.\.7"
    ):
        check_memory_plan(problem, _plan(problem, wrong))
    assert _in_turn(order, first_fit) == {"x": 0, "y": 2, "z": 8}


def test_m5_inclusive_intervals_must_not_be_read_as_half_open() -> None:
    """Operator 3 reads x and writes y; written inclusively, x is [0, 3] and y [3, 5]."""
    steps = [Step("0", (), ("x",)), Step("1", (), ()), Step("2", (), ()), Step("3", ("x",), ("y",)), Step("4", (), ())]
    sizes = {"x": 4, "y": 4}
    wrong = plan_memory(MemoryProblem([Buffer("x", 4, 0, 3), Buffer("y", 4, 3, 5)]))
    assert dict(wrong.addresses) == {"x": 0, "y": 0}
    intervals = live_intervals(steps, (), ("y",))
    assert intervals == {"x": (0, 4), "y": (3, 6)}
    problem = MemoryProblem([Buffer(name, sizes[name], *times) for name, times in intervals.items()])
    with pytest.raises(PlanError, match=r"^buffers 'x' and 'y' are both live at time 3, "):
        check_memory_plan(problem, wrong)
    assert lost_values(steps, (), ("y",), sizes, wrong.addresses) == ["3 reads x"]
    assert lost_values(steps, (), ("y",), sizes, plan_memory(problem).addresses) == []


def test_m7_the_largest_load_need_not_be_reached() -> None:
    assert (largest_load(GAP), smallest_peak(GAP)) == (5, 6)
    claimed = MemoryPlan(plan_memory(GAP).addresses, 5)
    with pytest.raises(PlanError, match=r"^the plan's peak must be its largest end 6, but it says 5\.$"):
        check_memory_plan(GAP, claimed)


def test_m11_a_graph_output_lives_on_when_no_operator_uses_it() -> None:
    """y is written by step 0 and read by the host at the end; z is a temporary of step 1."""
    steps = [Step("s0", (), ("y",)), Step("s1", (), ("z",))]
    sizes = {"y": 8, "z": 8}
    wrong_intervals = live_intervals(steps, (), ())  # as if y were no output
    assert wrong_intervals == {"y": (0, 1), "z": (1, 2)}
    wrong = plan_memory(MemoryProblem([Buffer(name, 8, *times) for name, times in wrong_intervals.items()]))
    assert dict(wrong.addresses) == {"y": 0, "z": 0}
    intervals = live_intervals(steps, (), ("y",))
    assert intervals == {"y": (0, 3), "z": (1, 2)}
    problem = MemoryProblem([Buffer(name, 8, *times) for name, times in intervals.items()])
    with pytest.raises(PlanError, match=r"^buffers 'y' and 'z' are both live at time 1, "):
        check_memory_plan(problem, wrong)
    assert lost_values(steps, (), ("y",), sizes, wrong.addresses) == ["host reads y"]
    assert lost_values(steps, (), ("y",), sizes, plan_memory(problem).addresses) == []
