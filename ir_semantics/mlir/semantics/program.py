"""Functions of operations: values by name, what a program requires of its inputs, and operators by their meaning.

What an operator requires must hold of every run, or the program's behaviour is undefined from its beginning; operators
may run in any order, so requirements are a set of conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ir_semantics.elements.binders import every
from ir_semantics.elements.operators import equal
from ir_semantics.elements.terms import Term, is_true, number
from ir_semantics.mlir import ir
from ir_semantics.mlir.affine import AffineMap
from ir_semantics.scalars.formats import INTEGERS, Format

from .memory import Buffer, Global, Memory
from .values import DEFINED, VERIFY, WITHOUT, Element, NotCovered, Tensor, format_of

MeaningOfValue: TypeAlias = Element | Tensor | Buffer


@dataclass(frozen=True)
class Requirement:
    """A condition without which a program's behaviour is undefined, why, and where.

    ``at`` are subscripts at which conditions of every tuple may be of use to a proof.
    """

    condition: Term
    reason: str
    operator: str
    position: ir.Position
    at: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Proviso:
    """A condition without which a meaning is not that of the program, and what to say then.

    ``after`` are requirements of operations before, which may be used to prove it.
    """

    condition: Term
    otherwise: NotCovered
    after: tuple[Requirement, ...] = ()


@dataclass(frozen=True)
class Reading:
    """Where MLIR leaves something open, or people differ: what is taken.

    ``use_neg_zero``: the literal +0.0 is read as -0.0 where a tensor is filled or padded with it, and where a region
    yields it.  ``sums_start_at_minus_zero``: TOSA's sums, also those of convolutions, start at -0.0, which changes no
    value; else they start at +0.0, as TOSA 1.0 writes.  ``dynamic_broadcast``: a dynamic size of 1 is broadcast by
    TOSA's operators; else behaviour is undefined where dynamic sizes differ.  ``buffers_apart``: arguments that are
    buffers are blocks of their own, from their beginning; else they may overlap.  ``unwritten_reads``: to read an
    element of a buffer that was never written gives a value that may be anything; else behaviour is undefined.
    """

    use_neg_zero: bool = False
    sums_start_at_minus_zero: bool = False
    dynamic_broadcast: bool = True
    buffers_apart: bool = False
    unwritten_reads: bool = True

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not the usual reading, in words."""
        words = {
            "+0.0 is read as -0.0 where tensors are filled or padded with it": self.use_neg_zero,
            "TOSA's sums start at -0.0": self.sums_start_at_minus_zero,
            "dynamic sizes are not broadcast": not self.dynamic_broadcast,
            "arguments that are buffers are blocks of their own": self.buffers_apart,
            "to read what was never written is undefined behaviour": not self.unwritten_reads,
        }
        return tuple(text for text, holds in words.items() if holds)


@dataclass
class Scope:
    """What the operations of one block, or of a program, require; and the reading."""

    reading: Reading
    memory: Memory
    requirements: list[Requirement] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    facts: list[Term] = field(default_factory=list)
    """What holds of sizes that functions give."""
    limits: list[NotCovered] = field(default_factory=list)
    """Why a source has no meaning: it takes as undefined what may not be."""
    provisos: list[Proviso] = field(default_factory=list)

    def inner(self, memory: Memory) -> Scope:
        """A scope for a region that starts with a memory."""
        return Scope(self.reading, memory, notes=self.notes, facts=self.facts, limits=self.limits)


