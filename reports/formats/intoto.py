"""An in-toto Statement (version 1) over certificates: which files, by digest, hold the proofs of which claims.

It is not signed; signing is left to those who vouch for the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
"""The type of every Statement of that version, fixed by the in-toto attestation framework."""

PREDICATE_TYPE = "urn:ilaverify:proof:1"
"""The form of our predicate: the tool, and for each certificate its claim, method, solvers and semantics."""


def statement_text(certificates: Mapping[str, str], tool: str) -> str:
    """The Statement over certificate texts by name of file, in the order of names.

    Raises ValueError where there is no certificate: a Statement must have a subject.
    """
    if not certificates:
        raise ValueError("an in-toto Statement must be over one certificate at least, not none")
    subjects, proofs = [], []
    for name in sorted(certificates):
        text = certificates[name]
        subjects.append({"name": name, "digest": {"sha256": hashlib.sha256(text.encode("ascii")).hexdigest()}})
        proofs.append(_proof(name, json.loads(text)))
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": {"tool": tool, "proofs": proofs},
    }
    return json.dumps(statement, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _proof(name: str, certificate: Mapping[str, Any]) -> dict[str, Any]:
    obligations = certificate["obligations"]
    return {
        "certificate": name,
        "verdict": "PROVED",
        "claim": certificate["claim"],
        "method": certificate["method"],
        "parameters": certificate["parameters"],
        "semantics": certificate["semantics"],
        "obligations": len(obligations),
        "solvers": sorted({answer["solver"] for o in obligations for answer in o["answers"]}),
    }
