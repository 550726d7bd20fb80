"""Formulas over named sizes, ranges and biases, evaluated exactly in rational numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import TypeAlias


class MissingSymbol(KeyError):
    """A symbol that was given no value; the message names it."""


MOST_OPERATIONS = 10_000
"""Operations of a formula, and of a term: theorems with more are no text that anybody reads."""


@dataclass(frozen=True, repr=False)
class Formula:
    """An expression: an operator with arguments, a symbol (``name``) or a number (``value``).

    Raises ValueError where it has more than MOST_OPERATIONS of these.
    """

    op: str
    args: tuple[Formula, ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)
    size: int = field(default=1, init=False, compare=False)

    def __post_init__(self) -> None:
        size = 1 + sum(a.size for a in self.args)
        if size > MOST_OPERATIONS:
            raise ValueError(f"a formula must have at most {MOST_OPERATIONS:,} operations")
        object.__setattr__(self, "size", size)

    def __add__(self, other: FormulaLike) -> Formula:
        return _sum(self, constant(other))

    def __radd__(self, other: FormulaLike) -> Formula:
        return _sum(constant(other), self)

    def __sub__(self, other: FormulaLike) -> Formula:
        return _sum(self, _product(constant(-1), constant(other)))

    def __rsub__(self, other: FormulaLike) -> Formula:
        return _sum(constant(other), _product(constant(-1), self))

    def __mul__(self, other: FormulaLike) -> Formula:
        return _product(self, constant(other))

    def __rmul__(self, other: FormulaLike) -> Formula:
        return _product(constant(other), self)

    def __truediv__(self, other: FormulaLike) -> Formula:
        return Formula("/", (self, constant(other)))

    def evaluate(self, values: Mapping[str, Fraction]) -> Fraction:
        """The value; raises MissingSymbol, and ZeroDivisionError where a divisor is not positive."""
        return _evaluate(self, values, {})

    def __str__(self) -> str:
        return _text(self, 0)

    __repr__ = __str__  # a tree of operators helps nobody


FormulaLike: TypeAlias = Formula | Fraction | int


def constant(value: FormulaLike) -> Formula:
    """A number as a formula; formulas stay as they are."""
    return value if isinstance(value, Formula) else Formula("constant", value=Fraction(value))


def symbol(name: str) -> Formula:
    """A named size, range or bias; raises ValueError on what is no identifier."""
    return Formula("symbol", name=identifier(name))


def identifier(name: str) -> str:
    """The name; raises ValueError unless it is a letter or underscore with letters, digits and underscores behind."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"a name must be an identifier, not {name!r:.60}")
    return name


def _sum(*parts: Formula) -> Formula:
    flat = [q for p in parts for q in (p.args if p.op == "+" else (p,))]
    number = sum((p.value for p in flat if p.op == "constant"), Fraction(0))
    rest = [p for p in flat if p.op != "constant"]
    if number or not rest:
        rest.append(constant(number))
    return rest[0] if len(rest) == 1 else Formula("+", tuple(rest))


def _product(*parts: Formula) -> Formula:
    flat = [q for p in parts for q in (p.args if p.op == "*" else (p,))]
    number = Fraction(1)
    for p in flat:
        number *= p.value if p.op == "constant" else 1
    rest = [p for p in flat if p.op != "constant"]
    if not number or not rest:
        return constant(number)
    if number != 1:
        rest.insert(0, constant(number))
    return rest[0] if len(rest) == 1 else Formula("*", tuple(rest))


def _choice(op: str, parts: Iterable[FormulaLike]) -> Formula:
    unique = list(dict.fromkeys(constant(p) for p in parts))
    if all(p.op == "constant" for p in unique):
        return constant((max if op == "max" else min)(p.value for p in unique))
    return unique[0] if len(unique) == 1 else Formula(op, tuple(unique))


def maximum(*parts: FormulaLike) -> Formula:
    """The largest."""
    return _choice("max", parts)


def minimum(*parts: FormulaLike) -> Formula:
    """The smallest."""
    return _choice("min", parts)


def half_step(magnitude: FormulaLike) -> Formula:
    """Half a step of AdaptivFloat in the binade of a magnitude: 2^(floor(log2 m) - 5), and 0 for 0."""
    return Formula("half_step", (constant(magnitude),))


def power_of_two(exponent: FormulaLike) -> Formula:
    """2^exponent for an integer exponent."""
    of = constant(exponent)
    return constant(_power(of.value)) if of.op == "constant" else Formula("2^", (of,))


