"""JUnit XML: the structure that readers of it rely on, what counts as what, hostile texts."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.formats.junit import junit_text
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


def suite_of(outcomes: list[ProofOutcome]) -> ET.Element:
    """The suite, after the structure was checked."""
    root = ET.fromstring(junit_text(outcomes).encode())
    assert root.tag == "testsuites" and [child.tag for child in root] == ["testsuite"]
    (suite,) = root
    cases = list(suite)
    assert {case.tag for case in cases} <= {"testcase"}
    for case in cases:
        assert {"name", "classname", "time"} <= case.attrib.keys()
        tags = [child.tag for child in case]
        assert tags in ([*[t], "system-out"] for t in ("failure", "error", "skipped")) or tags == ["system-out"]
        assert all("message" in child.attrib for child in case if child.tag != "system-out")
    for element in (root, suite):
        assert element.attrib["tests"] == str(len(cases))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert element.attrib[attribute] == str(len(suite.findall(f"testcase/{tag}"))), attribute
        assert float(element.attrib["time"]) == pytest.approx(sum(float(c.attrib["time"]) for c in cases), abs=0.01)
    return suite


def test_the_structure() -> None:
    suite = suite_of(ALL)
    assert [case.attrib["name"] for case in suite][:-1] == [o.name for o in ALL[:-1]]
    assert [suite.attrib[n] for n in ("tests", "failures", "errors", "skipped")] == ["10", "5", "1", "1"]
    assert junit_text(ALL) == junit_text(ALL) and len(suite_of([])) == 0


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [(PROVED, None), (STORED, None), (FALSE, None), (WRONG, "failure"), (UNSOUND, "failure"), (UNKNOWN, "failure"),
     (VACUOUS, "failure"), (BROKEN, "error"), (LEFT, "skipped"), (replace(PROVED, document=""), "failure")],
)  # fmt: skip
def test_what_counts_as_what(outcome: ProofOutcome, kind: str | None) -> None:
    (case,) = suite_of([outcome])
    assert [child.tag for child in case if child.tag != "system-out"] == ([kind] if kind else [])
    if kind:
        told = case.find(kind)
        assert told is not None and told.attrib["message"] == f"{outcome.status}, expected {outcome.expected}"
        assert told.text == (outcome.reason or told.attrib["message"])


def test_what_a_case_tells() -> None:
    (case,) = suite_of([PROVED])
    assert case.attrib == {
        "classname": "ilaverify.mapping", "name": "good", "time": "1.250", "file": "rewrites/a.py", "line": "12",
    }  # fmt: skip
    assert case.findtext("system-out") == (
        "PROVED (chc, this run)\nclaim: good is right\nsizes: 1 <= n <= 9\nassumption: the host waits"
    )


def test_hostile_texts() -> None:
    (case,) = suite_of([NASTY])
    assert case.attrib["name"].startswith("a<b>&\"'|`*_[x](y) ]]> \\x00\\x1b[31m\\ud800\\ufffe é \u202e # ")
    assert "new | line" in case.attrib["name"]


@given(st.text(st.characters(), max_size=30))
def test_any_text_survives(text: str) -> None:
    outcome = replace(WRONG, name=text, reason=text, counterexample=text, notes=(text,))
    suite_of([outcome])
