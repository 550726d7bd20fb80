"""SARIF 2.1.0: the part of the schema that we use, rules and levels, locations, hostile texts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from reports.formats.sarif import sarif_text
from reports.outcomes import ProofOutcome
from tests.reports.outcome_examples import (
    ALL,
    BROKEN,
    FALSE,
    LEFT,
    NASTY,
    PROVED,
    STORED,
    UNKNOWN,
    UNSOUND,
    VACUOUS,
    WRONG,
)

# What sections 3.13 to 3.58 of the standard say of the properties that we write; others are refused.


def record(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties, "additionalProperties": False}


def array(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


TEXT: dict[str, Any] = {"type": "string"}
MESSAGE = record("text", text=TEXT)
LEVEL = {"enum": ["none", "note", "warning", "error"]}
URI = {"type": "string", "pattern": r"^[A-Za-z0-9._~!$&'()*+,;=:@/%-]*$"}
LOCATION = record(
    "",
    physicalLocation=record(
        "artifactLocation",
        artifactLocation=record("uri", uri=URI, uriBaseId=TEXT),
        region=record("startLine", startLine={"type": "integer", "minimum": 1}),
    ),
    logicalLocations=array(record("", name=TEXT, kind=TEXT)),
)
RESULT = record(
    "message",
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    level=LEVEL,
    message=MESSAGE,
    locations=array(LOCATION, uniqueItems=False),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    properties={"type": "object"},
) | {
    # 3.27.10: a level other than "none" belongs to kind "fail" only
    "if": {"properties": {"kind": {"not": {"const": "fail"}}}},
    "then": {"properties": {"level": {"const": "none"}}},
}
SCHEMA = record(
    "version runs",
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"const": "2.1.0"},
    runs=array(
        record(
            "tool",
            tool=record(
                "driver",
                driver=record(
                    "name",
                    name=TEXT,
                    version=TEXT,
                    rules=array(record("id", id=TEXT, shortDescription=MESSAGE), uniqueItems=True),
                ),
            ),
            invocations=array(
                record(
                    "executionSuccessful",
                    executionSuccessful={"type": "boolean"},
                    toolExecutionNotifications=array(record("message", level=LEVEL, message=MESSAGE)),
                )
            ),
            originalUriBaseIds={"type": "object", "additionalProperties": record("", description=MESSAGE, uri=URI)},
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            results=array(RESULT),
            properties={"type": "object"},
        )
    ),
)


def run_of(outcomes: list[ProofOutcome]) -> Any:
    document = json.loads(sarif_text(outcomes, "1.2.3"))
    jsonschema.validate(document, SCHEMA)
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    return run


def test_the_structure() -> None:
    run = run_of(ALL)
    assert (run["tool"]["driver"]["name"], run["tool"]["driver"]["version"]) == ("ilaverify", "1.2.3")
    assert len(run["results"]) == len(ALL) and sarif_text(ALL, "1") == sarif_text(ALL, "1")
    assert run_of([])["results"] == []


@pytest.mark.parametrize(
    ("outcome", "rule", "kind", "level"),
    [
        (PROVED, "as-expected", "pass", "none"),
        (STORED, "as-expected", "pass", "none"),
        (FALSE, "as-expected", "pass", "none"),
        (WRONG, "refuted", "fail", "error"),
        (UNSOUND, "false-claim-not-refuted", "fail", "error"),
        (replace(FALSE, status="UNKNOWN", counterexample="", document=""), "false-claim-not-refuted", "fail", "error"),
        (replace(FALSE, status="ERROR"), "broken", "fail", "error"),
        (UNKNOWN, "unproved", "fail", "warning"),
        (VACUOUS, "unproved", "fail", "warning"),
        (replace(PROVED, document=""), "unproved", "fail", "warning"),
        (BROKEN, "broken", "fail", "error"),
        (LEFT, "not-run", "fail", "warning"),
    ],
)
def test_rules_and_levels(outcome: ProofOutcome, rule: str, kind: str, level: str) -> None:
    run = run_of([PROVED, outcome])
    result = run["results"][1]
    assert (result["ruleId"], result["kind"], result["level"]) == (rule, kind, level)
    assert run["invocations"][0]["executionSuccessful"] is (rule not in ("broken", "not-run"))


def test_locations() -> None:
    first, second, broken = run_of([PROVED, STORED, BROKEN])["results"]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "rewrites/a.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 12},
    }
    assert second["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "b%20c.py"
    assert "physicalLocation" not in broken["locations"][0]
    assert broken["locations"][0]["logicalLocations"] == [{"name": "broken", "kind": "object"}]


def test_messages() -> None:
    texts = [result["message"]["text"] for result in run_of([PROVED, WRONG])["results"]]
    assert texts == [
        "good: PROVED, expected PROVED; good is right: 1 <= n <= 9",
        "wrong: REFUTED, expected PROVED; input 4x16",
    ]


def test_fingerprints_follow_the_claim_and_not_the_line() -> None:
    def fingerprint(outcome: ProofOutcome) -> str:
        return str(run_of([outcome])["results"][0]["partialFingerprints"]["claimAndRule/v1"])

    assert fingerprint(PROVED) == fingerprint(replace(PROVED, line=99, seconds=7.0))
    others = (STORED, UNKNOWN, replace(PROVED, status="UNKNOWN"))
    assert len({fingerprint(PROVED), *map(fingerprint, others)}) == 4


def test_hostile_texts() -> None:
    text = sarif_text([NASTY], "1")
    assert text.isascii()
    run = run_of([NASTY])
    assert run["results"][0]["locations"][0]["logicalLocations"][0]["name"] == NASTY.name
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"].endswith(NASTY.notes[0])
