"""PROVED survives concrete runs: with a prover that believes everything, no wrong claim of any kind is PROVED."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pysmt.shortcuts as smt
import pytest
from pysmt.typing import REAL

import chc.scalar_rules.prove
import rewrites.bounds.lemmas.lemma
from accel_models.vta.assembly import assemble
from accel_models.vta.program import Program
from chc.scalar_rules.rule import ScalarRule
from chc.tensor_rules.rule import Kind, TensorRule
from chc.token_order.family import DOUBLE
from chc.token_order.program import prove_program
from chc.token_order.replay import Counterexample
from ila_lang import Expr, bv, ite, primitive
from ilaverify import refutations
from ilaverify.cli import main
from ir_semantics.scalars.formats import integer
from ir_semantics.scalars.terms import apply, constant, variable
from ir_semantics.tensors.index import size
from ir_semantics.tensors.operators import slice_
from ir_semantics.tensors.terms import input_
from reports.subjects import Refutation, Subject
from rewrites.bounds.lemmas.lemma import Every, Lemma, Statement, Words, blocks
from rewrites.bounds.lemmas.real_rules import RealRule
from rewrites.claims.subjects.mapping import MappingSubject
from rewrites.claims.subjects.numerics import ErrorRuleSubject, LemmaSubject
from rewrites.claims.subjects.scalar import ScalarSubject
from rewrites.claims.subjects.tensor import TensorSubject
from rewrites.claims.subjects.tokens import TokenSubject
from rewrites.claims.verify import verify
from smt_encodings.claims import Answer, Obligation, Status, Verdict, conclude
from smt_encodings.discharge import Discharger
from tests.chc.mapping import toy


@pytest.fixture
def believing(monkeypatch: pytest.MonkeyPatch) -> Discharger:
    """A discharger that gets the expected answer to everything, and searches for counterexamples that find nothing."""

    def answers(self: Discharger, obligation: Obligation, timeout: float, patience: float = 1.0) -> Obligation:
        expected = tuple(Answer(obligation.expected, 0.0, solver) for solver in ("z3 x", "cvc5 x"))
        return replace(obligation, answers=expected)

    monkeypatch.setattr(Discharger, "_answers", answers)
    monkeypatch.setattr(Discharger, "ask_in_background", lambda self, obligation: self.ask_text(obligation) and None)
    return Discharger()


def error(verdict: Verdict) -> None:
    assert verdict.status is Status.ERROR, (verdict.status, verdict.reason)
    assert verdict.reason.startswith("every obligation was discharged, and yet a run shows a difference")
    assert verdict.runs is not None and verdict.runs.count >= 1 and verdict.runs.difference is not None
    assert all(o.discharged for o in verdict.obligations)


def replays(subject: Subject, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The verdict is an ERROR, and what it leaves replays through the command that is named; its document."""
    error(verdict)
    found = subject.refutation(verdict)
    assert isinstance(found, Refutation)
    monkeypatch.setattr(refutations, "find_subject", lambda name: subject)
    written = refutations.write_refutation(found, subject.name, tmp_path)
    data = next(path for path in written if refutations.is_counterexample(path))
    assert main(["check", str(data)]) == 0
    content: dict[str, Any] = json.loads(data.read_text())
    return content


# -- mappings -------------------------------------------------------------------------------------------------


def one_more(k: Any, s: Any) -> None:
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j) + 1)


