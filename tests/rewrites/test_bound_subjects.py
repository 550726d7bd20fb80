"""Bounds as claims: proved with a derivation that ``check`` replays, and not proved where anything of it is changed."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reports.binding import binding_problems
from reports.certificate import certificate_of, certificate_text, parse_certificate
from rewrites.codegen import bound_claims
from rewrites.numerics import bound_runs, laws
from rewrites.numerics.calculus import Operator
from rewrites.numerics.catalogue import OPERATORS
from rewrites.numerics.formula import constant
from rewrites.subjects.bounds import BoundSubject
from rewrites.subjects.names import bound_name
from rewrites.subjects.registry import entries
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
    with pytest.raises(ValueError, match=r"^a counterexample to bound-flexasr-linear must have the data of its leaves"):
        subject().replayed(json.dumps(content))


def test_a_law_that_is_wrong_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "of_rounding", lambda u, e: e)
    steps = OPERATORS[LINEAR].steps
    operator = replace(OPERATORS[LINEAR], steps=(*steps,))
    verdict = BoundSubject("bound-wrong", operator).prove(Discharger(timeout=5))
    assert verdict.status is Status.UNKNOWN
    assert "round down" in verdict.reason


def test_what_is_not_proved_is_not_compiled_with() -> None:
    assert bound_claims("flexasr_linear")[0] == bound_name(LINEAR)
    assert OPERATORS[LINEAR].error != constant(0)
    assert bound_runs.RUNS >= 10
