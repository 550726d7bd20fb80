"""What an MLIR file says: types, attributes, and operations with their values, blocks and regions.

Types and attributes are equal where they say the same.  Values, operations, blocks and regions are objects: two of
them are never equal, whatever their names, which are for people only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal, TypeAlias

from .affine import AffineMap, IntegerSet
from .floats import WIDTHS

Shape: TypeAlias = tuple[int | None, ...]
"""Sizes; None where a size is dynamic (``?``)."""

Signedness: TypeAlias = Literal["signless", "signed", "unsigned"]


@dataclass(frozen=True, slots=True)
class IntegerType:
    """``i8``, ``si8`` or ``ui8``."""

    width: int
    signedness: Signedness = "signless"


@dataclass(frozen=True, slots=True)
class IndexType:
    """``index``."""


@dataclass(frozen=True, slots=True)
class NoneType:
    """``none``."""


@dataclass(frozen=True, slots=True)
class FloatType:
    """A floating-point type by its name, such as ``f32`` or ``bf16``; its format is in :mod:`.floats`."""

    name: str


@dataclass(frozen=True, slots=True)
class ComplexType:
    """``complex<element>``."""

    element: Type


@dataclass(frozen=True, slots=True)
class TupleType:
    """``tuple<..>``."""

    elements: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class VectorType:
    """``vector<4x[8]xf32>``; ``scalable`` says of each size whether it stands in brackets."""

    shape: tuple[int, ...]
    element: Type
    scalable: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class TensorType:
    """``tensor<4x?xf32, encoding>``."""

    shape: Shape
    element: Type
    encoding: Attribute | None = None


@dataclass(frozen=True, slots=True)
class MemRefType:
    """``memref<4x?xf32, layout, memory space>``.

    The layout is an :class:`AffineMap`, a :class:`StridedLayout` or of a dialect; None is row-major order.
    """

    shape: Shape
    element: Type
    layout: Attribute | None = None
    memory_space: Attribute | None = None


@dataclass(frozen=True, slots=True)
class UnrankedTensorType:
    """``tensor<*xf32>``."""

    element: Type


@dataclass(frozen=True, slots=True)
class UnrankedMemRefType:
    """``memref<*xf32, memory space>``."""

    element: Type
    memory_space: Attribute | None = None


@dataclass(frozen=True, slots=True)
class FunctionType:
    """``(inputs) -> results``."""

    inputs: tuple[Type, ...]
    results: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class OpaqueType:
    """A type of a dialect, as text without the ``!``, such as ``tosa.shape<4>``."""

    text: str


Type: TypeAlias = (
    IntegerType
    | IndexType
    | NoneType
    | FloatType
    | ComplexType
    | TupleType
    | VectorType
    | TensorType
    | MemRefType
    | UnrankedTensorType
    | UnrankedMemRefType
    | FunctionType
    | OpaqueType
)


@dataclass(frozen=True, slots=True)
class IntegerAttribute:
    """An integer of an integer type or ``index``.

    ``value`` is in two's complement's range if the type is signless or signed, but 0 or 1 if it is ``i1``.
    """

    value: int
    type: IntegerType | IndexType


@dataclass(frozen=True, slots=True)
class FloatAttribute:
    """A float by its bit pattern, so that NaNs and zeros are kept apart."""

    bits: int
    type: FloatType


@dataclass(frozen=True, slots=True)
class StringAttribute:
    """A string; bytes that are no UTF-8 are kept as surrogates.  Strings rarely have a type."""

    value: str
    type: Type | None = None


@dataclass(frozen=True, slots=True)
class ArrayAttribute:
    """``[..]``."""

    elements: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class DictionaryAttribute:
    """``{name = attribute, ..}``, in the order of the file."""

    entries: tuple[tuple[str, Attribute], ...]


@dataclass(frozen=True, slots=True)
class UnitAttribute:
    """``unit``: being there is all that it says."""


@dataclass(frozen=True, slots=True)
class TypeAttribute:
    """A type as an attribute."""

    type: Type


@dataclass(frozen=True, slots=True)
class SymbolReference:
    """``@root::@nested``, without the ``@``."""

    root: str
    nested: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StridedLayout:
    """``strided<[strides], offset: offset>`` of a memref; None is dynamic."""

    strides: tuple[int | None, ...]
    offset: int | None = 0


@dataclass(frozen=True, slots=True)
class DenseElements:
    """``dense<..>`` of integers, indices, floats or pairs of them (complex).

    ``data`` has the bit patterns of the elements in row-major order, each little-endian in the least number of whole
    bytes, ``index`` in 8; of a splat it has one element, which stands for all.
    """

    type: TensorType | VectorType
    data: bytes = field(repr=False)
    is_splat: bool

    def bit_patterns(self) -> list[int]:
        """The elements' bits as unsigned numbers, of a splat one; complex elements are two numbers each."""
        step = element_bytes(self.type.element)
        return [int.from_bytes(self.data[i : i + step], "little") for i in range(0, len(self.data), step)]

    def integers(self) -> list[int]:
        """The elements as numbers, of a splat one; in the range of :class:`IntegerAttribute`."""
        element = self.type.element
        return [as_integer(bits, element) for bits in self.bit_patterns()]

    def all_integers(self, most: int) -> list[int] | None:
        """The elements as numbers, also those of a splat; None where there are more than ``most``, as a splat may."""
        count = number_of_elements(self.type.shape)
        return None if count > most else self.integers() * (count if self.is_splat else 1)


