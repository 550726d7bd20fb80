"""Machine numbers as expressions of :mod:`ila_lang`: integers, fixed point, and words with named primitives.

An operator computes the exact result in as many bits as it needs, and then rounds and wraps or saturates as the format
says.  The expressions run (:mod:`ir_semantics.scalars.concrete`) and become bit-vector terms; there is no other text of
their meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

from ila_lang import BOOL, Expr, Function, bv, concat, const, false, ite, true, var

from .formats import BOOLEAN, Format, Literal, Value
from .terms import NotInterpreted

MACHINE_FAMILIES = frozenset({"boolean", "integer", "fixed", "code"})

CodeOperators = Mapping[str, Function]
"""The primitives of a code format by operator; a cast to it or from it by ``cast:`` and the target's text."""


@dataclass(frozen=True)
class _Shape:
    """Codes of ``width`` bits that stand for code / 2^fraction."""

    width: int
    fraction: int
    signed: bool
    rounding: str
    saturating: bool

    @property
    def lowest(self) -> int:
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def highest(self) -> int:
        return (1 << (self.width - 1 if self.signed else self.width)) - 1


@cache
def _shape(kind: Format) -> _Shape:
    match kind.family, kind.parameters:
        case "integer", (width, sign, overflow):
            return _Shape(int(width), 0, sign == "signed", "down", overflow == "saturate")
        case "fixed", (width, fraction, sign, rounding, overflow):
            return _Shape(int(width), int(fraction), sign == "signed", str(rounding), overflow == "saturate")
    raise NotInterpreted(f"the format {kind} is no machine number; use integer() or fixed_point()")


def width_of(kind: Format) -> int:
    """Bits of a machine format's code; raises NotInterpreted for formats without one."""
    return int(kind.parameters[1]) if kind.family == "code" else _shape(kind).width


def to_code(value: Value | Literal, kind: Format) -> int:
    """The code (an unsigned integer) of a number; raises ValueError where the format does not have the number."""
    if kind.family == "code":
        code = int(value)
        if code != value or not 0 <= code < 1 << width_of(kind):
            raise ValueError(f"a code of {kind} must be an integer in 0..{(1 << width_of(kind)) - 1}, not {value}")
        return code
    shape = _shape(kind)
    if isinstance(value, int) and shape.fraction == 0 and shape.lowest <= value <= shape.highest:
        return value & ((1 << shape.width) - 1)
    if isinstance(value, float) and (not math.isfinite(value) or math.copysign(1, value) < 0 == value):
        raise ValueError(f"the format {kind} must be given a finite number, and 0 without a sign, not {value!r}")
    scaled = Fraction(value) * (1 << shape.fraction)
    if scaled.denominator != 1 or not shape.lowest <= scaled <= shape.highest:
        raise ValueError(f"{value} is not representable in {kind}; choose one that it has")
    return int(scaled) & ((1 << shape.width) - 1)


def from_code(code: int, kind: Format) -> Value:
    """The number that a code stands for: an int, or a Fraction for fixed point."""
    if kind.family == "code":
        return code
    shape = _shape(kind)
    if shape.signed and code >> (shape.width - 1):
        code -= 1 << shape.width
    return Fraction(code, 1 << shape.fraction) if kind.family == "fixed" else code


