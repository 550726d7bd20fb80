"""The checker of memory plans, attacked: tampered plans do not pass, and no code of the planner is in it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rewrites.compiler.memory.plan_checker
from rewrites.compiler.memory.plan_checker import PlanError, check_memory_plan
from rewrites.compiler.memory.problem import Buffer, MemoryPlan, MemoryProblem
from tests.rewrites.compiler.memory.memory_problems import problems

PROBLEM = MemoryProblem(
    [
        Buffer("x", 4, 0, 3),
        Buffer("y", 4, 2, 5, alignment=4),
        Buffer("z", 4, 3, 6),
        Buffer("weights", 2, 0, 9),
    ]
)
PLAN = MemoryPlan({"x": 0, "y": 4, "z": 0, "weights": 8}, 10)


def test_the_plan_that_is_attacked_passes() -> None:
    check_memory_plan(PROBLEM, PLAN)


@pytest.mark.parametrize(
    ("addresses", "message"),
    [
        (
            {"x": 1},
            "buffers 'x' and 'y' are both live at time 2, so they must not share a cell, but both have cell 4: "
            "'x' is 1..4, 'y' is 4..7.",
        ),
        (
            {"z": 5},
            "buffers 'y' and 'z' are both live at time 3, so they must not share a cell, but both have cell 5: "
            "'y' is 4..7, 'z' is 5..8.",
        ),
        (
            {"y": 8},
            "buffers 'y' and 'weights' are both live at time 2, so they must not share a cell, but both have cell 8: "
            "'y' is 8..11, 'weights' is 8..9.",
        ),
        ({"y": 6}, "buffer 'y': its address must be a multiple of 4, but it is 6."),
        ({"x": -1}, "buffer 'x': its address must be an integer of at least 0, but it is -1."),
        ({"x": 0.0}, "buffer 'x': its address must be an integer of at least 0, but it is 0.0."),
        ({"x": False}, "buffer 'x': its address must be an integer of at least 0, but it is False."),
        ({"t": 0}, "the plan must have addresses of the problem's buffers only, but 't' is none of them."),
    ],
)
def test_wrong_addresses(addresses: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match="^" + re.escape(message) + "$"):
        check_memory_plan(PROBLEM, replace(PLAN, addresses={**PLAN.addresses, **addresses}))


def test_a_buffer_without_a_place() -> None:
    rest = {name: at for name, at in PLAN.addresses.items() if name != "z"}
    with pytest.raises(PlanError, match=r"^buffer 'z' must have an address, but the plan has none\.$"):
        check_memory_plan(PROBLEM, replace(PLAN, addresses=rest))


@pytest.mark.parametrize("peak", [9, 11])
def test_a_wrong_peak(peak: int) -> None:
    with pytest.raises(PlanError, match=rf"^the plan's peak must be its largest end 10, but it says {peak}\.$"):
        check_memory_plan(PROBLEM, replace(PLAN, peak=peak))


@given(problems(8), st.data())
def test_it_agrees_with_sets_of_cells_on_any_addresses(problem: MemoryProblem, data: st.DataObject) -> None:
    assume(problem.buffers)
    addresses = {b.name: data.draw(st.integers(0, 4).map(lambda k, b=b: k * b.alignment)) for b in problem.buffers}
    owner: set[tuple[int, int]] = set()
    clash = False
    for b in problem.buffers:
        cells = {(t, c) for t in range(b.start, b.end) for c in range(addresses[b.name], addresses[b.name] + b.size)}
        clash = clash or bool(owner & cells)
        owner |= cells
    plan = MemoryPlan(addresses, max(addresses[b.name] + b.size for b in problem.buffers))
    if not clash:
        check_memory_plan(problem, plan)
    else:
        with pytest.raises(PlanError, match="must not share a cell"):
            check_memory_plan(problem, plan)


def test_it_imports_the_data_types_and_nothing_of_the_planner() -> None:
    tree = ast.parse(Path(rewrites.compiler.memory.plan_checker.__file__).read_text(encoding="utf-8"))
    imported = {
        (node.module, node.level, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {
        ("__future__", 0, "annotations"),
        ("itertools", 0, "combinations"),
        ("problem", 1, "MemoryPlan"),
        ("problem", 1, "MemoryProblem"),
    }
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))
