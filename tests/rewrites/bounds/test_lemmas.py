from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.fixed_point import float_to_fixed
from accel_models.flexasr import functions, numerics
from accel_models.flexasr.floats import float_to_adpfloat
from ila_lang import Function, all_of, bv, compile_terms, concat, const, ite, primitive, var
from rewrites.bounds.catalogue import LEMMAS
from rewrites.bounds.kernel.constants import TANH_ERROR
from rewrites.bounds.lemmas import enclosures
from rewrites.bounds.lemmas.activations import _near
from rewrites.bounds.lemmas.codes import encode_allowance
from rewrites.bounds.lemmas.lemma import EVERY_ARGUMENT, Every, Lemma, Statement, prove_lemma
from rewrites.bounds.lemmas.machine import _value
from rewrites.bounds.lemmas.real_rules import RULES, RealRule, prove_rule, reals_of, within
from rewrites.claims.subjects.numerics import ErrorRuleSubject
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger

# several seconds
SLOW = {"HLSCNN product", "float32 to 16 bits", "float32 to 24 bits, symmetric", "16 bits to float32"}

# An argument of each lemma's domain at which the primitive is broken, where all parameters being 5 will not do.
ARGUMENTS = {
    "encode": {"value": 5000, "bias": 2},
    "compress": {"value": -5000 << 6, "bias": 2},
    "compress weights": {"value": 700 << 12, "bias": 4},
    "inverse root": {"x": 1000},
    "exponential": {"x": -5},
    "exponential, tail": {"x": -9 << 20},
    "exponential vanishes": {"x": -17 << 20},
    "exponential is below 1": {"x": -5},
    "HLSCNN product of a byte": {"weight": 3 << 8, "activation": 5},
    "divide by a count": {"total": 5, "count": 16},
    "divide": {"numerator": 5 << 16, "denominator": 7 << 16},
}


@cache
def proved(name: str) -> Verdict:
    return prove_lemma(LEMMAS[name])


def names(function: Function) -> list[str]:
    return [p.name.rpartition(".")[2] for p in function.params]


def broken(function: Function, at: dict[str, int]) -> Function:
    """The function with the highest bit of its result inverted at one argument."""
    assert function.body is not None
    here = all_of(
        [p == const(at[n] % (1 << p.width), p.width) for n, p in zip(names(function), function.params, strict=True)]
    )
    width = function.body.width
    twin = Function(f"{function.name}_broken", {}, function.result, None)
    twin.params = function.params
    twin.body = ite(here, function.body ^ const(1 << (width - 1), width), function.body)
    return twin


def argument(lemma: Lemma) -> dict[str, int]:
    return ARGUMENTS.get(lemma.name, dict.fromkeys(names(lemma.function), 5))


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in LEMMAS])
def test_lemmas_are_proved(name: str) -> None:
    verdict = proved(name)
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.details["method"] == LEMMAS[name].method
    if LEMMAS[name].method == EVERY_ARGUMENT:
        assert int(str(verdict.details["arguments"])) >= 1024
    else:
        assert all(len(o.answers) == 2 and o.discharged for o in verdict.obligations)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in LEMMAS])
def test_a_primitive_that_is_wrong_at_one_argument_is_refuted_there(name: str) -> None:
    lemma, at = LEMMAS[name], argument(LEMMAS[name])
    verdict = prove_lemma(lemma, Discharger(timeout=60), function=broken(lemma.function, at))
    assert verdict.status is Status.REFUTED, verdict.reason
    found = verdict.details["counterexample"]
    assert isinstance(found, dict)
    if name == "divide by a count":
        found["count"] = 16 * found.pop("vectors")
    if name == "HLSCNN product of a byte":
        found = {"weight": found.pop("byte") << 8, **found}
    if name == "float32 to AdaptivFloat":
        found.pop("other")  # any code shows it
    if name == "divide slices":  # the argument, or one with the same slices
        assert {v & 0x3F0000 for v in found.values()} == {0}
        return
    widths = {n: p.width for n, p in zip(names(lemma.function), lemma.function.params, strict=True)}
    assert [v % (1 << w) for v, w in zip(found.values(), widths.values(), strict=True)] == [
        at[n] % (1 << w) for n, w in widths.items()
    ]


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "inverse root", "exponential"])
def test_constants_are_as_small_as_they_can_be(name: str) -> None:
    largest = proved(name).details["largest"]
    assert isinstance(largest, float)
    assert 0.999 < largest <= 1