def test_a_wrong_mapping(believing: Discharger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    claim = toy.mapping(toy.copy_body, one_more)
    assert verify(claim, "chc").status is Status.REFUTED  # by runs before the proof
    verdict = verify(claim, "bmc", shape=(2, 3))
    content = replays(MappingSubject(claim), verdict, tmp_path, monkeypatch)
    assert content["mapping"] == claim.name
    assert "the sides differ, replayed" in capsys.readouterr().out


def test_a_wrong_mapping_on_the_command_line(believing: Discharger, tmp_path: Path, capsys: Any) -> None:
    """The false claim of the catalogue: exit code 2, and the command that replays the file that is written."""
    assert main(["mapping", "flexasr_maxpool_select", "--shape", "2x16", "-o", str(tmp_path / "my proofs")]) == 2
    out = capsys.readouterr().out
    data = tmp_path / "my proofs" / "flexasr_maxpool_select.counterexample-data.json"
    assert f"replay    ilaverify check '{data}'\n" in out and "the last one differs" in out
    assert main(["check", str(data)]) == 0
    assert "output element" in capsys.readouterr().out


def test_without_a_directory_the_run_is_written_all_the_same(believing: Discharger, capsys: Any) -> None:
    assert main(["mapping", "flexasr_maxpool_select", "--shape", "2x16", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "ERROR" and told["runs"]["count"] >= 1
    (data,) = (Path(p) for p in told["written"] if p.endswith("counterexample-data.json"))
    assert main(["check", str(data)]) == 0
    for path in told["written"]:
        Path(path).unlink()
    data.parent.rmdir()


# -- rules ----------------------------------------------------------------------------------------------------


def test_a_wrong_rule_on_scalars(believing: Discharger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = variable("x", integer(32))
    rule = ScalarRule(
        "wrong at the sign bit alone", apply("maximum", x, constant(1 - 2**31, integer(32))), x, integer(32)
    )
    monkeypatch.setattr(chc.scalar_rules.prove, "find_counterexample", lambda *_: None)
    subject = ScalarSubject("wrong", rule)
    content = replays(subject, subject.prove(believing), tmp_path, monkeypatch)
    assert content["values"] == {"x": -(2**31)}


def test_a_wrong_rule_on_tensors(believing: Discharger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong from 40 elements on, at sizes that no search over small ones sees: the corners around 40 show it."""
    n = size("n")
    x = input_("x", n + n // 40)
    left, right = slice_(x, [0], [n]), slice_(x, [n // 40], [n + n // 40])
    subject = TensorSubject("wrong", TensorRule("wrong", left, right, kind=Kind.WRONG))
    content = replays(subject, subject.prove(believing), tmp_path, monkeypatch)
    assert content["sizes"]["n"] >= 40


# -- lemmas and bounds ----------------------------------------------------------------------------------------


@primitive(bv(16), a=bv(16))
def rounded(a: Expr) -> Expr:
    """One too large at the sign bit alone."""
    return ite(a == 0x8000, a + 1, a)


def test_a_wrong_lemma_by_two_solvers(believing: Discharger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (a,) = rounded.params
    statement = Statement((a,), (), rounded(a) == a)
    subject = LemmaSubject("wrong", Lemma("wrong", rounded, "the result is a", "every a", lambda _: statement))
    content = replays(subject, subject.prove(believing), tmp_path, monkeypatch)
    assert content["operands"] == {a.name: 0x8000}


def test_a_wrong_lemma_on_every_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The enumeration is what is broken: it believes that no argument is off."""

    def off(result: Words, a: Words) -> tuple[Words, Words]:
        return np.abs(result - a), np.zeros_like(a)

    every = Every(lambda: blocks(0, 1 << 16), off)
    subject = LemmaSubject("wrong", Lemma("wrong", rounded, "the result is a", "every a", lambda _: every))
    assert subject.prove(Discharger()).status is Status.REFUTED
    monkeypatch.setattr(rewrites.bounds.lemmas.lemma, "_enumerate", lambda *_: conclude((), "a broken enumeration"))
    monkeypatch.setattr(Verdict, "__post_init__", lambda _: None)
    content = replays(subject, subject.prove(Discharger()), tmp_path, monkeypatch)
    assert content["operands"] == {"a": 0x8000}


def test_a_wrong_rule_of_errors(believing: Discharger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build() -> tuple[list[Any], Any]:
        a, b = smt.Symbol("a", REAL), smt.Symbol("b", REAL)
        return [smt.LE(a, b)], smt.LE(smt.Times(a, a), smt.Times(b, b))

    subject = ErrorRuleSubject("wrong", RealRule("squares", "a^2 <= b^2 where a <= b", build))
    content = replays(subject, subject.prove(believing), tmp_path, monkeypatch)
    a, b = (Fraction(str(content["operands"][n])) for n in "ab")
    assert a <= b and a * a > b * b


# -- token order ----------------------------------------------------------------------------------------------


def test_wrong_tokens(believing: Discharger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = TokenSubject("wrong", replace(DOUBLE, finish=0, store_pushes=DOUBLE.store_pushes[:1]))
    content = replays(subject, subject.prove(believing), tmp_path, monkeypatch)
    assert set(content["product"]) == {"blocks", "rounds", "bias", "schedule", "contents"}


def test_a_program_with_a_race(believing: Discharger) -> None:
    """The second ALU instruction does not wait for the STORE of what the first one left."""
    alu = "alu.add uops=0:1 imm=3"
    text = f"{alu} push=g2s\nstore dram=512 size=1x1 pop=g2s push=s2g\n{alu}\nfinish pop=s2g"
    program = Program((), tuple(assemble(text)))
    verdict = prove_program(program, discharger=believing)
    error(verdict)
    assert isinstance(verdict.details["counterexample"], Counterexample)
