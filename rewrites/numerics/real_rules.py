"""The rules by which errors compose: statements on real numbers, put to two solvers.

In all of them a is a real value and a' what the device has in its place.  Sums of n terms use the rule for two n - 1
times.  That a slope bounds differences (the mean value theorem), and the derivatives of e^x, the logistic function and
tanh, are trusted; so is that rounding steps grow with the magnitude.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import REAL

from smt_encodings.claims import Claim, Equality, Interpretation, Status, Verdict
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh_symbols

__all__ = ["RULES", "RealRule", "prove_rule", "rule_claim"]

Built = tuple[list[FNode], FNode]


@dataclass(frozen=True)
class RealRule:
    """A rule: its statement in words, and the hypotheses and goal of the question."""

    name: str
    statement: str
    build: Callable[[], Built]


def _r(names: str) -> list[FNode]:
    return [smt.Symbol(n, REAL) for n in names.split()]


def _c(number: float) -> FNode:
    return smt.Real(number)


def _within(a: FNode, b: FNode, e: FNode) -> FNode:
    """|a - b| <= e."""
    return smt.And(smt.LE(smt.Minus(a, b), e), smt.LE(smt.Minus(b, a), e))


def _at_most(a: FNode, limit: FNode) -> FNode:
    return _within(a, _c(0), limit)


def _max(a: FNode, b: FNode) -> FNode:
    return smt.Ite(smt.LE(a, b), b, a)


def _cut(a: FNode, limit: FNode) -> FNode:
    low = smt.Minus(_c(0), limit)
    return smt.Ite(smt.GT(a, limit), limit, smt.Ite(smt.LT(a, low), low, a))


def _sum() -> Built:
    a, a1, b, b1, e, f = _r("a a1 b b1 e f")
    goal = _within(smt.Plus(a1, b1), smt.Plus(a, b), smt.Plus(e, f))
    return [_within(a1, a, e), _within(b1, b, f)], goal


def _product() -> Built:
    a, a1, b, b1, e, f, m, n = _r("a a1 b b1 e f m n")
    limit = smt.Plus(smt.Times(m, f), smt.Times(n, e), smt.Times(e, f))
    hypotheses = [_at_most(a, m), _at_most(b, n), _within(a1, a, e), _within(b1, b, f)]
    return hypotheses, _within(smt.Times(a1, b1), smt.Times(a, b), limit)


def _rounding() -> Built:
    a, a1, r, e, u = _r("a a1 r e u")
    return [_within(a1, a, e), smt.LE(r, a1), smt.LT(a1, smt.Plus(r, u))], _within(r, a, smt.Plus(e, u))


def _nearest() -> Built:
    a, a1, r, e, u = _r("a a1 r e u")
    return [_within(a1, a, e), _within(r, a1, u)], _within(r, a, smt.Plus(e, u))


def _slope() -> Built:
    f, f1, g, e, s, t = _r("f f1 g e s t")  # f = F(a), f1 = F(a1), g the primitive's result
    return [_within(f1, f, smt.Times(s, e)), _within(g, f1, t)], _within(g, f, smt.Plus(smt.Times(s, e), t))


def _cutting() -> Built:
    a, a1, e, m, limit = _r("a a1 e m limit")
    beyond = _max(smt.Minus(m, limit), _c(0))
    hypotheses = [_at_most(a, m), _within(a1, a, e), smt.GT(limit, _c(0))]
    return hypotheses, _within(_cut(a1, limit), a, smt.Plus(e, beyond))


def _scaling() -> Built:
    a, a1, e, n = _r("a a1 e n")
    hypotheses = [_within(smt.Times(n, a1), smt.Times(n, a), e), smt.GT(n, _c(0))]
    return hypotheses, smt.And(smt.LE(smt.Times(n, smt.Minus(a1, a)), e), smt.LE(smt.Times(n, smt.Minus(a, a1)), e))


def _rectify() -> Built:
    a, a1, e = _r("a a1 e")
    return [_within(a1, a, e)], _within(_max(a1, _c(0)), _max(a, _c(0)), e)


def _larger() -> Built:
    a, b, r = _r("a b r")
    return [smt.Equals(r, _max(a, b))], smt.And(smt.GE(r, a), smt.GE(r, b), smt.Or(smt.Equals(r, a), smt.Equals(r, b)))


def _logistic_slope() -> Built:
    """With s = 1/2 + u: s (1 - s) = (1/2 + u) (1/2 - u)."""
    (u,) = _r("u")
    half = smt.Real((1, 2))
    return [], smt.LE(smt.Times(smt.Plus(half, u), smt.Minus(half, u)), smt.Real((1, 4)))


def _tanh_slope() -> Built:
    (t,) = _r("t")
    slope = smt.Minus(_c(1), smt.Times(t, t))
    return [_at_most(t, _c(1))], smt.And(smt.LE(slope, _c(1)), smt.GE(slope, _c(0)))


def _root_difference() -> Built:
    """p = 1/sqrt(a), q = 1/sqrt(b), r = 1/sqrt(m) with a, b >= m: |p - q| <= |a - b| r^3 / 2.

    a - b = (q - p)(q + p) / (p q)^2, so this is 2 (p q)^2 <= (p + q) r^3.
    """
    p, q, r = _r("p q r")
    zero = _c(0)
    hypotheses = [smt.GT(p, zero), smt.GT(q, zero), smt.LE(p, r), smt.LE(q, r)]
    left = smt.Times(_c(2), p, p, q, q)
    return hypotheses, smt.LE(left, smt.Times(smt.Plus(p, q), r, r, r))


def _relative() -> Built:
    """r = q (1 + d) with |d| <= e, where 0 < q <= n: |r - q| <= e n."""
    r, d, q, e, n = _r("r d q e n")
    hypotheses = [smt.Equals(r, smt.Plus(q, smt.Times(q, d))), _at_most(d, e), smt.GT(q, _c(0)), smt.LE(q, n)]
    return hypotheses, _within(r, q, smt.Times(e, n))


def _quotient_above() -> Built:
    """p' / t' <= p / t + (d + e t) / (t (t - d)) for p' <= p + e, t' >= t - d > 0, 0 <= p <= 1; times t (t - d) t'."""
    p, p1, t, t1, d, e = _r("p p1 t t1 d e")
    zero, one = _c(0), _c(1)
    hypotheses = [smt.GE(p, zero), smt.LE(p, one), smt.GE(p1, zero), smt.LE(p1, smt.Plus(p, e)), smt.GE(e, zero)]
    hypotheses += [smt.GE(d, zero), smt.GT(smt.Minus(t, d), zero), smt.GE(t1, smt.Minus(t, d))]
    least = smt.Minus(t, d)
    # first p' / t' <= (p + e) / (t - d), then (p + e) / (t - d) - p / t = (p d + e t) / (t (t - d))
    first = smt.LE(smt.Times(p1, least), smt.Times(smt.Plus(p, e), t1))
    second = smt.LE(smt.Plus(smt.Times(p, d), smt.Times(e, t)), smt.Plus(d, smt.Times(e, t)))
    return hypotheses, smt.And(first, second)


