"""Calls of functions of which nothing is known: equal operands give equal results, and nothing else happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ir_semantics.elements import terms
from ir_semantics.elements.binders import array
from ir_semantics.elements.operators import at_most
from ir_semantics.elements.terms import Term, number
from ir_semantics.mlir import ir
from ir_semantics.scalars.formats import INTEGERS

from .program import Call, MeaningOfValue, Operator
from .tensor import new_subscripts
from .values import Element, Tensor, defined


def _call(call: Call) -> Sequence[MeaningOfValue]:
    callee = call.attribute("callee")
    if not isinstance(callee, ir.SymbolReference):
        raise call.fail("the callee must be named")
    if callee.root in call.environment.bodies:
        raise call.fail("a call of a function with a body has no meaning here; inline it")
    call.scope.notes[
        f"@{callee.root} is some function of its operands, without effects, whose behaviour is defined"
    ] = None
    operands = [term for operand in call.operands for term in _operand(call, operand)]
    return [_result(call, f"{callee.root}#{k}", k, operands) for k in range(len(call.operation.results))]


def _operand(call: Call, operand: MeaningOfValue) -> tuple[Term, ...]:
    """A scalar with whether it is defined, or a whole tensor."""
    if isinstance(operand, Element):
        return operand.value, operand.defined
    if isinstance(operand, Tensor):
        at = new_subscripts(len(operand.shape))
        element = operand.at(at)
        return (array(at, operand.shape, element.value, element.defined),)
    raise call.fail("a buffer cannot be given to a call here")


def _result(call: Call, name: str, place: int, operands: Sequence[Term]) -> MeaningOfValue:
    kind = call.result_format(place)
    type_ = call.operation.results[place].type
    if not isinstance(type_, ir.TensorType):
        return defined(terms.call(name, kind, *operands))
    shape = []
    for k, size in enumerate(type_.shape):
        unknown = terms.call(f"{name}.size{k}", INTEGERS, *operands) if size is None else number(size)
        call.scope.facts.append(at_most(number(0), unknown))
        shape.append(unknown)
    return Tensor(kind, tuple(shape), lambda at: defined(terms.call(name, kind, *operands, *at)))


OPERATORS: Mapping[str, Operator] = {"func.call": _call}
"""By name."""
