"""The formulas of the laws by which errors compose, and the axioms beside them.

a is a real value and a' what the device has in its place, with |a| <= m and |a' - a| <= e; likewise b, b', n and f.
:mod:`rewrites.bounds.lemmas.real_rules` puts the laws with these functions to two solvers, and :mod:`.replay` applies
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from .formula import Formula, FormulaLike, constant, maximum, minimum

Pair = tuple[Formula, Formula]
"""A magnitude and an error."""

AXIOMS: Mapping[str, str] = {
    "induction": "a law of one more term holds for sums of any number of terms (Peano)",
    "mean value": "|F(x) - F(y)| <= s |x - y| where |F'| <= s between x and y (Lagrange); e^x, the logistic function "
    "L and tanh have the derivatives e^x, L (1 - L) and 1 - tanh^2",
    "half steps": "floor(log2 m) does not decrease with m, so that half a step of a larger number is not smaller",
    "residues": "addition modulo 2^n is associative: a sum that fits at its end is right where partial sums wrapped",
    "scale": "an AdaptivFloat code of bias b stands for 2^b times what it stands for at bias 0 (the format's "
    "definition)",
}
"""What the laws and their use rest on beside solvers."""


def of_sum(m: Formula, e: Formula, n: Formula, f: Formula) -> Pair:
    """Of a + b, and of a - b."""
    return m + n, e + f


def of_product(m: Formula, e: Formula, n: Formula, f: Formula) -> Pair:
    """Of a b."""
    return m * n, m * f + n * e + e * f


def of_choice(m: Formula, e: Formula, n: Formula, f: Formula) -> Pair:
    """Of max(a, b), and of min(a, b)."""
    return maximum(m, n), maximum(e, f)


def of_multiple(c: FormulaLike, m: Formula, e: Formula) -> Pair:
    """Of c a for c >= 0; of c terms like a; of terms like a with weights whose magnitudes add up to c."""
    return c * m, c * e


def of_complement(e: Formula) -> Pair:
    """Of 1 - z for 0 <= z <= 1."""
    return constant(1), e


def of_weighted_mean(m: Formula, n: Formula) -> Formula:
    """Of (1 - z) a + z b for 0 <= z <= 1."""
    return maximum(m, n)


def of_omission(p: FormulaLike, m: Formula, e: Formula) -> Pair:
    """Of a + c with |c| <= p, where the device leaves c out."""
    return m + p, e + p


def of_rounding(u: FormulaLike, e: Formula) -> Formula:
    """Rounded down by less than u, or by at most u in either direction."""
    return e + u


def of_shift(h: Formula, u: Formula, m: Formula, t: Formula) -> Formula:
    """An integer within m, rounded down to a multiple of u when h has been added to it, and cut at +-t or beyond."""
    return maximum(h, u - 1 - h, m - t)


def of_slope(s: FormulaLike, t: FormulaLike, e: Formula) -> Formula:
    """A function of slope s, which the device has within t."""
    return s * e + t


def of_cut(limit: FormulaLike, m: Formula, e: Formula) -> Formula:
    """Cut at +-limit."""
    return e + maximum(m - limit, 0)


def of_code(largest: Formula, tiny: Formula, half: Formula, m: Formula, e: Formula) -> Formula:
    """Converted to a code, where ``half`` is at least half a step of min(m + e, largest)."""
    return of_cut(largest, m, e) + maximum(half, minimum(m + e, tiny))


def of_large_code(largest: Formula, half: Formula, m: Formula, e: Formula) -> Formula:
    """Likewise, where the device has a number above ``tiny``: it does not become zero."""
    return of_cut(largest, m, e) + half


def of_any_code(largest: Formula, tiny: Formula, half: Formula, m: Formula, e: Formula) -> Formula:
    """Likewise, where ``half`` is half a step of the largest number."""
    return of_cut(largest, m, e) + maximum(half, tiny)


def of_inverse_roots(e: Formula, r: Formula) -> Formula:
    """Of 1/sqrt(a), where a and a' are at least m and r = 1/sqrt(m)."""
    return Fraction(1, 2) * e * r * r * r


def of_relative(e: FormulaLike, n: Formula) -> Formula:
    """A result with the relative error e of a number within n."""
    return e * n


def above(m: FormulaLike, d: Formula, e: Formula, t: Formula) -> Pair:
    """Numerator and denominator of the error of a quotient, upwards."""
    return m * d + e * t, t * (t - d)


def of_quotient_above(m: Formula, d: Formula, e: Formula, s: Formula) -> Formula:
    """How far p' / t' is above p / t at most, for p' <= p + e, p <= m, and t' >= t - d, where t >= s > d."""
    top, bottom = above(m, d, e, s)
    return top / bottom


def below(m: FormulaLike, d: Formula, e: Formula, t: Formula) -> Pair:
    """Numerator and denominator of the error of a quotient, downwards."""
    return m * d + e * t, t * (t + d)


def of_quotient_below(m: Formula, d: Formula, e: Formula, s: Formula) -> Formula:
    """How far p' / t' is below p / t at most, for p' >= p - e, p <= m, and t' <= t + d, where t >= s > 0."""
    top, bottom = below(m, d, e, s)
    return top / bottom


def of_nonnegative(n: Formula, e: Formula) -> Formula:
    """How far a result is below a number within n at most, where it is by e at most, and not below 0."""
    return minimum(n, e)
