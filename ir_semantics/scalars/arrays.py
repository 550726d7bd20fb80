"""Scalar terms on NumPy arrays, element by element: machine integers of 8 to 64 bits, IEEE floats, Booleans.

Integers wrap, and casts, divisions by zero, signed zeros and NaN are as :mod:`ir_semantics.scalars.operators` says.
Basic arithmetic of floats is correctly rounded, as NumPy's is.  exp, log, pow and the other elementary functions are
those of NumPy and of Python's math library, which may differ from the correctly rounded result in the last places; fma
is not offered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .formats import BINARY16, BINARY32, BINARY64, BOOLEAN, NUMBER, Format, Literal
from .terms import NotInterpreted, Scalar, interpret

Array = NDArray[Any]

DTYPES: Mapping[str, Format] = {
    "bool": BOOLEAN,
    **{f"int{w}": Format("integer", (w, "signed", "wrap")) for w in (8, 16, 32, 64)},
    **{f"uint{w}": Format("integer", (w, "unsigned", "wrap")) for w in (8, 16, 32, 64)},
    "float16": BINARY16,
    "float32": BINARY32,
    "float64": BINARY64,
}
"""The number formats that arrays have, by the name of NumPy's dtype."""

_NAMES = {kind: name for name, kind in DTYPES.items()}


def literal_of(value: Literal, dtype: str) -> Any:
    """A literal as a NumPy scalar; of integers, the infinities are the extreme values (the units of min and max)."""
    kind = np.dtype(dtype)
    if isinstance(value, float) and math.isinf(value) and kind.kind in "iub":
        if kind.kind == "b":
            return np.bool_(value > 0)
        limits = np.iinfo(kind)
        return kind.type(limits.max if value > 0 else limits.min)
    if kind.kind == "f":
        return kind.type(float(value))
    if value != int(value) or isinstance(value, float):
        raise NotInterpreted(f"{value} is not representable in {dtype}; use a type of floats")
    if kind.kind in "iu" and not np.iinfo(kind).min <= value <= np.iinfo(kind).max:
        raise NotInterpreted(f"{value} is not representable in {dtype}; use a wider type")
    return kind.type(int(value))


def run_scalar(term: Scalar, operands: Mapping[str, Array], number: str) -> Array:
    """A term on arrays of one shape (or that broadcast); NUMBER is the dtype ``number``.

    >>> from ir_semantics.scalars.terms import variable
    >>> print(run_scalar(variable("x") * 2 + 1, {"x": np.array([1, 100], np.int8)}, "int8"))
    [  3 -55]
    """
    with np.errstate(all="ignore"):
        return np.asarray(interpret([term], Arrays(operands), DTYPES[number])[0])


@dataclass(frozen=True)
class Arrays:
    """The domain of arrays; the operands' dtypes must be those of the formats."""

    operands: Mapping[str, Array]

    def variable(self, name: str, kind: Format) -> Array:
        """The operand of that name."""
        value = self.operands[name]
        if value.dtype != np.dtype(_dtype(kind)):
            raise ValueError(f"the operand {name} must be of the type {_dtype(kind)}, not {value.dtype}")
        return value

    def constant(self, value: Literal, kind: Format) -> Any:
        """A NumPy scalar, rounded to the format."""
        return literal_of(value, _dtype(kind))

    def apply(self, op: str, kind: Format, kinds: Sequence[Format], args: Sequence[Any]) -> Any:
        """The operator on arrays."""
        if op == "cast":
            return _cast(args[0], _dtype(kind))
        return apply_to_arrays(op, args)


def _dtype(kind: Format) -> str:
    if kind == NUMBER or kind not in _NAMES:
        raise NotInterpreted(f"arrays have no elements of the format {kind}")
    return _NAMES[kind]


def apply_to_arrays(op: str, args: Sequence[Any]) -> Any:
    """A scalar operator other than a cast on arrays of one dtype; raises NotInterpreted where they do not have it."""
    if op == "select":
        return np.where(args[0], args[1], args[2])
    group = {"f": "float", "i": "integer", "u": "integer", "b": "boolean"}[np.asarray(args[0]).dtype.kind]
    function = _functions(group).get(op)
    if function is None:
        raise NotInterpreted(f"elements of the type {np.asarray(args[0]).dtype} have no operator {op}")
    with np.errstate(all="ignore"):
        return function(*args)


def _maximum(a: Any, b: Any) -> Any:
    result = np.maximum(a, b)
    zeros = np.logical_and(a == 0, b == 0)
    # -0 < +0, which NumPy leaves open; the sum of two zeros is -0 only if both are
    return np.where(zeros, np.add(a, b), result) if np.any(zeros) else result


def _minimum(a: Any, b: Any) -> Any:
    return -_maximum(-a, -b)


def _maxnum(a: Any, b: Any) -> Any:
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, _maximum(a, b)))


def _same_float(a: Any, b: Any) -> Any:
    equal = np.logical_and(a == b, np.signbit(a) == np.signbit(b))
    return np.logical_or(equal, np.logical_and(np.isnan(a), np.isnan(b)))


