"""Operations of a function that is written, one after the other: sizes, numbers, tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from ir_semantics.mlir import ir
from ir_semantics.mlir.constants import dense
from ir_semantics.mlir.semantics.floats import SCALAR_OPERATORS
from ir_semantics.mlir.semantics.program import DYNAMIC
from ir_semantics.scalars.floats import encode
from ir_semantics.scalars.formats import BINARY32, Literal
from ir_semantics.scalars.terms import Scalar
from ir_semantics.tensors.index import Index, Quotient, index
from ir_semantics.tensors.terms import Shape

INDEX, F32, I64 = ir.IndexType(), ir.FloatType("f32"), ir.IntegerType(64)
NOWHERE = ir.Position(1, 1)
_SCALARS = {op: name for name, op in SCALAR_OPERATORS.items()}


class NoFunction(ValueError):
    """A rule, or a part of one, that MLIR's operators cannot say."""


def tensor_type(shape: Shape, element: ir.Type = F32) -> ir.TensorType:
    """The type of tensors of a shape; sizes that are no constants are dynamic."""
    return ir.TensorType(tuple(n.constant for n in shape), element)


class Builder:
    """The operations of a block; ``sizes`` are values of type index by the names of size variables."""

    def __init__(self, sizes: Mapping[str, Callable[[Builder], ir.Value]]) -> None:
        self.operations: list[ir.Operation] = []
        self._sizes, self._made = sizes, dict[Index | str, ir.Value]()

    def add(
        self,
        name: str,
        operands: Sequence[ir.Value],
        result: ir.Type | None,
        region: ir.Region | None = None,
        /,
        **properties: ir.Attribute,
    ) -> ir.Value:
        """An operation with at most one result, which is returned."""
        value = ir.Value(result or INDEX, "")
        regions = () if region is None else (region,)
        results = () if result is None else (value,)
        self.operations.append(
            ir.Operation(name, tuple(operands), results, properties, regions, (), NOWHERE, frozenset(properties))
        )
        return value

    def size(self, value: Index) -> ir.Value:
        """A number as a value of type index."""
        if value not in self._made:
            self._made[value] = self._number(value)
        return self._made[value]

    def _number(self, value: Index) -> ir.Value:
        if value.constant is not None:
            return self.add("arith.constant", [], INDEX, value=ir.IntegerAttribute(value.constant, INDEX))
        total: ir.Value | None = None
        for factors, coefficient in value.terms:
            product = self.size(index(coefficient)) if coefficient != 1 or not factors else None
            for factor in factors:
                atom = self._atom(factor)
                product = atom if product is None else self._on_sizes("arith.muli", product, atom)
            assert product is not None
            total = product if total is None else self._on_sizes("arith.addi", total, product)
        assert total is not None, "0 is a constant"
        return total

    def _atom(self, atom: str | Quotient) -> ir.Value:
        if isinstance(atom, Quotient):
            return self._on_sizes("arith.floordivsi", self.size(atom.dividend), self.size(atom.divisor))
        if atom not in self._made:
            self._made[atom] = self._sizes[atom](self)
        return self._made[atom]

    def _on_sizes(self, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.add(name, [a, b], INDEX)

    def mixed(self, numbers: Sequence[Index]) -> tuple[list[int], list[ir.Value]]:
        """Numbers as those that are static, with marks for the others, and these as values."""
        static = [DYNAMIC if n.constant is None else n.constant for n in numbers]
        return static, [self.size(n) for n in numbers if n.constant is None]

    def number(self, value: Literal | int) -> ir.Value:
        """A float."""
        try:
            bits = encode(float(value), BINARY32)
        except (OverflowError, ValueError):
            bits = None
        if bits is None or (not isinstance(value, float) and Fraction(float(value)) != value):
            raise NoFunction(f"{value} is no number of the type f32")
        return self.add("arith.constant", [], F32, value=ir.FloatAttribute(bits, F32))

    def empty(self, shape: Shape) -> ir.Value:
        """A tensor without defined elements."""
        return self.add("tensor.empty", self.mixed(shape)[1], tensor_type(shape))

    def splat(self, scalar: ir.Value, shape: Shape) -> ir.Value:
        """A number in every element."""
        return self.add("tensor.splat", [scalar, *self.mixed(shape)[1]], tensor_type(shape))

    def scalar(self, op: str, operands: Sequence[ir.Value]) -> ir.Value:
        """A scalar operator on numbers or tensors of one type."""
        if op not in _SCALARS:
            raise NoFunction(f"MLIR has no operator for {op} alone")
        first = operands[0].type
        same = [o if o.type == first else self.add("tensor.cast", [o], first) for o in operands]
        return self.add(_SCALARS[op], same, first)

    def elementwise(self, term: Scalar, operands: Mapping[str, ir.Value], shape: Shape) -> ir.Value:
        """A scalar term on tensors of a shape."""
        if term.op == "variable":
            return operands[str(term.payload)]
        if term.op == "constant":
            assert term.payload is not None and not isinstance(term.payload, str)
            return self.splat(self.number(term.payload), shape)
        return self.scalar(term.op, [self.elementwise(a, operands, shape) for a in term.args])


Body: TypeAlias = Callable[[Builder, Sequence[ir.Value]], ir.Value]
"""Writes what a block computes of its arguments, and returns what it yields."""


def region(types: Sequence[ir.Type], terminator: str, build: Body) -> ir.Region:
    """A region of one block, which yields what is built of its arguments."""
    arguments, inner = [ir.Value(t, "") for t in types], Builder({})
    result = build(inner, arguments)
    inner.add(terminator, [result], None)
    return ir.Region([ir.Block(arguments, inner.operations)])


def integers(values: Sequence[int], width: int = 64) -> ir.DenseArray:
    """Integers as an attribute."""
    return ir.DenseArray(ir.IntegerType(width), tuple(values))


def dense_integers(values: Sequence[int]) -> ir.DenseElements:
    """Integers as a constant tensor."""
    data = b"".join(n.to_bytes(8, "little", signed=True) for n in values)
    return dense(ir.TensorType((len(values),), I64), data)