def inverse_root(x: FormulaLike) -> Formula:
    """1 / sqrt(x) for x > 0, rounded up by less than a part in 2^40."""
    return Formula("1/sqrt", (constant(x),))


def symbols_of(formula: Formula) -> set[str]:
    """The names in a formula."""
    return {formula.name} if formula.op == "symbol" else {n for a in formula.args for n in symbols_of(a)}


def _power(exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise ValueError(f"2^x must be given an integer x, not {exponent}")
    return Fraction(2) ** exponent.numerator


def floor_log2(x: Fraction) -> int:
    """The k with 2^k <= x < 2^(k+1), for x > 0."""
    k = x.numerator.bit_length() - x.denominator.bit_length()
    return k if Fraction(2) ** k <= x else k - 1


def _inverse_root_above(x: Fraction) -> Fraction:
    """A rational number above 1 / sqrt(x): 1 / sqrt(x) = sqrt(y) with y = 1 / x, cut to a root of integers."""
    y, bits = 1 / x, 48
    while True:
        scaled = y * (1 << 2 * bits)
        root = isqrt(scaled.numerator // scaled.denominator) + 1  # above the root of the scaled number
        if root >> 44:
            return Fraction(root, 1 << bits)
        bits += 32


def _evaluate(f: Formula, values: Mapping[str, Fraction], memo: dict[int, Fraction]) -> Fraction:
    if f.op == "constant":
        return f.value
    if f.op == "symbol":
        if f.name not in values:
            raise MissingSymbol(f"{f.name} must be given a value")
        return Fraction(values[f.name])
    if id(f) in memo:
        return memo[id(f)]
    a = [_evaluate(g, values, memo) for g in f.args]
    match f.op:
        case "+":
            result = sum(a, Fraction(0))
        case "*":
            result = Fraction(1)
            for factor in a:
                result *= factor
        case "max":
            result = max(a)
        case "min":
            result = min(a)
        case "/":
            if a[1] <= 0:
                raise ZeroDivisionError(f"the divisor {f.args[1]} must be positive, not {float(a[1])}")
            result = a[0] / a[1]
        case "half_step":
            result = Fraction(2) ** (floor_log2(a[0]) - 5) if a[0] > 0 else Fraction(0)
        case "2^":
            result = _power(a[0])
        case _:
            if a[0] <= 0:
                raise ZeroDivisionError(f"the radicand {f.args[0]} must be positive, not {float(a[0])}")
            result = _inverse_root_above(a[0])
    memo[id(f)] = result
    return result


def number_text(value: Fraction) -> str:
    """A number, powers of two as such.

    >>> number_text(Fraction(1, 1 << 14)), number_text(Fraction(3, 1 << 14)), number_text(Fraction(31, 16))
    ('2^-14', '3 2^-14', '31/16')
    """
    if value.denominator == 1:
        return str(value.numerator)
    bits = value.denominator.bit_length() - 1
    if bits > 5 and value.denominator == 1 << bits:
        head = {1: "", -1: "-"}.get(value.numerator, f"{value.numerator} ")
        return f"{head}2^-{bits}"
    return f"{value.numerator}/{value.denominator}"


def _text(f: Formula, level: int) -> str:
    """Precedence levels: 0 sum, 1 factor, 2 operand of a power."""
    if f.op == "constant":
        text = number_text(f.value)
        return f"({text})" if level and (f.value < 0 or (level > 1 and f.value.denominator > 1)) else text
    if f.op == "symbol":
        return f.name
    if f.op == "+":
        text = ""
        for part in f.args:
            shown, sign = part, " + "
            if part.op == "constant" and part.value < 0:
                shown, sign = constant(-part.value), " - "
            elif part.op == "*" and part.args[0].op == "constant" and part.args[0].value < 0:
                shown, sign = _product(constant(-1), part), " - "
            text += (sign if text else ("-" if sign == " - " else "")) + _text(shown, 1 if sign == " - " else 0)
        return f"({text})" if level else text
    if f.op == "*":
        text = " ".join(_text(a, 1) for a in f.args)
        return f"({text})" if level > 1 else text
    if f.op == "/":
        text = f"{_text(f.args[0], 1)} / {_text(f.args[1], 2)}"
        return f"({text})" if level else text
    if f.op == "2^":
        inner = _text(f.args[0], 0)
        return f"2^{inner}" if f.args[0].op == "symbol" else f"2^({inner})"
    return f"{f.op}({', '.join(_text(a, 0) for a in f.args)})"
