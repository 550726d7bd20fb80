"""Rules on floating-point numbers that look right and are wrong, their repairs, and similar valid ones.

Rows F1 to F35 and C1, C3, C5 and C19 of the collection of wrong rules, from published compilers.  Floats are binary32
unless a rule says otherwise.  exp, log and pow are correctly rounded functions here; a library's may differ in the last
bit, which none of the counterexamples depends on.
"""

from __future__ import annotations

import math

from chc.scalar_rules.rule import RuleRow, ScalarRule, control, row, rules_on
from ir_semantics.scalars.concrete import evaluate
from ir_semantics.scalars.formats import BINARY16, BINARY32, INTEGERS, REALS, integer
from ir_semantics.scalars.terms import (
    TRUE,
    Scalar,
    abs_,
    all_of,
    cast,
    ceil,
    clamp,
    constant,
    exp,
    fma,
    is_finite,
    is_nan,
    log,
    maximum,
    maxnum,
    minimum,
    pow_,
    relu,
    select,
    sqrt,
    trunc,
    variable,
)

rule = rules_on(BINARY32)

x, y, z = variable("x"), variable("y"), variable("z")
a, b = variable("a"), variable("b")


def _f32(value: float) -> float:
    """The nearest number of binary32."""
    return float(evaluate(cast(constant(value, REALS), BINARY32), {}))


def _over_reals(row: str, left: Scalar, right: Scalar, condition: Scalar = TRUE) -> ScalarRule:
    return rule(row, left, right, REALS, condition=condition)


def _softmax() -> tuple[Scalar, Scalar]:
    """log(softmax) of the first of two numbers, computed after and before the logarithm is taken into the quotient."""
    top = maximum(x, y)
    total = exp(x - top) + exp(y - top)
    return log(exp(x - top) / total), x - (top + log(total))


def _half_precision_mean() -> tuple[Scalar, Scalar]:
    """The mean of four binary16 numbers, summed in binary16 and in binary32."""
    names = [variable(n, BINARY16) for n in ("x0", "x1", "x2", "x3")]
    wide = [cast(n, BINARY32) for n in names]
    narrow_sum = names[0] + names[1] + names[2] + names[3]
    wide_sum = wide[0] + wide[1] + wide[2] + wide[3]
    return narrow_sum / 4, cast(wide_sum / 4, BINARY16)


def _finite_mean() -> ScalarRule:
    """The mean of four numbers of binary16's range is finite in binary32."""
    numbers = [variable(n) for n in ("x0", "x1", "x2", "x3")]
    total = numbers[0] + numbers[1] + numbers[2] + numbers[3]
    return ScalarRule(
        "F31 the sum in binary32 is finite",
        is_finite(total / 4),
        TRUE,
        BINARY32,
        condition=all_of(abs_(n) <= 65504 for n in numbers),
        row="F31",
    )


_n32 = variable("n", integer(32))
_to_float_and_back = cast(cast(_n32, BINARY32), integer(32))
_softplus, _naive_softplus = maximum(x, 0) + log(1 + exp(-abs_(x))), log(1 + exp(x))
_after, _before = _softmax()
_narrow_mean, _wide_mean = _half_precision_mean()
_greater, _turned = select(x > y, x, y), select(y > x, y, x)
_no_nan = ~is_nan(x) & ~is_nan(y)
_inner, _outer = minimum(maximum(x, a), b), maximum(minimum(x, b), a)
_prelu, _prelu_max = select(x >= 0, x, a * x), maximum(x, a * x)
_prelu_condition = (a <= 1) & is_finite(a) & is_finite(x)

