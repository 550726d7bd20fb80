"""Exact numbers: their terms against fractions, and laws of functions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from ir_semantics.scalars.concrete import evaluate
from ir_semantics.scalars.formats import INTEGERS, REALS, Format, integer
from ir_semantics.scalars.terms import (
    Scalar,
    abs_,
    apply,
    cast,
    ceil,
    constant,
    divide_floor,
    exp,
    floor,
    interpret,
    log,
    maximum,
    pow_,
    sqrt,
    trunc,
    variable,
)
from smt_encodings.environment import fresh_symbols
from smt_encodings.interpretations import CannotInterpret, ExactNumbers
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

x, y, z = variable("x"), variable("y"), variable("z")
HALVES = [Fraction(n, 2) for n in range(-7, 8)]


def question(claim: Scalar, number: Format, *observed: Scalar) -> str:
    with fresh_symbols():
        encoding = ExactNumbers()
        terms = interpret([~claim, *observed], encoding, number)
        for term in terms[1:]:
            encoding.observe(term)
        return encoding.script(terms[:1])


def proved(claim: Scalar, number: Format = REALS, *observed: Scalar) -> bool:
    text = question(claim, number, *observed)
    return all(s.check(text, 20).status == "unsat" for s in (solver_z3, solver_cvc5))


@pytest.mark.parametrize("op", ["floor", "ceil", "trunc", "abs", "neg"])
def test_unary_operators_have_their_values(op: str) -> None:
    terms = [apply(op, constant(v, REALS)) for v in HALVES]
    wrong = [~t.same(constant(evaluate(t, {}), REALS)) for t in terms]
    assert proved(~_any(wrong))


@pytest.mark.parametrize("op", ["quotient", "floor_quotient", "maximum", "sub", "mul"])
def test_integer_operators_have_their_values(op: str) -> None:
    terms = [
        apply(op, constant(a, INTEGERS), constant(b, INTEGERS)) for a, b in itertools.product(range(-5, 6), (-3, 0, 2))
    ]
    wrong = [~t.same(constant(int(evaluate(t, {})), INTEGERS)) for t in terms]
    assert proved(~_any(wrong), INTEGERS)


def _any(terms: list[Scalar]) -> Scalar:
    result = terms[0]
    for term in terms[1:]:
        result = result | term
    return result


@pytest.mark.parametrize(
    "claim",
    [
        (x + y) * z <= x * z + y * z,
        floor(x) <= x,
        (ceil(x) - floor(x)) <= 1,
        (abs_(trunc(x)) <= abs_(x)),
        maximum(x, y) >= x,
        exp(x) > 0,
        log(exp(x)).same(x),
        exp(x + y).same(exp(x) * exp(y)),
        ~(x > 0) | (sqrt(x) * sqrt(x)).same(x),
        ~(x > 0) | pow_(x, 2).same(x * x),
        ~(x < y) | (exp(x) < exp(y)),
    ],
)
def test_what_is_true_of_reals(claim: Scalar) -> None:
    assert proved(claim)


@pytest.mark.parametrize(
    "claim",
    [
        exp(x + y).same(exp(x) + exp(y)),
        log(x * y).same(log(x) + log(y)),  # false where both are negative
        sqrt(x * x).same(x),
        (x / x).same(1),
        floor(x + y).same(floor(x) + floor(y)),
        exp(log(x)).same(x),
    ],
)
def test_what_is_false_of_reals_is_not_proved(claim: Scalar) -> None:
    assert solver_z3.check(question(claim, REALS), 10).status != "unsat"
    assert solver_cvc5.check(question(claim, REALS), 10).status != "unsat"


def test_laws_reach_the_terms_that_are_observed() -> None:
    claim = ~(x > 0) | ~(y > 0) | log(x * y).same(log(x) + log(y))
    assert not proved(claim)
    assert proved(claim, REALS, log(x) + log(y))


def test_assumptions_name_the_functions_that_occur() -> None:
    with fresh_symbols():
        encoding = ExactNumbers()
        interpret([x + y < 1], encoding, REALS)
        assert (encoding.assumptions, encoding.exact) == ((), True)
        interpret([log(x) < 1], encoding, REALS)
        assert encoding.assumptions == (
            "exp is positive and strictly increasing, exp 0 = 1, and exp (y + z) = exp y * exp z",
            "exp (log x) = x for x > 0",
        )
        assert not encoding.exact


def test_integers_become_reals_and_back() -> None:
    i = variable("i", INTEGERS)
    assert proved(cast(cast(i, REALS), INTEGERS).same(i))
    assert proved(cast(cast(i, REALS) / 2, INTEGERS).same(divide_floor(i, 2)))


@pytest.mark.parametrize(
    ("term", "number", "message"),
    [
        (x + constant(-0.0), REALS, "an exact number must be finite, and 0 without a sign, not -0.0"),
        (x + Fraction(1, 2), INTEGERS, "an integer must be given, not 1/2"),
        (x + 1, integer(8), "exact numbers must be reals or integers, not int8"),
        (x / y, INTEGERS, "exact numbers have no operator div on the integers"),
    ],
)
def test_what_is_not_exact_is_refused(term: Scalar, number: Format, message: str) -> None:
    with fresh_symbols(), pytest.raises(CannotInterpret) as caught:
        interpret([term], ExactNumbers(), number)
    assert str(caught.value) == message
