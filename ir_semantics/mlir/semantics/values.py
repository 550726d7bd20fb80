"""What MLIR values are: scalars with a condition under which they are defined, and tensors by one arbitrary element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from ir_semantics.elements.operators import both, choose
from ir_semantics.elements.terms import Term, constant, number, truth
from ir_semantics.mlir import ir
from ir_semantics.mlir.floats import FORMATS
from ir_semantics.scalars.floats import decode
from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format, Literal

WITHOUT = "rewrite the function without it"
"""The next step where something of MLIR has no meaning here."""
DEFINED = "write the source so that it is always defined"
"""The next step where a source takes as defined what may not be."""
VERIFY = "verify the text with mlir-opt, and correct it"
"""The next step where a text is not valid MLIR."""


class NotCovered(Exception):
    """What has no meaning here; carries the operator, its place, why, and the next step for the user."""

    def __init__(self, operator: str, position: ir.Position, why: str, step: str = WITHOUT) -> None:
        self.operator, self.position, self.why, self.step = operator, position, why, step
        super().__init__(f"{operator} at {position}: {why}")


@dataclass(frozen=True)
class Element:
    """A scalar: its value, and whether it is defined; what is not defined (poison) may be anything."""

    value: Term
    defined: Term

    @property
    def kind(self) -> Format:
        """The format."""
        return self.value.kind


Rule: TypeAlias = Callable[[tuple[Term, ...]], Element]
"""The element at subscripts, which must be inside of the shape wherever it matters."""


@dataclass(eq=False)
class Tensor:
    """A tensor: its shape, in integers, and its element at subscripts."""

    kind: Format
    shape: tuple[Term, ...]
    rule: Rule
    _elements: dict[tuple[Term, ...], Element] = field(default_factory=dict)

    def at(self, subscripts: Sequence[Term]) -> Element:
        """The element at subscripts; those of sizes of 1 are 0."""
        key = tuple(subscripts)
        if len(key) != len(self.shape):
            raise ValueError(f"an element of a tensor of {len(self.shape)} dimensions has as many subscripts")
        if key not in self._elements:
            self._elements[key] = self.rule(key)
        return self._elements[key]


def defined(value: Term) -> Element:
    """A scalar that is defined."""
    return Element(value, truth(True))


def undefined(kind: Format) -> Element:
    """A scalar that may be anything."""
    return Element(zero(kind), truth(False))


def zero(kind: Format) -> Term:
    """The zero of a format; of floats +0."""
    return constant(Fraction(0), kind)


def chosen(condition: Term, yes: Element, no: Element) -> Element:
    """One of two scalars; the other one need not be defined."""
    return Element(choose(condition, yes.value, no.value), choose(condition, yes.defined, no.defined))


def combined(value: Term, *parts: Element) -> Element:
    """A value that is defined where those that it is made of are."""
    return Element(value, both(*(p.defined for p in parts)))


def static_shape(shape: Sequence[int]) -> tuple[Term, ...]:
    """Literal sizes as terms."""
    return tuple(map(number, shape))


WIDEST = 4096
"""Bits of an integer; numbers of wider ones have more digits than Python converts (4,300)."""


def format_of(type_: ir.Type) -> Format | None:
    """The format of numbers of a type: i1 is Boolean, index all integers; None where there is none here."""
    match type_:
        case ir.IntegerType(width=1, signedness="signless"):
            return BOOLEAN
        case ir.IntegerType(width=width, signedness="signless") if 0 < width <= WIDEST:
            return word(width)
        case ir.IndexType():
            return INTEGERS
        case ir.FloatType(name=name) if name in FORMATS:
            form = FORMATS[name]
            if form.specials == "ieee" and form.significand <= 53 and form.exponent <= 11:
                return Format("float", (form.exponent, form.significand))
    return None


def word(width: int, *, signed: bool = True) -> Format:
    """Words of ``width`` bits that wrap; MLIR's have no sign of their own, so they are read as signed."""
    return Format("integer", (width, "signed" if signed else "unsigned", "wrap"))


def bits_of(kind: Format) -> int:
    """The width of a word; of a Boolean 1."""
    return 1 if kind == BOOLEAN else int(kind.parameters[0])


def number_of(bits: int, type_: ir.Type) -> Literal:
    """The number that a bit pattern stands for."""
    kind = format_of(type_)
    if kind is not None and kind.family == "float":
        value = decode(bits, kind)
        return value if value != value or abs(value) == float("inf") or str(value) == "-0.0" else Fraction(value)
    return Fraction(ir.as_integer(bits, type_))
