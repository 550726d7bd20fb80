"""The planner: valid plans, small peaks, the same plan every time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewrites.compiler.memory.plan import first_fit, plan_memory
from rewrites.compiler.memory.plan_checker import PlanError, check_memory_plan
from rewrites.compiler.memory.problem import Buffer, MemoryPlan, MemoryProblem
from tests.rewrites.compiler.memory.memory_problems import GAP, largest_load, problems, smallest_peak


@given(problems(12))
def test_plans_pass_the_checker(problem: MemoryProblem) -> None:
    check_memory_plan(problem, plan_memory(problem))


@given(problems(5))
def test_no_plan_is_below_the_smallest_peak(problem: MemoryProblem) -> None:
    assert problem.load == largest_load(problem) <= smallest_peak(problem) <= plan_memory(problem).peak


def test_the_largest_load_may_be_out_of_reach() -> None:
    assert (largest_load(GAP), smallest_peak(GAP), plan_memory(GAP).peak) == (5, 6, 6)


@pytest.mark.parametrize("left_out", [b.name for b in GAP.buffers])
def test_without_any_one_of_its_buffers_the_load_is_in_reach(left_out: str) -> None:
    rest = MemoryProblem(b for b in GAP.buffers if b.name != left_out)
    assert smallest_peak(rest) == largest_load(rest)


def test_a_chain_is_placed_at_its_load() -> None:
    """As in networks without branches: each tensor is needed until the next one is there."""
    chain = MemoryProblem([Buffer(f"b{i}", 1 + i * 7 % 40, i, i + 2, 4) for i in range(300)])
    assert plan_memory(chain).peak <= largest_load(chain) + 3


@given(problems(8), st.randoms())
def test_the_plan_does_not_depend_on_the_order_of_the_buffers(problem: MemoryProblem, random: Any) -> None:
    shuffled = list(problem.buffers)
    random.shuffle(shuffled)
    assert dict(plan_memory(problem).addresses) == dict(plan_memory(MemoryProblem(shuffled)).addresses)


def test_nothing_to_place() -> None:
    plan = plan_memory(MemoryProblem([]))
    assert (dict(plan.addresses), plan.peak) == ({}, 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("", 1, 0, 1), "a buffer's name must be a text of at least one character, but it is ''. Name it."),
        (
            ("x", 0, 0, 1),
            "buffer 'x': the size must be an integer of at least 1, but it is 0. "
            "Leave tensors without elements out of the problem.",
        ),
        (
            ("x", 2.5, 0, 1),
            "buffer 'x': the size must be an integer of at least 1, but it is 2.5. "
            "Leave tensors without elements out of the problem.",
        ),
        (("x", 1, -1, 1), "buffer 'x': the start must be an integer of at least 0, but it is -1. Count times from 0."),
        (
            ("x", 1, 3, 3),
            "buffer 'x': the end must be an integer of at least 4, but it is 3. "
            "Intervals are half-open: the end is the last time plus 1.",
        ),
        (
            ("x", 1, 0, 1, 0),
            "buffer 'x': the alignment must be an integer of at least 1, but it is 0. Give 1 if any address will do.",
        ),
    ],
)
def test_bad_buffers_are_refused(fields: Any, message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        Buffer(*fields)


def test_problems_with_a_name_twice_are_refused() -> None:
    message = "memory problem: names must differ, but two buffers are named 'x'. Rename one."
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        MemoryProblem([Buffer("x", 1, 0, 1), Buffer("x", 2, 3, 4)])


def test_what_is_free_begins_behind_all_that_is_below_and_at_aligned_addresses() -> None:
    taken = [(0, 3), (1, 2), (8, 9), (12, 20), (13, 14), (22, 23)]
    for size, alignment, address in ((2, 1, 3), (2, 4, 4), (6, 1, 23), (3, 1, 3), (5, 4, 24), (1, 2, 4)):
        assert first_fit(Buffer("x", size, 0, 1, alignment), taken) == address


def test_no_plan_leaves_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewrites.compiler.memory.plan.first_fit", lambda buffer, taken: 0)
    with pytest.raises(PlanError, match="must not share a cell"):
        plan_memory(GAP)


def test_a_plan_cannot_be_changed() -> None:
    addresses = {"x": 0}
    plan = MemoryPlan(addresses, 1)
    addresses["x"] = 5
    assert plan.addresses["x"] == 0
    with pytest.raises(TypeError):
        plan.addresses["x"] = 5  # type: ignore[index]
