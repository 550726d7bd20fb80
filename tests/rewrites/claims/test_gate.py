"""The gate, attacked: what is missing, damaged, stale, of something else, or known to be wrong does not pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ir_semantics.scalars.terms import is_finite, variable
from reports.certificate import certificate_name, certificate_of, certificate_text, content_digest, questions_digest
from reports.store import CERTIFICATE, ProofStore, key_of
from reports.subjects import Entry, Subject
from rewrites.claims.gate import open_gate
from rewrites.claims.registry import entries
from rewrites.claims.subjects.scalar import ScalarSubject
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger

pytestmark = pytest.mark.proof

NAMES = ("f3-repaired", "relu-commutes-with-max-pooling", "lemma-maximum")
ENTRIES = {name: entries()[name] for name in NAMES}


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the certificates of three claims."""
    directory = tmp_path_factory.mktemp("proofs")
    for name, entry in ENTRIES.items():
        subject = entry.build()
        verdict = subject.prove(Discharger())
        content = certificate_of(subject.semantics(), verdict, subject.parameters(verdict), TOOL)
        (directory / certificate_name(name, subject.method)).write_text(certificate_text(content))
    return directory


@pytest.fixture
def directory(proofs: Path, tmp_path: Path) -> Path:
    for path in proofs.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def file_of(directory: Path, name: str) -> Path:
    return directory / certificate_name(name, ENTRIES[name].build().method)


PROVER = {"tool": "1", "method": "0123", "solvers": "z3 1, cvc5 1", "pysmt": "1"}
TOOL = "ilaverify 1, method 0123"


def prover(subject: Subject) -> dict[str, str]:
    return PROVER


def test_a_certificate_of_another_prover_is_left_out_unless_it_is_checked_again(directory: Path) -> None:
    told: list[str] = []
    assert tuple(open_gate(ENTRIES, directory, prover=prover, looking=told.append).admitted) == NAMES
    assert told == [*NAMES]
    other = {**PROVER, "method": "4567"}
    gate = open_gate(ENTRIES, directory, prover=lambda subject: other)
    assert not gate.admitted
    assert set(gate.left_out.values()) == {
        "its certificate does not count: it is of another prover (ilaverify 1, method 0123, not ilaverify 1, method "
        "4567); prove it again, or use --recheck"
    }
    assert tuple(open_gate(ENTRIES, directory, ("cvc5",), prover=lambda subject: other).admitted) == NAMES


def test_live_certificates_pass(directory: Path) -> None:
    for recheck in ((), ("cvc5",), ("z3", "cvc5")):
        gate = open_gate(ENTRIES, directory, recheck)
        assert tuple(gate.admitted) == NAMES and gate.lines() == ["3 admitted, 0 left out"]
    for name, admission in gate.admitted.items():
        assert admission.digest == json.loads(file_of(directory, name).read_text())["digest"]
        assert admission.claim.subject == name


def test_nothing_passes_without_certificates(tmp_path: Path) -> None:
    gate = open_gate(ENTRIES, tmp_path / "none")
    assert not gate.admitted and gate.left_out["f3-repaired"] == (
        "there is no certificate (f3-repaired.rule.cert.json); prove it with ilaverify prove f3-repaired -o "
        f"{tmp_path / 'none'}"
    )


def test_advice_is_a_command_as_a_shell_takes_it() -> None:
    assert open_gate(ENTRIES, Path("no thing")).left_out["f3-repaired"] == (
        "there is no certificate (f3-repaired.rule.cert.json); prove it with ilaverify prove f3-repaired -o 'no thing'"
    )


def test_advice_names_the_modules_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ila_lang.extensions._modules", [ModuleType("mynpu.target"), ModuleType("my_rules")])
    assert open_gate(ENTRIES, tmp_path).left_out["f3-repaired"] == (
        "there is no certificate (f3-repaired.rule.cert.json); prove it with ilaverify prove --module mynpu.target "
        f"--module my_rules f3-repaired -o {tmp_path}"
    )


