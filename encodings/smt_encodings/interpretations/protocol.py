"""What interpretations of scalars share: the shape of a format, and of an encoding that solvers are given."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

from ila_lang import Expr

Literal = Fraction | float
"""A constant: an exact number, or one of the floats -0.0, inf, -inf and nan."""


class CannotInterpret(ValueError):
    """A format or an operator that an interpretation does not have."""


def require_representable(value: Literal, kind: DataFormat) -> None:
    """Raises CannotInterpret where a float format lacks a number: a constant stands for itself, and is not rounded."""
    exponent_bits, significand_bits = (int(p) for p in kind.parameters)
    if isinstance(value, float) or value == 0:
        return
    digits = abs(value.numerator)
    last = (digits & -digits).bit_length() - value.denominator.bit_length()  # the exponent of the last binary digit
    top = last + (digits // (digits & -digits)).bit_length() - 1
    dyadic = value.denominator & (value.denominator - 1) == 0
    limit = 2 ** (exponent_bits - 1) - 1
    if not dyadic or top > limit or last < max(top, 1 - limit) - significand_bits + 1:
        raise CannotInterpret(f"{value} is not representable in {kind}; choose one that it has, or round it")


class DataFormat(Protocol):
    """A number format: a family (``float``, ``integer``, ``real``, ...) and its parameters."""

    @property
    def family(self) -> str:
        """The family's name."""

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """The family's parameters: ``(exponent bits, significand bits)`` of a float."""


K = TypeVar("K", bound=DataFormat)
"""The formats of a domain of machine numbers."""
K_contra = TypeVar("K_contra", bound=DataFormat, contravariant=True)


class MachineDomain(Protocol[K_contra]):
    """A domain of ``ila_lang`` expressions for machine numbers and Booleans; the meaning of these stands there."""

    def variable(self, name: str, kind: K_contra) -> Expr:
        """A variable."""

    def constant(self, value: Literal, kind: K_contra) -> Expr:
        """A literal."""

    def apply(self, op: str, kind: K_contra, kinds: Sequence[K_contra], args: Sequence[Expr]) -> Expr:
        """An operator."""
