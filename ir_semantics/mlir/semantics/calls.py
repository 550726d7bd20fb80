"""Calls of functions of which nothing is known: equal operands give equal results, and nothing else happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ir_semantics.elements import terms
from ir_semantics.elements.binders import array, every
from ir_semantics.elements.operators import at_most, both
from ir_semantics.elements.terms import Term, is_true, number
from ir_semantics.mlir import ir
from ir_semantics.scalars.formats import INTEGERS

from .program import Call, MeaningOfValue, Operator
from .tensor import new_subscripts
from .values import DEFINED, Element, Tensor


def _call(call: Call) -> Sequence[MeaningOfValue]:
    callee = call.attribute("callee")
    if not isinstance(callee, ir.SymbolReference):
        raise call.wrong("the callee must be named")
    if callee.nested or callee.root in call.environment.barred:
        outside = "the callee must be a function of the same module", "name one"
        raise call.fail(*call.environment.barred.get(callee.root, outside))
    call.scope.notes[
        f"@{callee.root} is some function of its operands, without effects, whose behaviour is defined"
    ] = None
    operands = [term for operand in call.operands for term in _operand(call, operand)]
    is_defined = both(*map(_whole, call.operands))
    if not is_true(is_defined):
        call.scope.limits.append(
            call.fail("a source that gives to a call what may be undefined has no meaning here", DEFINED)
        )
    return [_result(call, f"{callee.root}#{k}", k, operands, is_defined) for k in range(len(call.operation.results))]


def _whole(operand: MeaningOfValue) -> Term:
    """Whether an operand is defined: only then is a result a function of it, for what may be anything has no equal."""
    if isinstance(operand, Element):
        return operand.defined
    assert isinstance(operand, Tensor)
    at = new_subscripts(len(operand.shape))
    return every(at, operand.shape, operand.at(at).defined)


def _operand(call: Call, operand: MeaningOfValue) -> tuple[Term, ...]:
    """A scalar with whether it is defined, or a whole tensor."""
    if isinstance(operand, Element):
        return operand.value, operand.defined
    if isinstance(operand, Tensor):
        at = new_subscripts(len(operand.shape))
        element = operand.at(at)
        return (array(at, operand.shape, element.value, element.defined),)
    raise call.fail("a call with buffers has no meaning here", "inline it")


def _result(call: Call, name: str, place: int, operands: Sequence[Term], is_defined: Term) -> MeaningOfValue:
    kind = call.result_format(place)
    type_ = call.operation.results[place].type
    if not isinstance(type_, ir.TensorType):
        return Element(terms.call(name, kind, *operands), is_defined)
    shape = []
    for k, size in enumerate(type_.shape):
        if size is None and not is_true(is_defined):
            raise call.fail("a size that depends on what may be undefined has no meaning here", DEFINED)
        unknown = terms.call(f"{name}.size{k}", INTEGERS, *operands) if size is None else number(size)
        call.scope.facts.append(at_most(number(0), unknown))
        shape.append(unknown)
    return Tensor(kind, tuple(shape), lambda at: Element(terms.call(name, kind, *operands, *at), is_defined))


OPERATORS: Mapping[str, Operator] = {"func.call": _call}
"""By name."""