@dataclass
class MachineExpressions:
    """The domain of expressions: variables become variables of the same name, one code each (Booleans as such)."""

    codes: Mapping[Format, CodeOperators] = field(default_factory=dict)

    def variable(self, name: str, kind: Format) -> Expr:
        """A variable of the code's width."""
        return var(name, BOOL if kind == BOOLEAN else bv(width_of(kind)))

    def constant(self, value: Literal, kind: Format) -> Expr:
        """The literal code of a number."""
        if kind == BOOLEAN:
            return true if value else false
        return const(to_code(value, kind), width_of(kind))

    def apply(self, op: str, kind: Format, kinds: Sequence[Format], args: Sequence[Expr]) -> Expr:
        """The expression of an operator; raises NotInterpreted where the formats do not have it."""
        if op == "select":
            return ite(args[0], args[1], args[2])
        if op == "same" or kinds[0] == BOOLEAN:
            return self._logic(op, kind, args)
        if "code" in (kinds[0].family, kind.family):
            return self._primitive(op, kind, kinds[0], args)
        shape = _shape(kinds[0])
        if op == "cast":
            return _fit(_wide(args[0], shape, shape.width + 1), shape.fraction, _shape(kind))
        if op in _COMPARISONS:
            return _COMPARISONS[op](*(_wide(a, shape, shape.width + 1) for a in args))
        if op not in _ARITHMETIC or (shape.fraction and op in _INTEGERS_ONLY):
            instead = "; use divide_floor or divide_toward_zero" if op == "div" and not shape.fraction else ""
            raise NotInterpreted(f"the format {kinds[0]} has no operator {op}{instead}")
        return _ARITHMETIC[op](shape, *args)

    def _logic(self, op: str, kind: Format, args: Sequence[Expr]) -> Expr:
        match op:
            case "same":
                return args[0] == args[1]
            case "not":
                return ~args[0]
            case "and":
                return args[0] & args[1]
            case "or":
                return args[0] | args[1]
            case "cast":
                width = width_of(kind)
                return ite(args[0], const(to_code(Fraction(1), kind), width), const(0, width))
        raise NotInterpreted(f"Booleans have no operator {op}")

    def _primitive(self, op: str, kind: Format, source: Format, args: Sequence[Expr]) -> Expr:
        owner = source if source.family == "code" else kind
        key = f"cast:{kind}" if op == "cast" else op
        function = self.codes.get(owner, {}).get(key)
        if function is None:
            raise NotInterpreted(f"the format {owner} has no operator {key}; name its primitive")
        return function(*args)


# -- exact results and their fit --------------------------------------------------------------------------


def _wide(x: Expr, shape: _Shape, width: int) -> Expr:
    """The code's number, signed, in more bits."""
    return x.sext(width) if shape.signed else x.zext(width)


def _fit(exact: Expr, fraction: int, shape: _Shape) -> Expr:
    """A signed number with ``fraction`` fraction bits, rounded and wrapped or saturated to a format."""
    drop = fraction - shape.fraction
    if drop > 0:
        exact = _round(exact.sext(max(exact.width, drop) + 2), drop, shape.rounding)
    elif drop < 0:
        exact = concat(exact, const(0, -drop))
    wide = exact.sext(max(exact.width, shape.width) + 2)
    if shape.saturating:
        low, high = (const(limit & ((1 << wide.width) - 1), wide.width) for limit in (shape.lowest, shape.highest))
        wide = ite(wide.slt(low), low, ite(high.slt(wide), high, wide))
    return wide[shape.width - 1 : 0]


def _round(exact: Expr, drop: int, rounding: str) -> Expr:
    """``exact`` / 2^drop, rounded to an integer; the top two bits of ``exact`` are spare."""
    cut, rest = exact.ashr(const(drop, exact.width)), exact[drop - 1 : 0]
    match rounding:
        case "down":
            up = false
        case "nearest_up":
            up = rest[drop - 1] == 1
        case "toward_zero":
            up = (exact[exact.width - 1] == 1) & (rest != 0)
        case _:
            half = const(1 << (drop - 1), drop)
            up = (half < rest) | ((rest == half) & (cut[0] == 1))
    return cut + ite(up, const(1, exact.width), const(0, exact.width))


def _linear(compute: Callable[..., Expr]) -> Callable[..., Expr]:
    """An operator whose exact result needs two more bits than its operands and no more fraction bits."""

    def meaning(shape: _Shape, *args: Expr) -> Expr:
        return _fit(compute(*(_wide(a, shape, shape.width + 2) for a in args)), shape.fraction, shape)

    return meaning


def _mul(shape: _Shape, a: Expr, b: Expr) -> Expr:
    if not (shape.fraction or shape.saturating):
        return a * b  # bits above those of the format are cut, and no bit below depends on them
    width = 2 * shape.width + 2
    return _fit(_wide(a, shape, width) * _wide(b, shape, width), 2 * shape.fraction, shape)


def _fma(shape: _Shape, a: Expr, b: Expr, c: Expr) -> Expr:
    width = 2 * shape.width + shape.fraction + 3
    scaled = _wide(c, shape, width) << const(shape.fraction, width)
    return _fit(_wide(a, shape, width) * _wide(b, shape, width) + scaled, 2 * shape.fraction, shape)


