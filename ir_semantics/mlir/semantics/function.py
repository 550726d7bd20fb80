"""What a function of an MLIR module computes: its results, as elements that are terms, and what it requires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ir_semantics.elements.operators import at_most, both, equal
from ir_semantics.elements.terms import Input, Term, fresh, number, read
from ir_semantics.mlir import ir
from ir_semantics.scalars.formats import INTEGERS

from . import affine, constants, floats, integers, linalg, tensor
from .program import Environment, Operator, Reading, Requirement, Scope, run_block
from .tosa import elementwise, movement, reductions
from .values import MeaningOfValue, NotCovered, Tensor, defined, format_of

OPERATORS: Mapping[str, Operator] = {
    **constants.OPERATORS,
    **integers.OPERATORS,
    **floats.OPERATORS,
    **tensor.OPERATORS,
    **linalg.OPERATORS,
    **affine.OPERATORS,
    **elementwise.OPERATORS,
    **movement.OPERATORS,
    **reductions.OPERATORS,
}
"""The meaning of every operator that has one here, by name."""


@dataclass
class Arguments:
    """The inputs of a function: unknown numbers and tensors, whose dynamic sizes are unknown, too."""

    values: list[MeaningOfValue] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    sizes: list[Term] = field(default_factory=list)
    scalars: list[Term] = field(default_factory=list)
    arrays: list[Input] = field(default_factory=list)
    facts: list[Term] = field(default_factory=list)
    """What holds of sizes and of numbers of type index."""


@dataclass(frozen=True)
class Meaning:
    """Results, and what must hold or the behaviour is undefined; ``notes`` are readings that matter."""

    results: tuple[MeaningOfValue, ...]
    requirements: tuple[Requirement, ...]
    notes: tuple[str, ...]

    @property
    def behaves(self) -> Term:
        """Whether the behaviour is defined."""
        return both(*(r.condition for r in self.requirements))


def arguments_of(function: ir.Operation) -> Arguments:
    """Unknowns for the arguments of a function; raises NotCovered for types that have no meaning here."""
    arguments = Arguments()
    for place, value in enumerate(_block(function).arguments):
        name = f"arg{place}"  # names in the text count over the whole file
        arguments.names.append(name)
        arguments.values.append(_argument(function, arguments, value.type, name))
    return arguments


def _argument(function: ir.Operation, arguments: Arguments, type_: ir.Type, name: str) -> MeaningOfValue:
    kind = format_of(type_.element if isinstance(type_, ir.TensorType) else type_)
    if kind is None or (isinstance(type_, ir.TensorType) and type_.encoding is not None):
        raise NotCovered("func.func", function.position, f"an argument of the type {type_} has no meaning here")
    if not isinstance(type_, ir.TensorType):
        scalar = fresh(name, kind)
        arguments.scalars.append(scalar)
        if kind == INTEGERS:
            arguments.facts += [at_most(number(-(1 << 63)), scalar), at_most(scalar, number((1 << 63) - 1))]
        return defined(scalar)
    shape = []
    for k, size in enumerate(type_.shape):
        if size is None:
            unknown = fresh(f"{name}_dim{k}", INTEGERS)
            arguments.sizes.append(unknown)
            arguments.facts.append(at_most(number(0), unknown))
            shape.append(unknown)
        else:
            shape.append(number(size))
    array = Input(name, kind, tuple(shape))
    arguments.arrays.append(array)
    return Tensor(kind, array.shape, lambda at: defined(read(array, at)))


def meaning_of(function: ir.Operation, arguments: Arguments, reading: Reading) -> Meaning:
    """The meaning of a function for given arguments; raises NotCovered where an operator has none here."""
    block = _block(function)
    scope = Scope(reading)
    values = dict(zip(block.arguments, arguments.values, strict=True))
    results = run_block(block, Environment(values, OPERATORS), scope)
    for result, value in zip(results, block.operations[-1].operands, strict=True):
        if isinstance(result, Tensor) and isinstance(value.type, ir.TensorType):
            _require_stated(scope, function, result, value.type)
    return Meaning(tuple(results), tuple(scope.requirements), tuple(scope.notes))


def _require_stated(scope: Scope, function: ir.Operation, result: Tensor, type_: ir.TensorType) -> None:
    for size, stated in zip(result.shape, type_.shape, strict=True):
        if stated is not None:
            condition = equal(size, number(stated))
            scope.requirements.append(
                Requirement(condition, "a result must have the sizes of its type", "func.return", function.position)
            )


def _block(function: ir.Operation) -> ir.Block:
    if len(function.regions) != 1 or len(function.regions[0].blocks) != 1:
        raise NotCovered("func.func", function.position, "a function must be one block; inline or unroll control flow")
    return function.regions[0].blocks[0]


def signature(function: ir.Operation) -> tuple[Sequence[ir.Type], Sequence[ir.Type]]:
    """The types of arguments and results."""
    block = _block(function)
    return [a.type for a in block.arguments], [o.type for o in block.operations[-1].operands]