def test_a_constant_one_place_smaller_is_refuted() -> None:
    less = TANH_ERROR - Fraction(1, 1 << 24)
    verdict = prove_lemma(Lemma("tanh", functions.tanh, "too much", "all", _near(enclosures.tanh, less)))
    assert verdict.status is Status.REFUTED
    found = verdict.details["counterexample"]
    assert isinstance(found, dict)
    assert functions.tanh.body is not None
    (result,) = compile_terms(functions.tanh.params, [functions.tanh.body])(found["x"] % (1 << 20))
    error = abs((result - (result >> 19 << 20)) / 2**14 - math.tanh(found["x"] / 2**14))
    assert less < error <= TANH_ERROR


def test_the_conversion_before_2022_is_refuted_with_the_argument_that_changes_its_sign() -> None:
    verdict = prove_lemma(LEMMAS["encode"], function=numerics.fixed_to_adpfloat_pre2022)
    assert verdict.status is Status.REFUTED
    assert verdict.details["counterexample"] == {"value": -(1 << 19), "bias": 0}
    assert verdict.reason.startswith("at value = -524288, bias = 0: the result is 127, off by up to ")


def test_a_product_rounded_to_nearest_is_refuted() -> None:
    @primitive(bv(20), name="emul_nearest", a=bv(20), b=bv(20))
    def nearest(a, b):  # type: ignore[no-untyped-def]
        return (a.sext(34) * b.sext(34) + (1 << 13))[33:14]

    verdict = prove_lemma(LEMMAS["product"], function=nearest)
    assert verdict.status is Status.REFUTED
    found = verdict.details["counterexample"]
    assert isinstance(found, dict)
    a, b = (v - (v >> 19 << 20) for v in found.values())
    assert (a * b + (1 << 13)) >> 14 != (a * b) >> 14


def test_biases_that_are_cut_or_not_extended_are_refuted() -> None:
    lemma, nearest = LEMMAS["float32 to 24 bits, symmetric"], float_to_fixed(24, True, 32)
    assert nearest.body is not None and nearest.body.op == "sext"
    for body in (nearest.body.args[0].zext(32), float_to_fixed(24, False, 32)(*nearest.params)):
        twin = Function("twin", {}, nearest.result, None)
        twin.params, twin.body = nearest.params, body
        verdict = prove_lemma(lemma, function=twin)
        assert verdict.status is Status.REFUTED, verdict.reason


@pytest.mark.parametrize("symmetric", [False, True])
def test_codes_with_another_end_are_refuted(symmetric: bool) -> None:
    lemma = LEMMAS[f"float32 to 8 bits{', symmetric' * symmetric}"]
    verdict = prove_lemma(lemma, function=float_to_fixed(8, not symmetric))
    assert verdict.status is Status.REFUTED
    found = verdict.details["counterexample"]
    assert isinstance(found, dict)
    # -127.5, the last word that is near another code than -128, or one of a larger magnitude
    assert found["word"] >= 1 << 31 | found["exponent"] + 6 << 23 | 0x7F0000


@pytest.mark.parametrize("code", [0, 1])
def test_ties_away_from_zero_and_numbers_that_are_cut_are_refuted(code: int) -> None:
    @primitive(bv(8), name=f"float_to_int8_{code}", word=bv(32), exponent=bv(8))
    def wrong(word, exponent):  # type: ignore[no-untyped-def]
        """The code of a normal number of half a unit to a unit, which must be 0 for half a unit and 1 for others."""
        from_half = (word[31] == 0) & (word[30:23] == exponent - 1) & (exponent > 1)
        return ite(from_half, const(code, 8), float_to_fixed(8)(word, exponent))

    verdict = prove_lemma(LEMMAS["float32 to 8 bits"], function=wrong)
    assert verdict.status is Status.REFUTED
    found = verdict.details["counterexample"]
    assert isinstance(found, dict)
    assert (found["word"] & 0x7FFFFF == 0) is (code == 1)


@pytest.mark.parametrize("code", [1, 0x80])
def test_half_of_the_least_adaptive_float_is_refuted_where_it_is_not_zero(code: int) -> None:
    """One rounds ties up, and the other one has another zero."""

    @primitive(bv(8), name=f"float_to_adpfloat_{code}", word=bv(32), exponent=bv(8))
    def wrong(word, exponent):  # type: ignore[no-untyped-def]
        half = concat(const(0, 1), exponent - 1, const(1, 4), const(0, 19))
        return ite(word == half, const(code, 8), float_to_adpfloat(word, exponent))

    verdict = prove_lemma(LEMMAS["float32 to AdaptivFloat"], function=wrong)
    assert verdict.status is Status.REFUTED, verdict.reason
    found = verdict.details["counterexample"]
    assert isinstance(found, dict) and found["word"] == (found["exponent"] - 1 << 23 | 1 << 19)


