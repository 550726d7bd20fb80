"""Quotients and remainders by sizes, against plain evaluation at every point."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pysmt.shortcuts as smt
import pytest
from pysmt.environment import pop_env, push_env
from pysmt.fnode import FNode

from ila_lang import Expr, bv, const, var
from smt_encodings.discharge import decide
from smt_encodings.expressions.integers import IntegerEncoding, NotLinearizable
from tests.ila_lang.oracle import evaluate


@pytest.fixture(autouse=True)
def symbols_of_its_own() -> Iterator[None]:
    push_env()
    yield
    pop_env()


A, B, S = var("a", bv(8)), var("b", bv(8)), var("s", bv(8))
WIDE_A, WIDE_B, WIDE_S = (v.zext(16) for v in (A, B, S))
TERMS = [
    WIDE_A // WIDE_S,
    WIDE_A % WIDE_S,
    (WIDE_A * WIDE_S + WIDE_B) // WIDE_S,
    (WIDE_A * WIDE_S + WIDE_B) % WIDE_S,
    (WIDE_A * WIDE_S) // WIDE_S,
    (WIDE_A * WIDE_S) % WIDE_S,
    ((WIDE_A + WIDE_B) * WIDE_S) // WIDE_S,
    (WIDE_B + (WIDE_S - 1) - WIDE_A % WIDE_S) // WIDE_S,
    (WIDE_A - WIDE_A % WIDE_S) // WIDE_S + WIDE_B,
    (WIDE_A % WIDE_S) % const(3, 16) + (WIDE_A // WIDE_S) // const(2, 16),
    ((WIDE_A // WIDE_S) * 5 + WIDE_B) // WIDE_S,
]
POINTS = list(itertools.product(range(0, 10, 3), range(0, 10, 2), range(1, 6)))


def encoding_of() -> IntegerEncoding:
    encoding = IntegerEncoding(decide, "t")
    for condition in (A <= 9, B <= 9, S <= 5, const(1, 8) <= S):
        encoding.assume(condition)
    return encoding


def values_at(encoding: IntegerEncoding, point: tuple[int, ...]) -> dict[FNode, FNode]:
    """The values of all symbols at a point; quotients are rounded down, as Python's are."""
    known = {smt.Symbol(n, smt.INT): smt.Int(x) for n, x in zip("abs", point, strict=True)}
    for dividend, divisor, symbols in encoding.quotients():
        number = int(dividend.substitute(known).simplify().constant_value())
        by = divisor if isinstance(divisor, int) else int(divisor.substitute(known).simplify().constant_value())
        known |= {s: smt.Int(n) for s, n in zip(symbols, divmod(number, by), strict=False)}
    return known


@pytest.mark.parametrize("term", TERMS, ids=str)
def test_a_term_has_its_value_and_its_definitions_hold(term: Expr) -> None:
    encoding = encoding_of()
    found = encoding.term(term)
    for point in POINTS:
        known = values_at(encoding, point)
        wanted = evaluate(term, dict(zip("abs", point, strict=True)))
        assert int(found.substitute(known).simplify().constant_value()) == wanted
        # literal bounds of operands are about any operands, not about this point
        fits = [c for _, c in encoding.fits if c.get_free_variables() <= known.keys()]
        for condition in (*encoding.hypotheses, *fits):
            assert condition.substitute(known).simplify().is_true(), (condition, point)


@pytest.mark.parametrize("term", TERMS, ids=str)
def test_definitions_leave_one_value(term: Expr) -> None:
    """At a point, no other value than the right one satisfies what is known of the symbols."""
    encoding = encoding_of()
    found = encoding.term(term)
    for point in POINTS[::17]:
        here = [smt.Equals(smt.Symbol(n, smt.INT), smt.Int(x)) for n, x in zip("abs", point, strict=True)]
        wanted = evaluate(term, dict(zip("abs", point, strict=True)))
        assert decide([*encoding.hypotheses, *here], smt.Equals(found, smt.Int(wanted)))


@pytest.mark.parametrize("term", TERMS, ids=str)
def test_an_instance_is_the_term_at_its_point(term: Expr) -> None:
    """What is translated for any a and b, at a = b*s + 1 and b = 2*s."""
    base = IntegerEncoding(decide, "base")
    base.assume(S <= 5)
    base.assume(const(1, 8) <= S)
    generic, special = base.fork("generic"), base.fork("special")
    generic.assume(A <= 70)
    generic.assume(B <= 20)
    translated = generic.term(term)
    special.assume(B <= 9)
    s, b = (special.term(v) for v in (S, B))
    point = {
        generic.term(A): smt.Plus(smt.Times(b, s), smt.Int(1)),
        generic.term(B): smt.Times(smt.Int(2), s),
    }
    instance = special.instance(generic, translated, point)
    for x, y in itertools.product(range(10), range(1, 6)):
        known = values_at(special, (0, x, y))
        wanted = evaluate(term, {"a": x * y + 1, "b": 2 * y, "s": y})
        assert int(instance.substitute(known).simplify().constant_value()) == wanted
        assert all(d.substitute(known).simplify().is_true() for d in special.definitions)


def test_a_divisor_that_may_be_zero_is_refused() -> None:
    encoding = IntegerEncoding(decide, "t")
    encoding.assume(S <= 5)
    with pytest.raises(NotLinearizable, match="this divides by what may be 0"):
        encoding.term(A // S)


def test_a_definition_says_nothing_where_the_divisor_is_zero() -> None:
    """Otherwise it would be a contradiction there, and prove anything."""
    encoding = encoding_of()
    encoding.term(WIDE_A // WIDE_S)
    zero = smt.Equals(smt.Symbol("s", smt.INT), smt.Int(0))
    assert not decide([*encoding.definitions, zero], smt.FALSE())


def test_parts_of_a_conjunction_rely_on_the_parts_before() -> None:
    encoding = encoding_of()
    encoding.assume((B <= A) & (A - B < 3))
    with pytest.raises(NotLinearizable, match="may leave"):
        encoding_of().assume((A - B < 3) & (B <= A))
