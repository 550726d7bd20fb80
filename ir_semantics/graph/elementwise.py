"""Scalar operators of the graph IR: one term each, on the elements of tensors of one shape.

Sources: the ONNX operator specification.  Where a term there overflows for large operands (softplus), a term of the
same real function that does not is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ir_semantics.scalars.arrays import DTYPES
from ir_semantics.scalars.formats import BOOLEAN
from ir_semantics.scalars.terms import (
    Scalar,
    abs_,
    apply,
    cast,
    clamp,
    constant,
    divide_floor,
    divide_toward_zero,
    exp,
    is_finite,
    is_nan,
    log,
    maximum,
    minimum,
    pow_,
    relu,
    select,
    sqrt,
    variable,
)

from .ir import Attributes
from .operator import Operator, Types, register, scalar
from .types import GraphError

X, Y, Z = variable("x"), variable("y"), variable("z")
C = variable("x", BOOLEAN)
D = variable("y", BOOLEAN)


def number(attributes: Attributes, name: str) -> Fraction:
    """An attribute as an exact number."""
    value = attributes[name]
    assert isinstance(value, int | float)
    return Fraction(value)


def unary(name: str) -> Scalar:
    """An operator of one operand on x."""
    return apply(name, X)


SIGMOID = select(X < 0, exp(-abs_(X)), 1) / (1 + exp(-abs_(X)))
SOFTPLUS = maximum(X, 0) + log(1 + exp(-abs_(X)))


def _gelu(attributes: Attributes) -> Scalar:
    if attributes["approximate"] == "tanh":
        # sqrt(2 / pi) as binary64 has it; the specification's formula has the real number
        inner = Fraction(0.7978845608028654) * (X + Fraction(0.044715) * X * X * X)
        return X * Fraction(1, 2) * (1 + apply("tanh", inner))
    return X * Fraction(1, 2) * (1 + apply("erf", X / sqrt(constant(2))))


def _elu(attributes: Attributes) -> Scalar:
    return select(X < 0, number(attributes, "alpha") * (exp(minimum(X, 0)) - 1), X)


def _selu(attributes: Attributes) -> Scalar:
    negative = number(attributes, "alpha") * (exp(minimum(X, 0)) - 1)
    return number(attributes, "gamma") * select(X <= 0, negative, X)


def _celu(attributes: Attributes) -> Scalar:
    alpha = number(attributes, "alpha")
    return maximum(X, 0) + minimum(alpha * (exp(minimum(X, 0) / alpha) - 1), 0)


def _hard_sigmoid(attributes: Attributes) -> Scalar:
    return clamp(number(attributes, "alpha") * X + number(attributes, "beta"), 0, 1)


def _hard_swish(attributes: Attributes) -> Scalar:
    return X * clamp(X * Fraction(1, 6) + Fraction(1, 2), 0, 1)


def _shrink(attributes: Attributes) -> Scalar:
    edge, bias = number(attributes, "lambd"), number(attributes, "bias")
    return select(-edge > X, X + bias, select(edge < X, X - bias, 0))


def _is_inf(attributes: Attributes) -> Scalar:
    infinite = ~is_finite(X) & ~is_nan(X)
    positive, negative = attributes["positive"], attributes["negative"]
    if not positive:
        return infinite & (X < 0)
    return infinite if negative else infinite & (X > 0)


def _swish(attributes: Attributes) -> Scalar:
    scaled = number(attributes, "alpha") * X
    return X * (select(scaled < 0, exp(-abs_(scaled)), 1) / (1 + exp(-abs_(scaled))))


def _floored() -> Scalar:
    """x - floor(x / y) * y: the remainder, moved to the sign of y; a zero has that sign too."""
    rest = apply("remainder", X, Y)
    moved = select(~(rest < 0).same(Y < 0), rest + Y, rest)
    return select(rest.equals(0), select(Y < 0, constant(-0.0), constant(0)), moved)


_ONE: dict[str, tuple[Scalar | Callable[[Attributes], Scalar], str]] = {
    **{n: (unary(n), "float") for n in ("exp", "log", "sqrt", "tanh", "sinh", "cosh", "asinh", "acosh", "atanh")},
    **{n: (unary(n), "float") for n in ("sin", "cos", "tan", "asin", "acos", "atan", "erf")},
    **{n: (unary(n), "float") for n in ("floor", "ceil", "round", "is_nan")},
    "neg": (-X, "number"),
    "abs": (abs_(X), "number"),
    "sign": (select(X > 0, 1, select(X < 0, -constant(1), X)), "number"),
    "reciprocal": (1 / X, "float"),
    "relu": (relu(X), "number"),
    "sigmoid": (SIGMOID, "float"),
    "softplus": (SOFTPLUS, "float"),
    "softsign": (X / (1 + abs_(X)), "float"),
    "mish": (X * apply("tanh", SOFTPLUS), "float"),
    "not": (~C, "bool"),
    "bit_not": (unary("bit_not"), "int"),
    "elu": (_elu, "float"),
    "selu": (_selu, "float"),
    "celu": (_celu, "float"),
    "gelu": (_gelu, "float"),
    "swish": (_swish, "float"),
    "hard_sigmoid": (_hard_sigmoid, "float"),
    "hard_swish": (_hard_swish, "float"),
    "shrink": (_shrink, "number"),
    "is_inf": (_is_inf, "float"),
    "leaky_relu": (lambda a: select(X < 0, number(a, "alpha") * X, X), "float"),
    "thresholded_relu": (lambda a: select(number(a, "alpha") < X, X, 0), "float"),
}

_MORE: dict[str, tuple[Scalar | Callable[[Attributes], Scalar], str]] = {
    "add": (X + Y, "number"),
    "sub": (X - Y, "number"),
    "mul": (X * Y, "number"),
    "div": (X / Y, "float"),
    "quotient": (divide_toward_zero(X, Y), "int"),
    "pow": (pow_(X, Y), "number"),
    "remainder": (apply("remainder", X, Y), "number"),
    "float_floor_remainder": (_floored(), "float"),
    "floor_remainder": (X - divide_floor(X, Y) * Y, "int"),
    "maximum": (maximum(X, Y), "number"),
    "minimum": (minimum(X, Y), "number"),
    "equal": (X.equals(Y), "number"),
    "less": (X < Y, "number"),
    "less_equal": (X <= Y, "number"),
    "and": (C & D, "bool"),
    "or": (C | D, "bool"),
    "xor": (~C.same(D), "bool"),
    "same_truth": (C.same(D), "bool"),
    "bit_and": (apply("bit_and", X, Y), "int"),
    "bit_or": (apply("bit_or", X, Y), "int"),
    "bit_xor": (apply("bit_xor", X, Y), "int"),
    "shift_left": (X << Y, "int"),
    "shift_right": (X >> Y, "int"),
    "prelu": (select(X < 0, Y * X, X), "number"),
    "clamp": (clamp(X, Y, Z), "number"),
    "where": (select(C, Y, Z), "any"),
}


def _cast(attributes: Attributes) -> Scalar:
    target = str(attributes["to"])
    return ~X.equals(0) if target == "bool" else cast(X, DTYPES[target])


def _cast_dtype(types: Types, attributes: Attributes) -> str:
    if attributes["to"] not in DTYPES:
        raise GraphError(f"cast must be given one of the types {', '.join(DTYPES)}, not {attributes['to']}")
    return str(attributes["to"])


_KINDS = frozenset({"bool", "int", "float"})
_CAST = Operator(
    "cast",
    "The value in another type: rounded to nearest between floats, cut toward zero and saturated from floats to "
    "integers (NaN to 0), wrapped between integers; true where it is not 0.",
    range(1, 2),
    _KINDS,
    _cast_dtype,
    scalar=_cast,
    attributes=frozenset({"to"}),
)

SCALAR_OPERATORS = (*(scalar(name, *entry) for name, entry in {**_ONE, **_MORE}.items()), register(_CAST))
"""The scalar operators, in the order of registration."""
