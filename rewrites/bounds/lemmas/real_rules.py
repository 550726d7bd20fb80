"""The laws by which errors compose: statements on real numbers, put to two solvers.

In all of them a is a real value and a' what the device has in its place, ``near(a, a', m, e)`` stands for |a| <= m and
|a' - a| <= e.  The formulas of the conclusions are the functions of :mod:`rewrites.bounds.kernel.laws`:
:mod:`rewrites.bounds.kernel.replay` applies the very functions that are proved here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import REAL

from rewrites.bounds.kernel import laws
from rewrites.bounds.kernel.formula import Formula, FormulaLike, constant, maximum, minimum, symbol
from smt_encodings.claims import Claim, Equality, Interpretation, Status, Verdict
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh_symbols

Built = tuple[list[FNode], FNode]


@dataclass(frozen=True)
class RealRule:
    """A law: its statement in words, and the hypotheses and goal of the question."""

    name: str
    statement: str
    build: Callable[[], Built]


def real(formula: FormulaLike) -> FNode:
    """A formula of sums, products, maxima and minima as a solver's term."""
    f = constant(formula)
    if f.op == "constant":
        return smt.Real((f.value.numerator, f.value.denominator))
    if f.op == "symbol":
        return smt.Symbol(f.name, REAL)
    args = [real(a) for a in f.args]
    match f.op:
        case "+":
            return smt.Plus(args)
        case "*":
            return smt.Times(args)
        case "max" | "min":
            chosen = args[0]
            for a in args[1:]:
                chosen = smt.Ite(smt.LE(chosen, a), *((a, chosen) if f.op == "max" else (chosen, a)))
            return chosen
    raise ValueError(f"a law must be of sums, products, maxima and minima, not {f.op}")


def reals_of(names: str) -> list[Formula]:
    """Real numbers by name."""
    return [symbol(n) for n in names.split()]


def le(a: FormulaLike, b: FormulaLike) -> FNode:
    """a <= b."""
    return smt.LE(real(a), real(b))


def _lt(a: FormulaLike, b: FormulaLike) -> FNode:
    return smt.LT(real(a), real(b))


def within(a: Formula, b: FormulaLike, e: FormulaLike) -> FNode:
    """|a - b| <= e."""
    return smt.And(le(a - b, e), le(b - a, e))


def at_most(a: Formula, limit: FormulaLike) -> FNode:
    """|a| <= limit."""
    return within(a, 0, limit)


def _near(a: Formula, a1: Formula, m: FormulaLike, e: FormulaLike) -> FNode:
    return smt.And(at_most(a, m), within(a1, a, e))


def cut(a: Formula, limit: FormulaLike) -> Formula:
    """The nearest number within +-limit."""
    return maximum(minimum(a, limit), -1 * constant(limit))


# -- operations ------------------------------------------------------------------------------------------------


def _binary(operation: Callable[[Formula, Formula], Formula], law: Callable[..., laws.Pair]) -> Callable[[], Built]:
    def build() -> Built:
        a, a1, b, b1, m, e, n, f = reals_of("a a1 b b1 m e n f")
        goal = _near(operation(a, b), operation(a1, b1), *law(m, e, n, f))
        return [_near(a, a1, m, e), _near(b, b1, n, f)], goal

    return build


def _sum() -> Built:
    _, added = _binary(lambda a, b: a + b, laws.of_sum)()
    hypotheses, subtracted = _binary(lambda a, b: a - b, laws.of_sum)()
    return hypotheses, smt.And(added, subtracted)


def _magnitudes() -> Built:
    a, b, m, n = reals_of("a b m n")
    return [at_most(a, m), at_most(b, n)], at_most(a * b, laws.of_product(m, constant(0), n, constant(0))[0])


def _product() -> Built:
    """With a' = a + d and b' = b + g, from the magnitudes of a g, b d and d g."""
    a, d, b, g, m, e, n, f = reals_of("a d b g m e n f")
    hypotheses = [at_most(a * g, m * f), at_most(b * d, n * e), at_most(d * g, e * f)]
    return hypotheses, within((a + d) * (b + g), a * b, laws.of_product(m, e, n, f)[1])


def _multiple() -> Built:
    a, a1, c, m, e = reals_of("a a1 c m e")
    return [_near(a, a1, m, e), le(0, c)], _near(c * a, c * a1, *laws.of_multiple(c, m, e))


def _one_more() -> Built:
    a, a1, s, s1, k, m, e = reals_of("a a1 s s1 k m e")
    hypotheses = [_near(s, s1, *laws.of_multiple(k, m, e)), _near(a, a1, m, e)]
    return hypotheses, _near(s + a, s1 + a1, *laws.of_multiple(k + 1, m, e))


