"""Rules on floating-point numbers that look right and are wrong, their repairs, and similar valid ones.

Rows F1 to F35 and C1, C3, C5 and C19 of the collection of wrong rules, from published compilers.  Floats are binary32
unless a rule says otherwise.  exp, log and pow are correctly rounded functions here; a library's may differ in the last
bit, which none of the counterexamples depends on.
"""

from __future__ import annotations

import math
from functools import partial

from chc.scalar_rules.rule import RuleRow, ScalarRule, control, rules_on
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

from .traps import but, wrong
from .traps import trap as trap_on

rule, trap = rules_on(BINARY32), partial(trap_on, usual=BINARY32)

x, y, z = variable("x"), variable("y"), variable("z")
a, b = variable("a"), variable("b")


def _f32(value: float) -> float:
    """The nearest number of binary32."""
    return float(evaluate(cast(constant(value, REALS), BINARY32), {}))


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
    trap("F1", wrong(x + 0, x, {"x": -0.0}), but(left=x + constant(-0.0)), but(zero_signs=False)),
    trap("F3", wrong(x - x, 0, {"x": math.inf}), but(is_finite(x))),
    trap(
        "F5",
        wrong(maxnum(x, constant(-math.inf)), x, {"x": math.nan}, source="MLIR #114594"),
        but(left=maximum(x, constant(-math.inf))),
    ),
    trap(
        "F7",
        wrong(_greater, _turned, {"x": math.nan, "y": 1.0}),
        but(_no_nan, zero_signs=False),
        still_wrong=[but(_no_nan, {"x": -0.0, "y": 0.0})],
        note="Without NaN the sign of zero still depends on the order.",
    ),
    trap("F9", wrong(log(exp(x)), x, {"x": 89.0}, source="XLA #42732"), but(number=REALS)),
    trap(
        "F11",
        wrong(exp(a) * exp(b), exp(a + b), {"a": 100.0, "b": -100.0}),
        but(number=REALS),
        note="Over the reals this is the functional equation that exp is assumed to satisfy.",
    ),
    trap("F13", wrong((x + y) + z, x + (y + z), {"x": _f32(1e20), "y": -_f32(1e20), "z": 1.0}), but(number=REALS)),
    trap(
        "F15",
        wrong(
            a * x + b * x, fma(a, x, b * x), {"a": _f32(1e20), "b": -_f32(1e20), "x": _f32(1e10)}, source="XLA #41579"
        ),
        but(number=REALS),
    ),
    trap("F17", wrong(1 / (1 / x), x, {"x": _f32(1e-40)}), but(~x.equals(0), number=REALS)),
    trap(
        "F19",
        wrong(pow_(x, 0.5), sqrt(x), {"x": -0.0}, {"x": -math.inf}),
        but(x > 0, number=REALS),
        note="Correctly rounded functions of equal reals are equal, so the repair holds for positive floats too.",
    ),
    trap("F21", wrong(-(a - b), b - a, {"a": 1.0, "b": 1.0}), but(zero_signs=False)),
    trap(
        "F23",
        wrong(ceil(x), trunc(x) + select(x > trunc(x), 1, 0), {"x": -0.25}, source="MLIR #218111"),
        but(zero_signs=False),
    ),
    trap(
        "F25",
        wrong(_to_float_and_back, _n32, {"n": 16777217}),
        but((_n32 <= 2**24) & (constant(-(2**24), integer(32)) <= _n32)),
    ),
    trap(
        "F27",
        wrong(_naive_softplus, _softplus, {"x": 100.0}),
        but(number=REALS),
        note="softplus is stated by its form without overflow.",
    ),
    trap(
        "F29",
        wrong(_after, _before, {"x": 0.0, "y": 200.0}),
        but(number=REALS),
        note="For the first of two numbers, with the largest one subtracted as implementations do.",
    ),
    trap(
        "F31",
        wrong(_narrow_mean, _wide_mean, dict.fromkeys(("x0", "x1", "x2", "x3"), 30000.0)),
        _finite_mean(),
        note="The repair proved is that the wider sum does not overflow; the two means still round differently.",
    ),
    trap("F33", wrong(select(x > 0, x, 0), relu(x), {"x": math.nan}), but(~is_nan(x))),
    trap("F35", wrong(x * x >= 0, TRUE, {"x": math.nan}), but(~is_nan(x))),
    trap(
        "C1",
        wrong(_inner, _outer, {"x": 2.0, "a": 3.0, "b": 1.0}, source="MLIR #57095"),
        but(a <= b, zero_signs=False),
        but(a <= b, number=REALS),
        still_wrong=[but(a <= b, {"x": -1.0, "a": 0.0, "b": -0.0})],
        note="0 <= -0 holds, so with floats the sign of zero still depends on the order.",
    ),
    trap(
        "C3",
        wrong(-clamp(x, 0, 1), clamp(-x, constant(-0.0), -1), {"x": 0.5}),
        but(right=clamp(-x, -1, constant(-0.0))),
    ),
    trap("C5", wrong(relu(a + b), relu(a) + relu(b), {"a": -1.0, "b": 1.0}), but((a >= 0) & (b >= 0))),
    trap(
        "C19",
        wrong(_prelu, _prelu_max, {"x": 2.0, "a": 1.5}),
        but(_prelu_condition, zero_signs=False),
        still_wrong=[but(a <= 1, {"x": math.inf, "a": 0.0})],
        note="a <= 1 is not enough for floats: 0 * inf is NaN, and the sign of zero changes.",
    ),
    control("x + (-0.0)", rule("control", x + constant(-0.0), x)),
    control("maximum with -inf", rule("control", maximum(x, constant(-math.inf)), x)),
    control("sums and products commute", rule("control", x + y, y + x), rule("control", x * y, y * x)),
    control("relu and maximum commute", rule("control", relu(maximum(x, y)), maximum(relu(x), relu(y)))),
    control(
        "full expansion of zero points", rule("control", (x - a) * (y - b), x * y - b * x - a * y + a * b, INTEGERS)
    ),
)
