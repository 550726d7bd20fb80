"""What a function of an MLIR module computes: its results, as elements that are terms, and what it requires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ir_semantics.elements.operators import both, equal
from ir_semantics.elements.terms import Term, integer_value, number
from ir_semantics.mlir import ir

from . import affine, buffers, calls, constants, floats, integers, linalg, tensor
from .arguments import Arguments, block_of, require_known_attributes
from .control import affine as affine_control
from .control import scf
from .memory import Buffer, Memory
from .program import Environment, MeaningOfValue, Operator, Proviso, Reading, Requirement, Scope, run_block
from .tosa import elementwise, movement, reductions
from .values import VERIFY, Element, NotCovered, Tensor, defined

OPERATORS: Mapping[str, Operator] = {
    **constants.OPERATORS,
    **integers.OPERATORS,
    **floats.OPERATORS,
    **tensor.OPERATORS,
    **linalg.OPERATORS,
    **affine.OPERATORS,
    **buffers.OPERATORS,
    **calls.OPERATORS,
    **elementwise.OPERATORS,
    **movement.OPERATORS,
    **reductions.OPERATORS,
    **scf.OPERATORS,
    **affine_control.OPERATORS,
}
"""The meaning of every operator that has one here, by name."""


@dataclass(frozen=True)
class Meaning:
    """Results, what must hold or the behaviour is undefined, memory at the end, and readings that matter."""

    results: tuple[Element | Tensor, ...]
    requirements: tuple[Requirement, ...]
    notes: tuple[str, ...]
    memory: Memory
    facts: tuple[Term, ...] = ()
    limits: tuple[NotCovered, ...] = ()
    """Why this cannot be the source of a refinement."""
    provisos: tuple[Proviso, ...] = ()
    """What must be proved, for this is the meaning only then."""

    @property
    def behaves(self) -> Term:
        """Whether the behaviour is defined."""
        return both(*(r.condition for r in self.requirements))


def meaning_of(
    function: ir.Operation, arguments: Arguments, reading: Reading, functions: Mapping[str, ir.Operation] | None = None
) -> Meaning:
    """The meaning of a function for given arguments; raises NotCovered where an operator has none here.

    ``functions`` are those with a body that it may call, by name.
    """
    block = block_of(function)
    require_known_attributes(function)
    inputs, outputs = map(tuple, signature(function))
    stated = ir.TypeAttribute(ir.FunctionType(inputs, outputs))
    if function.attributes.get("function_type", stated) != stated:
        why = "function_type must be the types of arguments and results"
        raise NotCovered(function.name, function.position, why, VERIFY)
    scope = Scope(reading, arguments.before.memory())
    values = dict(zip(block.arguments, arguments.values, strict=True))
    environment = Environment(values, OPERATORS, (), arguments.before.globals, arguments.barred, functions or {})
    results = run_block(block, environment, scope)
    for result, value in zip(results, block.operations[-1].operands, strict=True):
        if isinstance(result, Tensor) and isinstance(value.type, ir.TensorType):
            _require_stated(scope, function, result, value.type)
    types = (v.type for v in (*block.arguments, *(r for o in block.operations for r in o.results)))
    if len({t.element for t in types if isinstance(t, ir.MemRefType)}) > 1:
        scope.notes["buffers of elements of different types share no memory"] = None
    shown = [each for result in results for each in _parts(function, result)]
    return Meaning(
        tuple(shown),
        tuple(scope.requirements),
        tuple(scope.notes),
        scope.memory,
        tuple(scope.facts),
        tuple(scope.limits),
        tuple(scope.provisos),
    )


def _parts(function: ir.Operation, result: MeaningOfValue) -> Sequence[Element | Tensor]:
    """A result; of a buffer its block, offset, sizes and strides."""
    if not isinstance(result, Buffer):
        return [result]
    known = integer_value(result.block)
    if (known is None or known < 0) and result.block.op != "symbol":
        why = "a buffer that the function makes or chooses cannot be returned here"
        raise NotCovered("func.return", function.position, why, "write to an argument in its place")
    return [defined(n) for n in (result.block, result.offset, *result.shape, *result.strides)]


def _require_stated(scope: Scope, function: ir.Operation, result: Tensor, type_: ir.TensorType) -> None:
    for size, stated in zip(result.shape, type_.shape, strict=True):
        if stated is not None:
            condition = equal(size, number(stated))
            scope.requirements.append(
                Requirement(condition, "a result must have the sizes of its type", "func.return", function.position)
            )


def signature(function: ir.Operation) -> tuple[Sequence[ir.Type], Sequence[ir.Type]]:
    """The types of arguments and results."""
    block = block_of(function)
    return [a.type for a in block.arguments], [o.type for o in block.operations[-1].operands]
