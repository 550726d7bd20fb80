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


def negated(expression: Expression) -> Expression:
    """Minus the expression; constants and constant factors change their sign."""
    match expression:
        case Constant(value):
            return Constant(-value)
        case Binary("*", left, Constant(value)):
            return Binary("*", left, Constant(-value))
    return Binary("*", expression, Constant(-1))


def text_of_map(affine_map: AffineMap) -> str:
    """The map as MLIR prints it between ``<`` and ``>``."""
    results = ", ".join(map(_text, affine_map.results))
    return f"{_variables(affine_map.dimensions, affine_map.symbols)} -> ({results})"


def text_of_set(integer_set: IntegerSet) -> str:
    """The set as MLIR prints it between ``<`` and ``>``."""
    constraints = [f"{_text(e)} {'==' if is_equality else '>='} 0" for e, is_equality in integer_set.constraints]
    return f"{_variables(integer_set.dimensions, integer_set.symbols)} : ({', '.join(constraints)})"


def _variables(dimensions: int, symbols: int) -> str:
    text = f"({', '.join(f'd{i}' for i in range(dimensions))})"
    return text + f"[{', '.join(f's{i}' for i in range(symbols))}]" if symbols else text


def _text(expression: Expression, inside: bool = False) -> str:
    """The expression, in parentheses if it is a binary one ``inside`` of an operator that binds more tightly."""
    match expression:
        case Dimension(position):
            return f"d{position}"
        case Symbol(position):
            return f"s{position}"
        case Constant(value):
            return str(value)
        case Binary("+", left, right):
            text = _text(left) + _added(right)
        case Binary("*", left, Constant(-1)):
            text = "-" + _text(left, inside=True)
        case Binary(operator, left, right):
            text = f"{_text(left, inside=True)} {operator} {_text(right, inside=True)}"
    return f"({text})" if inside else text


def _added(expression: Expression) -> str:
    """The right-hand side of a sum, as a subtraction if it is negative."""
    match expression:
        case Constant(value) if value < 0:
            return f" - {-value}"
        case Binary("*", left, Constant(-1)):
            return f" - {_text(left, inside=isinstance(left, Binary) and left.operator == '+')}"
        case Binary("*", left, Constant(value)) if value < -1:
            return f" - {_text(left, inside=True)} * {-value}"
    return f" + {_text(expression)}"
