"""IEEE 754 binary arithmetic on exact numbers: every format within binary64, rounded to nearest even.

Values are Python floats, of which every such format is a subset; there is one NaN.  A result is computed exactly, as a
fraction, and rounded once.  exp, log and pow are evaluated with growing precision until the rounded result is certain,
so they are correctly rounded too.
"""

from __future__ import annotations

import ctypes
import decimal
import math
from collections.abc import Callable
from fractions import Fraction

from .formats import Format, Value
from .operators import OPERATORS

_ROUNDED = frozenset({"add", "mul", "div", "fma"})
_NATIVE = ((8, 24), (11, 53))
"""Formats in which processors compute: binary32 and binary64."""
_FIRST_DIGITS = 60
_MARGIN = 6  # decimal digits by which a function's computed value may be wrong
_POWER_BITS = 4096  # exponents up to this are multiplied out; beyond it no odd base has a representable power


def _parameters(kind: Format) -> tuple[int, int]:
    exponent_bits, significand_bits = kind.parameters
    return int(exponent_bits), int(significand_bits)


def largest(kind: Format) -> float:
    """The largest finite number of a float format."""
    e, s = _parameters(kind)
    return math.ldexp(2.0 - math.ldexp(1.0, 1 - s), 2 ** (e - 1) - 1)


def smallest(kind: Format) -> float:
    """The smallest positive number of a float format, which is subnormal."""
    e, s = _parameters(kind)
    return math.ldexp(1.0, 3 - 2 ** (e - 1) - s)


def round_to(exact: Fraction, kind: Format, negative_zero: bool = False) -> float:
    """The number of ``kind`` nearest to an exact one, ties to even; beyond the range, infinity."""
    if exact == 0:
        return -0.0 if negative_zero else 0.0
    e, s = _parameters(kind)
    top = 2 ** (e - 1) - 1
    magnitude = abs(exact)
    position = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < _power_of_two(position):
        position -= 1
    step = max(position, 1 - top) - (s - 1)
    units = round(magnitude / _power_of_two(step))  # of a Fraction: to nearest, ties to even
    rounded = units * _power_of_two(step)
    result = math.inf if rounded >= _power_of_two(top + 1) else float(rounded)
    return -result if exact < 0 else result


def _power_of_two(n: int) -> Fraction:
    return Fraction(1 << n) if n >= 0 else Fraction(1, 1 << -n)


def encode(value: float, kind: Format) -> int:
    """The bits of a number of ``kind``; NaN is the quiet one without a sign.

    Raises ValueError where the format does not have the number.
    """
    e, s = _parameters(kind)
    ones = ((1 << e) - 1) << (s - 1)
    if math.isnan(value):
        return ones | 1 << (s - 2)
    sign = int(math.copysign(1.0, value) < 0) << (e + s - 1)
    if math.isinf(value):
        return sign | ones
    exact = abs(Fraction(value))
    if Fraction(round_to(exact, kind)) != exact if exact <= Fraction(largest(kind)) else True:
        raise ValueError(f"{value!r} is not representable in {kind}; round it first")
    top = 2 ** (e - 1) - 1
    if exact == 0:
        return sign
    position = max(math.frexp(float(exact))[1] - 1, 1 - top)
    units = int(exact / _power_of_two(position - (s - 1)))  # the significand with its hidden bit
    return int(sign | (units + ((position + top - 1) << (s - 1))))


def decode(bits: int, kind: Format) -> float:
    """The number that bits stand for."""
    e, s = _parameters(kind)
    sign = -1.0 if bits >> (e + s - 1) & 1 else 1.0
    exponent, fraction = bits >> (s - 1) & ((1 << e) - 1), bits & ((1 << (s - 1)) - 1)
    if exponent == (1 << e) - 1:
        return math.nan if fraction else sign * math.inf
    top = 2 ** (e - 1) - 1
    significand = fraction if exponent == 0 else fraction + (1 << (s - 1))
    return sign * math.ldexp(float(significand), max(exponent, 1) - top - (s - 1))


# -- operators -------------------------------------------------------------------------------------------