def _one_more_weighted() -> Built:
    a, a1, s, s1, w, k, q, m, e = reals_of("a a1 s s1 w k q m e")
    hypotheses = [_near(s, s1, *laws.of_multiple(k, m, e)), _near(a, a1, m, e), at_most(w, q)]
    return hypotheses, _near(s + w * a, s1 + w * a1, *laws.of_multiple(k + q, m, e))


def _average() -> Built:
    """V groups of n terms, with sums like a and the total n V q, of which q is the average: n q is like a."""
    q, q1, v, n, m, e = reals_of("q q1 v n m e")
    hypotheses = [_near(n * v * q, n * v * q1, *laws.of_multiple(v, m, e)), _lt(0, v), _lt(0, n)]
    return hypotheses, _near(n * q, n * q1, m, e)


def _rectify() -> Built:
    a, a1, m, e = reals_of("a a1 m e")
    return [_near(a, a1, m, e)], _near(maximum(a, 0), maximum(a1, 0), m, e)


def _clip() -> Built:
    a, low, high, m = reals_of("a low high m")
    cut = maximum(minimum(a, high), low), minimum(maximum(a, low), high)
    return [at_most(a, m), le(low, 0), le(0, high)], smt.And(*(at_most(c, m) for c in cut))


def _shift() -> Built:
    """r = floor(a / d); of two whole numbers, one is at least the other or less by one or more."""
    a, r, d, m = reals_of("a r d m")
    whole = [smt.Or(le(x, y - 1), le(y, x)) for x, y in ((r, constant(0)), (a, constant(0)), (r, a))]
    return [at_most(a, m), le(1, d), le(r * d, a), _lt(a, r * d + d), *whole], at_most(r, m)


def _complement() -> Built:
    z, z1, e = reals_of("z z1 e")
    return [le(0, z), le(z, 1), within(z1, z, e)], _near(1 - z, 1 - z1, *laws.of_complement(e))


def _convex() -> Built:
    z, a, b, m, n = reals_of("z a b m n")
    hypotheses = [le(0, z), le(z, 1), at_most(a, m), at_most(b, n)]
    return hypotheses, at_most((1 - z) * a + z * b, laws.of_weighted_mean(m, n))


def _shares() -> Built:
    """With weights p of sum q <= 1, of numbers within m: one more weight and number."""
    s, p, q, k, m = reals_of("s p q k m")
    return [at_most(s, q * m), le(0, p), le(0, q), at_most(k, m)], at_most(s + p * k, (q + p) * m)


def _omission() -> Built:
    a, a1, c, m, e, p = reals_of("a a1 c m e p")
    return [_near(a, a1, m, e), at_most(c, p)], _near(a + c, a1, *laws.of_omission(p, m, e))


# -- primitives ------------------------------------------------------------------------------------------------


def _rounding() -> Built:
    a, a1, r, e, u = reals_of("a a1 r e u")
    return [within(a1, a, e), le(r, a1), _lt(a1, r + u)], within(r, a, laws.of_rounding(u, e))


def _nearest() -> Built:
    a, a1, r, e, u = reals_of("a a1 r e u")
    return [within(a1, a, e), within(r, a1, u)], within(r, a, laws.of_rounding(u, e))


def _slope() -> Built:
    f, f1, g, e, s, t = reals_of("f f1 g e s t")  # f = F(a), f1 = F(a1), g the primitive's result
    return [within(f1, f, s * e), within(g, f1, t)], within(g, f, laws.of_slope(s, t, e))


def _cutting() -> Built:
    a, a1, e, m, limit = reals_of("a a1 e m limit")
    return [_near(a, a1, m, e), _lt(0, limit)], within(cut(a1, limit), a, laws.of_cut(limit, m, e))


def _cutting_nothing() -> Built:
    a, a1, e, m, limit = reals_of("a a1 e m limit")
    return [_near(a, a1, m, e), _lt(m, limit)], within(cut(a1, limit), a, e)


def _code(law: Callable[..., Formula]) -> Built:
    """The cut number c is moved by itself, up to tiny, or by half its step h; h is at most the largest one's."""
    a, a1, r, m, e, largest, tiny, h, half = reals_of("a a1 r m e largest tiny h half")
    c = cut(a1, largest)
    size = maximum(c, -1 * c)
    own = smt.Ite(le(size, tiny), within(r, c, size), within(r, c, h))
    hypotheses = [_near(a, a1, m, e), _lt(0, largest), _lt(0, tiny), own, le(h, half)]
    goal = within(r, a, law(largest, tiny, half, m, e))
    if law is laws.of_code:
        large = smt.And(_lt(tiny, largest), smt.Or(_lt(tiny, a1), _lt(tiny, -1 * a1)))
        goal = smt.And(goal, smt.Implies(large, within(r, a, laws.of_large_code(largest, half, m, e))))
    return hypotheses, goal


