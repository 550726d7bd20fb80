"""Under "auto" bounded proofs report both tries: what each of them said, and its seconds."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bmc.prove import prove
from ila_lang import Expr, Function, Kernel, bv, uninterpreted
from ila_lang.mapping import TensorMapping
from ilaverify.text import show_verdict, verdict_json
from smt_encodings.claims import Interpretation, Status
from smt_encodings.discharge import Discharger
from smt_encodings.solvers import z3 as solver_z3
from tests.chc.mapping.toy import Body, mapping, scaled

STEP, OTHER = scaled("step", lambda x: x + x), scaled("other", lambda x: x * 2)
MYSTERY = uninterpreted("mystery", bv(8), x=bv(8))
FAILS = f"obligation 'class 0 of 1' (elements) needs the answer unsat; {solver_z3.version()}: sat"


def claim(*functions: Function) -> TensorMapping:
    def applied(function: Function) -> Body:
        def body(k: Kernel, s: Mapping[str, Expr]) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                k.store(s["dst"], i * s["m"] + j, function(k.load("word", s["src"], i * s["m"] + j)))

        return body

    return mapping(*map(applied, functions), abstract=frozenset(f.name for f in functions))


def test_both_tries_of_auto_are_reported() -> None:
    verdict = prove(claim(STEP, OTHER), (3, 2))
    assert verdict.status is Status.PROVED and verdict.reason == ""
    tries = verdict.details["tries"]
    assert [(t.data, t.reason) for t in tries] == [  # type: ignore[attr-defined]
        (Interpretation.UNINTERPRETED, FAILS),
        (Interpretation.BITS, "all obligations were discharged"),
    ]
    assert all(0 <= t.seconds <= verdict.seconds for t in tries)  # type: ignore[attr-defined]
    shown = show_verdict(verdict)
    assert "  tried     uninterpreted functions (any that satisfy the lemmas), 0." in shown
    assert "  tried     closed forms, bit by bit, 0." in shown
    told = verdict_json(verdict)["tries"]
    assert [(t["data"], t["said"]) for t in told] == [
        ("uninterpreted", FAILS),
        ("bits", "all obligations were discharged"),
    ]


def test_the_reason_of_unknown_has_what_both_tries_said() -> None:
    verdict = prove(claim(STEP, MYSTERY), (3, 2))
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason == f"with functions uninterpreted, {FAILS}; bit by bit, {FAILS}"


@pytest.mark.parametrize("data", ["uninterpreted", "bits"])
def test_one_try_has_its_reason_alone(data: str) -> None:
    verdict = prove(claim(STEP, MYSTERY), (3, 2), data=data, discharger=Discharger(second=False))  # type: ignore[arg-type]
    assert verdict.reason == FAILS and "tries" not in verdict.details
    assert prove(claim(MYSTERY, MYSTERY), (3, 2)).details.get("tries") is None


def test_uninterpreted_functions_are_allowed_in_mappings() -> None:
    from rewrites.claims.verify import verify

    for method, shape in (("chc", None), ("bmc", (3, 2))):
        verdict = verify(claim(MYSTERY, MYSTERY), method, shape=shape)
        assert verdict.status is Status.PROVED and verdict.runs is not None
        assert verdict.runs.notes == (
            "not run: Function mystery must have a body to be run; give it one or run another model",
        )
        assert verify(claim(MYSTERY, STEP), method, shape=shape).status is Status.UNKNOWN
