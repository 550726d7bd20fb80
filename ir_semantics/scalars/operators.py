"""Operators on scalars: the meaning of each, written once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

Exact = Callable[..., Fraction | bool]


@dataclass(frozen=True)
class ScalarOp:
    """An operator: its name, number of operands, result and meaning.

    ``result`` is "same" (the operands' format), "boolean" or "target" (a format that the term names).  ``exact`` is
    its function on exact numbers, of which every format's operator is the rounded one; None where the result is no
    rational number (exp, log, sqrt, pow) or where it is no function of numbers (casts, logic).
    """

    name: str
    arity: int
    result: str
    doc: str
    exact: Exact | None = None


def _quotient(a: Fraction, b: Fraction) -> Fraction:
    return a / b


def _toward_zero(a: Fraction) -> Fraction:
    return Fraction(math.trunc(a))


_ELEMENTARY = {
    "tanh": "hyperbolic tangent",
    "sinh": "hyperbolic sine",
    "cosh": "hyperbolic cosine",
    "asinh": "inverse hyperbolic sine",
    "acosh": "inverse hyperbolic cosine; NaN below 1",
    "atanh": "inverse hyperbolic tangent; NaN outside -1..1",
    "sin": "sine of an angle in radians",
    "cos": "cosine of an angle in radians",
    "tan": "tangent of an angle in radians",
    "asin": "inverse sine, in radians; NaN outside -1..1",
    "acos": "inverse cosine, in radians; NaN outside -1..1",
    "atan": "inverse tangent, in radians",
    "erf": "error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x",
}
"""Functions of one real number, which only arrays have values for; interpretations leave them uninterpreted."""

_LIST = [
    ScalarOp("neg", 1, "same", "-x; in floats the sign bit is flipped.", lambda a: -a),
    ScalarOp("abs", 1, "same", "|x|; in floats the sign bit is cleared.", abs),
    ScalarOp("add", 2, "same", "x + y.", lambda a, b: a + b),
    ScalarOp("sub", 2, "same", "x - y.", lambda a, b: a - b),
    ScalarOp("mul", 2, "same", "x * y.", lambda a, b: a * b),
    ScalarOp("div", 2, "same", "x / y of reals and floats.", _quotient),
    ScalarOp("fma", 3, "same", "x * y + z, rounded once.", lambda a, b, c: a * b + c),
    ScalarOp(
        "quotient", 2, "same", "x / y of integers, cut toward zero; 0 where y is 0.", lambda a, b: _toward_zero(a / b)
    ),
    ScalarOp(
        "floor_quotient", 2, "same", "x / y of integers, rounded down; 0 where y is 0.", lambda a, b: Fraction(a // b)
    ),
    ScalarOp("shift_left", 2, "same", "x * 2^y of machine integers; y is read unsigned.", lambda a, b: a * 2**b),
    ScalarOp(
        "shift_right",
        2,
        "same",
        "x / 2^y of machine integers, rounded down; y is read unsigned.",
        lambda a, b: Fraction(a // 2**b),
    ),
    ScalarOp("floor", 1, "same", "The largest integer that is at most x.", lambda a: Fraction(math.floor(a))),
    ScalarOp("ceil", 1, "same", "The smallest integer that is at least x; -0 for -1 < x < 0.", lambda a: -(-a // 1)),
    ScalarOp("trunc", 1, "same", "The integer part, with the sign of x.", _toward_zero),
    ScalarOp("maximum", 2, "same", "The larger one; NaN where one is NaN, and -0 < +0 (IEEE 754-2019).", max),
    ScalarOp("minimum", 2, "same", "The smaller one; NaN where one is NaN, and -0 < +0 (IEEE 754-2019).", min),
    ScalarOp(
        "maxnum",
        2,
        "same",
        "The larger one, or the one that is not NaN (IEEE 754-2008). That standard leaves open which zero is the "
        "larger one; here -0 < +0.",
        max,
    ),
    ScalarOp("minnum", 2, "same", "The smaller one, or the one that is not NaN; see maxnum.", min),
    ScalarOp("exp", 1, "same", "e^x, correctly rounded."),
    ScalarOp("log", 1, "same", "The natural logarithm, correctly rounded; -inf at both zeros, NaN below."),
    ScalarOp("sqrt", 1, "same", "The square root, correctly rounded; -0 at -0, NaN below."),
    ScalarOp("pow", 2, "same", "x^y, correctly rounded, with the special cases of IEEE 754's pow."),
    *(ScalarOp(name, 1, "same", f"The {what}.") for name, what in _ELEMENTARY.items()),
    ScalarOp("round", 1, "same", "The nearest integer, ties to even.", lambda a: Fraction(round(a))),
    ScalarOp(
        "remainder",
        2,
        "same",
        "x - y * trunc(x / y), which has the sign of x; of integers x where y is 0, of floats NaN.",
        lambda a, b: a - b * _toward_zero(a / b),
    ),
    ScalarOp("bit_and", 2, "same", "Bitwise conjunction of machine integers."),
    ScalarOp("bit_or", 2, "same", "Bitwise disjunction of machine integers."),
    ScalarOp("bit_xor", 2, "same", "Bitwise exclusive or of machine integers."),
    ScalarOp("bit_not", 1, "same", "Bitwise complement of a machine integer."),
    ScalarOp("unsigned_zero", 1, "same", "x, with -0 read as +0.", lambda a: a),
    ScalarOp("lt", 2, "boolean", "x < y; false where one is NaN.", lambda a, b: a < b),
    ScalarOp("le", 2, "boolean", "x <= y; false where one is NaN.", lambda a, b: a <= b),
    ScalarOp("eq", 2, "boolean", "The same number: -0 = +0, and NaN equals nothing.", lambda a, b: a == b),
    ScalarOp("same", 2, "boolean", "The same value: -0 and +0 differ, all NaNs are one.", lambda a, b: a == b),
    ScalarOp("is_nan", 1, "boolean", "Whether x is NaN.", lambda a: False),
    ScalarOp("is_finite", 1, "boolean", "Whether x is neither infinite nor NaN.", lambda a: True),
    ScalarOp("not", 1, "boolean", "Negation."),
    ScalarOp("and", 2, "boolean", "Conjunction."),
    ScalarOp("or", 2, "boolean", "Disjunction."),
    ScalarOp("select", 3, "same", "The second operand where the first, a Boolean, is true, else the third."),
    ScalarOp(
        "cast",
        1,
        "target",
        "The value in another format, with that format's rounding and overflow. Floats become integers by cutting "
        "toward zero and saturating; NaN becomes 0. A Boolean becomes 1 or 0.",
    ),
]

OPERATORS: Mapping[str, ScalarOp] = {op.name: op for op in _LIST}
"""Every operator, by name."""
