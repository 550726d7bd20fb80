"""Bounds as claims: proved with a derivation that ``check`` replays, and not proved where anything of it is changed."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reports.binding import binding_problems
from reports.certificate import certificate_of, certificate_text, parse_certificate
from rewrites.bounds import bound_runs
from rewrites.bounds.derivations.calculus import Operator
from rewrites.bounds.derivations.names import Written
from rewrites.bounds.kernel import laws
from rewrites.bounds.kernel.formula import constant
from rewrites.bounds.kernel.judgements import Step
from rewrites.claims.names import bound_name
from rewrites.claims.registry import entries
from rewrites.claims.subjects.bounds import BoundSubject
from rewrites.claims.theorems.operators import OPERATORS
from rewrites.mappings.flexasr import claims
from rewrites.targets.flexasr import operators
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger

LINEAR = "FlexASR linear"


def subject(name: str = LINEAR) -> BoundSubject:
    found = entries()[bound_name(name)].build()
    assert isinstance(found, BoundSubject)
    return found


@cache
def certificate_of_linear() -> str:
    verdict = subject().prove(Discharger())
    return certificate_text(certificate_of(subject().semantics(), verdict, {}, "test"))


def certificate() -> dict[str, Any]:
    return parse_certificate(certificate_of_linear(), Path("test"))


@pytest.mark.parametrize("name", OPERATORS)
def test_bounds_are_proved_by_laws_that_both_solvers_prove_and_survive_runs(name: str) -> None:
    verdict = subject(name).prove(Discharger())
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.obligations and all(len(o.answers) == 2 and o.discharged for o in verdict.obligations)
    assert verdict.runs is not None and verdict.runs.count >= 6
    assert verdict.claim.statement.endswith(f"<= {OPERATORS[name].error}")
    derivation = verdict.details["derivation"]
    assert isinstance(derivation, dict) and len(derivation["steps"]) == len(OPERATORS[name].steps)


def test_a_certificate_is_bound_to_its_derivation() -> None:
    assert binding_problems(certificate(), subject()) == []
    steps = certificate()["derivation"]["steps"]
    for number, (law, of, lemmas, names) in enumerate(steps):
        for changed in (
            None,
            ["range", of, lemmas, names],
            [law, [max(n - 1, 1) for n in of], lemmas, names],
            [law, of, ["relu"] if lemmas else [], names],
            [law, of, lemmas, [*names[:-1], "b_h"] if names else []],
        ):
            if changed == [law, of, lemmas, names]:
                continue
            content = certificate()
            content["derivation"]["steps"][number : number + 1] = [changed] if changed else []
            assert binding_problems(content, subject()), (number, changed)


@pytest.mark.parametrize("derivation", [{}, {"steps": {}}, {"steps": [["given"]]}, {"steps": [[1, [], [], []]]},
                                        {"steps": [["given", ["1"], [], []]]}, {"steps": []}])  # fmt: skip
def test_what_is_no_derivation_is_a_problem_not_a_crash(derivation: dict[str, Any]) -> None:
    content = certificate() | {"derivation": derivation}
    (problem,) = binding_problems(content, subject())
    assert problem.startswith("the obligations of the claim cannot be generated: the kernel does not accept")


def test_a_derivation_has_nothing_beside_its_steps() -> None:
    content = certificate()
    content["derivation"]["note"] = "by hand"
    (problem,) = binding_problems(content, subject())
    assert problem.endswith("a derivation must be steps alone, each with law, steps, lemmas and names")


def test_a_law_that_is_missing_is_a_problem() -> None:
    content = certificate()
    content["obligations"] = [o for o in content["obligations"] if o["name"] != "round down"]
    assert binding_problems(content, subject()) == ["numerics: round down: this obligation is missing"]


def test_a_proof_whose_bound_is_too_small_is_an_error_with_data_that_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Operator.bound

    def smaller(operator: Operator, values: Any) -> Any:
        found = right(operator, values)
        return replace(found, value=None if found.value is None else found.value / 64)

    monkeypatch.setattr(Operator, "bound", smaller)
    verdict = subject().prove(Discharger())
    assert verdict.status is Status.ERROR
    refutation = subject().refutation(verdict)
    assert refutation is not None and "not within" in refutation.summary
    again = subject().replayed(refutation.document)
    assert again is not None and again.summary == refutation.summary
    monkeypatch.undo()
    assert subject().replayed(refutation.document) is None
    content = json.loads(refutation.document)
    del content["words"]["b"]
    with pytest.raises(ValueError, match=r"^data of a bound: words must be of the leaves with forms$"):
        subject().replayed(json.dumps(content))


OUTSIDE: dict[str, tuple[str, tuple[str | int, ...], Any, str]] = {
    "a real that is not its word's": (
        "VTA sum", ("reals", "a", 0, 1), "1/4", "a must be within 0 of its word's 28, not 1/4",
    ),
    "a float": ("VTA sum", ("reals", "a", 0, 1), "float inf", "a must have fractions as real values, not inf"),
    "a word that is too wide": (
        "VTA sum", ("words", "a", 0, 1), 1 << 32, "a must have words of the form accumulator, not 4294967296",
    ),
    "a truth value for a word": (
        "VTA sum", ("words", "a", 0, 1), True, "a must have words of the form accumulator, not True",
    ),
    "a weight of more than a byte": (
        "HLSCNN conv2d, weights of 8 bits", ("words", "w[t,c]", 0, 1), 255,
        "w[t,c] must have words of the form byte weight, not 255",
    ),
    "a state above 1": (
        "FlexASR RNN step", ("reals", "h[j]", 0, 1), "5/4", "h[j] must be at most 1 in magnitude, not 5/4",
    ),
    "a summand that is too large": (
        "FlexASR layer norm", ("reals", "epsilon", 0, 1), "1/2",
        "epsilon must be at most 1/99999 in magnitude, not 1/2",
    ),
    "a bias below 0": ("FlexASR linear", ("biases", "b_w"), -5, "the bias b_w must be an integer below 8, not -5"),
    "a bias as text": ("FlexASR linear", ("biases", "b_w"), "1", "the bias b_w must be an integer below 8, not '1'"),
    "no biases": ("FlexASR linear", ("biases",), {}, "biases must be b_b, b_w, b_x, b_y"),
    "seven channels": ("HLSCNN conv2d, weights of 8 bits", ("extents", "c"), 7, "the extent of c must be 8, not 7"),
    "no taps": (
        "HLSCNN conv2d, weights of 8 bits", ("extents", "t"), 0, "the extent of t must be a positive integer, not 0",
    ),
    "an index of no leaf": ("FlexASR linear", ("extents", "k"), 1, "extents must be of the bound's indices"),
    "inputs that are missing": (
        "FlexASR linear", ("words", "x[i]"), [],
        "x[i] must have a value at every index below its extents, and no others",
    ),
    "reals of no leaf": ("FlexASR linear", ("reals", "z"), [], "reals must be of the leaves"),
}  # fmt: skip


@pytest.mark.parametrize("what", OUTSIDE)
def test_data_outside_of_a_bound_are_refused(what: str) -> None:
    name, (*path, last), value, message = OUTSIDE[what]
    data = bound_runs._drawn(OPERATORS[name].theorem, Random(0), 0)
    content = json.loads(subject(name)._shown(data, "").document)
    place = content
    for key in path:
        place = place[key]
    place[last] = value
    with pytest.raises(ValueError) as caught:
        subject(name).replayed(json.dumps(content))
    assert str(caught.value) == f"data of a bound: {message}"


def test_a_shift_by_a_negative_number_is_outside_of_a_bound() -> None:
    theorem = OPERATORS["VTA shift"].theorem
    data = bound_runs._drawn(theorem, Random(0), 0)
    data.words["by"], data.reals["by"] = {(): 0xFFFF_FFFF}, {(): Fraction(-1)}
    with pytest.raises(ValueError, match=r"^data of a bound: by must be at least 0$"):
        bound_runs.require_data(theorem, data)


@pytest.mark.parametrize("index", ["0", ["0"], [True], None])
def test_an_index_that_is_none_is_refused(index: Any) -> None:
    data = bound_runs._drawn(OPERATORS["VTA sum"].theorem, Random(0), 0)
    content = json.loads(subject("VTA sum")._shown(data, "").document)
    content["words"]["a"][0][0] = index
    with pytest.raises(ValueError, match=r"^an index of data of a counterexample must be a list of integers$"):
        subject("VTA sum").replayed(json.dumps(content))


def test_ranges_are_those_of_all_gates() -> None:
    """A gate's weights are like the first one's, ranges included: large ones do not contradict the bound."""
    theorem = OPERATORS["FlexASR LSTM step, cell state"].theorem
    data = bound_runs._drawn(theorem, Random(0), 0)
    for leaf, (form, bias, *_) in theorem.leaves.items():
        large = leaf in ("wi[i]", "wf[i]", "x[i]")
        data.words[leaf] = dict.fromkeys(data.words[leaf], 0x7F if large else 0)
        real = bound_runs.number(0x7F if large else 0, form, data.biases[bias])
        data.reals[leaf] = dict.fromkeys(data.reals[leaf], real)
    bound_runs.require_data(theorem, data)
    found = bound_runs._measured(theorem, data)
    assert found["S"] == found["W"] * found["X"] > 0


def test_a_bound_whose_conditions_no_data_meet_is_not_proved() -> None:
    word = Step("given", names=("y[i]", "fixed", "Y", "0", ""))
    large = replace(word, names=("z[i]", "fixed", "40", "0", ""))
    steps = (word, large, Step("sum", (1, 2)), Step("lemma", (3,), ("sum",)))
    operator = Operator("never", "", {"Y": ""}, lambda: Written(steps), {})
    verdict = BoundSubject("bound-never", operator).prove(Discharger())
    assert (verdict.status, verdict.reason) == (Status.UNKNOWN, "no data that were tried meet the conditions")
    assert verdict.claim.size_domain == "Y + 40 < 32"


def test_a_bound_says_how_many_terms_a_sum_has() -> None:
    assert "values of i: I" in subject().claim({}).assumptions
    word = Step("given", names=("y[i]", "fixed", "Y", "e", ""))
    operator = Operator(
        "sum", "", {"Y": "", "e": ""}, lambda: Written((word, Step("repeated sum", (1,), ("sum",), ("i", "1")))), {}
    )
    claim = BoundSubject("bound-sum", operator).claim({})
    assert claim.statement == "|eadd over(i, y[i]) - sum(i, y[i])| <= e"
    assert "values of i: 1" in claim.assumptions


def test_a_law_that_is_wrong_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "of_rounding", lambda u, e: e)
    steps = OPERATORS[LINEAR].steps
    operator = replace(OPERATORS[LINEAR], derivation=lambda: Written(steps))
    verdict = BoundSubject("bound-wrong", operator).prove(Discharger(timeout=5))
    assert verdict.status is Status.UNKNOWN
    assert "round down" in verdict.reason


def test_what_is_not_proved_is_not_compiled_with() -> None:
    assert operators.LINEAR.bound_claims(claims.LINEAR["none"])[0] == bound_name(LINEAR)
    assert OPERATORS[LINEAR].error != constant(0)
    assert bound_runs.RUNS >= 10