def _magnitudes(shape: _Shape, a: Expr, b: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Quotient and remainder of the magnitudes, whether the signs differ, and whether the divisor is 0."""
    x, y = (_wide(v, shape, shape.width + 2) for v in (a, b))
    zero = const(0, x.width)
    p, q = ite(x.slt(zero), -x, x), ite(y.slt(zero), -y, y)
    return p // q, p % q, x.slt(zero) ^ y.slt(zero), y == zero


def _quotient(shape: _Shape, a: Expr, b: Expr) -> Expr:
    quotient, _, differ, by_zero = _magnitudes(shape, a, b)
    return _fit(ite(by_zero, const(0, quotient.width), ite(differ, -quotient, quotient)), 0, shape)


def _floor_quotient(shape: _Shape, a: Expr, b: Expr) -> Expr:
    quotient, rest, differ, by_zero = _magnitudes(shape, a, b)
    down = ite(rest != 0, -quotient - 1, -quotient)
    return _fit(ite(by_zero, const(0, quotient.width), ite(differ, down, quotient)), 0, shape)


def _remainder(shape: _Shape, a: Expr, b: Expr) -> Expr:
    _, rest, _, by_zero = _magnitudes(shape, a, b)
    x = _wide(a, shape, rest.width)
    return _fit(ite(by_zero, x, ite(x.slt(const(0, x.width)), -rest, rest)), 0, shape)


def _shift_left(shape: _Shape, a: Expr, amount: Expr) -> Expr:
    width = 2 * shape.width + 1
    limit = const(shape.width, width)
    shift = amount.zext(width)
    return _fit(_wide(a, shape, width) << ite(shift < limit, shift, limit), 0, shape)


def _shift_right(shape: _Shape, a: Expr, amount: Expr) -> Expr:
    return a.ashr(amount) if shape.signed else a >> amount


def _integral(rounding: str, up: bool = False) -> Callable[..., Expr]:
    """Rounding to an integer; ``up`` rounds toward plus infinity, as the negative of rounding its negative down."""

    def meaning(shape: _Shape, a: Expr) -> Expr:
        if shape.fraction == 0:
            return a
        wide = _wide(a, shape, shape.width + shape.fraction + 4)
        cut = -_round(-wide, shape.fraction, rounding) if up else _round(wide, shape.fraction, rounding)
        return _fit(cut, 0, shape)

    return meaning


_INTEGERS_ONLY = frozenset(
    {"quotient", "floor_quotient", "remainder", "shift_left", "shift_right", "bit_and", "bit_or", "bit_xor", "bit_not"}
)

_COMPARISONS: dict[str, Callable[..., Expr]] = {
    "lt": lambda a, b: a.slt(b),
    "le": lambda a, b: a.sle(b),
    "eq": lambda a, b: a == b,
    "is_nan": lambda a: false,
    "is_finite": lambda a: true,
}

_ARITHMETIC: dict[str, Callable[..., Expr]] = {
    "neg": _linear(lambda a: -a),
    "abs": _linear(lambda a: ite(a.slt(const(0, a.width)), -a, a)),
    "add": _linear(lambda a, b: a + b),
    "sub": _linear(lambda a, b: a - b),
    "maximum": _linear(lambda a, b: ite(a.slt(b), b, a)),
    "minimum": _linear(lambda a, b: ite(a.slt(b), a, b)),
    "maxnum": _linear(lambda a, b: ite(a.slt(b), b, a)),
    "minnum": _linear(lambda a, b: ite(a.slt(b), a, b)),
    "unsigned_zero": lambda shape, a: a,
    "mul": _mul,
    "fma": _fma,
    "quotient": _quotient,
    "floor_quotient": _floor_quotient,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "floor": _integral("down"),
    "ceil": _integral("down", up=True),
    "trunc": _integral("toward_zero"),
    "round": _integral("nearest_even"),
    "remainder": _remainder,
    "bit_and": lambda shape, a, b: a & b,
    "bit_or": lambda shape, a, b: a | b,
    "bit_xor": lambda shape, a, b: a ^ b,
    "bit_not": lambda shape, a: ~a,
}
