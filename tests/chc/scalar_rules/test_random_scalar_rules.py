"""Rules on scalars of small formats, drawn at random, against an evaluator that shares no code with the product."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from operator import truediv

import pytest

from chc.scalar_rules.prove import interpretations_of, prove_rule
from chc.scalar_rules.rule import ScalarRule, has_value
from chc.scalar_rules.search import special_values
from ir_semantics.scalars.concrete import Concrete
from ir_semantics.scalars.formats import BINARY32, INTEGERS, REALS, Format, code_format, float_format, integer
from ir_semantics.scalars.operators import OPERATORS
from ir_semantics.scalars.terms import (
    TRUE,
    NotInterpreted,
    Scalar,
    abs_,
    apply,
    cast,
    exp,
    interpret,
    log,
    pow_,
    select,
    sqrt,
    variable,
)
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from smt_encodings.interpretations import Symbols
from tests.chc.scalar_rules.attempts import proved_by
from tests.chc.scalar_rules.random_scalar_rules import holds, random_rule, wrong_answers

x, y = variable("x"), variable("y")


@pytest.mark.parametrize("seed", range(30))
def test_random_rules_are_decided_rightly(seed: int) -> None:
    assert list(wrong_answers(random_rule(seed), Counter())) == []


@pytest.mark.slow
def test_many_random_rules_are_decided_rightly() -> None:
    table: Counter[str] = Counter()
    wrong = [(s, text) for s in range(100, 1600) for text in wrong_answers(random_rule(s), table)]
    assert wrong == []
    assert table["holds"] > 300 and table["fails"] > 300
    assert table["PROVED"] > 300 and table["REFUTED"] > 300


def test_the_check_of_answers_finds_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the two sides of every question exchanged for one of them, all is proved, and this is noticed."""
    wrong = [rule for rule in map(random_rule, range(40)) if not holds(rule)[0]][:6]
    monkeypatch.setattr(ScalarRule, "goal", property(lambda rule: rule.left.same(rule.left)))
    assert any("proves it" in text for rule in wrong for text in wrong_answers(rule, Counter()))


# -- names that solvers or encodings use themselves -----------------------------------------------------------

WORDS = ("fp", "RNE", "to_real", "sec", "bvadd", "match", "ite", "real_quotient", "mul_3_4", "constant_magnitude_1_1")


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("kind", [float_format(3, 4), integer(3), REALS, INTEGERS], ids=str)
def test_variables_may_have_any_name(name: str, kind: Format) -> None:
    word = variable(name, kind)
    other = variable("y", kind)
    rule = ScalarRule("commute", word * other, other * word, kind)
    assert prove_rule(rule).status is Status.PROVED
    assert prove_rule(replace(rule, right=other * other)).status is Status.REFUTED


def test_every_operator_without_a_value_somewhere_has_a_domain() -> None:
    """What concrete evaluation over the reals refuses at 0 or -1 must have a condition."""
    for name, operator in OPERATORS.items():
        if operator.result == "target" or name in ("not", "and", "or"):
            continue
        operands = [x, y, x][: operator.arity] if name != "select" else [x < y, x, y]
        term = apply(name, *operands)
        without = False
        for values in ({"x": a, "y": b} for a in (-1, 0, 1) for b in (-1, 0, 1)):
            try:
                interpret([term], Concrete({n: Fraction(v) for n, v in values.items()}), REALS)
            except NotInterpreted as error:
                without |= "has no value" in str(error)
        if without:
            assert has_value([term], REALS) is not TRUE, name


# -- partial functions of real numbers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "right",
    [
        x + 0 * (1 / y),
        x + 0 * log(y),
        x + (sqrt(y) - sqrt(y)),
        select(log(y) < 0, x, x),
        x + 0 * pow_(y, 2),
        select(apply("remainder", x, y).same(apply("remainder", x, y)), x, x + 1),
    ],
    ids=str,
)
def test_partial_functions_that_cancel_are_not_lost(right: Scalar) -> None:
    """The right side has no value at y = -1 or y = 0, whatever becomes of it."""
    rule = ScalarRule("partial", x, right, REALS)
    assert prove_rule(rule).status in (Status.REFUTED, Status.UNKNOWN)
    for interpretation in interpretations_of(rule):
        assert not proved_by(rule, interpretation, Discharger(timeout=5))


@pytest.mark.parametrize("right", [x + 0 * (1 / y), x + (sqrt(y) - sqrt(y))], ids=str)
def test_such_rules_hold_where_the_functions_have_values(right: Scalar) -> None:
    assert prove_rule(ScalarRule("partial", x, right, REALS, condition=y > 0)).status is Status.PROVED


def test_a_partial_function_of_the_left_side_may_go_or_stay() -> None:
    goes = prove_rule(ScalarRule("goes", x * (y / y), x, REALS))
    assert goes.status is Status.PROVED
    assert goes.claim.statement == "x * (y / y) -> x if not (y = 0)"
    stays = prove_rule(ScalarRule("stays", log(x) * y, y * log(x), REALS))
    assert stays.status is Status.PROVED
    comes = prove_rule(ScalarRule("comes", x, x * (y / y), REALS))
    assert (comes.status, comes.reason) == (Status.REFUTED, "x = 0, y = 0: 0 vs undefined")


