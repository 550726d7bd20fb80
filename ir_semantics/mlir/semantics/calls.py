"""Calls of functions: what their body does, if they have one.

Of others nothing is known: equal operands give equal results, and nothing else happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ir_semantics.elements import terms
from ir_semantics.elements.binders import array, every
from ir_semantics.elements.operators import at_most, both
from ir_semantics.elements.terms import Term, is_true, number
from ir_semantics.mlir import ir
from ir_semantics.scalars.formats import INTEGERS

from .arguments import block_of, require_known_attributes
from .memory import Buffer
from .program import Call, Environment, MeaningOfValue, Operator, Scope, run_block
from .tensor import new_subscripts
from .values import DEFINED, Element, NotCovered, Tensor


def _call(call: Call) -> Sequence[MeaningOfValue]:
    callee = call.attribute("callee")
    if not isinstance(callee, ir.SymbolReference):
        raise call.wrong("the callee must be named")
    if not callee.nested and callee.root in call.environment.functions:
        return _run(call, callee.root)
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


DEEPEST = 20
"""How deep calls of functions with a body may be nested."""


def _run(call: Call, name: str) -> Sequence[MeaningOfValue]:
    """What the body of a function gives; its operations are taken for ones of the caller."""
    function, here = call.environment.functions[name], call.environment
    if name in here.callers or len(here.callers) == DEEPEST:
        raise call.fail(f"a function that calls itself, or calls nested more than {DEEPEST} deep, have no meaning here")
    require_known_attributes(function)
    block = block_of(function)
    if len(block.arguments) != len(call.operands) or not all(
        a.type == o.type for a, o in zip(block.arguments, call.operation.operands, strict=True)
    ):
        raise call.wrong("operands must be of the types of the function's arguments")
    values = dict(zip(block.arguments, call.operands, strict=True))
    environment = replace(here, values=values, indices=(), callers=(*here.callers, name))
    results = run_function(block, environment, call.scope)
    if [o.type for o in block.operations[-1].operands] != [r.type for r in call.operation.results]:
        raise call.wrong("results must be of the types of the function's results")
    for place, result in enumerate(results):
        if isinstance(result, Tensor):
            call.shaped(result.shape, place)
        if isinstance(result, Buffer) and _has_stack(block):
            raise call.fail("a buffer from a function that has buffers on its stack has no meaning here", "inline it")
    return results


def run_function(block: ir.Block, environment: Environment, scope: Scope) -> tuple[MeaningOfValue, ...]:
    """What a function returns; tensors that may be read from its stack must not be left."""
    read_before = scope.memory.of_tensors
    results = run_block(block, environment, scope)
    if scope.memory.of_tensors != read_before and any(isinstance(r, Tensor) for r in results) and _has_stack(block):
        why = "a tensor from a function with buffers on its stack, and tensors made of buffers, has no meaning here"
        raise NotCovered("func.return", block.operations[-1].position, why, "allocate with memref.alloc")
    return results


def _has_stack(block: ir.Block) -> bool:
    """Whether a function has buffers that end with it."""
    return any(o.name == "memref.alloca" for o in _operations(block))


def _operations(block: ir.Block) -> Iterator[ir.Operation]:
    for operation in block.operations:
        yield operation
        for inner in (b for region in operation.regions for b in region.blocks):
            yield from _operations(inner)


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
