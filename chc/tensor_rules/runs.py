"""Evaluations that a PROVED rule between tensor terms survives: both sides at the corners of its sizes and data."""

from __future__ import annotations

import itertools
import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ir_semantics.tensors.conditions import indices_of
from ir_semantics.tensors.elements import indices_of_element
from ir_semantics.tensors.evaluate import shape_at
from ir_semantics.tensors.index import Index
from ir_semantics.tensors.terms import operands_of
from smt_encodings.claims import Equality, Runs
from smt_encodings.runs import Points, corners

from .refute import admitted, replay, shapes_at
from .rule import TensorRule
from .sizes import sizes_within

LARGEST = 512
"""Sizes beyond this are not tried."""
WORK, ONE_RUN = 2_500.0, 1_000.0
"""Elements that are evaluated, as they are estimated: in all, and of one pair of sizes and data."""
MOST_RUNS = 20

Number: TypeAlias = Fraction | float | bool

FINITE: tuple[Number, ...] = (*map(Fraction, (0, 1, -1, 2, -3)), Fraction(1, 1 << 40), Fraction(-1, 1 << 40))
LARGE: tuple[Number, ...] = (Fraction(1 << 64), Fraction(-(1 << 64)))
"""Only where no exponential occurs: it would have as many digits."""
INFINITE: tuple[Number, ...] = (math.inf, -math.inf)
"""Only where the rule is not about real numbers; an operation that they leave without a value says nothing."""
BITS: tuple[Number, ...] = (math.nan, -0.0, Fraction(0), Fraction(1), Fraction(-2), *INFINITE)
"""Numbers of binary32, for rules about bits alone: what follows from them has a NaN where reals have no value."""


def survey(rule: TensorRule, seed: int = 0) -> Runs:
    """Evaluates both sides at corners of the rule's sizes, smallest first, on constant, mixed and random data."""
    draw = random.Random(seed)
    at: dict[str, None] = {}
    left, count = WORK, 0
    for number, point in enumerate(_sizes(rule, draw)):
        cost = _cost(rule, point)
        if cost > ONE_RUN:
            continue
        drawn = _data(rule, point, draw, 3 if not count else 1)
        if rule.equality is Equality.BIT_EXACT and (number < 2 or number % 3 == 0):
            drawn = itertools.chain(drawn, [_bits(rule, point, random.Random(number))])
        for data in drawn:
            left, count = left - cost, count + 1
            at[", ".join(f"{n} = {v}" for n, v in point.items()) or "no sizes"] = None
            difference = replay(rule, point, data)
            if difference is not None:
                shown = f"{difference.difference} where {', '.join(f'{n} = {v}' for n, v in point.items())}"
                return Runs(count, tuple(at), difference=difference, shown=shown)
        if left <= 0 or count >= MOST_RUNS:
            break
    return Runs(count, tuple(at), () if count else ("no sizes were small enough to evaluate both sides",))


def _sizes(rule: TensorRule, draw: random.Random) -> Iterator[dict[str, int]]:
    """The smallest sizes, each size alone at corners, all a little larger, and corners at random."""
    along = {name: corners(_literals(rule), LARGEST) for name in rule.sizes}
    points = Points(along, lambda point: admitted(rule, point), near=4)
    least = next(filter(None, (sizes_within(rule.sizes, rule.premise, 1, n) for n in (5, 9, 16))), [])
    if not least:
        return
    yield least[0]
    together, most, visited = dict(least[0]), dict[str, float](), [least[0]]
    for name in rule.sizes:
        above = points.above(least[0], name)
        most[name] = least[0][name]
        if above is None:
            continue
        yield above
        visited.append(above)
        together |= {name: above[name]} if points.inside(together | {name: above[name]}) else {}
        place = bisect_right(along[name], ONE_RUN, key=lambda v, n=name, p=above: _cost(rule, p | {n: v}))  # type: ignore[misc]
        most[name] = max(above[name], along[name][max(place - 1, 0)])
        largest = points.largest(above, name, most[name])
        if largest is not None:
            yield largest
    yield together
    yield from points.drawn(visited, most, draw) if rule.sizes else ()


def _literals(rule: TensorRule) -> set[int]:
    """The numbers in the premise, in shapes and in elements."""
    indices = [*indices_of(rule.premise), *(i for e in rule.elements for i in indices_of_element(e))]
    indices += [extent for term in operands_of(rule.left, rule.right) for extent in term.shape]
    return set(_numbers(indices))


def _numbers(indices: Iterable[Index]) -> Iterator[int]:
    for each in indices:
        for monomial, coefficient in each.terms:
            yield abs(coefficient)
            for atom in monomial:
                if not isinstance(atom, str):
                    yield from _numbers((atom.dividend, atom.divisor))


def _cost(rule: TensorRule, point: Mapping[str, int]) -> float:
    """About how many elements are evaluated at these sizes.

    A matrix product of shapes [m, k] and [k, n] evaluates m k n elements: the root of the product of the three sizes.
    """
    total = 0.0
    for term in operands_of(rule.left, rule.right):
        try:
            sizes = [math.prod(max(n, 1) for n in shape_at(t, point)) for t in (term, *term.operands)]
        except ZeroDivisionError:
            return math.inf
        total += max(max(sizes), math.sqrt(math.prod(sizes)) if len(sizes) > 2 else 0.0)
    return total


def _filled(shape: tuple[int, ...], number: Callable[[], Number]) -> NDArray[np.object_]:
    array = np.empty(shape, dtype=object)
    for place in itertools.product(*map(range, shape)):
        array[place] = number()
    return array


def _bits(rule: TensorRule, point: Mapping[str, int], draw: random.Random) -> dict[str, NDArray[np.object_]]:
    """Data with a NaN, -0.0 and other numbers of binary32 here and there."""
    masks = {name for name, _ in rule.masks}

    def number(name: str) -> Number:
        if name in masks:
            return draw.random() < 0.5
        return Fraction(draw.randint(1, 9)) if name in rule.positive else draw.choice(BITS)

    return {name: _filled(shape, partial(number, name)) for name, shape in shapes_at(rule, point).items()}


def _data(
    rule: TensorRule, point: Mapping[str, int], draw: random.Random, count: int
) -> Iterator[dict[str, NDArray[np.object_]]]:
    """``count`` sets of data, each of one of these kinds: random, a mixture of extremes, and the same extreme
    everywhere."""
    shapes = shapes_at(rule, point)
    masks = {name for name, _ in rule.masks}
    extremes = FINITE if any("exp(" in str(e) for e in rule.elements) else (*FINITE, *LARGE)
    extremes += () if rule.equality is Equality.OVER_REALS else INFINITE
    for _ in range(count):
        constant, kind = draw.choice(extremes), draw.randrange(3)

        def number(name: str, kind: int = kind, constant: Number = constant) -> Number:
            if name in masks:
                return draw.random() < 0.5 if kind else constant > 0
            drawn: Number = Fraction(draw.randint(-99, 99), draw.choice((1, 1, 4)))
            kinds: list[Number] = [drawn, draw.choice(extremes), constant]
            value = kinds[kind]
            return value if name not in rule.positive or value > 0 else Fraction(1)

        yield {name: _filled(shape, partial(number, name)) for name, shape in shapes.items()}
