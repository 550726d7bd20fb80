"""The gate, attacked: what is missing, damaged, stale, of something else, or known to be wrong does not pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ir_semantics.scalars import is_finite, variable
from reports.certificate import certificate_name, certificate_of, certificate_text, content_digest
from reports.subjects import Entry, Subject
from rewrites.gate import open_gate
from rewrites.subjects.registry import entries
from rewrites.subjects.scalar import ScalarSubject
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
        content = certificate_of(subject.semantics(), verdict, subject.parameters(verdict), "test")
        (directory / certificate_name(name, subject.method)).write_text(certificate_text(content))
    return directory


@pytest.fixture
def directory(proofs: Path, tmp_path: Path) -> Path:
    for path in proofs.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def file_of(directory: Path, name: str) -> Path:
    return directory / certificate_name(name, ENTRIES[name].build().method)


def test_a_certificate_of_another_prover_is_left_out_unless_it_is_checked_again(directory: Path) -> None:
    kinds = {entry.kind for entry in ENTRIES.values()}
    assert tuple(open_gate(ENTRIES, directory, tools=dict.fromkeys(kinds, "test")).admitted) == NAMES
    other = dict.fromkeys(kinds, "ilaverify 2, sources 0123")
    gate = open_gate(ENTRIES, directory, tools=other)
    assert not gate.admitted
    assert set(gate.left_out.values()) == {
        "its certificate does not count: it is of another prover (test, not ilaverify 2, sources 0123); prove it "
        "again, or use --recheck"
    }
    assert tuple(open_gate(ENTRIES, directory, ("cvc5",), tools=other).admitted) == NAMES


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


def test_a_forgery_with_all_digests_right_is_found_when_solvers_are_asked(directory: Path) -> None:
    """Only the question is another one: a theorem, but not the rule's."""
    path = file_of(directory, "f3-repaired")
    script = "(set-logic ALL)\n(assert false)\n(check-sat)\n"
    path.write_text(resealed(path.read_text(), lambda c: c["obligations"][0].update(smtlib=script)))
    assert "f3-repaired" in open_gate(ENTRIES, directory).admitted
    gate = open_gate(ENTRIES, directory, ("cvc5",))
    assert "this is not the obligation that the claim needs" in gate.left_out["f3-repaired"]


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