def float_value(op: str, kind: Format, args: list[float]) -> Value:
    """The value of an operator on numbers of ``kind``; raises KeyError for an operator that floats do not have."""
    if op in _SPECIAL:
        return _SPECIAL[op](*args)
    if op == "sub":
        return float_value("add", kind, [args[0], -args[1]])
    if op in _ROUNDED:
        return _rounded(op, kind, args)
    if op in ("floor", "ceil", "trunc", "round"):
        (x,) = args
        if x == 0 or not math.isfinite(x):
            return x
        exact = OPERATORS[op].exact
        assert exact is not None
        return math.copysign(
            round_to(Fraction(exact(Fraction(x))), kind), x
        )  # the next integer may be beyond the range
    return _FUNCTIONS[op](kind, *args)


def _negative(x: float) -> bool:
    return math.copysign(1.0, x) < 0


def _rounded(op: str, kind: Format, args: list[float]) -> float:
    if any(math.isnan(a) for a in args):
        return math.nan
    if op != "fma" and kind.parameters in _NATIVE and (op != "div" or args[1] != 0):
        x, y = args
        result = x + y if op == "add" else x * y if op == "mul" else x / y
        # binary64 has more than twice the bits of binary32, so that rounding twice is rounding once (Figueroa 1995)
        return result if kind.parameters == _NATIVE[1] else ctypes.c_float(result).value
    if op == "fma":
        product = _product(args[0], args[1])
        if math.isnan(product) or not math.isfinite(product) or not math.isfinite(args[2]):
            return _infinite_sum(product, args[2])
        exact = Fraction(args[0]) * Fraction(args[1]) + Fraction(args[2])
        both = (_negative(args[0]) != _negative(args[1])) and _negative(args[2])
        return round_to(exact, kind, both and 0 in args[:2] and args[2] == 0)
    x, y = args
    if op == "add":
        if not (math.isfinite(x) and math.isfinite(y)):
            return _infinite_sum(x, y)
        return round_to(Fraction(x) + Fraction(y), kind, x == 0 and y == 0 and _negative(x) and _negative(y))
    negative = _negative(x) != _negative(y)
    sign = -1.0 if negative else 1.0
    if op == "mul":
        if not (math.isfinite(x) and math.isfinite(y)):
            return _product(x, y)
        return math.copysign(round_to(Fraction(x) * Fraction(y), kind), sign)
    if math.isinf(x):
        return math.nan if math.isinf(y) else sign * math.inf
    if math.isinf(y):
        return sign * 0.0
    if y == 0:
        return math.nan if x == 0 else sign * math.inf
    return math.copysign(round_to(Fraction(x) / Fraction(y), kind), sign)


def _product(x: float, y: float) -> float:
    """The product where a factor is infinite; else 0, which stands for any finite number."""
    if math.isinf(x) or math.isinf(y):
        return math.nan if x == 0 or y == 0 else math.copysign(math.inf, x) * math.copysign(1.0, y)
    return 0.0


def _infinite_sum(x: float, y: float) -> float:
    """The sum where a summand is infinite or NaN."""
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if math.isinf(x) and math.isinf(y):
        return x if x == y else math.nan
    return x if math.isinf(x) else y


def _larger(x: float, y: float) -> float:
    """The larger one of two numbers, with -0 < +0."""
    if x == 0 and y == 0:
        return y if _negative(x) else x
    return x if x > y else y


def _maximum(x: float, y: float) -> float:
    return math.nan if math.isnan(x) or math.isnan(y) else _larger(x, y)


def _maxnum(x: float, y: float) -> float:
    return y if math.isnan(x) else x if math.isnan(y) else _larger(x, y)


def _same(x: float, y: float) -> bool:
    return math.isnan(y) if math.isnan(x) else x == y and _negative(x) == _negative(y)


def _remainder(x: float, y: float) -> float:
    """Exact, so that it needs no rounding."""
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return math.nan
    return x if math.isinf(y) else math.fmod(x, y)


_SPECIAL: dict[str, Callable[..., Value]] = {
    "neg": lambda x: -x,
    "abs": lambda x: math.copysign(x, 1.0),
    "maximum": _maximum,
    "minimum": lambda x, y: -_maximum(-x, -y),
    "maxnum": _maxnum,
    "minnum": lambda x, y: -_maxnum(-x, -y),
    "remainder": _remainder,
    "unsigned_zero": lambda x: 0.0 if x == 0 else x,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "eq": lambda x, y: x == y,
    "same": _same,
    "is_nan": math.isnan,
    "is_finite": math.isfinite,
}


