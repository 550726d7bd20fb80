"""The planner: valid plans, smallest peaks, plain refusals, the same plan every time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewrites.compiler.memory.placement import (
    ORDERS,
    best_fit,
    first_fit,
    free_gaps,
    lower_bound,
    neighbours,
    place,
    settle,
)
from rewrites.compiler.memory.plan import DoesNotFit, plan_memory
from rewrites.compiler.memory.plan_checker import PlanError, check_memory_plan
from rewrites.compiler.memory.problem import Buffer, MemoryPlan, MemoryProblem, Minimality
from rewrites.compiler.memory.search import search
from tests.rewrites.compiler.memory.memory_problems import GAP, problems, smallest_peak


def _peak(problem: MemoryProblem, addresses: dict[str, int]) -> int:
    return max((addresses[b.name] + b.size for b in problem.buffers), default=0)


@given(problems(12), st.sampled_from([0, 5, 50, 100_000]))
def test_plans_pass_the_checker(problem: MemoryProblem, effort: int) -> None:
    plan = plan_memory(problem, effort)
    check_memory_plan(problem, plan)
    assert plan.minimal == (plan.peak == plan.lower_bound)


@given(problems(12), st.sampled_from(sorted(ORDERS)), st.sampled_from([first_fit, best_fit]), st.randoms())
def test_every_order_and_rule_is_sound_and_settling_never_raises(
    problem: MemoryProblem, name: str, fit: Any, random: Any
) -> None:
    shuffled = list(problem.buffers)
    random.shuffle(shuffled)
    near = neighbours(problem.buffers)
    for order in (ORDERS[name](problem.buffers, near), shuffled):
        addresses = place(order, fit, near)
        check_memory_plan(problem, MemoryPlan(addresses, _peak(problem, addresses), 0, Minimality.UNPROVED))
        settled = settle(problem.buffers, addresses, near)
        check_memory_plan(problem, MemoryPlan(settled, _peak(problem, settled), 0, Minimality.UNPROVED))
        assert all(settled[b.name] <= addresses[b.name] for b in problem.buffers)


@given(problems(5))
def test_the_search_finds_the_smallest_peak(problem: MemoryProblem) -> None:
    plan = plan_memory(problem)
    assert plan.minimal
    assert plan.peak == plan.lower_bound == smallest_peak(problem)


@given(problems(5))
def test_the_search_alone_finds_the_smallest_peak(problem: MemoryProblem) -> None:
    """From a plan as bad as possible, and without a target that could stop it."""
    stacked = {b.name: b.fixed for b in problem.buffers if b.fixed is not None}
    end = max((at + b.size for b in problem.buffers if (at := stacked.get(b.name)) is not None), default=0)
    for buffer in problem.buffers:
        if buffer.fixed is None:
            stacked[buffer.name] = -(-end // buffer.alignment) * buffer.alignment
            end = stacked[buffer.name] + buffer.size
    result = search(problem.buffers, stacked, -1, 1_000_000)
    assert result.exhausted
    assert result.peak == _peak(problem, result.addresses) == smallest_peak(problem)


@given(problems(5), st.integers(0, 40))
def test_what_is_called_necessary_or_minimal_is_so_however_early_the_search_stops(
    problem: MemoryProblem, effort: int
) -> None:
    plan = plan_memory(problem, effort)
    smallest = smallest_peak(problem)
    assert plan.lower_bound <= smallest <= plan.peak
    assert not plan.minimal or plan.peak == smallest


def test_a_smaller_group_proves_nothing_about_a_larger_one_whose_search_stopped() -> None:
    """The second group stops at the peak of the first, without knowing that its own is minimal."""
    first = [Buffer(f"first {b.name}", b.size, b.start, b.end) for b in GAP.buffers]
    second = [Buffer(f"second {b.name}", b.size, b.start + 10, b.end + 10) for b in GAP.buffers]
    stopped = plan_memory(MemoryProblem([*first, *second]), 0)
    assert (stopped.peak, stopped.lower_bound, stopped.minimality) == (6, 5, Minimality.UNPROVED)
    finished = plan_memory(MemoryProblem([*first, *second]))
    assert (finished.peak, finished.lower_bound, finished.minimality) == (6, 6, Minimality.SEARCH)


def test_the_bound_by_load_may_be_out_of_reach() -> None:
    assert lower_bound(GAP.buffers) == (5, 3)
    plan = plan_memory(GAP)
    assert (plan.peak, plan.lower_bound, plan.minimality) == (6, 6, Minimality.SEARCH)
    assert smallest_peak(GAP) == 6


@pytest.mark.parametrize("left_out", [b.name for b in GAP.buffers])
def test_without_any_one_of_its_buffers_the_bound_is_reached(left_out: str) -> None:
    rest = [b for b in GAP.buffers if b.name != left_out]
    plan = plan_memory(MemoryProblem(rest))
    assert plan.minimality is Minimality.BOUND
    assert plan.peak == lower_bound(rest)[0]


def test_the_search_improves_on_the_heuristics() -> None:
    rows = [(4, 3, 8), (5, 2, 5), (3, 4, 9), (1, 1, 3), (8, 8, 12), (2, 4, 7), (3, 7, 9), (8, 2, 3)]
    problem = MemoryProblem([Buffer(f"b{i}", *row) for i, row in enumerate(rows)])
    assert (plan_memory(problem, 0).peak, plan_memory(problem).peak) == (16, 14)
    assert plan_memory(problem).minimality is Minimality.BOUND


def test_the_plan_does_not_depend_on_the_order_of_the_buffers() -> None:
    once = plan_memory(GAP)
    again = plan_memory(MemoryProblem(reversed(GAP.buffers)))
    assert dict(once.addresses) == dict(again.addresses)


def test_fixed_buffers_stay_and_others_go_around_them() -> None:
    problem = MemoryProblem([Buffer("weights", 4, 0, 9, fixed=3), Buffer("x", 3, 0, 2), Buffer("y", 4, 1, 3, 4)])
    plan = plan_memory(problem)
    assert dict(plan.addresses) == {"weights": 3, "x": 0, "y": 8}
    assert (plan.peak, plan.minimality) == (12, Minimality.SEARCH)


def test_nothing_to_place() -> None:
    plan = plan_memory(MemoryProblem([]))
    assert (dict(plan.addresses), plan.peak, plan.minimality) == ({}, 0, Minimality.BOUND)


def test_buffers_with_different_ends_are_no_twins() -> None:
    """b2 and b5 have the same size, start and alignment; a search that let them change names would miss 15."""
    rows = [(2, 4, 7, 3), (2, 4, 5, 2), (3, 3, 4), (4, 3, 5), (4, 4, 5, 2), (3, 3, 6)]
    problem = MemoryProblem([Buffer(f"b{i}", *row) for i, row in enumerate(rows)])
    plan = plan_memory(problem)
    assert plan.minimal
    assert plan.peak == smallest_peak(problem) == 15


def test_a_search_through_hundreds_of_buffers() -> None:
    """A chain with sizes 1, 2, 3, 1, ...: heuristics need 6 cells, and 5 suffice."""
    chain = MemoryProblem([Buffer(f"b{i}", 1 + i % 3, i, i + 2) for i in range(300)])
    assert (plan_memory(chain, 0).peak, plan_memory(chain).peak) == (6, 5)


def test_refused_since_too_much_is_live_at_once() -> None:
    problem = MemoryProblem([Buffer("x", 40, 0, 4), Buffer("y", 30, 3, 5), Buffer("z", 60, 5, 6)], 64)
    with pytest.raises(
        DoesNotFit,
        match="^"
        + re.escape(
            "no plan fits 64: at least 70 are needed; at time 3, 'x' (size 40), 'y' (size 30) are live and need 70. "
            "Give more capacity, or split a tensor."
        )
        + "$",
    ) as refusal:
        plan_memory(problem)
    assert refusal.value.proved
    assert (refusal.value.capacity, refusal.value.needed, refusal.value.best) == (64, 70, 70)


def test_refused_since_every_placement_was_tried() -> None:
    problem = MemoryProblem(GAP.buffers, 5)
    with pytest.raises(
        DoesNotFit, match=r"^no plan fits 5: at least 6 are needed; at time 3, 'A' \(size 3\), 'C'"
    ) as refusal:
        plan_memory(problem)
    assert refusal.value.proved


def test_a_search_that_stopped_does_not_claim_that_nothing_fits() -> None:
    with pytest.raises(
        DoesNotFit,
        match="^"
        + re.escape(
            "no plan that fits 5 was found, and none is proved impossible: the best one needs 6, at least 5 are "
            "needed, and the search stopped at its limit; at time 3, 'A' (size 3), 'C' (size 2) are live and need 5. "
            "A larger effort may find a plan. Give more capacity, or split a tensor."
        )
        + "$",
    ) as refusal:
        plan_memory(MemoryProblem(GAP.buffers, 5), 0)
    assert not refusal.value.proved


def test_a_refusal_names_the_largest_and_sums_up_the_rest() -> None:
    problem = MemoryProblem([Buffer(f"b{i}", i + 1, 0, 1) for i in range(11)], 10)
    with pytest.raises(
        DoesNotFit, match=r"'b3' \(size 4\) and 3 smaller ones \(size 6 together\) are live and need 66\."
    ):
        plan_memory(problem)


def test_a_negative_effort_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^the effort must be at least 0, but it is -1\. Give 0 for heuristics alone\.$"
    ):
        plan_memory(GAP, -1)


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
        (
            ("x", 1, 0, 1, 1, -8),
            "buffer 'x': the fixed address must be an integer of at least 0, but it is -8. "
            "Give None if the planner may choose.",
        ),
        (
            ("x", 1, 0, 1, 16, 8),
            "buffer 'x': the fixed address must be a multiple of the alignment 16, but it is 8. Change one of them.",
        ),
    ],
)
def test_bad_buffers_are_refused(fields: Any, message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        Buffer(*fields)


@pytest.mark.parametrize(
    ("buffers", "capacity", "message"),
    [
        ([], 0, "memory problem: the capacity must be an integer of at least 1, but it is 0. Give None for no limit."),
        (
            [Buffer("x", 1, 0, 1), Buffer("x", 2, 3, 4)],
            None,
            "memory problem: names must differ, but two buffers are named 'x'. Rename one.",
        ),
        (
            [Buffer("x", 4, 0, 1, fixed=6)],
            8,
            "buffer 'x': fixed at 6 with size 4, it must end within the capacity 8, but it ends at 10. "
            "Move it, or give more capacity.",
        ),
        (
            [Buffer("x", 4, 0, 3, fixed=0), Buffer("y", 4, 2, 5, fixed=3)],
            8,
            "buffers 'x' and 'y' are live together at time 2, so their fixed places must be disjoint, but they are "
            "0..3 and 3..6. Move one of them.",
        ),
    ],
)
def test_bad_problems_are_refused(buffers: list[Buffer], capacity: int | None, message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        MemoryProblem(buffers, capacity)


def test_gaps_begin_behind_all_that_is_below_and_at_aligned_addresses() -> None:
    taken = [(0, 3), (1, 2), (8, 9), (12, 20), (13, 14), (22, 23)]
    assert list(free_gaps(2, 1, taken)) == [(3, 5), (9, 3), (20, 2), (23, None)]
    assert list(free_gaps(2, 4, taken)) == [(4, 5), (20, 2), (24, None)]
    assert first_fit(Buffer("x", 2, 0, 1, 4), taken) == 4
    assert best_fit(Buffer("x", 2, 0, 1), taken) == best_fit(Buffer("x", 2, 0, 1, 4), taken) == 20
    assert best_fit(Buffer("x", 6, 0, 1), taken) == 23


def test_the_end_of_a_fixed_buffer_is_a_bound() -> None:
    plan = plan_memory(MemoryProblem([Buffer("weights", 4, 0, 2, fixed=10), Buffer("x", 3, 0, 2)]))
    assert (plan.peak, plan.lower_bound, plan.minimality) == (14, 14, Minimality.BOUND)


def test_reaching_the_target_does_not_show_that_there_is_nothing_below() -> None:
    stacked = {b.name: 3 * i for i, b in enumerate(GAP.buffers)}
    result = search(GAP.buffers, stacked, 6, 100_000)
    assert (result.peak, result.exhausted) == (6, False)


def test_no_plan_leaves_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "rewrites.compiler.memory.plan.settle", lambda buffers, addresses, near: dict.fromkeys(addresses, 0)
    )
    with pytest.raises(PlanError, match="must not share a cell"):
        plan_memory(GAP, 0)


def test_fixed_places_may_touch_each_other_and_the_capacity() -> None:
    problem = MemoryProblem([Buffer("x", 4, 0, 3, fixed=0), Buffer("y", 4, 2, 5, fixed=4)], 8)
    assert dict(plan_memory(problem).addresses) == {"x": 0, "y": 4}
    assert dict(plan_memory(MemoryProblem(reversed(problem.buffers), 8)).addresses) == {"x": 0, "y": 4}


def test_a_plan_cannot_be_changed() -> None:
    addresses = {"x": 0}
    plan = MemoryPlan(addresses, 1, 1, Minimality.BOUND)
    addresses["x"] = 5
    assert plan.addresses["x"] == 0
    with pytest.raises(TypeError):
        plan.addresses["x"] = 5  # type: ignore[index]