def test_cases_that_are_not_all_prove_nothing() -> None:
    """The goal is false of -1 alone, which is in no case."""
    (x,) = functions.relu.params
    last = (1 << x.width) - 1
    statement = Statement((x,), (), x != last, (x < 5, (x >= 5) & (x < last)))
    verdict = prove_lemma(Lemma("not -1", functions.relu, "x is not -1", "all", lambda _: statement))
    assert (verdict.status, verdict.details["counterexample"]) == (Status.REFUTED, {x.name: last})


def test_an_empty_domain_is_no_proof() -> None:
    nothing = Every(list, lambda result, x: (result, x))
    lemma = Lemma("nothing", functions.relu, "anything", "nowhere", lambda _: nothing)
    assert prove_lemma(lemma).status is Status.VACUOUS
    x = functions.relu.params[0]
    never = Statement((x,), (x.slt(x),), x == x + 1)
    lemma = Lemma("never", functions.relu, "anything", "nowhere", lambda _: never)
    assert prove_lemma(lemma).status is Status.VACUOUS


# -- enclosures ------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.integers(-(2**19), 2**19 - 1))
def test_enclosures_hold_float64_and_are_narrow(k: int) -> None:
    x, unit = k / 2**14, 2.0**-enclosures.SCALE
    words = np.array([k], np.int64)
    for function, true in ((enclosures.logistic, 1 / (1 + math.exp(-x))), (enclosures.tanh, math.tanh(x))):
        low, high = function(words, 14)
        assert low[0] * unit - 1e-14 <= true <= high[0] * unit + 1e-14
        assert 0 <= high[0] - low[0] <= 8
    low, high = enclosures.exp_minus(np.abs(words), 14)
    assert low[0] * unit - 1e-14 <= math.exp(-abs(x)) <= high[0] * unit + 1e-14
    assert 0 <= high[0] - low[0] <= 4


def test_enclosures_are_refused_for_growing_powers() -> None:
    with pytest.raises(ValueError, match=r"^exp_minus must be given numbers of at least 0, not -1$"):
        enclosures.exp_minus(np.array([-1]), 14)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**19), st.integers(0, 7))
def test_allowances_follow_their_description(magnitude: int, bias: int) -> None:
    value, scale = Fraction(magnitude, 1 << 14), Fraction(2) ** bias
    largest, tiny = Fraction(31, 128) * scale, Fraction(33, 32 << 10) * scale
    if value > largest:
        wanted = value - largest
    elif value <= tiny:
        wanted = value
    else:
        wanted = Fraction(2) ** (math.frexp(float(value))[1] - 1 - 5)
    (allowed,) = encode_allowance(np.array([magnitude]), np.array([bias]), 14)
    assert Fraction(int(allowed), 1 << 19) == wanted


def test_statements_have_the_values_of_codes() -> None:
    code, bias = var("code", bv(8)), var("bias", bv(3))
    run = compile_terms([code, bias], [_value(code, bias, 24)])
    for c in range(256):
        for b in range(8):
            sign, exponent, mantissa = c >> 7, c >> 4 & 7, c & 15
            value = Fraction(16 + mantissa, 16) * Fraction(2) ** (exponent + b - 10) if c & 0x7F else Fraction(0)
            (word,) = run(c, b)
            assert Fraction(word - (word >> 23 << 24), 1 << 14) == (-value if sign else value)


# -- rules -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULES)
def test_every_rule_survives_its_runs(name: str) -> None:
    """As it is proved on the command line: with runs, which must know every operation that it speaks of."""
    verdict = ErrorRuleSubject("the-rule", RULES[name]).prove(Discharger())
    assert verdict.status is Status.PROVED and verdict.runs is not None, verdict.reason


@pytest.mark.parametrize("name", RULES)
def test_rules_are_proved_by_both_solvers(name: str) -> None:
    verdict = prove_rule(RULES[name])
    assert verdict.status is Status.PROVED, verdict.reason
    assert all(len(o.answers) == 2 and o.discharged for o in verdict.obligations)


def test_a_wrong_rule_is_not_proved() -> None:
    def build():  # type: ignore[no-untyped-def]
        a, a1, b, b1, e, f = reals_of("a a1 b b1 e f")
        return [within(a1, a, e), within(b1, b, f)], within(a1 + b1, a + b, e)

    verdict = prove_rule(RealRule("wrong", "the second error is forgotten", build))
    assert verdict.status is not Status.PROVED
    assert "sat" in verdict.reason