# -- functions that are no quotients ----------------------------------------------------------------------


def _certain(kind: Format, compute: Callable[[decimal.Context], decimal.Decimal]) -> float:
    """The rounded value of an irrational number that ``compute`` gives to a precision."""
    digits = _FIRST_DIGITS
    while True:
        context = decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
        value = Fraction(compute(context))
        slack = abs(value) / 10 ** (digits - _MARGIN)
        low, high = round_to(value - slack, kind), round_to(value + slack, kind)
        if low == high:
            return low
        digits *= 2


def _exp(kind: Format, x: float) -> float:
    e, s = _parameters(kind)
    if math.isnan(x) or x == math.inf:
        return x
    if x == 0:
        return 1.0
    if x > 2**e:  # e^x > 2^x
        return math.inf
    if x < -(2**e) - s:
        return 0.0
    return _certain(kind, lambda c: c.exp(decimal.Decimal(x)))


def _log(kind: Format, x: float) -> float:
    if math.isnan(x) or x < 0:
        return math.nan
    if x == 0 or math.isinf(x):
        return -math.inf if x == 0 else x
    return 0.0 if x == 1 else _certain(kind, lambda c: c.ln(decimal.Decimal(x)))


def _sqrt(kind: Format, x: float) -> float:
    if math.isnan(x) or x < 0:
        return math.nan
    if x == 0 or math.isinf(x):
        return x
    exact = Fraction(x)
    scale = 2 * (_parameters(kind)[1] + exact.denominator.bit_length())
    root = math.isqrt(int(exact * 4**scale))  # an integer: the denominator is a power of two
    beyond = 0 if root * root == exact * 4**scale else 1  # a bit that tells a cut root from an exact one
    return round_to(Fraction(2 * root + beyond, 2 ** (scale + 1)), kind)


def _pow(kind: Format, x: float, y: float) -> float:
    if y == 0 or x == 1:
        return 1.0
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if math.isinf(y):
        return 1.0 if abs(x) == 1 else math.inf if (abs(x) > 1) == (y > 0) else 0.0
    whole = y == math.floor(y)
    sign = -1.0 if _negative(x) and whole and int(y) % 2 == 1 else 1.0
    if x == 0 or math.isinf(x):
        return sign * (math.inf if math.isinf(x) == (y > 0) else 0.0)
    if x < 0 and not whole:
        return math.nan
    return sign * _positive_power(kind, Fraction(abs(x)), Fraction(y))


def _positive_power(kind: Format, base: Fraction, exponent: Fraction) -> float:
    e, s = _parameters(kind)
    if base == 1:
        return 1.0
    with decimal.localcontext(decimal.Context(prec=30)):
        size = float(exponent) * float(_decimal(base).ln()) / math.log(2)
    if abs(size) > 2**e + s + 2:
        return math.inf if size > 0 else 0.0
    root, power = base, exponent
    while power.denominator > 1:
        n, d = math.isqrt(root.numerator), math.isqrt(root.denominator)
        if n * n != root.numerator or d * d != root.denominator:
            break
        root, power = Fraction(n, d), power * 2
    if power.denominator == 1:
        if (root.numerator & (root.numerator - 1)) == 0:
            shift = root.numerator.bit_length() - root.denominator.bit_length()
            return round_to(_power_of_two(shift * int(power)), kind)
        if abs(power) <= _POWER_BITS:
            return round_to(root ** int(power), kind)
    return _certain(kind, lambda c: c.exp(c.multiply(c.ln(_decimal(base, c)), _decimal(exponent, c))))


def _decimal(exact: Fraction, context: decimal.Context | None = None) -> decimal.Decimal:
    with decimal.localcontext(context):
        return decimal.Decimal(exact.numerator) / decimal.Decimal(exact.denominator)


_FUNCTIONS: dict[str, Callable[..., float]] = {"exp": _exp, "log": _log, "sqrt": _sqrt, "pow": _pow}
