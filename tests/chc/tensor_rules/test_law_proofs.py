"""The laws of the kernel hold, each for a reason: solvers, an exhaustive model, or an axiom with its source."""

from __future__ import annotations

import pytest

from chc.tensor_rules.kernel.laws import LAWS
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3
from tests.chc.tensor_rules.law_proofs import GIVEN, MODELS, PAGE, PROOFS, Proof, counterexamples, page

SOLVERS = solver_z3, solver_cvc5
NAMED = [pytest.param(p, id=f"{p.law}, {p.about}") for p in PROOFS]


@pytest.mark.parametrize("proof", NAMED)
def test_both_solvers_prove_it_and_the_evaluator_agrees(proof: Proof) -> None:
    assert [s.check(proof.script(proof.given), 20.0).status for s in SOLVERS] == ["unsat", "unsat"]
    assert list(counterexamples(proof, proof.given)) == []


@pytest.mark.parametrize("proof", [p for p in NAMED if p.values[0].broken is not None])  # type: ignore[union-attr]
def test_without_its_condition_it_is_false(proof: Proof) -> None:
    point = next(counterexamples(proof, proof.twin))
    assert [s.check(proof.script(proof.twin, point), 20.0).status for s in SOLVERS] == ["sat", "sat"]


@pytest.mark.parametrize("law", MODELS)
def test_a_model_has_no_counterexample_but_its_twin_has(law: str) -> None:
    model, condition, _ = MODELS[law]
    assert list(model()) == []
    assert next(model(**{condition: False}))


def test_every_law_has_a_reason_and_the_page_says_it() -> None:
    assert LAWS.keys() <= {p.law for p in PROOFS} | MODELS.keys() | GIVEN.keys()
    assert PAGE.read_text(encoding="utf-8") == page()
