"""Loops and choices of affine, whose bounds and conditions are affine maps and sets.

Source: the MLIR documentation of the dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from ir_semantics.elements.operators import at_most, both, equal
from ir_semantics.elements.terms import number
from ir_semantics.mlir.affine import AffineMap, IntegerSet
from ir_semantics.mlir.semantics.affine import extreme_of, results_of
from ir_semantics.mlir.semantics.program import Call, MeaningOfValue, Operator

from .scf import bound, branches, loop, parallel


def _map(call: Call, name: str) -> AffineMap:
    map_ = call.attribute(name)
    if not isinstance(map_, AffineMap):
        raise call.wrong("the bounds must be affine maps")
    return map_


def _for(call: Call) -> Sequence[MeaningOfValue]:
    lower, upper, starts = call.segments()
    low, high = (
        bound(call, extreme_of(results_of(call, _map(call, name), operands), is_smallest))
        for name, operands, is_smallest in (("lowerBoundMap", lower, False), ("upperBoundMap", upper, True))
    )
    return loop(call, [(low, high, number(call.whole("step")))], starts)


def _parallel(call: Call) -> Sequence[MeaningOfValue]:
    """The bounds of each loop are the largest and the smallest of a group of a map's results."""
    if call.wholes("reductions") or call.operation.results:
        raise call.fail("a parallel reduction has no meaning here", "lower it to scf first")
    maps = [_map(call, f"{side}BoundsMap") for side in ("lower", "upper")]
    first = maps[0].dimensions + maps[0].symbols
    ends = []
    for map_, side, operands in zip(
        maps, ("lower", "upper"), (call.operands[:first], call.operands[first:]), strict=True
    ):
        results, groups = results_of(call, map_, operands), call.wholes(f"{side}BoundsGroups")
        places = [sum(groups[:k]) for k in range(len(groups) + 1)]
        if places[-1] != len(results) or min(groups, default=0) < 1:
            raise call.wrong(f"{side}BoundsGroups must group the results of the map")
        ends.append([bound(call, extreme_of(results[i:j], side == "upper")) for i, j in pairwise(places)])
    steps = map(number, call.wholes("steps"))
    return parallel(call, list(zip(*ends, steps, strict=True)))


def _if(call: Call) -> Sequence[MeaningOfValue]:
    stated = call.attribute("condition")
    if not isinstance(stated, IntegerSet):
        raise call.wrong("the condition must be an affine set")
    map_ = AffineMap(stated.dimensions, stated.symbols, tuple(e for e, _ in stated.constraints))
    values = [
        call.settled(e, "a branch is chosen by a condition that may be undefined")
        for e in results_of(call, map_, call.operands)
    ]
    holds = (
        equal(v, number(0)) if is_equality else at_most(number(0), v)
        for v, (_, is_equality) in zip(values, stated.constraints, strict=True)
    )
    return branches(call, both(*holds))


OPERATORS: Mapping[str, Operator] = {"affine.for": _for, "affine.parallel": _parallel, "affine.if": _if}
"""By name."""
