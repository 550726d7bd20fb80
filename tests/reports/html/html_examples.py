"""Outcomes with true certificates, a campaign and times, for the tests of the HTML page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reports.certificate import SCHEMA, certificate_text, content_digest
from reports.html.claims import Comparison
from reports.html.inputs import CampaignRecord, Scaling, read_campaign, read_scaling
from reports.outcomes import ProofOutcome
from tests.reports.outcome_examples import claim

RUN_AT = ["T = 2", "T = 9"]
SOLVERS = ("z3 5.4.0", "cvc5 1.4.2")


def obligation(name: str, group: str = "values", expected: str = "unsat", **changes: Any) -> dict[str, Any]:
    answers = [{"solver": solver, "status": expected, "seconds": 0.25} for solver in SOLVERS]
    return {
        "group": group, "name": name, "meaning": f"what {group} mean", "expected": expected,
        "smtlib": "(check-sat)\n", "answers": answers,
    } | changes  # fmt: skip


def certificate(words: dict[str, Any], **changes: Any) -> str:
    """The text of an intact certificate of a claim; ``changes`` are made before it is sealed."""
    level = {
        "found_by": "Spacer", "seconds": 0.1, "horn": "(forall ((i Int) (done Bool)) true)",
        "invariant": ["(not (<= 2 i))", "(or done (not (<= 1 i)))"], "names": {},
    }  # fmt: skip
    content = {
        "schema": SCHEMA, "tool": "ilaverify 0.1.0", "method": "chc", "parameters": {}, "claim": words,
        "semantics": {"device": "d" * 64, "ir": "e" * 64, "relation": "f" * 64},
        "obligations": [
            obligation("precondition satisfiable", "health", "sat"), obligation("the lemma", "lemmas"),
            obligation("equal values"),
        ],
        "enumerations": [],
        "invariants": {"loop of rows": level}, "derivation": {},
        "runs": {"count": 3, "at": RUN_AT, "notes": ["bmc at T = 2: PROVED"]}, "seconds": 7.5,
    } | changes  # fmt: skip
    return certificate_text(content | {"digest": content_digest(content)})


def proved(name: str = "good", **changes: Any) -> ProofOutcome:
    """A PROVED outcome with its certificate; ``changes`` are fields of the outcome."""
    words = claim(name)
    parts: dict[str, Any] = {
        "summary": f"{name}, in a line", "seconds": 8.25, "claim": words, "document": certificate(words),
        "trust": f"{name}\n  assumption     the host waits\n", "file": "rewrites/a.py", "line": 12,
    }  # fmt: skip
    return ProofOutcome(name, "PROVED", **(parts | changes))


def refuted(name: str = "false", expected: str = "REFUTED", **changes: Any) -> ProofOutcome:
    found = "input 2x16: output element (1, 9) is 0x00 on the device and 0x80 in the IR"
    parts: dict[str, Any] = {
        "reason": found, "claim": claim(name), "counterexample": found, "document": "{}", "program": "[]\n",
    }  # fmt: skip
    return ProofOutcome(name, "REFUTED", expected, **(parts | changes))


def comparison(rows: int = 2, columns: int = 16, wrong: tuple[tuple[int, int], ...] = ((1, 9), (1, 12))) -> Comparison:
    """Outputs of zeros, in which the IR has 0x80 at some places."""
    device = ["0x00"] * (rows * columns)
    ir = list(device)
    for row, column in wrong:
        ir[row * columns + column] = "0x80"
    return Comparison(columns, tuple(device), tuple(ir), (("host_in[7]", "0x80"),))


CAMPAIGN: dict[str, Any] = {
    "schema": "ilaverify-campaign-1", "campaign": "toy_add", "property": "equal, bit for bit",
    "reference": "the sum in float64", "parameters": {"rows": [1, 2, 3], "columns": [2, 4, 6, 8]},
    "distributions": {"uniform": "in [-1, 1)", "normal": "standard normal"}, "seed": "7", "examples": 5,
    "interrupted": False, "versions": {"numpy": "2"},
    "error": {"count": 4, "mean": 0.0125, "standard_deviation": 0.001, "least": 0.01, "worst": 0.02},
    "input_error": {"count": 4, "mean": 0.0125, "standard_deviation": 0.001, "least": 0.01, "worst": 0.02},
    "arithmetic_error": None, "worst": None, "skipped": {"the reference is zero": 1}, "checked": 4, "covered": 0.75,
    "violating": 0, "violation": None,
    "samples": [
        {"distribution": "uniform", "error": 0.01}, {"distribution": "normal", "error": 0.0125},
        {"distribution": "uniform", "error": None}, {"distribution": "uniform", "error": 0.011},
        {"distribution": "normal", "error": 0.02},
    ],
}  # fmt: skip


def campaign(directory: Path, **changes: Any) -> CampaignRecord:
    path = directory / "toy_add.campaign.json"
    path.write_text(json.dumps(CAMPAIGN | changes), encoding="utf-8")
    return read_campaign(path)


TIMES: dict[str, Any] = {
    "command": "python -m benchmarks.table3", "limit": 300.0, "machine": {"cores": "2", "system": "Linux"},
    "cells": {
        "2x16": {"BMC": {"seconds": 0.48, "answer": "PROVED"}, "CHC symbolic": {"seconds": 5.66, "answer": "PROVED"}},
        "16x64": {"BMC": {"seconds": 0.54, "answer": "PROVED"}, "CHC symbolic": {"seconds": 3.38, "answer": "PROVED"}},
        "64x256": {"BMC": {"seconds": 300.0, "answer": "timeout"}},
    },
}  # fmt: skip


def times(directory: Path, **changes: Any) -> Scaling:
    path = directory / "table3.json"
    path.write_text(json.dumps(TIMES | changes), encoding="utf-8")
    return read_scaling(path)