def _quotient_below() -> Built:
    """p' / t' >= p / t - (d + e t) / (t (t + d)) for p' >= p - e, p' >= 0, 0 < t' <= t + d, 0 <= p <= 1."""
    p, p1, t, t1, d, e = _r("p p1 t t1 d e")
    zero, one = _c(0), _c(1)
    hypotheses = [smt.GE(p, zero), smt.LE(p, one), smt.GE(p1, zero), smt.GE(p1, smt.Minus(p, e)), smt.GE(e, zero)]
    hypotheses += [smt.GE(d, zero), smt.GT(t, zero), smt.GT(t1, zero), smt.LE(t1, smt.Plus(t, d))]
    most = smt.Plus(t, d)
    first = smt.GE(smt.Times(p1, most), smt.Times(smt.Minus(p, e), t1))
    second = smt.LE(smt.Plus(smt.Times(p, d), smt.Times(e, t)), smt.Plus(d, smt.Times(e, t)))
    return hypotheses, smt.And(first, second)


def _convex() -> Built:
    z, n, h = _r("z n h")
    one = _c(1)
    state = smt.Plus(smt.Times(smt.Minus(one, z), n), smt.Times(z, h))
    return [smt.GE(z, _c(0)), smt.LE(z, one), _at_most(n, one), _at_most(h, one)], _at_most(state, one)


