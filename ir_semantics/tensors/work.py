"""What an operator does for a result, read off from its element: how long its sums are, if it computes at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .comprehension import extents_of, written
from .elements import Apply, Choice, Element, Reduce, reads
from .selection import moves, taken
from .terms import Tensor, operands_of


@dataclass(frozen=True)
class Work:
    """How many elements are added up, or taken extrema of; how many of these are products; and whether every element of
    the result is one of an operand or a literal.
    """

    steps: int
    products: int
    moves: bool


def work_of(term: Tensor) -> Work:
    """The work of a term of static shape.

    A sum up to a subscript goes on from the one before, and what does not depend on a reduction's variable is computed
    once.
    """
    steps = products = 0
    unchanged = True
    for part in operands_of(term):
        if part.operator != "input":
            element, count = written(part)[0], math.prod(extents_of(part))
            steps += count * _steps(element, lambda body: 1)
            products += count * _steps(element, _is_product)
            unchanged = unchanged and moves(element)
    return Work(steps, products, unchanged)


def _steps(element: Element, weight: Callable[[Element], int]) -> int:
    """The steps of reductions, each of as much weight as its body has."""
    match element:
        case Apply(_, args):
            return sum(_steps(a, weight) for a in args)
        case Choice(_, yes, no):
            return max(_steps(yes, weight), _steps(no, weight))
        case Reduce(_, _, extent, body) if taken(element) is None and reads(element):
            extents = extent.constant if extent.constant is not None else 1
            if isinstance(body, Reduce):
                return extents * _steps(body, weight)
            return extents * weight(body) + _steps(body, weight)
    return 0


def _is_product(body: Element) -> int:
    return int(isinstance(body, Apply) and body.op == "mul" and all(map(reads, body.args)))
