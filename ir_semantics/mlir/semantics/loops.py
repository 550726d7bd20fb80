"""Loops over tensors as linalg has them: affine maps, iteration domains, and folds over reductions.

The result at a subscript is what the operand that it starts from has there, folded over all iterations that write it,
in the order of the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ir_semantics.elements.binders import every, fold
from ir_semantics.elements.operators import (
    at_most,
    below,
    both,
    conjuncts,
    either,
    equal,
    inside,
    minus,
    negation,
    plus,
    quotient,
    remainder,
    times,
)
from ir_semantics.elements.terms import Term, fresh, integer_value, is_false, number
from ir_semantics.mlir.affine import AffineMap, Binary, Constant, Dimension, Expression
from ir_semantics.mlir.affine import Symbol as MapSymbol
from ir_semantics.scalars.formats import BOOLEAN, INTEGERS

from .program import Call, Scope
from .values import Element, Tensor

Body: TypeAlias = Callable[[Sequence[Element], Sequence[Term], Scope], Sequence[Element]]
"""What one iteration yields: elements of all operands, the iteration's subscripts, where it requires things."""


def value_of(call: Call, expression: Expression, dimensions: Sequence[Term], symbols: Sequence[Term] = ()) -> Term:
    """An affine expression; divisors must be positive numbers."""
    match expression:
        case Dimension(position=k):
            return dimensions[k]
        case MapSymbol(position=k):
            return symbols[k]
        case Constant(value=n):
            return number(n)
        case Binary(operator=operator, left=left, right=right):
            a, b = value_of(call, left, dimensions, symbols), value_of(call, right, dimensions, symbols)
            if operator == "+":
                return plus(a, b)
            if operator == "*":
                return times(a, b)
            divisor = integer_value(b)
            if divisor is None:
                call.require(at_most(number(1), b), "a divisor must be positive")
            elif divisor <= 0:
                raise call.wrong("a divisor in an affine map must be positive")
            match operator:
                case "floordiv":
                    return quotient(a, b)
                case "ceildiv":
                    return minus(number(0), quotient(minus(number(0), a), b))
            return remainder(a, b)
    raise call.fail("the affine map has no meaning here")


