"""Certificates: round trip, every changed byte, forgeries with a right digest, the schema, atomic writing."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest

import chc.mapping.prove
from accel_models.flexasr.model import _build
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, bv, const, primitive, var
from ila_lang.mapping import Reduction
from ila_lang.text.files import FileRefused
from reports import certificate as module
from reports.binding import binding_problems
from reports.certificate import (
    CertificateError,
    certificate_of,
    certificate_text,
    content_digest,
    read_certificate,
    semantics_of,
    write_atomically,
)
from reports.checker import replay
from rewrites.claims.subjects.mapping import MappingSubject
from rewrites.mappings.flexasr.chains import reload_mapping
from rewrites.mappings.flexasr.pooling import pooling_mapping
from smt_encodings.claims import Runs, Status, Verdict
from smt_encodings.discharge import Requirements

Certificate = dict[str, Any]
SCHEMA = json.loads((Path(module.__file__).parent / "certificate.schema.json").read_text())


@pytest.fixture(scope="module")
def proved() -> Verdict:
    return replace(
        chc.mapping.prove.prove(reload_mapping("apart")), runs=Runs(3, ("T = 2, nv = 1, base = 1",), ("no more",))
    )


@pytest.fixture(scope="module")
def certificate(proved: Verdict) -> Certificate:
    return certificate_of(semantics_of(reload_mapping("apart")), proved, {}, "ilaverify test")


def resealed(content: Certificate) -> Certificate:
    return {**content, "digest": content_digest(content)}


def written(path: Path, content: Certificate) -> Path:
    path.write_text(certificate_text(content))
    return path


# -- the file ---------------------------------------------------------------------------------------


@pytest.mark.proof
def test_round_trip(certificate: Certificate, tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", certificate)
    assert read_certificate(path) == certificate
    assert path.read_bytes().isascii()
    body = {k: v for k, v in certificate.items() if k != "digest"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    assert certificate["digest"] == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.proof
def test_every_changed_byte_is_noticed(certificate: Certificate, tmp_path: Path) -> None:
    data = written(tmp_path / "a.json", certificate).read_bytes()
    random = Random(20)
    positions = {*range(100), *range(len(data) - 50, len(data)), *random.sample(range(len(data)), 100)}
    path = tmp_path / "b.json"
    for position in sorted(positions):
        before, byte, after = data[:position], data[position], data[position + 1 :]
        other = random.choice([b for b in range(256) if b != byte])
        kind = random.choice(["flip", "replace", "delete", "insert"])
        changed = {
            "flip": before + bytes([byte ^ 1 << random.randrange(8)]) + after,
            "replace": before + bytes([other]) + after,
            "delete": before + after,
            "insert": before + bytes([random.choice([byte, other, 0x20, 0x0A])]) + data[position:],
        }[kind]
        path.write_bytes(changed)
        with pytest.raises(CertificateError):
            read_certificate(path)
            pytest.fail(f"{kind} at byte {position} was not noticed: {changed[position - 20 : position + 20]!r}")


@pytest.mark.proof
def test_an_equal_document_in_another_form_is_refused(certificate: Certificate, tmp_path: Path) -> None:
    for text in (
        json.dumps(certificate, sort_keys=True, indent=1) + "\n",
        json.dumps(certificate, separators=(",", ":")) + "\n" if list(certificate) != sorted(certificate) else "",
        certificate_text(certificate).rstrip("\n"),
        certificate_text(certificate) + "\n",
        "\ufeff" + certificate_text(certificate),
        certificate_text(certificate).replace('"tool":', '"tool":"x","tool":', 1),
    ):
        path = tmp_path / "c.json"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(CertificateError):
            read_certificate(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        "1" * 5000,
        '{"schema": NaN}',
        '"\\ud800"',
        "\x00",
        '{"schema":"ilaverify-certificate-4"}',
    ],
    ids=range(10),
)
def test_what_is_not_a_certificate_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(text)
    with pytest.raises(CertificateError, match=r"d\.json: "):
        read_certificate(path)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        (b"", "a certificate must be JSON text, not one that breaks at line 1, column 1"),
        (b'{"a": \xbd}', "a certificate must be JSON text in ASCII, and byte 6 is 0xbd"),
        (
            b"1" * 5000,
            "a certificate must be JSON text without numbers of thousands of digits or as deep nesting",
        ),
        (
            b"[" * 100_000,
            "a certificate must be JSON text without numbers of thousands of digits or as deep nesting",
        ),
        (b"{}", "schema must be ilaverify-certificate-4, not 'missing'"),
    ],
    ids=range(5),
)
def test_a_damaged_certificate_is_told_with_the_next_step(held: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(held)
    with pytest.raises(CertificateError) as caught:
        read_certificate(path)
    assert str(caught.value) == f"{path}: {message}; prove the claim again (ilaverify prove NAME -o DIR)"


def test_a_missing_file_or_a_directory_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(FileRefused, match="readable file"):
            read_certificate(path)


@pytest.mark.proof
def test_numbers_must_be_finite(certificate: Certificate, tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    for number in ("NaN", "Infinity", "1e999"):
        text = certificate_text({**certificate, "seconds": 123.5}).replace("123.5", number)
        path.write_text(text)
        with pytest.raises(CertificateError):
            read_certificate(path)


@pytest.mark.proof
def test_a_proof_without_runs_says_why(certificate: Certificate, tmp_path: Path) -> None:
    none = {"count": 0, "at": [], "notes": []}
    with pytest.raises(CertificateError, match="survived concrete runs, or a note say why there were none"):
        read_certificate(written(tmp_path / "none.json", resealed({**certificate, "runs": none})))
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid({**certificate, "runs": none})
    said = resealed({**certificate, "runs": {**none, "notes": ["not run: no body"]}})
    assert read_certificate(written(tmp_path / "said.json", said)) == said
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(said)


# -- what a certificate may be made of --------------------------------------------------------------


@pytest.mark.proof
@pytest.mark.parametrize("status", [s for s in Status if s is not Status.PROVED])
def test_only_a_proof_gets_a_certificate(proved: Verdict, status: Status) -> None:
    with pytest.raises(CertificateError, match="PROVED"):
        certificate_of(semantics_of(reload_mapping("apart")), replace(proved, status=status), {}, "test")


@pytest.mark.proof
def test_a_proof_without_answers_gets_no_certificate(proved: Verdict) -> None:
    mapping = reload_mapping("apart")
    unasked = chc.mapping.prove.prove(mapping, discharger=Requirements())
    for verdict in (
        unasked,
        replace(proved, obligations=[]),
        replace(proved, runs=None),
        replace(proved, runs=Runs(0, ())),
        replace(proved, obligations=[replace(proved.obligations[0], answers=()), *proved.obligations[1:]]),
    ):
        with pytest.raises(CertificateError):
            certificate_of(semantics_of(mapping), verdict, {}, "test")


# -- forgeries --------------------------------------------------------------------------------------


def obligation(content: Certificate, name: str) -> Certificate:
    found: Certificate = next(o for o in content["obligations"] if o["name"] == name)
    return found


def hard(content: Certificate) -> Certificate:
    """An obligation with hypotheses."""
    return max((o for o in content["obligations"] if o["group"].endswith("cells")), key=lambda o: len(o["smtlib"]))


FORGERIES: dict[str, Callable[[Certificate], Any]] = {
    "an obligation is removed": lambda c: c["obligations"].remove(hard(c)),
    "the health check is removed": lambda c: c["obligations"].remove(obligation(c, "precondition satisfiable")),
    "the value theorem is removed": lambda c: c["obligations"].remove(
        obligation(c, "the output: equal for uninterpreted functions")
    ),
    "all but one are removed": lambda c: c.update(obligations=c["obligations"][:1]),
    "an obligation is trivial": lambda c: hard(c).update(smtlib="(set-logic ALL)\n(assert false)\n(check-sat)\n"),
    "an obligation is another one": lambda c: hard(c).update(smtlib=c["obligations"][0]["smtlib"]),
    "a hypothesis is added": lambda c: hard(c).update(
        smtlib=hard(c)["smtlib"].replace("(check-sat)", "(assert (= cell_pair 0))\n(check-sat)")
    ),
    "a contradiction is added": lambda c: hard(c).update(
        smtlib=hard(c)["smtlib"].replace("(check-sat)", "(assert false)\n(check-sat)")
    ),
    "an answer is expected the other way": lambda c: hard(c).update(expected="sat"),
    "the health check expects unsat": lambda c: obligation(c, "precondition satisfiable").update(expected="unsat"),
    "the health check is empty": lambda c: obligation(c, "precondition satisfiable").update(
        smtlib="(set-logic ALL)\n(check-sat)\n"
    ),
    "the health check hides its assertions in a comment": lambda c: obligation(c, "precondition satisfiable").update(
        smtlib=obligation(c, "precondition satisfiable")["smtlib"].replace("\n(assert", "\n;\x0b(assert")
    ),
    "lines end with returns": lambda c: hard(c).update(smtlib=hard(c)["smtlib"].replace("\n", "\r")),
    "an assertion hides behind a return": lambda c: hard(c).update(
        smtlib=hard(c)["smtlib"].replace("(check-sat)", ";\r(assert false)\n(check-sat)")
    ),
    "a second obligation of one name": lambda c: c["obligations"].insert(
        0, {**hard(c), "smtlib": "(set-logic ALL)\n(assert false)\n(check-sat)\n"}
    ),
    "an obligation is invented": lambda c: c["obligations"].append(
        {**hard(c), "name": "P = NP", "smtlib": "(set-logic ALL)\n(assert false)\n(check-sat)\n"}
    ),
    "two obligations exchange their texts": lambda c: (
        lambda a, b: (a.update(smtlib=b["smtlib"]), b.update(smtlib=a["smtlib"]))
    )(c["obligations"][5], c["obligations"][40]),
    "the size domain is worded more widely": lambda c: c["claim"].update(size_domain="all sizes"),
    "the statement is worded more widely": lambda c: c["claim"].update(statement="P = NP"),
    "the equality is another one": lambda c: c["claim"].update(equality="over_reals"),
    "the assumptions are left out": lambda c: c["claim"].update(assumptions=[]),
    "the subject is renamed": lambda c: c["claim"].update(subject="flexasr_meanpool"),
    "the method is another one": lambda c: c.update(method="bmc"),
    "the method is unknown": lambda c: c.update(method="hope"),
    "the device is another one": lambda c: c["semantics"].update(device=semantics_of(pooling_mapping("add"))["device"]),
    "the IR is another one": lambda c: c["semantics"].update(ir="0" * 64),
    "the relation is another one": lambda c: c["semantics"].update(relation=c["semantics"]["ir"]),
    "a meaning is reworded": lambda c: hard(c).update(meaning="the hardware is right"),
    "the Horn clauses of a level are others": lambda c: next(iter(c["invariants"].values())).update(horn="(check-sat)"),
    "a parameter of a level is explained as something else": lambda c: next(iter(c["invariants"].values()))[
        "names"
    ].update(T="the number of anything"),
    "a level is invented": lambda c: c["invariants"].update(invented=next(iter(c["invariants"].values()))),
    "a proof of every size has a parameter": lambda c: c["parameters"].update(shape=[16, 64]),
    "all invariants are gone": lambda c: c.update(invariants={}),
    "an invariant is weaker": lambda c: next(iter(c["invariants"].values()))["invariant"].pop(),
    "an invariant is false": lambda c: next(iter(c["invariants"].values())).update(invariant=["false"]),
    "an invariant is no term": lambda c: next(iter(c["invariants"].values())).update(invariant=["(and"]),
    "an invariant is several commands": lambda c: next(iter(c["invariants"].values())).update(
        invariant=["true) (assert false"]
    ),
    "an invariant has a quantifier": lambda c: next(iter(c["invariants"].values())).update(
        invariant=["(forall ((x Int)) (< x 0))"]
    ),
    "an invariant has a symbol of its own": lambda c: next(iter(c["invariants"].values())).update(
        invariant=["true) (declare-fun z () Int) (assert (= z 0)"]
    ),
    "an invariant is nested deeply": lambda c: next(iter(c["invariants"].values())).update(
        invariant=["(not " * 20_000 + "true" + ")" * 20_000]
    ),
}


@pytest.mark.proof
def test_the_honest_certificate_is_bound(certificate: Certificate) -> None:
    assert binding_problems(certificate, MappingSubject(reload_mapping("apart"))) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    "forgery", [n if i % 2 == 0 else pytest.param(n, marks=pytest.mark.slow) for i, n in enumerate(FORGERIES)]
)
def test_a_forgery_is_found(certificate: Certificate, forgery: str, tmp_path: Path) -> None:
    forged = copy.deepcopy(certificate)
    FORGERIES[forgery](forged)
    forged = resealed(forged)
    assert forged["digest"] != certificate["digest"]
    content = read_certificate(written(tmp_path / "forged.json", forged))  # its form and digest are right
    assert binding_problems(content, MappingSubject(reload_mapping("apart")))


@pytest.mark.proof
def test_fewer_hypotheses_are_no_forgery_but_have_to_be_enough(certificate: Certificate) -> None:
    forged = copy.deepcopy(certificate)
    target = hard(forged)
    lines = target["smtlib"].splitlines()
    goal = next(i for i, x in enumerate(lines) if x.startswith("(assert"))
    target["smtlib"] = "\n".join(x for i, x in enumerate(lines) if i <= goal or not x.startswith("(assert")) + "\n"
    assert binding_problems(forged, MappingSubject(reload_mapping("apart"))) == []
    forged["obligations"] = [target]
    for solver in ("z3", "cvc5"):
        problems = replay(forged, solver, 5).problems
        assert len(problems) == 1 and "expected unsat" in problems[0]


@pytest.mark.proof
@pytest.mark.parametrize("solver", ["z3", "cvc5"])
def test_replay_finds_wrong_answers_and_broken_text(certificate: Certificate, solver: str) -> None:
    def problems(smtlib: str, expected: str = "unsat") -> tuple[str, ...]:
        one = {**certificate["obligations"][0], "smtlib": smtlib, "expected": expected}
        return replay({**certificate, "obligations": [one]}, solver, 2).problems

    assert problems("(set-logic ALL)\n(assert false)\n(check-sat)\n") == ()
    assert problems("(set-logic ALL)\n(assert true)\n(check-sat)\n")
    assert problems("(set-logic ALL)\n(assert false)\n(check-sat)\n", "sat")
    assert problems("(set-logic ALL)\n(assert fals)\n(check-sat)\n")
    assert problems("(set-logic ALL)\n(assert false)\n")
    assert problems("(set-logic ALL)\n(assert false)\n(check-sat)\n(check-sat)\n")


@primitive(bv(8), a=bv(8), b=bv(8))
def either(a: Expr, b: Expr) -> Expr:
    """An operator by which something may be summed up."""
    return a | b


@pytest.mark.proof
@pytest.mark.parametrize(
    "reading", ["stride", "odd", "kernel", "domain", "lemma", "input", "abstract", "parameter", "sum"]
)
def test_a_changed_model_or_claim_is_noticed(certificate: Certificate, reading: str) -> None:
    plain = pooling_mapping("max")
    if reading == "stride":
        mapping = pooling_mapping("max", FlexAsrOptions(reduce_stride="unit"))
    elif reading == "odd":
        mapping = pooling_mapping("max", FlexAsrOptions(reduce_odd="recorded"))
    elif reading == "kernel":
        ila = _build.__wrapped__(FlexAsrOptions())
        ila.instructions["GB_LAYER_REDUCE_START"].kernel.on_done["top_interrupt_request"] = const(0, 1) == 1
        mapping = replace(plain, device=replace(plain.device, ila=ila))
    elif reading == "domain":
        mapping = replace(plain, domain=plain.domain[:-1])
    elif reading == "lemma":
        mapping = replace(plain, lemmas=())
    elif reading == "input":
        mapping = replace(plain, inputs=())
    elif reading == "parameter":  # that nothing uses
        mapping = replace(plain, parameters={**plain.parameters, "unused": var("unused", bv(16))})
    elif reading == "sum":
        mapping = replace(plain, sums=(Reduction(either),))
    else:
        mapping = replace(plain, abstract=frozenset())
    content = {**certificate, "semantics": semantics_of(plain)}
    problems = binding_problems(content, MappingSubject(mapping))
    assert problems and "digest differs" in problems[0]


def test_semantics_do_not_depend_on_words() -> None:
    plain = pooling_mapping("max")
    reworded = replace(plain, doc="other words")
    assert semantics_of(reworded) == semantics_of(plain) == semantics_of(pooling_mapping("max"))


# -- schema -----------------------------------------------------------------------------------------


def form_problem(content: object) -> bool:
    try:
        module._check_form(Path("x"), content)
    except CertificateError:
        return True
    return False


def broken(content: Certificate) -> list[Any]:
    """The certificate with one thing of another form, for every place in it."""
    results: list[Any] = []

    def visit(path: list[Any], value: Any) -> None:
        def at(change: Callable[[Any, Any], None]) -> None:
            copied = copy.deepcopy(small)
            parent = copied
            for key in path[:-1]:
                parent = parent[key]
            change(parent, path[-1])
            results.append((path, copied))

        if path and path[0] != "parameters":
            for wrong in (None, True, {}, [], 7, "text"):
                if type(wrong) is not type(value):
                    at(lambda parent, key, wrong=wrong: parent.__setitem__(key, wrong))
            if isinstance(path[-1], str) and not (len(path) > 1 and path[-2] in ("names", "invariants", "semantics")):
                at(lambda parent, key: parent.pop(key))
                at(lambda parent, key: parent.__setitem__("surplus", 0))
        if isinstance(value, dict):
            for key in value:
                visit([*path, key], value[key])
        elif isinstance(value, list) and value:
            visit([*path, 0], value[0])

    level = next(iter(content["invariants"]))
    small = {
        **content,
        "obligations": content["obligations"][:1],
        "enumerations": [{"name": "mean", "meaning": "m", "arguments": 65536, "largest": 0.5}],
        "invariants": {level: content["invariants"][level]},
    }
    visit([], small)
    return results


@pytest.mark.proof
def test_the_schema_is_the_form_that_is_read(certificate: Certificate) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    schema = jsonschema.Draft202012Validator(SCHEMA)
    assert schema.is_valid(certificate) and not form_problem(certificate)
    cases = broken(certificate)
    assert len(cases) > 150
    for path, content in cases:
        assert schema.is_valid(content) is not form_problem(content), path
    accepted = [path for path, content in cases if schema.is_valid(content)]
    # numbers may be of either kind; nothing else may change its kind
    assert all(path[-1] in ("seconds", "largest", "parameters") for path in accepted), accepted


def test_the_schema_allows_no_surplus_keys() -> None:
    def visit(node: Any) -> None:
        if isinstance(node, dict):
            if node.get("type") == "object" and "properties" in node:
                assert node["additionalProperties"] is False
                assert node["required"] == list(node["properties"])
            for value in node.values():
                visit(value)

    visit(SCHEMA)
    assert set(SCHEMA["properties"]) == set(module._TOP)
    assert SCHEMA["properties"]["schema"]["const"] == module.SCHEMA


# -- writing ----------------------------------------------------------------------------------------


def test_writing_replaces_a_file_and_makes_directories(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.json"
    write_atomically(path, "one\n")
    write_atomically(path, "two é\n")
    assert path.read_bytes() == "two é\n".encode()
    assert os.listdir(path.parent) == ["c.json"]
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("what", ["replace", "fsync", "chmod"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failed_write_leaves_nothing_behind(
    what: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(module.os, what, fail)
    with pytest.raises(type(error)):
        write_atomically(tmp_path / "new.json", "text")
    assert os.listdir(tmp_path) == []
    (tmp_path / "old.json").write_text("old")
    with pytest.raises(type(error)):
        write_atomically(tmp_path / "old.json", "text")
    assert (tmp_path / "old.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["old.json"]
