"""Element expressions: the value of one element of a tensor, as a function of its subscripts.

An element is a number that is read from an input, a literal, an index as a number, a scalar operator of
:data:`ir_semantics.scalars.terms.OPERATORS` on elements, a choice by a condition on indices, or a big operator over an
index range.  Nothing else exists; what an operator on tensors means is said by one such expression.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeAlias

from ir_semantics.scalars.formats import BOOLEAN, NUMBER, Format, Literal
from ir_semantics.scalars.operators import OPERATORS
from ir_semantics.scalars.terms import Scalar, interpret

from .conditions import Condition, TruthOf, indices_of, substitute_condition, truths_of
from .index import Index, Names


@dataclass(frozen=True)
class Read:
    """The element of the input ``name`` at subscripts."""

    name: str
    at: tuple[Index, ...]

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.at))}]"


@dataclass(frozen=True)
class Number:
    """A literal: an exact number, or a float that is none (an infinity, NaN, -0.0); -0.0 is not 0, and NaN is NaN."""

    value: Literal = field(compare=False)
    key: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        exact = not isinstance(self.value, float) or (math.isfinite(self.value) and self.value != 0)
        object.__setattr__(self, "key", str(Fraction(self.value) if exact else self.value))

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class IndexValue:
    """An integer expression as a number, such as the number of elements that a mean divides by."""

    value: Index

    def __str__(self) -> str:
        return f"number({self.value})"


@dataclass(frozen=True)
class Apply:
    """A scalar operator on elements."""

    op: str
    args: tuple[Element, ...]

    def __post_init__(self) -> None:
        if self.op not in OPERATORS or OPERATORS[self.op].arity != len(self.args):
            raise ValueError(f"{self.op} must be a scalar operator of {len(self.args)} operands; see OPERATORS")

    def __str__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class Choice:
    """``yes`` where the condition on indices holds, else ``no``; the other one is not evaluated."""

    condition: Condition
    yes: Element
    no: Element

    def __str__(self) -> str:
        return f"(if {self.condition} then {self.yes} else {self.no})"


@dataclass(frozen=True)
class Reduce:
    """The sum, maximum or minimum of ``body`` over 0 <= variable < extent; of nothing: 0, -inf, inf.

    A sum adds up in increasing order of the variable.
    """

    op: str
    variable: str
    extent: Index
    body: Element

    def __post_init__(self) -> None:
        if self.op not in ("sum", "max", "min"):
            raise ValueError(f"a big operator must be sum, max or min, not {self.op!r}")

    def __str__(self) -> str:
        return f"{self.op}({self.variable} < {self.extent}: {self.body})"


BINARY: Final = {"sum": "add", "max": "maximum", "min": "minimum"}
"""The scalar operators that big operators repeat."""

Element: TypeAlias = Read | Number | IndexValue | Apply | Choice | Reduce
Reader: TypeAlias = Callable[[Sequence[Index]], Element]
"""Gives the element of an operand at subscripts."""
Rule: TypeAlias = Callable[[Sequence[Index], Sequence[Reader], Names], Element]
"""The meaning of an operator: subscripts of its result, its operands, names for bound variables -> the element."""


def substitute_element(element: Element, values: Mapping[str, Index]) -> Element:
    """The element with free index variables replaced.

    Bound variables must be names that occur nowhere in ``values`` (:class:`~ir_semantics.tensors.index.Names`).
    """
    match element:
        case Read(name, at):
            return Read(name, tuple(i.substitute(values) for i in at))
        case Number():
            return element
        case IndexValue(value):
            return IndexValue(value.substitute(values))
        case Apply(op, args):
            return Apply(op, tuple(substitute_element(a, values) for a in args))
        case Choice(condition, yes, no):
            return Choice(
                substitute_condition(condition, values), substitute_element(yes, values), substitute_element(no, values)
            )
        case Reduce(op, variable, extent, body):
            return Reduce(op, variable, extent.substitute(values), substitute_element(body, values))


def with_operands(element: Element, operands: Mapping[str, Reader]) -> Element:
    """The element with those of operands in the places of what it reads; raises ValueError where it reads others."""
    if isinstance(element, Read) and element.name in operands:
        return operands[element.name](element.at)
    if isinstance(element, Read) or (isinstance(element, Choice) and truths_of(element.condition)):
        raise ValueError(f"an operator's definition must read its operands, {', '.join(operands)}, not {element}")
    return with_parts(element, [with_operands(part, operands) for part in parts_of(element)])


def parts_of(element: Element) -> tuple[Element, ...]:
    """The elements that an element is made of."""
    match element:
        case Apply(_, args):
            return args
        case Choice(_, yes, no):
            return yes, no
        case Reduce(_, _, _, body):
            return (body,)
    return ()


def with_parts(element: Element, parts: Sequence[Element]) -> Element:
    """The element made of other parts."""
    match element:
        case Apply(op, _):
            return Apply(op, tuple(parts))
        case Choice(condition, _, _):
            return Choice(condition, *parts)
        case Reduce(op, variable, extent, _):
            return Reduce(op, variable, extent, *parts)
    return element


def subelements(element: Element) -> Iterator[Element]:
    """The element and all below it, itself first."""
    yield element
    for part in parts_of(element):
        yield from subelements(part)


def indices_of_element(element: Element) -> list[Index]:
    """Every index expression of an element: subscripts, extents, sides of conditions."""
    indices: list[Index] = []
    for e in subelements(element):
        match e:
            case Read(_, at):
                indices += at
            case IndexValue(value):
                indices.append(value)
            case Choice(condition, _, _):
                indices += indices_of(condition)
            case Reduce(_, _, extent, _):
                indices.append(extent)
    return indices


def reads(element: Element) -> bool:
    """Whether an element depends on data."""
    return any(isinstance(e, Read) for e in subelements(element))


def truths_of_element(element: Element) -> list[TruthOf]:
    """The elements of Boolean tensors that choices in an element read."""
    return [t for e in subelements(element) if isinstance(e, Choice) for t in truths_of(e.condition)]


class _Elements:
    """Interprets scalar terms as elements."""

    def __init__(self, operands: Mapping[str, Element]) -> None:
        self._operands = operands

    def variable(self, name: str, kind: Format) -> Element:
        return self._operands[name]

    def constant(self, value: Literal, kind: Format) -> Element:
        return Number(value)

    def apply(self, op: str, kind: Format, kinds: Sequence[Format], args: Sequence[Element]) -> Element:
        if OPERATORS[op].result == "target" or any(k not in (NUMBER, BOOLEAN) for k in (kind, *kinds)):
            raise ValueError(
                f"elements of tensors have one format, so {op} from {', '.join(map(str, kinds))} to {kind} cannot be "
                "an element-wise operator; write its scalar term over NUMBER, without casts"
            )
        return Apply(op, tuple(args))


def apply_scalar(term: Scalar, operands: Mapping[str, Element]) -> Element:
    """A scalar term whose variables are elements."""
    return interpret([term], _Elements(operands))[0]


def literal(value: Fraction | int | float) -> Number:
    """A Python number as a literal; floats at their exact values, with -0.0, infinities and NaN as themselves."""
    if isinstance(value, float) and (not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0)):
        return Number(value)
    return Number(Fraction(value))
