"""Outcomes as JUnit XML, the form that continuous integration shows as tests: one test case for each claim.

A case passes only if the outcome is as expected.  What is refuted or unproved is a ``failure``, what broke an
``error``, what an interrupted run did not reach is ``skipped``.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from reports.outcomes import NOT_RUN, ProofOutcome

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, escaped or not (production 2, Char)."""


def junit_text(outcomes: Sequence[ProofOutcome]) -> str:
    """The XML document, in the order of the outcomes."""
    kinds = [_kind(o) for o in outcomes]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "time": f"{sum(o.seconds for o in outcomes):.3f}",
    }
    root = ET.Element("testsuites", {"name": "ilaverify", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": "ilaverify prove", **counts})
    for outcome, kind in zip(outcomes, kinds, strict=True):
        attributes = {"classname": f"ilaverify.{outcome.kind}", "name": outcome.name, "time": f"{outcome.seconds:.3f}"}
        if outcome.file:
            attributes |= {"file": outcome.file, "line": str(outcome.line)}
        case = ET.SubElement(suite, "testcase", _clean(attributes))
        if kind:
            message = f"{outcome.status}, expected {outcome.expected}"
            details = {"message": message} if kind == "skipped" else {"message": message, "type": outcome.status}
            ET.SubElement(case, kind, _clean(details)).text = _visible(outcome.reason or message)
        ET.SubElement(case, "system-out").text = _visible("\n".join(_lines(outcome)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _kind(outcome: ProofOutcome) -> str:
    """The element for what went wrong; empty where nothing did."""
    if outcome.as_expected:
        return ""
    return {"ERROR": "error", NOT_RUN: "skipped"}.get(outcome.status, "failure")


def _lines(outcome: ProofOutcome) -> list[str]:
    lines = [f"{outcome.status} ({outcome.method}, {outcome.origin})"]
    if outcome.claim is not None:
        lines += [f"claim: {outcome.claim['statement']}", f"sizes: {outcome.claim['size_domain']}"]
        lines += [f"assumption: {text}" for text in outcome.claim["assumptions"]]
    if outcome.counterexample:
        lines.append(f"counterexample: {outcome.counterexample}")
    return lines + [f"note: {note}" for note in outcome.notes]


def _clean(attributes: dict[str, str]) -> dict[str, str]:
    return {name: _visible(value) for name, value in attributes.items()}


def _visible(text: str) -> str:
    """The text with characters that XML cannot hold written as escapes, for example ``\\x00``."""
    return _NOT_XML.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)
