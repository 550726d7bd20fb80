"""Rules, lemmas and theorems as subjects: names, certificates that are bound to them, counterexamples that replay."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import astuple, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from chc.scalar_rules.rule import ScalarRule
from ir_semantics.scalars.terms import variable
from reports.binding import binding_problems
from reports.certificate import certificate_of, certificate_text, claim_json, parse_certificate
from reports.checker import replay
from reports.subjects import KINDS, Subject
from rewrites.claims.documents import array_json, array_value, value_json, value_of
from rewrites.claims.names import slug
from rewrites.claims.registry import entries
from rewrites.claims.subjects.scalar import ScalarSubject
from rewrites.claims.subjects.tensor import TensorSubject
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger

ROOT = Path(__file__).parents[3]
PROVED = [
    "f3-repaired",
    "c1-repaired-1",
    "relu-commutes-with-max-pooling",
    "lemma-maximum",
    "error-sum",
    "lemma-vta-sum",
    "bound-flexasr-linear-plus-tanh",
]
REFUTED = ["f1", "i1", "products-of-matrices-commute", "c1-still-wrong"]


@cache
def _certificate(name: str) -> str:
    subject = entries()[name].build()
    verdict = subject.prove(Discharger())
    assert verdict.status is Status.PROVED, verdict.reason
    content = certificate_of(subject.semantics(), verdict, subject.parameters(verdict), "test")
    return certificate_text(content)


def certificate(subject: Subject) -> dict[str, Any]:
    return parse_certificate(_certificate(subject.name), Path("test"))


def test_names_and_places() -> None:
    known = entries()
    assert len(known) > 300
    for name, entry in known.items():
        assert re.fullmatch(r"[a-z0-9_-]+", name) and name == (name if "_" in name else slug(name)), name
        assert entry.kind in KINDS and entry.summary and entry.expected in (Status.PROVED, Status.REFUTED)
        subject = entry.build()
        assert (subject.name, subject.kind) == (name, entry.kind) and subject.words().subject == name
        file, line = subject.place()
        assert len((ROOT / file).read_text().splitlines()) >= line > 0


def test_semantics_tell_rules_apart() -> None:
    rules = [e.build() for e in entries().values() if e.kind == "rule"]
    digests = {(*sorted(r.semantics().items()), *astuple(replace(r.words(), subject=""))) for r in rules}
    assert len(digests) == len({d[:-6] for d in digests}) > 280  # one digest, one rule


@pytest.mark.proof
@pytest.mark.parametrize("name", PROVED)
def test_a_certificate_is_bound_and_replays(name: str) -> None:
    subject = entries()[name].build()
    content = certificate(subject)
    assert content["claim"] == claim_json(subject.claim(content["parameters"]))
    assert binding_problems(content, subject) == []
    for solver in ("z3", "cvc5"):
        assert replay(content, solver).problems == ()
    other = entries()[PROVED[PROVED.index(name) - 1]].build()
    assert binding_problems(content, other)


def without_obligations(content: dict[str, Any]) -> None:
    content["obligations"], content["enumerations"] = [], []


FORGERIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "nothing is asked": without_obligations,
    "the claim is wider": lambda c: c["claim"].update(size_domain="everything"),
    "an assumption is dropped": lambda c: c["claim"].update(assumptions=["none at all"]),
    "the rule was another one": lambda c: c["semantics"].update(dict.fromkeys(c["semantics"], "0" * 64)),
    "a part is gone": lambda c: c["semantics"].popitem(),
    "a part is new": lambda c: c["semantics"].update(more="0" * 64),
    "the method is another one": lambda c: c.update(method="chc"),
    "parameters are invented": lambda c: c.update(parameters={"interpretation": "hope", "lemmas": []}),
    "a level is invented": lambda c: c["invariants"].update(level={}),
    "arguments are left out": lambda c: c.update(
        enumerations=[{"name": "x", "meaning": "y", "arguments": 1, "largest": 0.0}]
    ),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", ["f3-repaired", "relu-commutes-with-max-pooling", "lemma-maximum"])
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_certificate_is_not_bound(name: str, forgery: str) -> None:
    subject = entries()[name].build()
    content = certificate(subject)
    FORGERIES[forgery](content)
    assert binding_problems(content, subject)


@pytest.mark.parametrize("name", REFUTED)
def test_a_counterexample_replays_from_its_document(name: str) -> None:
    subject = entries()[name].build()
    verdict = subject.prove(Discharger())
    found = subject.refutation(verdict)
    assert verdict.status is Status.REFUTED and found is not None
    assert subject.replayed(found.document) == found
    for other in (n for n in REFUTED if n != name):
        with pytest.raises(ValueError, match="counterexample"):
            entries()[other].build().replayed(found.document)


def test_a_document_that_refutes_nothing() -> None:
    x = variable("x")
    rule = entries()["f1"].build()
    assert isinstance(rule, ScalarSubject)
    assert rule.replayed('{"subject":"f1","values":{"x":"float 0x1.0000000000000p+0"}}') is None
    sound = ScalarSubject("f1", replace(rule.rule, left=x, right=x))
    assert sound.replayed('{"subject":"f1","values":{"x":"float -0x0.0p+0"}}') is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Expecting property name"),
        ("[]", "a counterexample to f1 must have exactly values"),
        ('{"subject":"f1","values":[]}', "values of a counterexample must be objects"),
        ('{"subject":"f1","values":{}}', "a counterexample to f1 must have values of its variables"),
        ('{"subject":"f1","values":{"x":"1.0"}}', "must be a number, a fraction or a float, not '1.0'"),
        ('{"subject":"f1","values":{"x":null}}', "must be a number, a fraction or a float, not None"),
    ],
)
def test_documents_of_another_form(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        entries()["f1"].build().replayed(text)


def test_a_tensor_document_of_another_form() -> None:
    subject = entries()["products-of-matrices-commute"].build()
    assert isinstance(subject, TensorSubject)
    found = subject.refutation(subject.prove(Discharger()))
    assert found is not None
    for old, new in (
        ('"sizes":{', '"sizes":{"more":1,'),
        ('"shape":[', '"shape":[7,'),
        ('"inputs":{', '"inputs":{"no":1,'),
    ):
        assert old in found.document
        with pytest.raises(ValueError):
            subject.replayed(found.document.replace(old, new, 1))


SCHEDULED = 10
"""Instructions of the product of one block in one round."""
MASKED = {"m": [1, 1], "s": [], "x": [1, 1]}
OUTSIDE: dict[str, tuple[str, dict[str, Any], str]] = {
    "NaN": (
        "products-of-matrices-associate",
        {"sizes": dict.fromkeys("kmno", 1), "inputs": {n: {"shape": [1, 1], "values": ["float nan"]} for n in "abc"}},
        "the input a of products of matrices associate must be of fractions, not nan",
    ),
    "integers, of which a quotient would be rounded": (
        "relu-twice",
        {"sizes": {"n": 1, "c": 1}, "inputs": {"x": {"shape": [1, 1], "values": [1]}}},
        "the input x of relu twice must be of fractions, infinities, NaN or -0.0, not 1",
    ),
    "an infinity over the reals": (
        "products-of-matrices-associate",
        {
            "sizes": dict.fromkeys("kmno", 1),
            "inputs": {n: {"shape": [1, 1], "values": ["float inf"]} for n in "abc"},
        },
        "the input a of products of matrices associate must be of fractions, not inf",
    ),
    "a number for a truth value": (
        "scale-after-masking-with-minus-inf",
        {"sizes": {"m": 1, "n": 1}, "inputs": {n: {"shape": shape, "values": ["1/1"]} for n, shape in MASKED.items()}},
        "the input m of scale after masking with -inf must be of truth values, not 1",
    ),
    "another shape": (
        "relu-twice",
        {"sizes": {"n": 1, "c": 2}, "inputs": {"x": {"shape": [1, 1], "values": ["1/1"]}}},
        "the input x of relu twice must have the shape (1, 2), not (1, 1)",
    ),
    "fewer values than the shape has": (
        "relu-twice",
        {"sizes": {"n": 1, "c": 2}, "inputs": {"x": {"shape": [1, 2], "values": ["1/1"]}}},
        "an array of the shape [1, 2] must have 2 values, not 1",
    ),
    "another input": (
        "relu-twice",
        {"sizes": {"n": 1, "c": 2}, "inputs": {"y": {"shape": [1, 2], "values": ["1/1", "1/1"]}}},
        "inputs of relu twice must be x",
    ),
    "a word that is too wide": (
        "lemma-vta-shift",
        {"operands": {"a": -1, "b": 2**31}},
        "the operand a of VTA shift must fit 32 bits, not -1",
    ),
    "a truth value for a word": (
        "lemma-vta-shift-of-32-bits",
        {"operands": {"a": True, "b": 0}},
        "the operand a of VTA shift of 32 bits must be an integer, not True",
    ),
    "an infinity for a word": (
        "lemma-vta-product",
        {"operands": {"a": 255, "b": "float inf"}},
        "the operand b of VTA product must be an integer, not inf",
    ),
    "a fraction for an argument": (
        "lemma-decode",
        {"operands": {"code": "1/3", "bias": 0}},
        "the operand code of decode must be an integer, not 1/3",
    ),
    "a float for a real number": (
        "error-slope-of-the-logistic-function",
        {"operands": {"u": "float nan"}},
        "the operand u of slope of the logistic function must be a fraction, not nan",
    ),
    "an operand that is none": (
        "error-slope-of-the-logistic-function",
        {"operands": {"u": "1/2", "v": "1/2"}},
        "operands of slope of the logistic function must be u",
    ),
    "an infinity for an integer": (
        "full-expansion-of-zero-points",
        {"values": {"a": 1, "b": "float inf", "x": 3, "y": 1}},
        "a number of the format the integers must be finite, not inf",
    ),
    "an infinity for a code": (
        "adaptivfloat-maximum-x-x-x-repaired",
        {"values": {"x": "float -inf", "y": 3}},
        "a number of the format AdaptivFloat<8,3> must be finite, not -inf",
    ),
    **{
        f"a schedule with {number}": (
            "vta_token_order",
            {"product": {"blocks": 1, "rounds": 1, "bias": False, "schedule": [number], "contents": 0}},
            f"a schedule of the counterexample to vta_token_order must be of numbers from 1 to {SCHEDULED}",
        )
        for number in (0, 99, True, None, "1", 1.0)
    },
    "a float beyond floats": (
        "f3-repaired",
        {"values": {"x": "float 0x1.0p+99999"}},
        "a counterexample's value must be a number, a fraction or a float, not 'float 0x1.0p+99999'",
    ),
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_data_outside_of_a_true_claim_are_refused(what: str) -> None:
    name, content, message = OUTSIDE[what]
    with pytest.raises(ValueError) as caught:
        entries()[name].build().replayed(json.dumps({"subject": name, **content}))
    assert str(caught.value) == message


def test_nan_refutes_no_bit_exact_rule_that_is_true() -> None:
    data = {"sizes": {"c": 1, "n": 1}, "inputs": {n: {"shape": [1, 1], "values": ["float nan"]} for n in "xy"}}
    name = "maximum-commutes-and-is-idempotent"
    assert entries()[name].build().replayed(json.dumps({"subject": name, **data})) is None


def test_values_survive() -> None:
    values = [True, False, 3, -(10**30), Fraction(-1, 3), 0.1, -0.0, float("inf"), float("nan")]
    assert [repr(value_of(value_json(v))) for v in values] == [repr(v) for v in values]
    import numpy as np

    array = np.array([[Fraction(1, 2), True]], dtype=object)
    again = array_value(array_json(array))
    assert again.shape == (1, 2) and again.tolist() == array.tolist()


def test_other_digests_for_other_rules() -> None:
    rule = entries()["f1"].build()
    assert isinstance(rule, ScalarSubject)
    before = rule.semantics()["rule"]
    changes: list[ScalarRule] = [
        replace(rule.rule, right=rule.rule.left),
        replace(rule.rule, zero_signs=False),
        replace(rule.rule, condition=variable("x").equals(0)),
    ]
    assert all(ScalarSubject("f1", changed).semantics()["rule"] != before for changed in changes)