@dataclass(frozen=True, slots=True)
class DenseStrings:
    """``dense<..>`` of strings, which elements of types of dialects may be; a splat has one."""

    type: TensorType | VectorType
    values: tuple[str, ...]
    is_splat: bool


@dataclass(frozen=True, slots=True)
class DenseResource:
    """``dense_resource<key> : type``: the data stand at the end of the file (:attr:`Module.resources`)."""

    key: str
    type: TensorType | VectorType


@dataclass(frozen=True, slots=True)
class SparseElements:
    """``sparse<indices, values>``: elements that are not listed are zero (of floats, +0).

    ``indices`` are i64: one row of subscripts for each of the values; both may be splats.  Of equal rows the first
    counts.
    """

    type: TensorType | VectorType
    indices: DenseElements
    values: DenseElements | DenseStrings


@dataclass(frozen=True, slots=True)
class DenseArray:
    """``array<i64: 1, 2>``: integers as in :class:`IntegerAttribute`, floats by bit pattern."""

    element: IntegerType | FloatType
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OpaqueAttribute:
    """An attribute of a dialect, as text without the ``#``, such as ``arith.fastmath<none>``, or ``loc(..)``."""

    text: str


Attribute: TypeAlias = (
    IntegerAttribute
    | FloatAttribute
    | StringAttribute
    | ArrayAttribute
    | DictionaryAttribute
    | UnitAttribute
    | TypeAttribute
    | SymbolReference
    | AffineMap
    | IntegerSet
    | StridedLayout
    | DenseElements
    | DenseStrings
    | DenseResource
    | SparseElements
    | DenseArray
    | OpaqueAttribute
)


def number_of_elements(shape: Sequence[int | None]) -> int:
    """The product of static sizes; raises ValueError where one is dynamic."""
    if None in shape:
        raise ValueError(f"the shape {'x'.join('?' if n is None else str(n) for n in shape)} must be static")
    return prod(n for n in shape if n is not None)


def as_integer(bits: int, type: Type) -> int:
    """The number that a bit pattern is in an integer type, or in ``index``, which has 64 bits here."""
    width, signed = 64, True
    if isinstance(type, IntegerType):
        width, signed = type.width, type.signedness != "unsigned" and type != IntegerType(1)
    return bits - (1 << width) if signed and width and bits >> (width - 1) else bits


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A result of an operation or an argument of a block.  ``name`` (without ``%``) is for people."""

    type: Type
    name: str


@dataclass(frozen=True, slots=True)
class Position:
    """Where something starts in the text; lines and columns count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """``results = "name"(operands) [successors] <{properties}> (regions) {attributes} : (types) -> types``.

    ``attributes`` holds properties, too; ``properties`` has the names of those that were written as such.
    """

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, Attribute]
    regions: tuple[Region, ...]
    successors: tuple[Block, ...]
    position: Position
    properties: frozenset[str] = frozenset()

    @property
    def symbol(self) -> str | None:
        """The name that others refer to it by (``sym_name``), of functions and globals."""
        name = self.attributes.get("sym_name")
        return name.value if isinstance(name, StringAttribute) else None


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Arguments and operations, of which the last may lead to other blocks of the region."""

    arguments: Sequence[Value]
    operations: Sequence[Operation]


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Blocks; control enters at the first."""

    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A file: its top-level operations, the aliases that shorten its text, and resources by dialect and key.

    Aliases are named as they are written, with ``#`` or ``!``, and may use those before them.
    """

    operations: tuple[Operation, ...]
    aliases: Mapping[str, Attribute | Type] = field(default_factory=dict)
    resources: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)

    def symbols(self) -> Iterator[Operation]:
        """Operations with a symbol, such as functions and globals, at the top level or in modules there."""
        yield from _symbols(self.operations)


def walk(operations: Sequence[Operation]) -> Iterator[Operation]:
    """Operations, each followed by all that are inside of it."""
    for operation in operations:
        yield operation
        for region in operation.regions:
            for block in region.blocks:
                yield from walk(block.operations)


def _symbols(operations: Sequence[Operation]) -> Iterator[Operation]:
    for operation in operations:
        if operation.symbol is not None and operation.name != "builtin.module":
            yield operation
        elif operation.name == "builtin.module":
            for region in operation.regions:
                for block in region.blocks:
                    yield from _symbols(block.operations)


def element_bytes(element: Type) -> int:
    """Bytes of one number of a dense constant; raises ValueError for elements that are no numbers."""
    match element:
        case IntegerType(width=width):
            return (width + 7) // 8
        case IndexType():
            return 8
        case FloatType(name=name):
            return (WIDTHS[name] + 7) // 8
        case ComplexType(element=part):
            return element_bytes(part)
    raise ValueError(f"the elements of a dense constant must be numbers, not {element}")