def test_a_power_has_values_at_negative_numbers_too() -> None:
    """x^2 is known for positive x only; that it has a value elsewhere must not be assumed away."""
    assert prove_rule(ScalarRule("square", pow_(x, 2), x * x, REALS)).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (x * x, pow_(x, 2)),
        (x, pow_(x, 1)),
        (x * x * x, pow_(x, 3)),
        (x * x, pow_(abs_(x), 2)),
        (x, x + 0 * pow_(x - x, 1)),
        (x, x + 0 * pow_(x - 1, y * y)),
        (x - x, apply("tan", x - x)),
    ],
    ids=str,
)
def test_a_right_side_that_may_have_a_value_refutes_nothing(left: Scalar, right: Scalar) -> None:
    """These rules hold; only where a power or a tangent surely has a value is known, not where it has none."""
    assert prove_rule(ScalarRule("true", left, right, REALS)).status is Status.UNKNOWN


@pytest.mark.parametrize(("left", "right"), [(x * x, pow_(x, 2)), (x, pow_(x, 1))], ids=str)
def test_such_powers_are_proved_of_positive_numbers(left: Scalar, right: Scalar) -> None:
    assert prove_rule(ScalarRule("true", left, right, REALS, condition=x > 0)).status is Status.PROVED


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        (x, x + 0 * pow_(x, -1), "x = 0: 0 vs undefined"),
        (x, x + 0 * pow_(x - x, y), "x = 0, y = -1: 0 vs undefined"),
        (exp(x), exp(x) + 0 * (1 / x), "x = 0: 1 vs undefined"),
        (exp(x), exp(x) + 0 * pow_(x, -2), "x = 0: 1 vs undefined"),
    ],
    ids=str,
)
def test_a_right_side_that_has_no_value_refutes(left: Scalar, right: Scalar, reason: str) -> None:
    verdict = prove_rule(ScalarRule("partial", left, right, REALS))
    assert (verdict.status, verdict.reason) == (Status.REFUTED, reason)


PYTHON = {"div": truediv, "remainder": math.fmod, "log": math.log, "sqrt": math.sqrt, "pow": math.pow} | {
    name: getattr(math, name) for name in ("acosh", "atanh", "asin", "acos", "tan")
}


@pytest.mark.parametrize("name", PYTHON)
def test_conditions_say_where_functions_have_values(name: str) -> None:
    """Of all but powers and tangents exactly; of these, where they surely have one and where they may."""
    arity = OPERATORS[name].arity
    term = apply(name, *[x, y][:arity])
    exact = name not in ("pow", "tan")
    for a, b in product([Fraction(n, 2) for n in range(-5, 6)], repeat=2):
        domain = Concrete({"x": a, "y": b})
        surely, may = interpret([has_value([term], REALS, surely=s) for s in (True, False)], domain, REALS)
        try:
            PYTHON[name](*[float(a), float(b)][:arity])
            has = True
        except (ValueError, ZeroDivisionError):
            has = False
        assert (surely, may) == (has, has) if exact else surely <= has <= may, (a, b)


def test_choices_guard_partial_functions() -> None:
    guarded = select(x.equals(0), 0, 1 / x)
    assert prove_rule(ScalarRule("guarded", y * guarded, guarded * y, REALS)).status is Status.PROVED
    wrong = select(x.equals(1), 0, 1 / x)
    rule = ScalarRule("not guarded", y, y + 0 * wrong, REALS)
    assert prove_rule(rule).status is Status.REFUTED


def test_floats_that_become_reals_are_finite() -> None:
    number = variable("f", BINARY32)
    real = cast(number, REALS)
    rule = ScalarRule("finite", x, select(real < 0, x, x), REALS)
    assert prove_rule(rule).status is not Status.PROVED


def test_a_function_without_exact_values_is_no_crash() -> None:
    real = variable("r", REALS)
    rule = ScalarRule("exp", exp(real) * real, real * exp(real), REALS)
    assert prove_rule(rule).status in (Status.PROVED, Status.UNKNOWN)


def test_two_formats_are_two_sorts() -> None:
    """Names of code formats may differ in signs only; their operators are different symbols all the same."""
    encoding = Symbols()
    formats = [code_format("A<2>", 2), code_format("A_2_", 2)]
    numbers = [encoding.variable("v.x", formats[0]), encoding.variable("v.y", formats[1])]
    sums = [encoding.apply("add", k, [k, k], [n, n]) for k, n in zip(formats, numbers, strict=True)]
    assert len({n.symbol_type() for n in numbers}) == 2
    assert len({s.function_name() for s in sums}) == 2


@pytest.mark.parametrize("signed", [True, False])
def test_numbers_of_one_bit_are_searched(signed: bool) -> None:
    assert set(map(int, special_values(integer(1, signed=signed), []))) == ({0, -1} if signed else {0, 1})