@dataclass
class Loops:
    """An operation that loops: operands with maps from the iteration; results start from the last ones.

    Iterations of ``parallel`` loops may run at once, so that no two of them may write one element.
    """

    call: Call
    operands: Sequence[Tensor | Element]
    maps: Sequence[AffineMap]
    outputs: int
    body: Body
    extents: Sequence[Term] | None = None
    parallel: frozenset[int] = frozenset()

    def results(self) -> list[Tensor]:
        """The results; what all iterations require is required."""
        extents = tuple(self.extents or self._extents())
        self._require(extents)
        return [self._result(k, extents) for k in range(self.outputs)]

    # -- the domain ----------------------------------------------------------------------------------------

    def _extents(self) -> list[Term]:
        """The extent of each loop: the size of the first dimension that it goes over alone."""
        count = self.maps[0].dimensions
        extents: list[Term | None] = [None] * count
        for operand, map_ in zip(self.operands, self.maps, strict=True):
            if isinstance(operand, Tensor):
                for size, expression in zip(operand.shape, map_.results, strict=True):
                    if isinstance(expression, Dimension) and extents[expression.position] is None:
                        extents[expression.position] = size
        known = [e for e in extents if e is not None]
        if len(known) < count:
            raise self.call.wrong("each loop must go over a dimension of an operand")
        return known

    def _require(self, extents: Sequence[Term]) -> None:
        call = self.call
        variables = [fresh(f"d{k}", INTEGERS) for k in range(len(extents))]
        for operand, map_ in zip(self.operands, self.maps, strict=True):
            if not isinstance(operand, Tensor):
                continue
            if len(map_.results) != len(operand.shape):
                raise call.wrong("a map must have a result for each dimension of its operand")
            for size, expression in zip(operand.shape, map_.results, strict=True):
                if isinstance(expression, Dimension):
                    call.require(
                        equal(extents[expression.position], size), "sizes that one loop goes over must be equal"
                    )
                else:
                    call.require(
                        self._inside(expression, size, extents, variables), "loops must stay inside of operands"
                    )
        inner, running = call.inner(), self._running(len(extents), None)
        self.body(self._elements(variables, running), variables, inner)
        for each in inner.requirements:
            if any((e.value.symbols | e.defined.symbols) & each.condition.symbols for e in running.values()):
                raise call.fail(f"what {each.operator} requires of a result in the making has no meaning here")
        call.require_every(inner, variables, extents)

    def _inside(self, expression: Expression, size: Term, extents: Sequence[Term], variables: Sequence[Term]) -> Term:
        """Whether an expression is inside of a dimension in all iterations."""
        factors = linear_factors(expression)
        if factors is None:
            return every(variables, extents, inside(value_of(self.call, expression, variables), size))
        ends = []
        for is_upper in (False, True):
            at = [
                minus(e, number(1)) if (factors.get(k, 0) > 0) is is_upper else number(0) for k, e in enumerate(extents)
            ]
            ends.append(value_of(self.call, expression, at))
        none = [equal(e, number(0)) for e in extents]
        return either(*none, both(at_most(number(0), ends[0]), below(ends[1], size)))

    # -- elements ------------------------------------------------------------------------------------------

    def _running(self, loops: int, except_for: int | None) -> dict[int, Element]:
        """Unknowns for what results have in the middle of their folds: those that several iterations write."""
        first = len(self.operands) - self.outputs
        unknown = {}
        for k in range(self.outputs):
            over = {e.position for e in self.maps[first + k].results if isinstance(e, Dimension)}
            if k != except_for and len(over) < loops:
                unknown[k] = Element(fresh("acc", self.operands[first + k].kind), fresh("acc_defined", BOOLEAN))
        return unknown

    def _elements(self, at: Sequence[Term], accumulators: Mapping[int, Element]) -> list[Element]:
        """The elements of all operands in one iteration; ``accumulators`` stand for what results have so far."""
        first = len(self.operands) - self.outputs
        elements = []
        for k, (operand, map_) in enumerate(zip(self.operands, self.maps, strict=True)):
            if k - first in accumulators:
                elements.append(accumulators[k - first])
            elif isinstance(operand, Element):
                elements.append(operand)
            else:
                elements.append(operand.at([value_of(self.call, e, at) for e in map_.results]))
        return elements

    def _result(self, place: int, extents: Sequence[Term]) -> Tensor:
        position = len(self.operands) - self.outputs + place
        start, map_ = self.operands[position], self.maps[position]
        if not isinstance(start, Tensor):
            raise self.call.wrong("what a result starts from must be a tensor")
        over: dict[int, int] = {}
        for k, expression in enumerate(map_.results):
            if isinstance(expression, Dimension) and expression.position not in over:
                over[expression.position] = k
            elif isinstance(expression, Constant) and expression.value == 0:
                self.call.require(equal(start.shape[k], number(1)), "loops must write all of a result")
            else:
                why = "results must be written at dimensions of the loops, each once"
                raise self.call.fail(why, "let each dimension of a result have a loop of its own")
        inner = [(k, extent) for k, extent in enumerate(extents) if k not in over]
        if any(k in self.parallel and integer_value(extent) not in (0, 1) for k, extent in inner):
            raise self.call.fail("iterations of a parallel loop that write one element have no meaning here")

        def element(at: tuple[Term, ...]) -> Element:
            return self._folded(place, start.at(at), {k: at[d] for k, d in over.items()}, inner)

        return Tensor(start.kind, start.shape, element)

    def _folded(
        self, place: int, start: Element, outer: Mapping[int, Term], inner: Sequence[tuple[int, Term]]
    ) -> Element:
        """The element of a result: its start, folded over the inner loops."""
        loops = len(outer) + len(inner)
        ranges = [(fresh(f"d{k}", INTEGERS), extent) for k, extent in inner]
        values = {**outer, **{k: v for (k, _), (v, _) in zip(inner, ranges, strict=True)}}
        at = [values[k] for k in range(loops)]
        others = self._running(loops, place)
        mine = start if not inner else Element(fresh("acc", start.kind), fresh("acc_defined", BOOLEAN))
        step = self.body(self._elements(at, {**others, place: mine}), at, self.call.inner())[place]
        used = step.value.symbols | step.defined.symbols
        if any((e.value.symbols | e.defined.symbols) & used for e in others.values()):
            raise self.call.fail("a reduction of several results that need each other has no meaning here")
        if not inner:
            return step
        value = fold(start.value, mine.value, ranges, step.value)
        own = mine.value.symbols | mine.defined.symbols
        if is_false(step.defined):
            return Element(value, both(start.defined, either(*(equal(e, number(0)) for _, e in ranges))))
        parts = list(conjuncts([step.defined]))
        rest = [c for c in parts if c is not mine.defined]
        if any(own & c.symbols for c in rest) or (len(rest) == len(parts) and (rest or own & step.value.symbols)):
            raise self.call.fail("a reduction whose accumulator decides what is defined has no meaning here")
        if len(rest) == len(parts):  # the last iteration says all
            return Element(value, either(start.defined, negation(either(*(equal(e, number(0)) for _, e in ranges)))))
        whole = every([v for v, _ in ranges], [e for _, e in ranges], both(*rest))
        return Element(value, both(start.defined, whole))


def linear_factors(expression: Expression) -> dict[int, int] | None:
    """The factor of each dimension of a linear expression, and at -1 the number that is added; None for others."""
    match expression:
        case Dimension(position=k):
            return {k: 1}
        case Constant(value=n):
            return {-1: n} if n else {}
        case Binary(operator="+", left=left, right=right):
            a, b = linear_factors(left), linear_factors(right)
            if a is None or b is None:
                return None
            return {k: a.get(k, 0) + b.get(k, 0) for k in a.keys() | b.keys()}
        case Binary(operator="*", left=left, right=Constant(value=n)):
            a = linear_factors(left)
            return None if a is None else {k: n * f for k, f in a.items()}
    return None
