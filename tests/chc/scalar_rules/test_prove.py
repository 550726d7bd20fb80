"""How rules are decided: the ladder, models that replay, vacuous conditions, lemmas, health."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from chc.scalar_rules import prove as rule_prover
from chc.scalar_rules.mutants import mutants
from chc.scalar_rules.prove import prove_rule
from chc.scalar_rules.rule import Counterexample, ScalarRule
from chc.scalar_rules.search import find_among_all, points, refutes_change, replay
from ir_semantics.scalars.formats import BINARY16, BINARY32, BOOLEAN, INTEGERS, NUMBER, REALS, integer
from ir_semantics.scalars.terms import abs_, cast, constant, exp, log, maximum, pow_, select, sqrt, variable
from smt_encodings.claims import Answer, Equality, Interpretation, Status
from smt_encodings.discharge import Discharger
from smt_encodings.solvers import cvc5 as solver_cvc5

x, y, z = variable("x"), variable("y"), variable("z")
INT8, INT32 = integer(8), integer(32)


def test_symbols_suffice_for_what_follows_from_structure() -> None:
    rule = ScalarRule("twice", maximum(select(x < y, x, y), z), maximum(select(~(x < y), y, x), z), BINARY32)
    verdict = prove_rule(rule)
    assert verdict.status is Status.PROVED
    assert verdict.claim.interpretations == (Interpretation.UNINTERPRETED,)
    assert "ladder" not in verdict.details


def test_the_ladder_says_what_the_coarser_interpretations_lacked() -> None:
    n = variable("n", INT8)
    rule = ScalarRule("small integers", cast(cast(n, BINARY32), INT8), n, BINARY32)
    verdict = prove_rule(rule)
    assert verdict.status is Status.PROVED
    assert verdict.claim.interpretations == (Interpretation.IEEE,)
    assert verdict.details["ladder"] == ["uninterpreted: not implied", "abstract_float: not implied"]
    assert verdict.claim.size_domain == "all values of n (int8)"
    assert verdict.claim.equality is Equality.BIT_EXACT


def test_a_named_interpretation_is_the_only_one() -> None:
    rule = ScalarRule("commute", x + y, y + x, BINARY32, interpretation=Interpretation.UNINTERPRETED)
    verdict = prove_rule(rule)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason == "uninterpreted: not implied"
    assert prove_rule(replace(rule, interpretation=Interpretation.ABSTRACT_FLOAT)).status is Status.PROVED


def test_formats_without_a_second_solver_stay_open() -> None:
    rule = ScalarRule("double", x + x, x * 2, BINARY16)
    verdict = prove_rule(rule)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.endswith(
        "ieee: not applicable: the theory of floats must be given binary32 or binary64, not binary16"
    )


def test_a_model_is_replayed_where_no_tried_value_refutes() -> None:
    """One number in 2^32 refutes this rule."""
    n = variable("n", INT32)
    hidden = (n * -1640531535).equals(constant(305419896, INT32))
    rule = ScalarRule("hidden", select(hidden, n, 0), constant(0, INT32), INT32)
    assert all(replay(rule, p) is None for p in points(rule))
    verdict = prove_rule(rule)
    assert verdict.status is Status.REFUTED
    found = verdict.details["counterexample"]
    assert isinstance(found, Counterexample)
    value = found.values["n"]
    assert isinstance(value, int) and (value * -1640531535 - 305419896) % 2**32 == 0
    assert (found.left, found.right) == (value, 0)


def test_small_machine_formats_are_tried_everywhere() -> None:
    """One pair in 2^16 refutes this rule; no solver is needed."""
    p, q = variable("p", INT8), variable("q", INT8)
    rule = ScalarRule("pair", p.equals(-93) & q.equals(57), constant(False), INT8)
    rule = replace(rule, left=(p * 3).equals(-23) & (q * 5).equals(29))
    assert all(replay(rule, values) is None for values in points(rule))
    assert str(find_among_all(rule)) == "p = -93, q = 57: true vs false"
    assert prove_rule(rule).reason == "p = -93, q = 57: true vs false"
    assert find_among_all(replace(rule, condition=p < q)) == find_among_all(rule)
    assert find_among_all(replace(rule, condition=q < p)) is None
    long = variable("n", INT32)
    assert find_among_all(ScalarRule("long", long, long + 1, INT32)) is None
    assert find_among_all(ScalarRule("float", x, x + 1, BINARY16)) is None


def test_all_values_and_single_values_agree() -> None:
    p, flag = variable("p", integer(4)), variable("flag", BOOLEAN)
    rule = ScalarRule("flag", select(flag, p, -p), p, integer(4))
    found = find_among_all(rule)
    assert found is not None and str(replay(rule, found.values)) == str(found)
    assert found.values["flag"] is False
    assert find_among_all(replace(rule, condition=flag | p.equals(0) | p.equals(-8))) is None


def test_conversions_inside_a_rule_choose_the_ladder() -> None:
    n = variable("n", INT8)
    through = ScalarRule("through floats", cast(cast(n, BINARY32), INT8), n, INT8)
    assert rule_prover.interpretations_of(through)[-1] is Interpretation.IEEE


def test_one_solver_alone_is_named() -> None:
    verdict = prove_rule(ScalarRule("commute", x * y, y * x, INT8), Discharger(second=False))
    assert (verdict.status, verdict.reason) == (Status.PROVED, "only z3 was asked")


def test_a_model_of_floats_is_replayed() -> None:
    rule = ScalarRule("hidden", (x + 1).equals(1.0000152587890625), constant(False), BINARY32)
    rule = replace(rule, condition=(x * 3 < 2.0**-13) & (x > 0))
    verdict = prove_rule(rule)
    assert verdict.status is Status.REFUTED
    found = verdict.details["counterexample"]
    assert isinstance(found, Counterexample) and (found.left, found.right) == (True, False)


def test_a_model_that_does_not_replay_refutes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    n = variable("n", INT32)
    hidden = (n * -1640531535).equals(constant(305419896, INT32))
    rule = ScalarRule("hidden", select(hidden, n, 0), constant(0, INT32), INT32)
    monkeypatch.setattr(rule_prover, "_value", lambda code, kind: 0)
    verdict = prove_rule(rule)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason == "uninterpreted: not implied; bits: not implied"


def test_a_condition_that_never_holds_makes_a_rule_vacuous() -> None:
    verdict = prove_rule(ScalarRule("nothing", x, y, INT8, condition=(x < y) & (y < x)))
    assert verdict.status is Status.VACUOUS
    assert verdict.reason == "no values satisfy the condition"
    over_reals = prove_rule(ScalarRule("nothing", x, y, REALS, condition=(x * x < 0)))
    assert over_reals.status is Status.VACUOUS


def test_a_condition_that_no_tried_value_meets_is_put_to_solvers() -> None:
    n = variable("n", INT32)
    rare = (n * -1640531535).equals(constant(305419896, INT32))
    verdict = prove_rule(ScalarRule("rare", n + 0, n, INT32, condition=rare))
    assert verdict.status is Status.UNKNOWN  # it is proved, but no changed form of it is seen to fail
    assert verdict.reason == "no changed form of the rule was refuted: it may not depend on its right side"
    health = verdict.details["health"]
    assert isinstance(health, dict) and health["condition holds at"] == "a model of bits"


def test_conditions_known_by_laws_only_are_no_witness() -> None:
    """exp is a symbol: a model of its laws is no pair of real numbers."""
    rule = ScalarRule("log", log(exp(x)), x, REALS, condition=exp(x).equals(3))
    verdict = prove_rule(rule)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason == "no values are known that satisfy the condition"


def test_lemmas_are_proved_and_then_used() -> None:
    commutes = ScalarRule("maximum commutes", maximum(x, y), maximum(y, x), BINARY32)
    rule = ScalarRule(
        "inner commutes",
        maximum(sqrt(maximum(x, y)), z),
        maximum(z, sqrt(maximum(y, x))),
        BINARY32,
        interpretation=Interpretation.UNINTERPRETED,
        lemmas=(commutes,),
    )
    assert prove_rule(replace(rule, lemmas=())).status is Status.UNKNOWN
    verdict = prove_rule(rule)
    assert verdict.status is Status.PROVED
    assert verdict.claim.assumptions == ("maximum(x, y) -> maximum(y, x)",)
    assert [o.name for o in verdict.obligations] == [
        "maximum commutes: abstract_float",
        "inner commutes: uninterpreted",
    ]


def test_what_lemmas_assume_is_assumed() -> None:
    lemma = ScalarRule("powers", pow_(x, 2), x * x, REALS)
    assert prove_rule(lemma).status is Status.UNKNOWN  # x^2 is only known for positive x
    inverse = ScalarRule("logarithm", log(exp(x)), x, REALS)
    rule = ScalarRule("twice", log(exp(log(exp(x)))), x, REALS, interpretation=Interpretation.UNINTERPRETED)
    verdict = prove_rule(replace(rule, lemmas=(inverse,)))
    assert verdict.status is Status.PROVED
    assert verdict.claim.assumptions == (
        "log(exp(x)) -> x",
        "exp is positive and strictly increasing, exp 0 = 1, and exp (y + z) = exp y * exp z",
        "exp (log x) = x for x > 0",
    )


def test_solvers_that_disagree_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_cvc5, "check", lambda text, timeout, patience: Answer("sat", 0.0, "cvc5 0"))
    verdict = prove_rule(ScalarRule("commute", x * y, y * x, INT8))
    assert (verdict.status, verdict.reason) == (Status.ERROR, "bits: the solvers disagree")


def test_a_false_lemma_proves_nothing() -> None:
    wrong = ScalarRule("difference commutes", x - y, y - x, BINARY32)
    rule = ScalarRule("rule", x - y, y - x, BINARY32, condition=x < y, lemmas=(wrong,))
    verdict = prove_rule(replace(rule, left=abs_(x - y), right=abs_(y - x)))
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.startswith("the lemma difference commutes is REFUTED: ")
    bound = replace(wrong, condition=x < y)
    with pytest.raises(ValueError) as caught:
        replace(rule, lemmas=(bound,))
    assert str(caught.value) == "the lemma difference commutes of the rule rule must hold without a condition"


def test_a_side_without_a_value() -> None:
    n = variable("n", INT8)
    fits = cast(n, integer(16)) + 1 <= 127
    rule = ScalarRule("increment", n + 1, n - -1, INT8, right_defined=fits)
    verdict = prove_rule(rule)
    assert verdict.status is Status.REFUTED
    assert verdict.reason == "n = 127: -128 vs undefined"
    assert prove_rule(replace(rule, left_defined=fits)).status is Status.PROVED


def test_obligations_go_to_both_solvers_and_to_the_callers_list() -> None:
    discharger = Discharger()
    verdict = prove_rule(ScalarRule("commute", x * y, y * x, INT8), discharger)
    assert [o.name for o in verdict.obligations] == ["commute: bits"] == [o.name for o in discharger.obligations]
    assert {a.solver.split()[0] for a in verdict.obligations[0].answers} == {"z3", "cvc5"}
    assert "; commute: rule (bits)\n; x * y -> y * x\n" in verdict.obligations[0].smtlib


def test_verdicts_are_the_same_every_time() -> None:
    rule = ScalarRule("associate", (x + y) + z, x + (y + z), BINARY32)
    assert prove_rule(rule).reason == prove_rule(rule).reason


@pytest.mark.parametrize(
    ("rule", "count"),
    [
        (ScalarRule("a", x + y, y + x, INT8), 3),
        (ScalarRule("b", x < y, ~(y <= x), INT8), 4),
        (ScalarRule("c", x, constant(3), INT8), 1),
    ],
)
def test_changed_rules_differ_in_one_thing(rule: ScalarRule, count: int) -> None:
    changed = list(mutants(rule))
    assert len(changed) == count
    assert all(m.right is not rule.right and m.left is rule.left for m in changed)


def test_changed_rules_over_the_reals_are_compared_in_binary64() -> None:
    rule = ScalarRule("logarithm", log(exp(x)), x, REALS)
    (negated,) = mutants(rule)
    assert refutes_change(rule, negated, [{"x": Fraction(1)}]) == "x = 1: 1.0 vs -1.0"
    assert refutes_change(rule, negated, [{"x": Fraction(0)}]) is None
    # where the rule's own sides drift apart in binary64, nothing is concluded
    assert refutes_change(rule, negated, [{"x": Fraction(10**6)}]) is None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: ScalarRule("r", x, 3, BINARY32),  # type: ignore[arg-type]
            "right of the rule r must be a scalar term, not 3; a number is written constant(...)",
        ),
        (
            lambda: ScalarRule("r", x, x, BINARY32, condition=True),  # type: ignore[arg-type]
            "condition of the rule r must be a scalar term, not True; a number is written constant(...)",
        ),
        (
            lambda: ScalarRule("r", x, x, "binary32"),  # type: ignore[arg-type]
            "number of the rule r must be a format, such as BINARY32, not 'binary32'",
        ),
        (
            lambda: ScalarRule("r", x < y, x, BINARY32),
            "the sides of the rule r must have one format, not boolean and number; cast one of them",
        ),
        (lambda: ScalarRule("r", x, x, BINARY32, x), "condition of the rule r must be a Boolean, not number"),
        (
            lambda: ScalarRule("r", x, x, NUMBER),
            "the rule r must say which format its numbers have, such as BINARY32 or REALS",
        ),
        (
            lambda: ScalarRule("r", x, x, BINARY32, variable("x", INT8) < 1),
            "the variable x must have one format, not int8 and number",
        ),
    ],
)
def test_bad_rules_are_refused(build: object, message: str) -> None:
    assert callable(build)
    with pytest.raises(TypeError) as caught:
        build()
    assert str(caught.value) == message


def test_ladders_by_number() -> None:
    assert rule_prover.interpretations_of(ScalarRule("r", x, x, INTEGERS)) == (
        Interpretation.UNINTERPRETED,
        Interpretation.INTEGERS,
    )
    assert rule_prover.interpretations_of(ScalarRule("r", x, x, REALS))[-1] is Interpretation.REALS
    assert rule_prover.interpretations_of(ScalarRule("r", x, x, INT8))[-1] is Interpretation.BITS


def test_a_rule_that_nobody_can_read_is_refused() -> None:
    """Parts that are shared make it short for us, and long for everybody else."""
    x = variable("x")
    doubled = x
    for _ in range(60):
        doubled = doubled + doubled
    with pytest.raises(ValueError, match=r"^the rule doubled must have at most 5,000 operations, not [\d,]{20,}$"):
        ScalarRule("doubled", doubled, 2**60 * x, REALS)