ROWS: tuple[RuleRow, ...] = (
    row(
        "F1",
        rule("F1", x + 0, x, BINARY32, {"x": -0.0}),
        rule("F1", x + constant(-0.0), x),
        rule("F1", x + 0, x, zero_signs=False),
    ),
    row("F3", rule("F3", x - x, 0, BINARY32, {"x": math.inf}), rule("F3", x - x, 0, condition=is_finite(x))),
    row(
        "F5",
        rule("F5", maxnum(x, constant(-math.inf)), x, BINARY32, {"x": math.nan}, source="MLIR #114594"),
        rule("F5", maximum(x, constant(-math.inf)), x),
    ),
    row(
        "F7",
        rule("F7", _greater, _turned, BINARY32, {"x": math.nan, "y": 1.0}),
        rule("F7", _greater, _turned, condition=_no_nan, zero_signs=False),
        still_wrong=(rule("F7", _greater, _turned, BINARY32, {"x": -0.0, "y": 0.0}, condition=_no_nan),),
        note="Without NaN the sign of zero still depends on the order.",
    ),
    row(
        "F9",
        rule("F9", log(exp(x)), x, BINARY32, {"x": 89.0}, source="XLA #42732"),
        _over_reals("F9", log(exp(x)), x),
    ),
    row(
        "F11",
        rule("F11", exp(a) * exp(b), exp(a + b), BINARY32, {"a": 100.0, "b": -100.0}),
        _over_reals("F11", exp(a) * exp(b), exp(a + b)),
        note="Over the reals this is the functional equation that exp is assumed to satisfy.",
    ),
    row(
        "F13",
        rule("F13", (x + y) + z, x + (y + z), BINARY32, {"x": _f32(1e20), "y": -_f32(1e20), "z": 1.0}),
        _over_reals("F13", (x + y) + z, x + (y + z)),
    ),
    row(
        "F15",
        rule(
            "F15",
            a * x + b * x,
            fma(a, x, b * x),
            BINARY32,
            {"a": _f32(1e20), "b": -_f32(1e20), "x": _f32(1e10)},
            source="XLA #41579",
        ),
        _over_reals("F15", a * x + b * x, fma(a, x, b * x)),
    ),
    row(
        "F17",
        rule("F17", 1 / (1 / x), x, BINARY32, {"x": _f32(1e-40)}),
        _over_reals("F17", 1 / (1 / x), x, ~x.equals(0)),
    ),
    row(
        "F19",
        rule("F19", pow_(x, 0.5), sqrt(x), BINARY32, {"x": -0.0}, {"x": -math.inf}),
        _over_reals("F19", pow_(x, 0.5), sqrt(x), x > 0),
        note="Correctly rounded functions of equal reals are equal, so the repair holds for positive floats too.",
    ),
    row(
        "F21",
        rule("F21", -(a - b), b - a, BINARY32, {"a": 1.0, "b": 1.0}),
        rule("F21", -(a - b), b - a, zero_signs=False),
    ),
    row(
        "F23",
        rule("F23", ceil(x), trunc(x) + select(x > trunc(x), 1, 0), BINARY32, {"x": -0.25}, source="MLIR #218111"),
        rule("F23", ceil(x), trunc(x) + select(x > trunc(x), 1, 0), zero_signs=False),
    ),
    row(
        "F25",
        rule("F25", _to_float_and_back, _n32, BINARY32, {"n": 16777217}),
        rule("F25", _to_float_and_back, _n32, condition=(_n32 <= 2**24) & (constant(-(2**24), integer(32)) <= _n32)),
    ),
    row(
        "F27",
        rule("F27", _naive_softplus, _softplus, BINARY32, {"x": 100.0}),
        _over_reals("F27", _naive_softplus, _softplus),
        note="softplus is stated by its form without overflow.",
    ),
    row(
        "F29",
        rule("F29", _after, _before, BINARY32, {"x": 0.0, "y": 200.0}),
        _over_reals("F29", _after, _before),
        note="For the first of two numbers, with the largest one subtracted as implementations do.",
    ),
    row(
        "F31",
        rule("F31", _narrow_mean, _wide_mean, BINARY32, dict.fromkeys(("x0", "x1", "x2", "x3"), 30000.0)),
        _finite_mean(),
        note="The repair proved is that the wider sum does not overflow; the two means still round differently.",
    ),
    row(
        "F33",
        rule("F33", select(x > 0, x, 0), relu(x), BINARY32, {"x": math.nan}),
        rule("F33", select(x > 0, x, 0), relu(x), condition=~is_nan(x)),
    ),
    row(
        "F35",
        rule("F35", x * x >= 0, TRUE, BINARY32, {"x": math.nan}),
        rule("F35", x * x >= 0, TRUE, condition=~is_nan(x)),
    ),
    row(
        "C1",
        rule("C1", _inner, _outer, BINARY32, {"x": 2.0, "a": 3.0, "b": 1.0}, source="MLIR #57095"),
        rule("C1", _inner, _outer, condition=a <= b, zero_signs=False),
        _over_reals("C1", _inner, _outer, a <= b),
        still_wrong=(rule("C1", _inner, _outer, BINARY32, {"x": -1.0, "a": 0.0, "b": -0.0}, condition=a <= b),),
        note="0 <= -0 holds, so with floats the sign of zero still depends on the order.",
    ),
    row(
        "C3",
        rule("C3", -clamp(x, 0, 1), clamp(-x, constant(-0.0), -1), BINARY32, {"x": 0.5}),
        rule("C3", -clamp(x, 0, 1), clamp(-x, -1, constant(-0.0))),
    ),
    row(
        "C5",
        rule("C5", relu(a + b), relu(a) + relu(b), BINARY32, {"a": -1.0, "b": 1.0}),
        rule("C5", relu(a + b), relu(a) + relu(b), condition=(a >= 0) & (b >= 0)),
    ),
    row(
        "C19",
        rule("C19", _prelu, _prelu_max, BINARY32, {"x": 2.0, "a": 1.5}),
        rule("C19", _prelu, _prelu_max, condition=_prelu_condition, zero_signs=False),
        still_wrong=(rule("C19", _prelu, _prelu_max, BINARY32, {"x": math.inf, "a": 0.0}, condition=a <= 1),),
        note="a <= 1 is not enough for floats: 0 * inf is NaN, and the sign of zero changes.",
    ),
    control("x + (-0.0)", rule("control", x + constant(-0.0), x)),
    control("maximum with -inf", rule("control", maximum(x, constant(-math.inf)), x)),
    control("sums and products commute", rule("control", x + y, y + x), rule("control", x * y, y * x)),
    control("relu and maximum commute", rule("control", relu(maximum(x, y)), maximum(relu(x), relu(y)))),
    control(
        "full expansion of zero points",
        rule("control", (x - a) * (y - b), x * y - b * x - a * y + a * b, INTEGERS),
    ),
)
