"""The laws by which operators' errors become those of a network: statements on real numbers, put to two solvers.

e is an error of a value, d one of a result; vectors are sums of products element by element, so that each law about
them is the step from n elements to one more ('induction' in :mod:`rewrites.bounds.kernel.laws`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import pysmt.shortcuts as smt

from rewrites.bounds.kernel import laws
from rewrites.bounds.kernel.formula import Formula, maximum, minimum

from .real_rules import Built, RealRule, at_most, le, real, reals_of, within

HALF = Fraction(1, 2)


def _size(a: Formula) -> Formula:
    return maximum(a, -1 * a)


def _either() -> Built:
    d, e, f = reals_of("d e f")
    return [at_most(d, e), at_most(d, f)], at_most(d, minimum(e, f))


def _one_more_of_a_row() -> Built:
    """With the term t = w x, |t| <= q |x|."""
    s, t, k, q, e, x = reals_of("s t k q e x")
    hypotheses = [at_most(s, k), at_most(x, e), le(0, q), le(_size(t), q * _size(x))]
    return hypotheses, at_most(s + t, k + q * e)


def _factor() -> Built:
    """a b - r s = (a - r) s + a (b - s)."""
    a, r, b, s, e, m, f, n = reals_of("a r b s e m f n")
    hypotheses = [within(a, r, e), at_most(a, m), within(b, s, f), at_most(s, n)]
    return hypotheses, within(a * b, r * s, e * n + m * f)


def _no_expansion(of: Callable[[Formula], Formula]) -> Callable[[], Built]:
    def build() -> Built:
        a, b, e = reals_of("a b e")
        return [within(a, b, e)], within(of(a), of(b), e)

    return build


def _cut() -> Built:
    """Both limits may be off, too, by no more than the number that is cut, or by more."""
    a, b, low, low1, high, high1, e = reals_of("a b low low1 high high1 e")
    hypotheses = [within(a, b, e), within(low, low1, e), within(high, high1, e)]
    return hypotheses, within(minimum(maximum(a, low), high), minimum(maximum(b, low1), high1), e)


def _half_of_a_slope() -> Built:
    """d = t e for some t in 0 .. s."""
    d, e, s = reals_of("d e s")
    least, most = minimum(0, s * e), maximum(0, s * e)
    return [le(0, s), le(least, d), le(d, most)], within(d, HALF * s * e, HALF * s * _size(e))


def _slope_of_relu() -> Built:
    a, b = reals_of("a b")
    d, e = maximum(a, 0) - maximum(b, 0), a - b
    return [], smt.And(le(minimum(0, e), d), le(d, maximum(0, e)))


def _range() -> Built:
    a, b, low, width = reals_of("a b low width")
    inside = [le(low, a), le(a, low + width), le(low, b), le(b, low + width)]
    return inside, within(a, b, width)


def _squares() -> Built:
    """With u = a + b and v = a - b."""
    a, b = reals_of("a b")
    return [], at_most(2 * (a + b) * (a - b), (a + b) * (a + b) + (a - b) * (a - b))


def _cauchy_schwarz() -> Built:
    """s = sum a x, p^2 = sum a^2 and q^2 = sum x^2: one more product t = a x, with w = p q, u = p x, v = q a.

    (s + t)^2 <= (p^2 + a^2) (q^2 + x^2) = w^2 + u^2 + v^2 + t^2: as |s| <= w, |s t| is at most h = |w t| = |u v|,
    of which 'product and squares' knows.
    """
    s, w, u, v, t, h = reals_of("s w u v t h")
    hypotheses = [le(s * s, w * w), at_most(s * t, h), le(2 * h, u * u + v * v)]
    return hypotheses, le((s + t) * (s + t), w * w + u * u + v * v + t * t)


def _length() -> Built:
    """One more element of a vector and of bounds of its elements."""
    s, t, a, e = reals_of("s t a e")
    return [le(s, t), at_most(a, e)], le(s + a * a, t + e * e)


def _length_of_a_sum() -> Built:
    """p, q are lengths of u and v, and s is u v, which Cauchy and Schwarz bound: (u + v)^2 <= (p + q)^2."""
    s, p, q = reals_of("s p q")
    return [le(s, p * q)], le(p * p + 2 * s + q * q, (p + q) * (p + q))


def _spectral_norm() -> Built:
    """m = |M a|^2 = t |a|^2 - |L a|^2 - a R a, where M^T M + L^T L + R = t: with |a R a| <= r |a|^2."""
    m, n, t, ll, rest, r = reals_of("m n t ll rest r")
    equal = smt.Equals(real(m), real(t * n - ll - rest))
    return [equal, le(0, ll), le(0, n), at_most(rest, r * n)], le(m, (t + r) * n)


def _one_more_rounding() -> Built:
    """z1 is z up to roundings before; g is 2 u times how many there were, p what is lost below the normal numbers."""
    z, z1, r, m, g, u, p = reals_of("z z1 r m g u p")
    before = within(z1, z, g * m + (1 + g) * p)
    hypotheses = [at_most(z, m), before, at_most(r - z1, u * _size(z1)), le(0, u), le(0, g), le(g, 1), le(0, p)]
    return hypotheses, within(r, z, (g + 2 * u) * m + (1 + g + 2 * u) * p)


def _one_more_product() -> Built:
    """The first rounding of a term, which may be below the normal numbers."""
    z, r, m, u, p = reals_of("z r m u p")
    hypotheses = [at_most(z, m), at_most(r - z, u * _size(z) + p), le(0, u), le(0, p)]
    return hypotheses, within(r, z, 2 * u * m + (1 + 2 * u) * p)


def _shift_and_cut() -> Built:
    """Of integers r u = a + h - d and limits t and l = -(t + s)."""
    a, h, d, u, m, t, s = reals_of("a h d u m t s")
    shifted, error = a + h - d, laws.of_shift(h, u, m, t)
    hypotheses = [at_most(a, m), le(0, d), le(d, u - 1), le(0, h), le(0, t), le(0, s)]
    cut, positive = (minimum(maximum(shifted, low), t) for low in (-1 * (t + s), 0))
    return hypotheses, smt.And(within(cut, a, error), within(positive, maximum(a, 0), error))


NETWORK_RULES: Mapping[str, RealRule] = {
    rule.name: rule
    for rule in (
        RealRule("either bound", "|d| <= min(e, f) for |d| <= e and |d| <= f", _either),
        RealRule("one more of a row", "|s + w x| <= k + |w| e for |s| <= k and |x| <= e", _one_more_of_a_row),
        RealRule(
            "factor that is known",
            "|a b - r s| <= e n + m f for |a - r| <= e, |a| <= m, |b - s| <= f and |s| <= n",
            _factor,
        ),
        RealRule("negation", "|-a - -b| <= |a - b|", _no_expansion(lambda a: -1 * a)),
        RealRule("magnitude", "||a| - |b|| <= |a - b|", _no_expansion(_size)),
        RealRule("clamp", "|min(max(a, l), h) - min(max(b, l'), h')| <= e for errors of a, l and h of at most e", _cut),
        RealRule("half of a slope", "|d - s e / 2| <= s |e| / 2 where d is between 0 and s e", _half_of_a_slope),
        RealRule("slope of relu", "max(a, 0) - max(b, 0) is between 0 and a - b", _slope_of_relu),
        RealRule("range", "|a - b| <= w for a and b in l .. l + w", _range),
        RealRule("product and squares", "|2 u v| <= u^2 + v^2", _squares),
        RealRule(
            "Cauchy and Schwarz",
            "(s + a x)^2 <= (p^2 + a^2) (q^2 + x^2) for |s| <= p q, where |s a x| <= |p x| |q a|",
            _cauchy_schwarz,
        ),
        RealRule("one more element of a length", "s + a^2 <= t + e^2 for s <= t and |a| <= e", _length),
        RealRule("length of a sum", "(u + v)^2 <= (p + q)^2 for u^2 = p^2, v^2 = q^2 and u v <= p q", _length_of_a_sum),
        RealRule(
            "spectral norm",
            "|M a|^2 <= (t + r) |a|^2 for M^T M + L^T L + R = t and |a R a| <= r |a|^2",
            _spectral_norm,
        ),
        RealRule(
            "one more rounding",
            "|r - z| <= (g + 2 u) m + (1 + g + 2 u) p for |r - z'| <= u |z'|, |z' - z| <= g m + (1 + g) p, |z| <= m",
            _one_more_rounding,
        ),
        RealRule(
            "rounded product",
            "|r - z| <= 2 u m + (1 + 2 u) p for |r - z| <= u |z| + p and |z| <= m",
            _one_more_product,
        ),
        RealRule(
            "shift and cut",
            "|min(max(r u, l), t) - a| <= max(h, u - 1 - h, m - t) for r = floor((a + h) / u), integers a and h >= 0, "
            "u >= 1, |a| <= m and l <= -t <= 0; likewise |min(max(r u, 0), t) - max(a, 0)|",
            _shift_and_cut,
        ),
    )
}
"""The laws by name."""
