"""Small sizes: there folds and conditions of every tuple are written out, and a solver is asked for inputs.

It is asked with the meaning of bits and floats, so that its models fail in evaluation for few reasons only: functions
that are not known, and folds that are still too long.  Nothing is proved by this.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ir_semantics.elements.binders import substitute, unrolled
from ir_semantics.elements.operators import at_most, both, conjuncts, either, equal, inside, negation, same
from ir_semantics.elements.terms import Symbol, Term, is_false, is_true, number
from ir_semantics.mlir.semantics.function import Meaning
from ir_semantics.mlir.semantics.tensor import new_subscripts
from ir_semantics.mlir.semantics.values import Element, Tensor
from ir_semantics.scalars.formats import INTEGERS

from .models import Models
from .prove import Prover

MOST_STEPS = 64
"""Folds of more steps, and conditions of more tuples, are not written out."""
SECONDS = 10.0
"""Of the processor, for all sizes together."""


@dataclass(frozen=True)
class Goal:
    """What must follow at a place: a result's number, or MEMORY, and subscripts."""

    place: tuple[int, Sequence[Term]]
    hypotheses: tuple[Term, ...]
    goal: Term


def look(prover: Prover, models: Models, known: Sequence[Term], goals: Sequence[Goal]) -> None:
    """Asks at small sizes for inputs on which a goal is false; raises Refuted where evaluation agrees."""
    end = time.process_time() + SECONDS
    bounds = _bounds([t for t in models.search.arguments.scalars if t.kind == INTEGERS])
    for sizes in models.search.small_sizes():
        here = list(conjuncts(_at(t, sizes) for t in (*known, *bounds)))
        if any(map(is_false, here)):
            continue
        for each in goals:
            goal = _at(each.goal, sizes)
            if time.process_time() < end and not is_true(goal):
                models.place, models.sizes = each.place, sizes
                prover.look("at small sizes", [*here, *(_at(t, sizes) for t in each.hypotheses)], goal)


def goals_of(source: Meaning, target: Meaning) -> Iterator[Goal]:
    """That the target's behaviour is defined, and its results are those of the source."""
    yield Goal((0, ()), (), target.behaves)
    for place, (a, b) in enumerate(zip(source.results, target.results, strict=True)):
        at: tuple[Term, ...] = ()
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            shapes = both(*(equal(x, y) for x, y in zip(a.shape, b.shape, strict=True)))
            at = tuple(new_subscripts(len(a.shape)))
            ranges = tuple(inside(i, n) for i, n in zip(at, a.shape, strict=True))
            yield Goal((place, at), ranges, both(shapes, _alike(a.at(at), b.at(at))))
        elif isinstance(a, Element) and isinstance(b, Element):
            yield Goal((place, ()), (), _alike(a, b))


def _bounds(numbers: Sequence[Term]) -> list[Term]:
    """That one number of type index may be large, and none so large that it leaves 64 bits when it is used."""

    def below(n: Term, bits: int) -> Term:
        return both(at_most(number(-(1 << bits)), n), at_most(n, number(1 << bits)))

    pairs = [either(below(a, 10), below(b, 10)) for a, b in combinations(numbers, 2)]
    return [*(below(n, 40) for n in numbers), *pairs]


def _alike(a: Element, b: Element) -> Term:
    return either(negation(a.defined), both(b.defined, same(a.value, b.value)))


def _at(term: Term, sizes: Mapping[Symbol, int]) -> Term:
    """A term at given sizes, written out."""
    return unrolled(substitute(term, {s: number(n) for s, n in sizes.items()}), MOST_STEPS, ("fold", "every"))