def _geometric() -> Built:
    """From e_t <= r g_t with g_t = 1 + q + .. + q^(t-1), one step e' <= q e + r gives e' <= r g_(t+1)."""
    e, e1, g, q, r = _r("e e1 g q r")
    hypotheses = [smt.LE(e, smt.Times(r, g)), smt.LE(e1, smt.Plus(smt.Times(q, e), r)), smt.GE(q, _c(0))]
    return hypotheses, smt.LE(e1, smt.Times(r, smt.Plus(_c(1), smt.Times(q, g))))


RULES: Mapping[str, RealRule] = {
    rule.name: rule
    for rule in (
        RealRule("sum", "|(a' + b') - (a + b)| <= e + f", _sum),
        RealRule("product", "|a' b' - a b| <= m f + n e + e f for |a| <= m, |b| <= n", _product),
        RealRule("round down", "|r - a| <= e + u for r <= a' < r + u", _rounding),
        RealRule("round to nearest", "|r - a| <= e + u for |r - a'| <= u", _nearest),
        RealRule("slope", "|g - F(a)| <= s e + t for |g - F(a')| <= t and a slope of F of at most s", _slope),
        RealRule("cut", "|cut(a', l) - a| <= e + max(m - l, 0) for |a| <= m", _cutting),
        RealRule("scale", "|a' - a| <= e / n for |n a' - n a| <= e", _scaling),
        RealRule("rectify", "|max(a', 0) - max(a, 0)| <= e", _rectify),
        RealRule("larger", "max(a, b) is a or b, and at least both", _larger),
        RealRule("slope of the logistic function", "s (1 - s) <= 1/4", _logistic_slope),
        RealRule("slope of tanh", "0 <= 1 - t^2 <= 1", _tanh_slope),
        RealRule(
            "difference of inverse roots",
            "|1/sqrt(a') - 1/sqrt(a)| <= |a' - a| / 2 m^(-3/2) for a, a' >= m > 0",
            _root_difference,
        ),
        RealRule("relative error", "|r - q| <= e n for |r / q - 1| <= e and 0 < q <= n", _relative),
        RealRule("quotient, above", "p' / t' <= p / t + (d + e t) / (t (t - d))", _quotient_above),
        RealRule("quotient, below", "p' / t' >= p / t - (d + e t) / (t (t + d))", _quotient_below),
        RealRule("weighted mean", "|(1 - z) n + z h| <= 1 for |n|, |h| <= 1 and 0 <= z <= 1", _convex),
        RealRule("growth", "e_T <= r (1 + q + .. + q^(T-1)) where e_(t+1) <= q e_t + r", _geometric),
    )
}
"""The rules by name."""


def rule_claim(rule: RealRule) -> Claim:
    """What a PROVED of a rule says."""
    return Claim(
        rule.name,
        rule.statement,
        "all real numbers",
        Equality.OVER_REALS,
        (Interpretation.REALS,),
        ("two solvers agree",),
    )


def prove_rule(rule: RealRule, discharger: Discharger | None = None) -> Verdict:
    """Puts a rule to both solvers."""
    asked = discharger or Discharger(timeout=60)
    start, mark = time.perf_counter(), len(asked.obligations)
    with fresh_symbols():
        hypotheses, goal = rule.build()
        try:
            if hypotheses:
                asked.ask("numerics", f"{rule.name}: premises", hypotheses, "they can hold", expected="sat")
            asked.ask("numerics", rule.name, [*hypotheses, smt.Not(goal)], rule.statement)
            status, reason = asked.conclude()
        except NotDischarged as failed:
            status, reason = Status.UNKNOWN, str(failed)
    seconds = time.perf_counter() - start
    return Verdict(status, rule_claim(rule), "lemma", seconds, reason, asked.obligations[mark:])
