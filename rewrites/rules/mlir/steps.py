"""One operation of a function that is read as a tensor term: its operands, its attributes, the term of its region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from ir_semantics.mlir import ir
from ir_semantics.mlir.semantics.arguments import Arguments
from ir_semantics.mlir.semantics.floats import SCALAR_OPERATORS, require_exact_floats
from ir_semantics.mlir.semantics.program import DYNAMIC, Call, Environment, Reading, Scope
from ir_semantics.mlir.semantics.values import NotCovered, number_of
from ir_semantics.scalars.formats import Literal
from ir_semantics.scalars.terms import Scalar, apply, constant, variable
from ir_semantics.tensors.conditions import Condition, equal
from ir_semantics.tensors.index import Index, index
from ir_semantics.tensors.operators import fill
from ir_semantics.tensors.terms import Shape, Tensor


@dataclass(frozen=True)
class Empty:
    """A tensor of which no element is defined."""

    shape: Shape


Value: TypeAlias = Tensor | Empty | Index | tuple[Index, ...]
"""A tensor (of rank 0 for a scalar), a size, or sizes: a constant tensor of integers, or one of type index."""


@dataclass
class Step:
    """An operation, and what its operands are as terms.

    ``values`` are those of the function so far.  ``conditions`` gets what must hold of sizes besides that terms are
    well formed: it is one list for the whole function.
    """

    operation: ir.Operation
    values: Mapping[ir.Value, Value]
    conditions: list[Condition]
    call: Call = field(init=False)

    def __post_init__(self) -> None:
        scope = Scope(Reading(), Arguments().before.memory())
        self.call = Call(self.operation, (), scope, Environment({}, {}))
        self.operands = [self.values[o] for o in self.operation.operands if o in self.values]

    def fail(self, why: str) -> NotCovered:
        """What to raise where an operation has no term."""
        return self.call.fail(why)

    # -- operands ------------------------------------------------------------------------------------------

    def tensor(self, place: int) -> Tensor:
        """An operand with elements."""
        operand = self.operands[place]
        if not isinstance(operand, Tensor):
            raise self.fail(f"operand {place} must be a tensor of floats whose elements are defined")
        return operand

    def shape(self, place: int) -> Shape:
        """The shape of an operand."""
        operand = self.operands[place]
        if isinstance(operand, Tensor | Empty):
            return operand.shape
        raise self.fail(f"operand {place} must be a tensor of floats")

    def size(self, place: int) -> Index:
        """An operand of type index."""
        operand = self.operands[place]
        if not isinstance(operand, Index):
            raise self.fail(f"operand {place} must be an index")
        return operand

    def numbers(self, place: int) -> list[int]:
        """An operand that is a constant tensor of integers."""
        operand = self.operands[place]
        if isinstance(operand, tuple):
            known = [n.constant for n in operand]
            if None not in known:
                return [n for n in known if n is not None]
        raise self.fail(f"operand {place} must be a constant tensor of integers")

    def numbers_of(self, attribute: str, place: int) -> list[int]:
        """Integers that are an attribute, or, in other releases, an operand."""
        return self.call.wholes(attribute) if attribute in self.operation.attributes else self.numbers(place)

    def literal(self, place: int) -> Literal | None:
        """The number that fills an operand; None where it is not filled with one."""
        return number_in(self.operands[place])

    def mixed(self, attribute: str, operands: list[Value]) -> list[Index]:
        """Numbers of which those that are dynamic are the first of some operands, which are taken from the list."""
        numbers = []
        for stated in self.call.wholes(attribute):
            value = operands.pop(0) if stated == DYNAMIC else index(stated)
            if not isinstance(value, Index):
                raise self.fail("a dynamic size must be an index")
            numbers.append(value)
        return numbers

    def require_equal(self, one: Sequence[Index], other: Sequence[Index]) -> None:
        """States that shapes are equal."""
        if len(one) != len(other):
            raise self.fail(f"shapes must have one rank, not {len(one)} and {len(other)}")
        self.conditions += [equal(a, b) for a, b in zip(one, other, strict=True)]

    # -- regions -------------------------------------------------------------------------------------------

    def body(self, arguments: Sequence[Scalar]) -> tuple[Scalar, dict[str, Tensor]]:
        """What the region yields, and the scalars of the function that it uses, by the names of their variables."""
        block, outer = self.call.body, dict[str, Tensor]()
        if len(block.arguments) != len(arguments):
            raise self.fail(f"the block must have {len(arguments)} arguments, not {len(block.arguments)}")
        scalars = dict(zip(block.arguments, arguments, strict=True))

        def scalar(value: ir.Value) -> Scalar:
            if value not in scalars:
                known = self.values.get(value)
                number = number_in(known)
                if not isinstance(known, Tensor) or known.rank:
                    raise self.fail("a region must compute with floats alone")
                if number is None:
                    name = f"outer{len(outer)}"
                    outer[name] = known
                    scalars[value] = variable(name)
                else:
                    scalars[value] = constant(number)
            return scalars[value]

        for operation in block.operations[:-1]:
            inner = Step(operation, {}, self.conditions)
            if operation.name == "arith.constant":
                result = constant(inner.number(inner.call.attribute("value")))
            elif operation.name in SCALAR_OPERATORS:
                require_exact_floats(inner.call)
                result = apply(SCALAR_OPERATORS[operation.name], *map(scalar, operation.operands))
            else:
                raise inner.fail("the operator has no term on scalars")
            inner.call.require_all_taken()
            scalars[operation.results[0]] = result
        last = block.operations[-1]
        if last.name not in ("linalg.yield", "tensor.yield") or len(last.operands) != 1:
            raise self.fail("the region must yield one number")
        return scalar(last.operands[0]), outer

    def number(self, value: ir.Attribute | None) -> Literal:
        """A float of an attribute."""
        if not isinstance(value, ir.FloatAttribute):
            raise self.fail("the constant must be a float")
        self.call.format(value.type)
        return number_of(value.bits, value.type)


def number_in(value: Value | None) -> Literal | None:
    """The number that fills a tensor; None where it is not filled with one."""
    if isinstance(value, Tensor) and value.operator == "fill":
        number = dict(value.values)["value"]
        if isinstance(number, Fraction | float):
            return number
    return None


def filled(number: Literal, dimensions: Sequence[Index]) -> Tensor:
    """A literal in every element."""
    return fill(number, *dimensions)
