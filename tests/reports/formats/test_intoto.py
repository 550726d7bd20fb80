"""The in-toto Statement: subjects are the files, by digest of their bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ila_lang import canonical_text
from reports.certificate import write_atomically
from reports.formats.intoto import PREDICATE_TYPE, STATEMENT_TYPE, statement_text
from tests.reports.outcome_examples import HOSTILE, claim

STATEMENT = {  # the in-toto attestation framework's Statement, version 1
    "type": "object",
    "required": ["_type", "subject", "predicateType"],
    "additionalProperties": False,
    "properties": {
        "_type": {"const": "https://in-toto.io/Statement/v1"},
        "subject": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["digest"],
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "digest": {
                        "type": "object",
                        "required": ["sha256"],
                        "properties": {"sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"}},
                    },
                },
            },
        },
        "predicateType": {"type": "string", "pattern": "^[a-z][a-z0-9+.-]*:"},
        "predicate": {"type": "object"},
    },
}


def certificate(subject: str) -> str:
    answers = [{"solver": s, "status": "unsat", "seconds": 0.1} for s in ("z3 1", "cvc5 1")]
    content: dict[str, Any] = {
        "claim": claim(subject), "method": "chc", "parameters": {}, "semantics": {"device": "d"},
        "obligations": [{"answers": answers}, {"answers": answers[:1]}],
    }  # fmt: skip
    return canonical_text(content) + "\n"


def statement(certificates: dict[str, str]) -> Any:
    content = json.loads(statement_text(certificates, "ilaverify 1"))
    jsonschema.validate(content, STATEMENT)
    return content


def test_subjects_are_the_files(tmp_path: Path) -> None:
    texts = {"b.cert.json": certificate("b"), "a.cert.json": certificate("a")}
    for name, text in texts.items():
        write_atomically(tmp_path / name, text)
    content = statement(texts)
    assert (content["_type"], content["predicateType"]) == (STATEMENT_TYPE, PREDICATE_TYPE)
    assert [s["name"] for s in content["subject"]] == ["a.cert.json", "b.cert.json"]
    for subject in content["subject"]:
        data = (tmp_path / subject["name"]).read_bytes()
        assert subject["digest"] == {"sha256": hashlib.sha256(data).hexdigest()}
    assert PREDICATE_TYPE == "urn:ilaverify:proof:1"


def test_the_predicate() -> None:
    predicate = statement({"a.cert.json": certificate("a")})["predicate"]
    assert predicate == {
        "tool": "ilaverify 1",
        "proofs": [
            {
                "certificate": "a.cert.json",
                "verdict": "PROVED",
                "claim": claim("a"),
                "method": "chc",
                "parameters": {},
                "semantics": {"device": "d"},
                "obligations": 2,
                "solvers": ["cvc5 1", "z3 1"],
            }
        ],
    }


def test_order_and_hostile_names() -> None:
    texts = {HOSTILE: certificate(HOSTILE), "a": certificate("a")}
    assert statement_text(texts, "t") == statement_text(dict(reversed(texts.items())), "t")
    assert statement_text(texts, "t").isascii()
    assert {s["name"] for s in statement(texts)["subject"]} == {HOSTILE, "a"}


def test_nothing_to_state() -> None:
    with pytest.raises(ValueError, match="an in-toto Statement must be over one certificate at least, not none"):
        statement_text({}, "t")