def _logistic_slope() -> Built:
    """With s = 1/2 + u: s (1 - s) = (1/2 + u) (1/2 - u)."""
    (u,) = reals_of("u")
    half = Fraction(1, 2)
    return [], le((u + half) * (half - u), Fraction(1, 4))


def _tanh_slope() -> Built:
    (t,) = reals_of("t")
    slope = 1 - t * t
    return [at_most(t, constant(1))], smt.And(le(slope, 1), le(0, slope))


def _root_difference() -> Built:
    """p = 1/sqrt(a), q = 1/sqrt(b), r = 1/sqrt(m) with a, b >= m: |p - q| <= |a - b| r^3 / 2.

    a - b = (q - p)(q + p) / (p q)^2, so this is 2 (p q)^2 <= (p + q) r^3.
    """
    p, q, r = reals_of("p q r")
    hypotheses = [_lt(0, p), _lt(0, q), le(p, r), le(q, r)]
    return hypotheses, le(p * p * q * q, (p + q) * laws.of_inverse_roots(constant(1), r))


def _relative() -> Built:
    """r = q (1 + d) with |d| <= e, where 0 < q <= n: |r - q| <= e n."""
    d, q, e, n = reals_of("d q e n")
    hypotheses = [at_most(d, e), _lt(0, q), le(q, n)]
    return hypotheses, within(q + q * d, q, laws.of_relative(e, n))


def _quotient_above() -> Built:
    """Times what is divided by: p' / t' <= (p + e) / (t - d) <= p / t + (m d + e t) / (t (t - d))."""
    p, p1, t, t1, m, d, e = reals_of("p p1 t t1 m d e")
    hypotheses = [le(0, p), le(p, m), le(0, p1), le(p1, p + e), le(0, e)]
    hypotheses += [le(0, d), _lt(d, t), le(t - d, t1)]
    return hypotheses, smt.And(le(p1 * (t - d), (p + e) * t1), le(p * d + e * t, laws.above(m, d, e, t)[0]))


def _quotient_below() -> Built:
    """Times what is divided by: p' / t' >= (p - e) / (t + d) >= p / t - (m d + e t) / (t (t + d))."""
    p, p1, t, t1, m, d, e = reals_of("p p1 t t1 m d e")
    hypotheses = [le(0, p), le(p, m), le(0, p1), le(p - e, p1), le(0, e)]
    hypotheses += [le(0, d), _lt(0, t), _lt(0, t1), le(t1, t + d)]
    return hypotheses, smt.And(le((p - e) * t1, p1 * (t + d)), le(p * d + e * t, laws.below(m, d, e, t)[0]))


def _nonnegative() -> Built:
    a, r, n, e = reals_of("a r n e")
    return [at_most(a, n), le(0, r), le(a - r, e)], le(a - r, laws.of_nonnegative(n, e))


def _decreasing() -> Built:
    """Times what is divided by, with s = d + g and t = s + h."""
    m, d, e, g, h = reals_of("m d e g h")
    s, t = d + g, d + g + h
    (a_top, a_bottom), (a_most, a_least) = laws.above(m, d, e, t), laws.above(m, d, e, s)
    (b_top, b_bottom), (b_most, b_least) = laws.below(m, d, e, t), laws.below(m, d, e, s)
    goal = smt.And(le(a_top * a_least, a_most * a_bottom), le(b_top * b_least, b_most * b_bottom))
    return [le(0, m), le(0, d), le(0, e), _lt(0, g), le(0, h)], goal


def _geometric() -> Built:
    """From e_t <= r g_t with g_t = 1 + q + .. + q^(t-1), one step e' <= q e + r gives e' <= r g_(t+1)."""
    e, e1, g, q, r = reals_of("e e1 g q r")
    hypotheses = [le(e, r * g), le(e1, q * e + r), le(0, q)]
    return hypotheses, le(e1, r * (1 + q * g))