def resealed(text: str, change: Callable[[dict[str, Any]], None]) -> str:
    content = json.loads(text)
    change(content)
    return certificate_text({**content, "digest": content_digest(content)})


def answers(content: dict[str, Any], **parts: Any) -> None:
    for obligation in content["obligations"]:
        for answer in obligation["answers"]:
            answer.update(parts)


ATTACKS: dict[str, tuple[Callable[[str], str], str]] = {
    "cut": (lambda t: t[:-20], "must be JSON text"),
    "a byte": (lambda t: t.replace("is_finite", "is_finitf", 1), "the digest must match the content"),
    "spaces": (lambda t: json.dumps(json.loads(t)), "must be in canonical form"),
    "another claim": (lambda t: resealed(t, lambda c: c["claim"].update(size_domain="x")), "its claim must be that"),
    "other semantics": (lambda t: resealed(t, lambda c: c["semantics"].update(rule="0")), "its semantics must be that"),
    "other operators": (
        lambda t: resealed(t, lambda c: c["semantics"].update(operators="0" * 64)), "its semantics must be that",
    ),
    "another method": (lambda t: resealed(t, lambda c: c.update(method="chc")), "its method must be that"),
    "no parameters": (lambda t: resealed(t, lambda c: c.update(parameters={})), "must name its interpretation"),
    "an answer": (lambda t: resealed(t, lambda c: answers(c, status="unknown")), "an answer is not the expected one"),
    "one solver": (lambda t: resealed(t, lambda c: answers(c, solver="z3")), "2 solvers must have answered"),
    "an old format": (
        lambda t: resealed(t, lambda c: c.update(schema="ilaverify-certificate-1")), "schema must be",
    ),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_bad_certificate_leaves_its_rule_out_and_no_other(attack: str, directory: Path) -> None:
    change, reason = ATTACKS[attack]
    path = file_of(directory, "f3-repaired")
    path.write_text(change(path.read_text()))
    gate = open_gate(ENTRIES, directory)
    assert tuple(gate.admitted) == NAMES[1:] and list(gate.left_out) == ["f3-repaired"]
    assert reason in gate.left_out["f3-repaired"], gate.left_out


def test_the_certificate_of_another_claim_does_not_count(directory: Path) -> None:
    other = entries()["f1-repaired-1"].build()
    verdict = other.prove(Discharger())
    content = certificate_of(other.semantics(), verdict, other.parameters(verdict), "test")
    file_of(directory, "f3-repaired").write_text(certificate_text(content))
    assert "f3-repaired" in open_gate(ENTRIES, directory).left_out


def test_a_changed_rule_makes_its_certificate_stale(directory: Path) -> None:
    honest = ENTRIES["f3-repaired"].build()
    assert isinstance(honest, ScalarSubject)
    x = variable("x")
    for changed in (replace(honest.rule, condition=is_finite(x) & (x < 1)), replace(honest.rule, zero_signs=False)):
        stale = Entry("changed", partial(ScalarSubject, "f3-repaired", changed), "rule")
        gate = open_gate({"f3-repaired": stale}, directory)
        assert not gate.admitted and "does not count" in gate.left_out["f3-repaired"]


RULE, LEMMA = "relu-commutes-with-max-pooling", "lemma-maximum"
TRIVIAL = "(set-logic ALL)\n(assert false)\n(check-sat)\n"


def obligations_of(name: str) -> list[dict[str, Any]]:
    """Those of a certificate of another claim, with their answers."""
    subject = entries()[name].build()
    verdict = subject.prove(Discharger())
    content = certificate_of(subject.semantics(), verdict, subject.parameters(verdict), TOOL)
    return list(content["obligations"])


FORGERIES: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "obligations of another rule": (RULE, lambda c: c.update(obligations=obligations_of("f3-repaired"))),
    "all obligations but one removed": (RULE, lambda c: c.update(obligations=c["obligations"][:1])),
    "a trivial obligation": ("f3-repaired", lambda c: c["obligations"][0].update(smtlib=TRIVIAL)),
    "an enumeration over one argument": (LEMMA, lambda c: c["enumerations"][0].update(arguments=1)),
    "an enumeration replaced by obligations": (
        LEMMA, lambda c: c.update(enumerations=[], obligations=obligations_of("f3-repaired")),
    ),
}  # fmt: skip
"""Certificates with all digests right, whose answers solvers would give again: only what they ask is wrong."""


