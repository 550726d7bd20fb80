"""Affine expressions, maps and integer sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Dimension:
    """The dimension ``d<position>`` of a map."""

    position: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """The symbol ``s<position>`` of a map."""

    position: int


@dataclass(frozen=True, slots=True)
class Constant:
    """An integer."""

    value: int


Operator: TypeAlias = Literal["+", "*", "floordiv", "ceildiv", "mod"]


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator on two expressions.  ``a - b`` is ``a + b * -1``, and ``-a`` is ``a * -1``.

    ``floordiv`` rounds down, ``ceildiv`` up; ``mod`` is never negative.  MLIR leaves all three undefined unless their
    right-hand side is positive.
    """

    operator: Operator
    left: Expression
    right: Expression


Expression: TypeAlias = Dimension | Symbol | Constant | Binary


@dataclass(frozen=True, slots=True)
class AffineMap:
    """``(d0, ..)[s0, ..] -> (results)``."""

    dimensions: int
    symbols: int
    results: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class IntegerSet:
    """``(d0, ..)[s0, ..] : (constraints)``: each is an expression with whether it equals 0 or else is at least 0."""

    dimensions: int
    symbols: int
    constraints: tuple[tuple[Expression, bool], ...]
