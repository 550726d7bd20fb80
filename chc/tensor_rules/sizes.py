"""Sizes that satisfy the condition of a rule: small ones, and drawn ones."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ir_semantics.tensors.conditions import All, AtLeastZero, Condition, holds, variables_of
from ir_semantics.tensors.index import index_of


def all_hold(conditions: Sequence[Condition], point: dict[str, int]) -> bool:
    """Whether conditions hold at a point, and say something there: none divides by 0."""
    try:
        return all(holds(c, point) for c in conditions)
    except ZeroDivisionError:
        return False


def sizes_within(variables: Sequence[str], condition: Condition, most: int, largest: int) -> list[dict[str, int]]:
    """Up to ``most`` assignments of sizes (0 to ``largest``) that satisfy a condition, small sums first.

    A size of which the condition says that it is larger than that goes so far beyond its least value.
    """
    least, checks = _plan(variables, condition)
    assignments: list[dict[str, int]] = []

    def extend(point: dict[str, int], budget: int) -> None:
        position = len(point)
        if position == len(variables):
            if budget == 0:
                assignments.append(dict(point))
            return
        variable = variables[position]
        for value in range(least[variable], min(_top(least[variable], largest), least[variable] + budget) + 1):
            if len(assignments) >= most:
                break
            point[variable] = value
            if all_hold(checks[position], point):
                extend(point, budget - (value - least[variable]))
            del point[variable]

    for budget in range(largest * len(variables) + 1):
        extend({}, budget)
        if len(assignments) >= most:
            break
    return assignments


def _top(least: int, largest: int) -> int:
    return largest if least <= largest else least + largest


def sizes_drawn(
    variables: Sequence[str], condition: Condition, most: int, largest: int, draw: random.Random
) -> list[dict[str, int]]:
    """Up to ``most`` random assignments of sizes (rarely 0) that satisfy a condition; as large as in sizes_within."""
    least, checks = _plan(variables, condition)
    assignments: dict[tuple[int, ...], dict[str, int]] = {}
    for _ in range(6 * most):
        point: dict[str, int] = {}
        for position, variable in enumerate(variables):
            for _ in range(4):
                start = least[variable] if least[variable] > largest else 1
                start = min(least[variable], start) if draw.random() < 0.1 else start
                point[variable] = draw.randint(start, _top(least[variable], largest))
                if all_hold(checks[position], point):
                    break
            else:
                break
        else:
            assignments[tuple(point.values())] = point
        if len(assignments) >= most:
            break
    return list(assignments.values())


def _plan(variables: Sequence[str], condition: Condition) -> tuple[dict[str, int], list[list[Condition]]]:
    """The least value of each variable, and the parts of a condition that can be checked once it is chosen."""
    parts = condition.parts if isinstance(condition, All) else (condition,)
    checks: list[list[Condition]] = [[] for _ in variables]
    for part in parts:
        if needed := [variables.index(v) for v in variables_of(part)]:
            checks[max(needed)].append(part)
    bounds = [part.value for part in parts if isinstance(part, AtLeastZero)]
    return {
        v: max([0, *(-c for b in bounds if (c := (b - index_of(v)).constant) is not None)]) for v in variables
    }, checks