RULES: Mapping[str, RealRule] = {
    rule.name: rule
    for rule in (
        RealRule("sum", "|a + b| <= m + n, |(a' + b') - (a + b)| <= e + f; likewise a - b", _sum),
        RealRule("magnitude of a product", "|a b| <= m n", _magnitudes),
        RealRule("product", "|a' b' - a b| <= m f + n e + e f", _product),
        RealRule(
            "larger",
            "|max(a, b)| <= max(m, n), |max(a', b') - max(a, b)| <= max(e, f)",
            _binary(maximum, laws.of_choice),
        ),
        RealRule(
            "smaller",
            "|min(a, b)| <= max(m, n), |min(a', b') - min(a, b)| <= max(e, f)",
            _binary(minimum, laws.of_choice),
        ),
        RealRule("multiple", "|c a| <= c m, |c a' - c a| <= c e for c >= 0", _multiple),
        RealRule("one more term", "|s| <= k m, |s' - s| <= k e: s + a has k + 1 in the place of k", _one_more),
        RealRule("one more weighted term", "likewise s + w a has k + |w|, for an exact weight w", _one_more_weighted),
        RealRule(
            "average",
            "|n q| <= m, |n q' - n q| <= e for the average q of V groups of n terms, whose sums are like a",
            _average,
        ),
        RealRule("rectify", "|max(a, 0)| <= m, |max(a', 0) - max(a, 0)| <= e", _rectify),
        RealRule("clip", "|max(min(a, h), l)| <= m and |min(max(a, l), h)| <= m for l <= 0 <= h", _clip),
        RealRule("shift", "|floor(a / d)| <= m for integers a and d >= 1", _shift),
        RealRule("complement", "|1 - z| <= 1, |(1 - z') - (1 - z)| <= e for 0 <= z <= 1", _complement),
        RealRule("weighted mean", "|(1 - z) a + z b| <= max(m, n) for 0 <= z <= 1", _convex),
        RealRule("one more share", "|s| <= q m: s + p k has q + p, for p >= 0 and |k| <= m", _shares),
        RealRule("omission", "|a + c| <= m + p, |a' - (a + c)| <= e + p for |c| <= p", _omission),
        RealRule("round down", "|r - a| <= e + u for r <= a' < r + u", _rounding),
        RealRule("round to nearest", "|r - a| <= e + u for |r - a'| <= u", _nearest),
        RealRule("slope", "|g - F(a)| <= s e + t for |g - F(a')| <= t and a slope of F of at most s", _slope),
        RealRule("cut", "|cut(a', l) - a| <= e + max(m - l, 0)", _cutting),
        RealRule("nothing is cut", "|cut(a', l) - a| <= e for m < l", _cutting_nothing),
        RealRule(
            "code",
            "|r - a| <= e + max(m - l, 0) + max(H, min(m + e, t)) for c = cut(a', l), |r - c| <= |c| where |c| <= t, "
            "and |r - c| <= h <= H elsewhere; without the last part for |a'| > t and l > t",
            lambda: _code(laws.of_code),
        ),
        RealRule("any code", "likewise |r - a| <= e + max(m - l, 0) + max(H, t)", lambda: _code(laws.of_any_code)),
        RealRule("slope of the logistic function", "s (1 - s) <= 1/4", _logistic_slope),
        RealRule("slope of tanh", "0 <= 1 - t^2 <= 1", _tanh_slope),
        RealRule(
            "difference of inverse roots",
            "|1/sqrt(a') - 1/sqrt(a)| <= |a' - a| / 2 m^(-3/2) for a, a' >= m > 0",
            _root_difference,
        ),
        RealRule("relative error", "|r - q| <= e n for |r / q - 1| <= e and 0 < q <= n", _relative),
        RealRule("quotient, above", "p' / t' <= p / t + (m d + e t) / (t (t - d)) for p <= m, t > d", _quotient_above),
        RealRule("quotient, below", "p' / t' >= p / t - (m d + e t) / (t (t + d)) for p <= m, t > 0", _quotient_below),
        RealRule("quotients of larger sums", "both errors are at most those at s, for t >= s > d >= 0", _decreasing),
        RealRule("nothing below 0", "a - r <= min(n, e) for |a| <= n, a - r <= e and r >= 0", _nonnegative),
        RealRule("growth", "e_T <= r (1 + q + .. + q^(T-1)) where e_(t+1) <= q e_t + r", _geometric),
    )
}
"""The laws by name."""


def rule_claim(rule: RealRule) -> Claim:
    """What a PROVED of a law says."""
    return Claim(
        rule.name,
        rule.statement,
        "all real numbers",
        Equality.OVER_REALS,
        (Interpretation.REALS,),
        ("two solvers agree",),
    )


def ask_rule(rule: RealRule, discharger: Discharger) -> None:
    """Puts a law to both solvers; raises NotDischarged unless both say that it holds, and is about something."""
    hypotheses, goal = rule.build()
    if hypotheses:
        discharger.ask("numerics", f"{rule.name}: premises", hypotheses, "they can hold", expected="sat")
    discharger.ask("numerics", rule.name, [*hypotheses, smt.Not(goal)], rule.statement)


def prove_rule(rule: RealRule, discharger: Discharger | None = None) -> Verdict:
    """Puts a law to both solvers."""
    discharger = discharger or Discharger(timeout=60)
    start, mark = time.perf_counter(), len(discharger.obligations)
    with fresh_symbols():
        try:
            ask_rule(rule, discharger)
            status, reason = discharger.conclude()
        except NotDischarged as failed:
            status, reason = Status.UNKNOWN, str(failed)
    seconds = time.perf_counter() - start
    return Verdict(status, rule_claim(rule), "lemma", seconds, reason, discharger.obligations[mark:])
