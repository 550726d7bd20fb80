"""An evaluator of scalar terms that shares no code with the product: exact rationals, and tables of small formats.

It reads terms (operator, operands, format) and nothing else.  Values are codes' numbers as Fractions; floats have the
texts "nan", "inf", "-inf" and "-0" beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, floor, isqrt, trunc
from typing import Any

Number = Fraction | str | bool
NAN, INF, MINUS_INF, MINUS_ZERO = "nan", "inf", "-inf", "-0"


class NoValue(Exception):
    """The term has a literal that its format lacks, or an operator that the format does not have."""


# -- formats ---------------------------------------------------------------------------------------------------


def scale_of(kind: Any) -> int:
    """What a machine number is multiplied by to make its code an integer."""
    return 1 << kind.parameters[1] if kind.family == "fixed" else 1


def limits(kind: Any) -> tuple[int, int]:
    """The smallest and the largest code, as signed integers."""
    width, sign = kind.parameters[0], kind.parameters[1 if kind.family == "integer" else 2]
    return (-(1 << width - 1), (1 << width - 1) - 1) if sign == "signed" else (0, (1 << width) - 1)


@cache
def finite_floats(kind: Any) -> list[Fraction]:
    """All finite magnitudes of a float format in order; the place is the code, so an even place is an even code."""
    exponent_bits, significand_bits = kind.parameters
    bias = (1 << exponent_bits - 1) - 1
    steps = 1 << significand_bits - 1
    found = []
    for exponent in range((1 << exponent_bits) - 1):
        for rest in range(steps):
            whole = rest + (steps if exponent else 0)
            found.append(Fraction(whole, steps) * Fraction(2) ** (max(exponent, 1) - bias))
    return found


def all_values(kind: Any) -> list[Number]:
    """Every value of a small format."""
    if kind.family == "boolean":
        return [False, True]
    if kind.family == "float":
        positive = finite_floats(kind)[1:]
        return [Fraction(0), MINUS_ZERO, NAN, INF, MINUS_INF, *positive, *(-p for p in positive)]
    low, high = limits(kind)
    return [Fraction(c, scale_of(kind)) for c in range(low, high + 1)]


def _round_integer(value: Fraction, rounding: str) -> int:
    if rounding == "down":
        return floor(value)
    if rounding == "toward_zero":
        return trunc(value)
    if rounding == "nearest_up":
        return floor(value + Fraction(1, 2))
    return round(value)  # Python rounds ties of Fractions to even


def to_machine(value: Fraction, kind: Any) -> Fraction:
    """A number rounded, and wrapped or saturated, to a machine format."""
    rounding = kind.parameters[3] if kind.family == "fixed" else "down"
    overflow = kind.parameters[-1]
    low, high = limits(kind)
    code = _round_integer(value * scale_of(kind), rounding)
    wrapped = (code - low) % (high - low + 1) + low
    return Fraction(min(max(code, low), high) if overflow == "saturate" else wrapped, scale_of(kind))


def to_float(value: Fraction, kind: Any, negative_zero: bool = False) -> Number:
    """The nearest number of a float format, ties to even; a zero that comes of a negative number is -0."""
    places = finite_floats(kind)
    size = abs(value)
    limit = places[-1] + (places[-1] - places[-2]) / 2
    if size >= limit:
        return MINUS_INF if value < 0 else INF
    nearest = min(range(len(places)), key=lambda i: (abs(places[i] - size), i % 2))
    if nearest == 0:
        return MINUS_ZERO if value < 0 or (value == 0 and negative_zero) else Fraction(0)
    return -places[nearest] if value < 0 else places[nearest]


# -- operators on floats ---------------------------------------------------------------------------------------


def _minus(x: Number) -> bool:
    return x in (MINUS_INF, MINUS_ZERO) or (isinstance(x, Fraction) and x < 0)


def _number(x: Number) -> Fraction:
    return Fraction(0) if x == MINUS_ZERO else x  # type: ignore[return-value]


def _infinite(x: Number) -> bool:
    return x in (INF, MINUS_INF)


def _zero(x: Number) -> bool:
    return x == MINUS_ZERO or (isinstance(x, Fraction) and x == 0)


def _negated(x: Number) -> Number:
    table: dict[Any, Number] = {NAN: NAN, INF: MINUS_INF, MINUS_INF: INF, MINUS_ZERO: Fraction(0)}
    if isinstance(x, Fraction) and x == 0:
        return MINUS_ZERO
    return table[x] if isinstance(x, str) else -x


def _less(x: Number, y: Number) -> bool:
    if NAN in (x, y):
        return False
    if x == y:
        return False
    if x == MINUS_INF or y == INF:
        return True
    if x == INF or y == MINUS_INF:
        return False
    return _number(x) < _number(y)


def _equal(x: Number, y: Number) -> bool:
    if NAN in (x, y):
        return False
    return x == y or (not _infinite(x) and not _infinite(y) and _number(x) == _number(y))


def _signed(kind: Any, value: Fraction, minus: bool) -> Number:
    """A result whose zero has the sign that is given."""
    return to_float(value, kind, negative_zero=minus)


def _add(kind: Any, x: Number, y: Number) -> Number:
    if NAN in (x, y) or (_infinite(x) and _infinite(y) and x != y):
        return NAN
    for one in (x, y):
        if _infinite(one):
            return one
    return _signed(kind, _number(x) + _number(y), _minus(x) and _minus(y))


def _multiply(kind: Any, x: Number, y: Number) -> Number:
    if NAN in (x, y) or (_infinite(x) and _zero(y)) or (_zero(x) and _infinite(y)):
        return NAN
    minus = _minus(x) != _minus(y)
    if _infinite(x) or _infinite(y):
        return MINUS_INF if minus else INF
    return _signed(kind, _number(x) * _number(y), minus)


def _divide(kind: Any, x: Number, y: Number) -> Number:
    if NAN in (x, y) or (_infinite(x) and _infinite(y)) or (_zero(x) and _zero(y)):
        return NAN
    minus = _minus(x) != _minus(y)
    if _infinite(x) or _zero(y):
        return MINUS_INF if minus else INF
    if _infinite(y):
        return MINUS_ZERO if minus else Fraction(0)
    return _signed(kind, _number(x) / _number(y), minus)


def _fma(kind: Any, x: Number, y: Number, z: Number) -> Number:
    if NAN in (x, y, z) or (_infinite(x) and _zero(y)) or (_zero(x) and _infinite(y)):
        return NAN
    minus = _minus(x) != _minus(y)
    if _infinite(x) or _infinite(y):
        product_ = MINUS_INF if minus else INF
        return NAN if _infinite(z) and z != product_ else product_
    if _infinite(z):
        return z
    return _signed(kind, _number(x) * _number(y) + _number(z), minus and _minus(z))


def _larger(x: Number, y: Number) -> Number:
    if _zero(x) and _zero(y):
        return y if x == MINUS_ZERO else x
    return y if _less(x, y) else x


def _maximum(x: Number, y: Number) -> Number:
    return NAN if NAN in (x, y) else _larger(x, y)


def _maxnum(x: Number, y: Number) -> Number:
    return y if x == NAN else x if y == NAN else _larger(x, y)


def _integral(op: str, x: Number) -> Number:
    if isinstance(x, str):
        return x
    whole = {"floor": floor, "ceil": ceil, "trunc": trunc}[op](x)
    return MINUS_ZERO if whole == 0 and x < 0 else Fraction(whole)


def _root(kind: Any, x: Number) -> Number:
    if x in (MINUS_ZERO, NAN, INF) or (isinstance(x, Fraction) and x == 0):
        return x
    if _minus(x):
        return NAN
    fine = 1 << 80  # the root to 80 bits, and half a unit more where it is not exact, rounds as the root does
    scaled = _number(x) * fine * fine
    below = isqrt(floor(scaled))
    exact = below * below == scaled
    return to_float(Fraction(2 * below + (not exact), 2 * fine), kind)


def _float(op: str, kind: Any, args: list[Number]) -> Number:
    match op:
        case "neg":
            return _negated(args[0])
        case "abs":
            return _negated(args[0]) if _minus(args[0]) else args[0]
        case "add":
            return _add(kind, *args)
        case "sub":
            return _add(kind, args[0], _negated(args[1]))
        case "mul":
            return _multiply(kind, *args)
        case "div":
            return _divide(kind, *args)
        case "fma":
            return _fma(kind, *args)
        case "maximum":
            return _maximum(*args)
        case "minimum":
            return _negated(_maximum(*map(_negated, args)))
        case "maxnum":
            return _maxnum(*args)
        case "minnum":
            return _negated(_maxnum(*map(_negated, args)))
        case "floor" | "ceil" | "trunc":
            return _integral(op, args[0])
        case "sqrt":
            return _root(kind, args[0])
        case "unsigned_zero":
            return Fraction(0) if args[0] == MINUS_ZERO else args[0]
    raise NoValue(op)


# -- operators on machine numbers ------------------------------------------------------------------------------


def _unsigned(x: Fraction, kind: Any) -> int:
    return int(x * scale_of(kind)) % (1 << kind.parameters[0])


def _signed_code(code: int, kind: Any) -> Fraction:
    low, high = limits(kind)
    return Fraction(code - (high - low + 1) if code > high else code)


def _machine(op: str, kind: Any, args: list[Any]) -> Fraction:
    x = args[0]
    y = args[1] if len(args) > 1 else Fraction(0)
    match op:
        case "neg":
            exact = -x
        case "abs":
            exact = abs(x)
        case "add":
            exact = x + y
        case "sub":
            exact = x - y
        case "mul":
            exact = x * y
        case "fma":
            exact = x * y + args[2]
        case "quotient":
            exact = Fraction(trunc(x / y)) if y else Fraction(0)
        case "floor_quotient":
            exact = Fraction(floor(x / y)) if y else Fraction(0)
        case "remainder":
            exact = x - y * trunc(x / y) if y else x
        case "shift_left":
            exact = x * (1 << _unsigned(y, kind))
        case "shift_right":
            exact = Fraction(floor(x / (1 << _unsigned(y, kind))))
        case "bit_and":
            exact = _signed_code(_unsigned(x, kind) & _unsigned(y, kind), kind)
        case "bit_or":
            exact = _signed_code(_unsigned(x, kind) | _unsigned(y, kind), kind)
        case "bit_xor":
            exact = _signed_code(_unsigned(x, kind) ^ _unsigned(y, kind), kind)
        case "bit_not":
            exact = _signed_code(~_unsigned(x, kind) % (1 << kind.parameters[0]), kind)
        case "floor":
            exact = Fraction(floor(x))
        case "ceil":
            exact = Fraction(ceil(x))
        case "trunc":
            exact = Fraction(trunc(x))
        case "maximum" | "maxnum":
            exact = max(x, y)
        case "minimum" | "minnum":
            exact = min(x, y)
        case "unsigned_zero":
            exact = x
        case _:
            raise NoValue(op)
    return to_machine(exact, kind)


def _cast(value: Number, source: Any, target: Any) -> Number:
    if source.family == "boolean":
        value = Fraction(int(value))  # type: ignore[arg-type]
        return value if target.family == "float" else to_machine(value, target)
    if target.family == "float":
        if isinstance(value, str):
            return value
        assert isinstance(value, Fraction)
        return to_float(value, target)
    if source.family == "float":  # cut toward zero, saturated; NaN is 0
        low, high = (Fraction(e, scale_of(target)) for e in limits(target))
        if value == NAN:
            return Fraction(0)
        if _infinite(value):
            return high if value == INF else low
        cut = Fraction(trunc(_number(value) * scale_of(target)), scale_of(target))
        return min(max(cut, low), high)
    assert isinstance(value, Fraction)
    return to_machine(value, target)


def evaluate(term: Any, values: Mapping[str, Number]) -> Number:
    """The value of a term whose formats are all named (no term of an open format)."""
    if term.op == "variable":
        return values[term.payload]
    if term.op == "constant":
        return _literal(term)
    if term.op == "select":
        return evaluate(term.args[1 if evaluate(term.args[0], values) else 2], values)
    args = [evaluate(a, values) for a in term.args]
    kind = term.args[0].format
    match term.op:
        case "same":
            return args[0] == args[1]
        case "not":
            return not args[0]
        case "and":
            return bool(args[0] and args[1])
        case "or":
            return bool(args[0] or args[1])
        case "lt":
            return _less(*args)
        case "le":
            return _less(*args) or _equal(*args)
        case "eq":
            return _equal(*args)
        case "is_nan":
            return args[0] == NAN
        case "is_finite":
            return not isinstance(args[0], str) or args[0] == MINUS_ZERO
        case "cast":
            return _cast(args[0], kind, term.format)
    return _float(term.op, kind, args) if kind.family == "float" else _machine(term.op, kind, args)


def _literal(term: Any) -> Number:
    value, kind = term.payload, term.format
    if kind.family == "boolean":
        return bool(value)
    if isinstance(value, float):
        text = {"nan": NAN, "inf": INF, "-inf": MINUS_INF, "-0.0": MINUS_ZERO}[repr(value)]
        if kind.family != "float":
            raise NoValue(repr(value))
        return text
    if value not in all_values(kind):
        raise NoValue(f"{value} in {kind}")
    return Fraction(value)


def assignments(formats: Mapping[str, Any]) -> Iterator[dict[str, Number]]:
    """All values of all variables."""
    for chosen in product(*(all_values(k) for k in formats.values())):
        yield dict(zip(formats, chosen, strict=True))