@pytest.fixture(scope="module")
def store(proofs: Path, tmp_path_factory: pytest.TempPathFactory) -> ProofStore:
    """A store that knows the proofs, as ``prove`` leaves it."""
    found = ProofStore(tmp_path_factory.mktemp("store") / "proofs.sqlite3")
    for name, entry in ENTRIES.items():
        subject = entry.build()
        text = (proofs / certificate_name(name, subject.method)).read_text()
        questions = questions_digest(json.loads(text))
        found.put(key_of(subject, PROVER), CERTIFICATE, name, text, questions)
    return found


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_is_left_out_where_the_store_knows_a_proof_or_solvers_are_asked(
    forgery: str, directory: Path, store: ProofStore
) -> None:
    name, forge = FORGERIES[forgery]
    assert tuple(open_gate(ENTRIES, directory, prover=prover, store=store).admitted) == NAMES
    path = file_of(directory, name)
    path.write_text(resealed(path.read_text(), forge))
    gate = open_gate(ENTRIES, directory, prover=prover, store=store)
    assert gate.left_out == {
        name: "its certificate does not count: its obligations and enumerations must be those of a proof that the "
        "store knows"
    }
    assert name in open_gate(ENTRIES, directory, ("cvc5",), prover=prover, store=store).left_out
    empty = ProofStore(directory / "none")
    assert name in open_gate(ENTRIES, directory, prover=prover, store=empty).admitted  # nobody knows, nobody was asked


def test_what_is_written_anew_of_the_same_proof_counts(directory: Path, store: ProofStore) -> None:
    """Times and solvers' versions are no part of what was asked."""

    def later(content: dict[str, Any]) -> None:
        content["seconds"] = 99.0
        for obligation in content["obligations"]:
            for answer in obligation["answers"]:
                answer.update(seconds=5.0, solver=f"{answer['solver']} (later)")

    path = file_of(directory, RULE)
    path.write_text(resealed(path.read_text(), later))
    assert RULE in open_gate(ENTRIES, directory, prover=prover, store=store).admitted


def test_a_wrong_rule_never_passes(directory: Path) -> None:
    """Even with a certificate that is forged as well as can be."""
    wrong, right = entries()["f3"].build(), ENTRIES["f3-repaired"].build()
    assert isinstance(wrong, Subject) and entries()["f3"].expected is Status.REFUTED

    def forge(content: dict[str, Any]) -> None:
        content["semantics"] = wrong.semantics()
        content["parameters"] = {"interpretation": "ieee", "lemmas": []}
        claim = wrong.claim(content["parameters"])
        content["claim"].update(subject="f3", statement=claim.statement, size_domain=claim.size_domain)
        content["claim"].update(interpretations=["ieee"], assumptions=list(claim.assumptions))

    text = resealed((directory / certificate_name("f3-repaired", right.method)).read_text(), forge)
    (directory / certificate_name("f3", wrong.method)).write_text(text)
    gate = open_gate({"f3": entries()["f3"]}, directory)
    assert gate.left_out == {"f3": "it is known to be wrong"}
    hoped = replace(entries()["f3"], expected=Status.PROVED)
    assert "f3" in open_gate({"f3": hoped}, directory).admitted  # the digests are right, and nobody was asked
    assert "f3" in open_gate({"f3": hoped}, directory, ("z3",)).left_out
