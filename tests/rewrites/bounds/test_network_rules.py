"""The laws of networks: proved by both solvers, and each with a false twin that numbers refute."""

from __future__ import annotations

from collections.abc import Callable

import pysmt.shortcuts as smt
import pytest

from rewrites.bounds.kernel.formula import Formula, maximum, minimum
from rewrites.bounds.lemmas.network_rules import HALF, NETWORK_RULES
from rewrites.bounds.lemmas.real_rules import Built, RealRule, at_most, le, prove_rule, real, reals_of, within
from rewrites.claims.registry import entries
from rewrites.claims.subjects.numerics import ErrorRuleSubject
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger


def size(a: Formula) -> Formula:
    return maximum(a, -1 * a)


def of(names: str, build: Callable[..., Built]) -> Callable[[], Built]:
    return lambda: build(*reals_of(names))


WRONG: dict[str, Callable[[], Built]] = {
    "either bound": of("d e f", lambda d, e, f: ([at_most(d, e)], at_most(d, minimum(e, f)))),
    "one more of a row": of(
        "s w k e x", lambda s, w, k, e, x: ([at_most(s, k), at_most(x, e)], at_most(s + w * x, k + w * e))
    ),
    "factor that is known": of(
        "a b r s e m f n",
        lambda a, b, r, s, e, m, f, n: (
            [within(a, r, e), at_most(a, m), within(b, s, f), at_most(s, n)],
            within(a * b, r * s, e * n),
        ),
    ),
    "negation": of("a b e", lambda a, b, e: ([within(a, b, e)], within(-1 * a, b, e))),
    "magnitude": of("a b e", lambda a, b, e: ([within(a, b, e)], within(size(a), b, e))),
    "clamp": of("a b h h1 e", lambda a, b, h, h1, e: ([within(a, b, e)], within(minimum(a, h), minimum(b, h1), e))),
    "half of a slope": of(
        "d e", lambda d, e: ([le(minimum(0, e), d), le(d, maximum(0, e))], within(2 * d, e, minimum(e, -1 * e)))
    ),
    "slope of relu": of("a b", lambda a, b: ([], le(maximum(a, 0) - maximum(b, 0), a - b))),
    "range": of("a b w", lambda a, b, w: ([at_most(a, w), at_most(b, w)], within(a, b, w))),
    "product and squares": of("u v", lambda u, v: ([], le(3 * u * v, u * u + v * v))),
    "Cauchy and Schwarz": of(
        "s w u t", lambda s, w, u, t: ([le(s * s, w * w)], le((s + t) * (s + t), w * w + u * u + t * t))
    ),
    "one more element of a length": of("s t a e", lambda s, t, a, e: ([le(s, t), le(a, e)], le(s + a * a, t + e * e))),
    "length of a sum": of("s p q", lambda s, p, q: ([le(s, p * q)], le(p * p + 2 * s + q * q, p * p + q * q))),
    "spectral norm": of(
        "m n t g rest r",
        lambda m, n, t, g, rest, r: (
            [smt.Equals(real(m), real(t * n - g - rest)), le(0, g), le(0, n), at_most(rest, r * n)],
            le(m, t * n),
        ),
    ),
    "one more rounding": of(
        "z z1 r m e u",
        lambda z, z1, r, m, e, u: (
            [at_most(z, m), within(z1, z, e), at_most(r - z1, u * size(z1)), le(0, u)],
            within(r, z, e + u * m),
        ),
    ),
    "rounded product": of(
        "z r m u p", lambda z, r, m, u, p: ([at_most(z, m), at_most(r - z, u * size(z) + p)], within(r, z, u * m))
    ),
    "shift and cut": of(
        "a h d u m t",
        lambda a, h, d, u, m, t: (
            [at_most(a, m), le(0, d), le(d, u - 1), le(0, h), le(h, u), le(0, t)],
            within(minimum(maximum(a + h - d, -1 * t), t), a, maximum(HALF * u, m - t)),
        ),
    ),
}


@pytest.mark.parametrize("name", NETWORK_RULES)
def test_a_law_is_proved_and_its_false_twin_is_refuted(name: str) -> None:
    verdict = ErrorRuleSubject("the-law", NETWORK_RULES[name]).prove(Discharger())
    assert verdict.status is Status.PROVED and verdict.runs is not None and verdict.runs.count, verdict.reason
    assert all(len(o.answers) == 2 and o.discharged for o in verdict.obligations)
    twin = prove_rule(RealRule("twin", "false", WRONG[name]))
    assert twin.status is not Status.PROVED and "sat" in twin.reason.replace("unsat", ""), twin.reason


def test_every_law_is_a_claim() -> None:
    assert WRONG.keys() == NETWORK_RULES.keys()
    names = {f"error-{name}" for name in ("either-bound", "cauchy-and-schwarz", "half-of-a-slope", "one-more-rounding")}
    assert names <= entries().keys()