@dataclass(frozen=True)
class Environment:
    """What a block sees: values, the subscripts of the iteration it is in, and the meaning of operators."""

    values: Mapping[ir.Value, MeaningOfValue]
    operators: Mapping[str, Operator]
    indices: tuple[Term, ...] = ()
    globals: Mapping[str, Global] = field(default_factory=dict)
    barred: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Why functions of the modules cannot be called, by name, and the next step."""
    functions: Mapping[str, ir.Operation] = field(default_factory=dict)
    """Functions with a body that may be called, by name."""
    callers: tuple[str, ...] = ()
    """Functions that are being called."""


@dataclass
class Call:
    """An operation with the meaning of its operands."""

    operation: ir.Operation
    operands: tuple[MeaningOfValue, ...]
    scope: Scope
    environment: Environment
    taken: set[str] = field(default_factory=set)
    """The names of the attributes that the meaning has looked at."""

    def __post_init__(self) -> None:
        self.memory = self.scope.memory
        """The memory before the operation; elements of its results are said later, when the scope's is another one."""

    def inner(self) -> Scope:
        """A scope for the region, with the memory before the operation."""
        return self.scope.inner(self.memory)

    @property
    def name(self) -> str:
        """The operator."""
        return self.operation.name

    def fail(self, why: str, step: str = WITHOUT) -> NotCovered:
        """What to raise where there is no meaning; ``step`` is the user's next one."""
        return NotCovered(self.name, self.operation.position, why, step)

    def wrong(self, why: str) -> NotCovered:
        """What to raise where the text is not valid."""
        return self.fail(why, VERIFY)

    # -- operands ------------------------------------------------------------------------------------------

    def element(self, place: int) -> Element:
        """A scalar operand."""
        operand = self.operands[place]
        if not isinstance(operand, Element):
            raise self.wrong(f"operand {place} must be a scalar")
        return operand

    def tensor(self, place: int) -> Tensor:
        """A tensor operand."""
        operand = self.operands[place]
        if not isinstance(operand, Tensor):
            raise self.wrong(f"operand {place} must be a tensor")
        return operand

    def buffer(self, place: int) -> Buffer:
        """A buffer that is an operand."""
        operand = self.operands[place]
        if not isinstance(operand, Buffer):
            raise self.wrong(f"operand {place} must be a buffer")
        return operand

    def tensors(self) -> list[Tensor]:
        """All operands, tensors."""
        return [self.tensor(i) for i in range(len(self.operands))]

    def size(self, place: int) -> Term:
        """An operand of type index, which must be defined."""
        return self.used(self.element(place), "an index is used that is not defined")

    def used(self, element: Element, reason: str) -> Term:
        """The value of a scalar that must be defined."""
        self.require(element.defined, reason)
        return element.value

    def settled(self, element: Element, reason: str) -> Term:
        """As :meth:`used`, where MLIR does not say that behaviour is undefined else: a source has no meaning then."""
        if not is_true(element.defined):
            self.scope.limits.append(self.fail(f"{reason}, which has no meaning here in a source", DEFINED))
        return self.used(element, reason)

    def require(self, condition: Term, reason: str, at: Sequence[Term] = ()) -> None:
        """States what must hold."""
        if not is_true(condition):
            place = self.operation.position
            self.scope.requirements.append(Requirement(condition, reason, self.name, place, tuple(at)))

    def require_every(self, inner: Scope, variables: Sequence[Term], extents: Sequence[Term]) -> None:
        """Requires what a region requires, for all values of variables below extents; it must not write."""
        if inner.memory is not self.memory:
            raise self.fail("a region that writes has no meaning here")
        if inner.provisos:
            raise self.fail("a loop over buffers has no meaning in this region")
        for each in inner.requirements:
            condition = every(variables, extents, each.condition)
            if not is_true(condition):
                self.scope.requirements.append(Requirement(condition, each.reason, each.operator, each.position))

    def require_equal(self, a: Sequence[Term], b: Sequence[Term], reason: str) -> None:
        """States that shapes are equal."""
        if len(a) != len(b):
            raise self.wrong(f"{reason}: {len(a)} and {len(b)} dimensions")
        for x, y in zip(a, b, strict=True):
            self.require(equal(x, y), reason)

    # -- results -------------------------------------------------------------------------------------------

    def result_format(self, place: int = 0) -> Format:
        """The format of a result, or of its elements."""
        return self.format(self.operation.results[place].type)

    def format(self, type_: ir.Type) -> Format:
        """The format of a type, or of its elements."""
        element = type_.element if isinstance(type_, ir.TensorType | ir.MemRefType) else type_
        kind = format_of(element)
        if kind is None:
            raise self.fail(f"values of the type {element} have no meaning here")
        return kind

    def result_shape(self, place: int = 0) -> ir.Shape:
        """The shape that the type of a result states."""
        type_ = self.operation.results[place].type
        if not isinstance(type_, ir.TensorType):
            raise self.wrong("the result must be a tensor")
        return type_.shape

    def shaped(self, sizes: Sequence[Term], place: int = 0, reason: str = "sizes must be those of the type") -> None:
        """Requires that sizes are those that the type of a result states."""
        shape = self.result_shape(place)
        if len(shape) != len(sizes):
            raise self.wrong(f"the result must have {len(sizes)} dimensions, not {len(shape)}")
        for stated, size in zip(shape, sizes, strict=True):
            if stated is not None:
                self.require(equal(size, number(stated)), reason)

    # -- attributes ----------------------------------------------------------------------------------------

    def attribute(self, *names: str) -> ir.Attribute | None:
        """The first of some attributes that there is, which is taken by that."""
        name = next((n for n in names if n in self.operation.attributes), None)
        if name is None:
            return None
        self.taken.add(name)
        return self.operation.attributes[name]

    def has(self, name: str) -> bool:
        """Whether there is an attribute that says all by being there."""
        value = self.attribute(name)
        if value is not None and not isinstance(value, ir.UnitAttribute):
            raise self.wrong(f"the attribute {name} must be unit")
        return value is not None

    def require_all_taken(self) -> None:
        """Raises where the operation has an attribute that its meaning has not looked at."""
        for name in self.operation.attributes:
            if name not in self.taken and not says_nothing(self.name, name):
                raise self.fail(f"the attribute {name} has no meaning here")

    def whole(self, name: str) -> int:
        """An integer attribute."""
        value = self.attribute(name)
        if not isinstance(value, ir.IntegerAttribute):
            raise self.wrong(f"the attribute {name} must be an integer")
        return value.value

    def axis(self, name: str, rank: int) -> int:
        """An attribute that is a dimension of a tensor."""
        value = self.whole(name)
        if not 0 <= value < rank:
            raise self.wrong(f"the attribute {name} must be a dimension, from 0 to {rank - 1}, not {value}")
        return value

    def wholes(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A list of integers, as an array, a dense array or a dense constant."""
        value = self.attribute(name)
        match value:
            case None if default is not None:
                return list(default)
            case ir.DenseArray(values=values):
                return list(values)
            case ir.DenseElements():
                numbers = value.all_integers(MOST_LISTED)
                if numbers is None:
                    raise self.wrong(f"the attribute {name} must list at most {MOST_LISTED} integers")
                return numbers
            case ir.ArrayAttribute(elements=elements):
                if all(isinstance(e, ir.IntegerAttribute) for e in elements):
                    return [e.value for e in elements if isinstance(e, ir.IntegerAttribute)]
        raise self.wrong(f"the attribute {name} must be a list of integers")

    def maps(self, name: str) -> list[AffineMap]:
        """A list of affine maps."""
        value = self.attribute(name)
        if isinstance(value, ir.ArrayAttribute) and all(isinstance(e, AffineMap) for e in value.elements):
            return [e for e in value.elements if isinstance(e, AffineMap)]
        raise self.wrong(f"the attribute {name} must be a list of maps")

    def segments(self) -> list[tuple[MeaningOfValue, ...]]:
        """The operands in the groups that ``operandSegmentSizes`` states."""
        groups, start = [], 0
        for length in self.wholes("operandSegmentSizes"):
            groups.append(self.operands[start : start + length])
            start += length
            if length < 0:
                raise self.wrong("operandSegmentSizes must not be negative")
        if start != len(self.operands):
            raise self.wrong(f"operandSegmentSizes must group {len(self.operands)} operands, not {start}")
        return groups

    def mixed(self, static: Sequence[int], dynamic: Sequence[MeaningOfValue]) -> list[Term]:
        """Numbers, of which those that are dynamic are operands."""
        rest, numbers = list(dynamic), []
        for each in static:
            if each == DYNAMIC:
                first = rest.pop(0) if rest else None
                if not isinstance(first, Element):
                    raise self.wrong("there must be an operand for each dynamic size")
                numbers.append(self.settled(first, "a size, an offset or a stride may be undefined"))
            else:
                numbers.append(number(each))
        if rest:
            raise self.wrong("there must be a dynamic size for each operand")
        return numbers

    # -- regions -------------------------------------------------------------------------------------------

    @property
    def body(self) -> ir.Block:
        """The block of the first region."""
        regions = self.operation.regions
        if not regions or len(regions[0].blocks) != 1:
            raise self.wrong("the region must be one block")
        return regions[0].blocks[0]

    def run_region(
        self, block: ir.Block, arguments: Sequence[MeaningOfValue], scope: Scope, indices: Sequence[Term] = ()
    ) -> tuple[MeaningOfValue, ...]:
        """What a block of the operation yields for given arguments; ``indices`` are those of ``linalg.index``."""
        if len(block.arguments) != len(arguments):
            raise self.wrong(f"the block must have {len(arguments)} arguments, not {len(block.arguments)}")
        if not all(_is_of(v, a.type) for v, a in zip(arguments, block.arguments, strict=True)):
            raise self.wrong("the arguments of the block must be of the types of what they stand for")
        values = {**self.environment.values, **dict(zip(block.arguments, arguments, strict=True))}
        return run_block(block, replace(self.environment, values=values, indices=tuple(indices)), scope)

    def run_body(
        self, arguments: Sequence[MeaningOfValue], scope: Scope, indices: Sequence[Term] = ()
    ) -> list[Element]:
        """What the block yields, which are scalars."""
        yielded = self.run_region(self.body, arguments, scope, indices)
        elements = [e for e in yielded if isinstance(e, Element)]
        if len(elements) != len(yielded):
            raise self.wrong("the block must yield scalars")
        return elements


Operator: TypeAlias = Callable[[Call], Sequence[MeaningOfValue]]
"""The meaning of an operator: what its results are; requirements are stated beside."""


def run_block(block: ir.Block, environment: Environment, scope: Scope) -> tuple[MeaningOfValue, ...]:
    """The operands of the block's last operation, in a scope that gets what its operations require."""
    values = dict(environment.values)
    for operation in block.operations:
        here = replace(environment, values=values)
        late = next((o for o in operation.operands if o not in values), None)
        if late is not None:
            why = f"%{late.name} must be defined before it is used"
            raise NotCovered(operation.name, operation.position, why, VERIFY)
        call = Call(operation, tuple(values[o] for o in operation.operands), scope, here)
        if operation is block.operations[-1]:
            if operation.results or operation.name not in _TERMINATORS:
                raise call.wrong("a block must end with a return or a yield")
            yielded: Sequence[MeaningOfValue] = call.operands
            if operation.regions:
                if operation.name not in environment.operators:
                    raise call.fail("a region at the end of a block has no meaning here")
                yielded = environment.operators[operation.name](call)
            call.require_all_taken()
            return tuple(yielded)
        if operation.name not in environment.operators:
            raise call.fail("the operator has no meaning here")
        try:
            results = environment.operators[operation.name](call)
        except (IndexError, TypeError, ValueError) as error:
            raise call.wrong(f"operands, attributes and types of the operation do not fit: {error}") from error
        call.require_all_taken()
        if not all(_is_of(v, r.type) for v, r in zip(results, operation.results, strict=True)):
            raise call.wrong("operands, attributes and types of the operation do not fit")
        values.update(zip(operation.results, results, strict=True))
    raise ValueError("a block must have operations")


def _is_of(value: MeaningOfValue, type_: ir.Type) -> bool:
    """Whether a result is of the format and the rank that its type states; a verifier need not have seen the text."""
    if isinstance(value, Element):
        return value.kind == format_of(type_)
    if isinstance(type_, ir.OpaqueType):  # !tosa.shape
        return isinstance(value, Tensor) and value.kind == INTEGERS
    if not isinstance(type_, ir.TensorType if isinstance(value, Tensor) else ir.MemRefType):
        return False
    return value.kind == format_of(type_.element) and len(value.shape) == len(type_.shape)


_SAYS_NOTHING = frozenset({
    "operandSegmentSizes",  # groups operands; where their number does not say the groups, the meaning takes it
    "linalg.cast",  # how the region converts its operands, and the region is there
    "tensor.nofold",  # forbids a simplification, and changes no value
    "tosa.local_bound",  # which error a conformance test allows
    "func.no_inline",
    "memref.alloc.alignment", "memref.alloca.alignment",  # a promise of the operation, and places have no numbers here
    "memref.nontemporal",  # a hint to caches
    "bufferization.restrict", "bufferization.writable", "bufferization.read_only",  # of use to bufferization alone
})  # fmt: skip
"""Attributes without a meaning of their own, some of one dialect or operator."""


def says_nothing(operator: str, name: str) -> bool:
    """Whether an attribute changes no value: of :data:`_SAYS_NOTHING`, or one that any pass may drop.

    Names with a dot belong to a dialect, not to the operator, and MLIR lets passes drop them; names that start with
    ``__`` are passes' own marks.
    """
    dialect = operator.partition(".")[0]
    return (
        "." in name
        or name.startswith("__")
        or not _SAYS_NOTHING.isdisjoint({name, f"{dialect}.{name}", f"{operator}.{name}"})
    )


_TERMINATORS = frozenset({
    "func.return", "linalg.yield", "tensor.yield", "tosa.yield", "scf.yield", "affine.yield", "scf.reduce",
    "scf.reduce.return", "scf.forall.in_parallel",
})  # fmt: skip

MOST_LISTED = 1 << 16
"""The most integers that an attribute lists."""
DYNAMIC = -(1 << 63)
"""Stands for a dynamic size in lists of static ones."""