def _elementwise(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of Python floats on arrays, rounded to their dtype."""
    run = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(run(np.asarray(x, np.float64)), np.float64).astype(np.asarray(x).dtype)


def _quotient(a: Any, b: Any) -> Any:
    """Rounded toward zero; 0 where the divisor is 0."""
    safe = np.where(b == 0, np.ones_like(b), b)
    down = np.floor_divide(a, safe)
    up = np.logical_and(down < 0, down * safe != a)  # a negative quotient was rounded away from zero
    return np.where(b == 0, np.zeros_like(down), np.where(up, down + np.ones_like(down), down))


def _floor_quotient(a: Any, b: Any) -> Any:
    safe = np.where(b == 0, np.ones_like(b), b)
    return np.where(b == 0, np.zeros_like(a), np.floor_divide(a, safe))


def _shift(function: Callable[[Any, Any], Any], far: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A shift by an amount that is read unsigned; amounts of the width and more move every bit out."""

    def shift(a: Any, b: Any) -> Any:
        width = np.asarray(a).dtype.itemsize * 8
        inside = np.logical_and(b >= 0, b < width)
        return np.where(inside, function(a, np.where(inside, b, np.zeros_like(b))), far(a))

    return shift


def _sign_bits(a: Any) -> Any:
    return np.where(a < 0, np.full_like(a, -1 if np.asarray(a).dtype.kind == "i" else 0), np.zeros_like(a))


_COMPARED: dict[str, Callable[..., Any]] = {"lt": np.less, "le": np.less_equal, "eq": np.equal}
_RING: dict[str, Callable[..., Any]] = {"neg": np.negative, "add": np.add, "sub": np.subtract, "mul": np.multiply}


def _same(x: Any) -> Any:
    return x


@cache
def _functions(group: str) -> Mapping[str, Callable[..., Any]]:
    """The operators of floats, integers or Booleans."""
    if group == "boolean":
        logic: dict[str, Callable[..., Any]] = {"and": np.logical_and, "or": np.logical_or, "not": np.logical_not}
        return logic | {"same": np.equal, "maximum": np.logical_or, "minimum": np.logical_and}
    if group == "integer":
        functions = _COMPARED | _RING | {"same": np.equal, "abs": np.abs, "maximum": np.maximum, "minimum": np.minimum}
        functions |= {"maxnum": np.maximum, "minnum": np.minimum, "unsigned_zero": _same}
        functions |= dict.fromkeys(("floor", "ceil", "trunc", "round"), _same)
        functions |= {"quotient": _quotient, "floor_quotient": _floor_quotient}
        functions |= {"remainder": lambda a, b: a - b * _quotient(a, b)}
        functions |= {"shift_left": _shift(np.left_shift, np.zeros_like)}
        functions |= {"shift_right": _shift(np.right_shift, _sign_bits)}
        functions |= {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}
        functions |= {"bit_not": np.invert, "pow": _integer_power}
        functions |= {
            "is_nan": lambda x: np.zeros(np.shape(x), bool),
            "is_finite": lambda x: np.ones(np.shape(x), bool),
        }
        return functions
    functions = _COMPARED | _RING | {"div": np.divide, "abs": np.abs, "pow": np.power, "same": _same_float}
    functions |= {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "remainder": np.fmod}
    functions |= {"maximum": _maximum, "minimum": _minimum, "maxnum": _maxnum}
    functions |= {"minnum": lambda a, b: -_maxnum(-a, -b), "unsigned_zero": lambda x: x + np.zeros_like(x)}
    functions |= {"is_nan": np.isnan, "is_finite": np.isfinite, "erf": _elementwise(math.erf)}
    functions |= {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh}
    functions |= {"asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "sin": np.sin, "cos": np.cos}
    functions |= {"tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan}
    return functions


def _integer_power(a: Any, b: Any) -> Any:
    """a^b that wraps; for a negative exponent the quotient 1 / a^|b|, rounded toward zero (0 where a is 0)."""
    positive = np.power(a, np.maximum(b, np.zeros_like(b)))
    if np.asarray(b).dtype.kind == "u":
        return positive
    odd = np.bitwise_and(b, np.ones_like(b)) != 0
    ones, minus = np.ones_like(a), a == -1 if np.asarray(a).dtype.kind == "i" else np.zeros(np.shape(a), bool)
    units = np.where(a == 1, ones, np.where(minus, np.where(odd, -ones, ones), np.zeros_like(a)))
    return np.where(b < 0, units, positive)


def _cast(x: Any, target: str) -> Array:
    """Integers wrap; floats are cut toward zero and saturate to integers, NaN becoming 0; Booleans become 1 or 0."""
    source, kind = np.asarray(x), np.dtype(target)
    if source.dtype.kind != "f" or kind.kind == "f":
        if kind.kind == "b" and source.dtype.kind != "b":
            raise NotInterpreted("a number is no truth value; compare it with 0")
        with np.errstate(all="ignore"):
            return source.astype(kind)
    limits = np.iinfo(kind)
    # exact powers of two, so the comparisons are exact in every float format that has them; float16 does not
    wide = source.astype(np.float64) if source.dtype.itemsize < 8 else source
    low, high = float(limits.min), math.ldexp(1.0, limits.bits - (1 if kind.kind == "i" else 0))
    inside = np.logical_and(wide > low, wide < high)
    cut = np.where(inside, wide, 0).astype(kind)
    ends = np.where(wide >= high, np.array(limits.max, kind), np.where(wide <= low, np.array(limits.min, kind), cut))
    return np.asarray(np.where(np.isnan(wide), np.zeros((), kind), ends))
