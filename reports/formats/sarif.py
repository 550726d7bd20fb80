"""Outcomes as SARIF 2.1.0, the form that code hosts show next to source lines: one result for each claim.

The location of a result is the source line of its claim.  A result as expected has kind ``pass``; everything else has
kind ``fail``, so that no viewer hides it, and level ``error``, or ``warning`` where nothing is known to be wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from reports.outcomes import NOT_RUN, ProofOutcome, tally

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
"""Where OASIS publishes the schema of the form."""

_RULES = {
    "as-expected": "The claim is proved; or it is known to be false, and refuted",
    "refuted": "A counterexample to the claim was found and replayed",
    "false-claim-not-refuted": "A claim that is known to be false was not refuted",
    "unproved": "There is neither proof nor counterexample",
    "broken": "The attempt itself failed",
    "not-run": "The run was interrupted before the claim was proved",
}
_LEVELS = {"as-expected": "none", "unproved": "warning", "not-run": "warning"}


def sarif_text(outcomes: Sequence[ProofOutcome], version: str) -> str:
    """The document, in the order of the outcomes; ``version`` is the tool's."""
    rules = list(_RULES)
    driver = {
        "name": "ilaverify",
        "version": version,
        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in _RULES.items()],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [
            {
                "executionSuccessful": not any(o.status in ("ERROR", NOT_RUN) for o in outcomes),
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": f"{o.name}: {note}"}} for o in outcomes for note in o.notes
                ],
            }
        ],
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The root of the source tree"}}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(o, rules) for o in outcomes],
        "properties": {"tally": tally(list(outcomes))},
    }
    document = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _rule(outcome: ProofOutcome) -> str:
    if outcome.as_expected:
        return "as-expected"
    if outcome.status in ("ERROR", NOT_RUN):
        return "broken" if outcome.status == "ERROR" else "not-run"
    if outcome.expected == "REFUTED":
        return "false-claim-not-refuted"
    return "refuted" if outcome.status == "REFUTED" else "unproved"


def _result(outcome: ProofOutcome, rules: list[str]) -> dict[str, Any]:
    rule = _rule(outcome)
    message = f"{outcome.name}: {outcome.status}, expected {outcome.expected}"
    if outcome.claim is not None and outcome.status == "PROVED":
        message += f"; {outcome.claim['statement']}: {outcome.claim['size_domain']}"
    if outcome.reason:
        message += f"; {outcome.reason}"
    location: dict[str, Any] = {"logicalLocations": [{"name": outcome.name, "kind": "object"}]}
    if outcome.file:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": quote(_bytes(outcome.file)), "uriBaseId": "SRCROOT"},
            "region": {"startLine": max(1, outcome.line)},
        }
    more = {} if outcome.shown is None else {"counterexample": outcome.shown}
    return {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "kind": "pass" if rule == "as-expected" else "fail",
        "level": _LEVELS.get(rule, "error"),
        "message": {"text": message},
        "locations": [location],
        # a line that moves makes no new result; a status that changes does
        "partialFingerprints": {"claimAndRule/v1": hashlib.sha256(_bytes(f"{outcome.name}\n{rule}")).hexdigest()},
        "properties": {"seconds": outcome.seconds, "origin": outcome.origin, "obligations": outcome.obligations} | more,
    }


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="backslashreplace")
