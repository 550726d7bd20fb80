"""What verdicts say of concrete runs, and tensor rules of their sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from chc.scalar_rules.prove import prove_rule
from chc.scalar_rules.rule import ScalarRule
from chc.tensor_rules.rule import TensorRule
from ila_lang import Expr, Kernel, const
from ilaverify import cli
from ilaverify.text import runs_text, show_verdict, verdict_json
from ir_semantics.scalars.formats import REALS
from ir_semantics.scalars.terms import variable
from ir_semantics.tensors.evaluate import IllFormed, evaluate
from ir_semantics.tensors.operators import slice_
from ir_semantics.tensors.terms import input_
from rewrites.claims.verify import verify
from rewrites.rules.tensor.words import sizes
from smt_encodings.claims import Answer, Obligation, Runs, Status
from tests.chc.mapping.toy import mapping


def test_one_point_is_singular() -> None:
    assert runs_text(Runs(27, ("n = 1",))) == "27 concrete runs of both sides at 1 point: all agree"
    assert runs_text(Runs(1, ("n = 1", "n = 2"))) == "1 concrete run of both sides at 2 points: all agree"
    assert runs_text(Runs(0, ())) == "no concrete run was possible"


def test_where_nothing_ran_no_points_are_listed() -> None:
    x = variable("x")
    verdict = prove_rule(ScalarRule("test", x + x, 2 * x, REALS))
    verdict.runs = Runs(0, (), ("there is no exact value",))
    lines = show_verdict(verdict).splitlines()
    at = lines.index("no concrete run was possible, 0.0 s")
    assert lines[at + 1] == "  there is no exact value"


def test_a_lemma_that_one_solver_answered_is_not_told_as_proved() -> None:
    x = variable("x")
    verdict = prove_rule(ScalarRule("test", x + x, 2 * x, REALS))
    z3, cvc5 = (Answer("unsat", 0.0, solver) for solver in ("z3 1", "cvc5 1"))
    lemma = Obligation("sums are sums", "lemmas", "(check-sat)", "unsat", "m")
    verdict.obligations = [replace(lemma, answers=(z3, cvc5)), replace(lemma, answers=(z3,)), lemma]
    verdict.status = Status.UNKNOWN
    assert [line for line in show_verdict(verdict).splitlines() if line.startswith("  lemma:")] == [
        "  lemma: sums are sums (proved above for all operand codes)",
        "  lemma: sums are sums (by z3 1 alone; the other solver was not waited for)",
        "  lemma: sums are sums (NOT PROVED)",
    ]


def test_mutants_of_what_cannot_be_changed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["prove", "--kind", "theorem", "--mutants", "3"]) == 64
    assert capsys.readouterr().err == (
        "ilaverify: --mutants must have a mapping or a rule to change; none of these claims is one\n"
    )


def test_sizes_of_tensor_rules_read_like_mathematics() -> None:
    m, n = sizes("m n")
    x = input_("x", m, n)
    rule = TensorRule("t", slice_(x, [0, 0], [m // 2, n]), slice_(x, [0, 0], [m // 2, n]))
    assert rule.size_domain == "all natural numbers m, n; x[m, n]; floor(m/2) <= m"
    assert TensorRule("t", x, x).size_domain == "all natural numbers m, n; x[m, n]"


def test_an_operator_that_does_not_fit_names_the_sizes() -> None:
    m, n = sizes("m n")
    at = {"m": 2, "n": 3}
    data = {"x": np.zeros((2, 3), dtype=object)}
    with pytest.raises(IllFormed) as wrong:
        evaluate(slice_(input_("x", m, n), [0, 0], [m + 1, n]), at, data)
    assert str(wrong.value) == "slice does not fit its operands at m = 2, n = 3"
    with pytest.raises(IllFormed) as other:
        evaluate(slice_(input_("x", m, n), [0, 0], [n, n]), at, data)
    assert str(other.value) == "slice needs 0 <= n and n <= m, which is false at m = 2, n = 3"


@pytest.mark.parametrize(
    ("read", "line", "cells"),
    [
        (
            lambda s: s["k"],
            "  initial state (device): k = 0x01",
            [{"side": "device", "name": "k", "address": None, "value": 1}],
        ),
        (
            lambda s: s["tmp"].load(const(3, 32)),
            "  initial state (device): tmp[3] = 0x01",
            [{"side": "device", "name": "tmp", "address": 3, "value": 1}],
        ),
    ],
)
def test_a_refutation_shows_the_initial_state_that_it_rests_on(read: Any, line: str, cells: list[Any]) -> None:
    def stale(kernel: Kernel, s: Mapping[str, Expr]) -> None:
        with kernel.loop("i", s["n"]) as i, kernel.loop("j", s["m"]) as j:
            at = i * s["m"] + j
            kernel.store(s["dst"], at, kernel.load("word", s["src"], at) + read(s))

    verdict = verify(mapping(stale, extra=[("k", 8)]))
    assert verdict.status is Status.REFUTED
    shown = show_verdict(verdict).splitlines()
    assert [text for text in shown if text.startswith("  initial state")] == [line]
    assert verdict_json(verdict)["counterexample"]["initial"] == cells


def test_long_names_of_obligations_end_at_a_word() -> None:
    verdict = prove_rule(ScalarRule("test", variable("x"), variable("x"), REALS))
    group = "row_pairs add_pairs: row_pairs.w with row_pairs.lane with row_pairs.x"
    verdict.obligations = [Obligation("o", group, "(check-sat)", "unsat", "m", (Answer("unsat", 0.0, "z3 1"),) * 2)]
    assert "  row_pairs add_pairs: row_pairs.w with row_pairs.lane with ... (1 of 1) " in show_verdict(verdict)


def test_none_is_said_of_assumptions_only_where_there_is_no_lemma_either() -> None:
    verdict = prove_rule(ScalarRule("test", variable("x"), variable("x"), REALS))
    assert "assumptions\n  none\n" in show_verdict(verdict)
    verdict.obligations = [Obligation("sums agree", "lemmas", "(check-sat)", "unsat", "m")]
    assert "assumptions\n  lemma: sums agree (NOT PROVED)\n" in show_verdict(verdict)
