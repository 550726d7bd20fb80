"""What a function of an MLIR module computes: its results, as elements that are terms, and what it requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ir_semantics.elements.operators import both, equal, negation
from ir_semantics.elements.terms import Term, integer_value, is_true, number, truth
from ir_semantics.mlir import ir
from ir_semantics.scalars.formats import Format

from . import affine, buffers, calls, constants, floats, integers, linalg, tensor
from .arguments import Arguments, block_of, require_known_attributes
from .control import affine as affine_control
from .control import scf
from .memory import Buffer, Memory
from .program import Environment, MeaningOfValue, Operator, Proviso, Reading, Requirement, Scope
from .tosa import elementwise, movement, reductions
from .values import VERIFY, Element, NotCovered, Rule, Tensor, defined, undefined

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
    """Named results, what must hold or the behaviour is undefined, memory at the end, and readings that matter."""

    names: tuple[str, ...]
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
    results = calls.run_function(block, environment, scope)
    for result, value in zip(results, block.operations[-1].operands, strict=True):
        if isinstance(result, Tensor) and isinstance(value.type, ir.TensorType):
            _require_stated(scope, function, result, value.type)
    types = (v.type for v in (*block.arguments, *(r for o in block.operations for r in o.results)))
    if len({t.element for t in types if isinstance(t, ir.MemRefType)}) > 1:
        scope.notes["buffers of elements of different types share no memory"] = None
    names, shown = zip(*_parts(function, results, scope.memory), strict=True) if results else ((), ())
    return Meaning(
        names,
        shown,
        tuple(scope.requirements),
        tuple(scope.notes),
        scope.memory,
        tuple(scope.facts),
        tuple(scope.limits),
        tuple(scope.provisos),
    )


def _parts(
    function: ir.Operation, results: Sequence[MeaningOfValue], memory: Memory
) -> Iterator[tuple[str, Element | Tensor]]:
    """Results with their names; of a buffer all that a caller can tell.

    That is its block, offset, sizes and strides, whether it is no view, which alone is freed, and of a new block
    whether it is alive, and what it and all of its block holds, as memref.reinterpret_cast reaches beyond a view.
    A new block is known by the first result that lies in it.  What blocks hold that were there before is compared with
    all of memory.
    """
    new: list[int] = []
    for k, result in enumerate(results):
        name = f"result {k}"
        if not isinstance(result, Buffer):
            yield name, result
            continue
        block, known, kept, holds = result.block, integer_value(result.block), truth(True), _nothing(result.kind)
        extent, around = number(0), holds
        if known is not None and known < 0:
            if not is_true(memory.freeable(block)) or not is_true(memory.writable(block)):
                why = "a new buffer that the caller may not write, or not free, cannot be returned here"
                raise NotCovered("func.return", function.position, why, "make it by memref.alloc")
            new += [known] * (known not in new)
            kept, holds, extent = memory.alive(block), _contents(result, memory), memory.size(block)
            around = _contents(Buffer(result.kind, block, number(0), (extent,), (number(1),)), memory)
            block = number(-1 - new.index(known))
        elif known is None and block.op != "symbol":
            why = "a buffer that the function chooses cannot be returned here"
            raise NotCovered("func.return", function.position, why, "write to an argument in its place")
        yield f"the block of {name}", defined(block)
        yield f"the offset of {name}", defined(result.offset)
        for d, (size, stride) in enumerate(zip(result.shape, result.strides, strict=True)):
            yield f"size {d} of {name}", defined(size)
            yield f"stride {d} of {name}", defined(stride)
        yield f"that {name} is no view", Element(truth(True), negation(result.is_view))
        yield f"that {name} is alive", Element(truth(True), kept)
        yield f"what {name} holds", Tensor(result.kind, result.shape, holds)
        yield f"the memory around {name}", Tensor(result.kind, (extent,), around)


def _contents(buffer: Buffer, memory: Memory) -> Rule:
    def rule(at: Sequence[Term]) -> Element:
        element = memory.cells(buffer.place_of(at))
        return Element(element.value, both(memory.alive(buffer.block), element.defined))

    return rule


def _nothing(kind: Format) -> Rule:
    return lambda _: undefined(kind)


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
