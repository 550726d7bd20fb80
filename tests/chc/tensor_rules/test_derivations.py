"""Certificates of tensor rules carry derivations: what is missing, edited, reordered or of another rule is rejected."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import pytest

from chc.tensor_rules.check import required_obligations
from chc.tensor_rules.kernel.steps import Rejected
from chc.tensor_rules.portable import read_derivation, written_derivation
from chc.tensor_rules.prove import prove_tensor_rule
from chc.tensor_rules.runs import survey
from reports.binding import binding_problems
from reports.certificate import certificate_of
from reports.checker import replay
from rewrites.claims.subjects.tensor import TensorSubject
from smt_encodings.claims import Status
from smt_encodings.runs import surviving
from tests.rewrites.rules.named import rule_named

RULES = ["relu commutes with max pooling", "average pooling is linear", "matmul in two blocks of the inner axis"]


@cache
def _certificate(name: str) -> str:
    rule = rule_named(name)
    verdict = surviving(prove_tensor_rule(rule), lambda: survey(rule))
    assert verdict.status is Status.PROVED, verdict.reason
    return json.dumps(certificate_of(TensorSubject(name, rule).semantics(), verdict, {}, "test"))


def certificate(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_certificate(name))
    content["claim"]["subject"] = name
    return content


def problems(content: dict[str, Any], name: str) -> list[str]:
    return binding_problems(content, TensorSubject(name, rule_named(name)))


@pytest.mark.parametrize("name", RULES)
def test_a_certificate_is_checked_without_a_search(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = certificate(name)
    monkeypatch.setattr("chc.tensor_rules.prove.prove_tensor_rule", None)
    assert problems(content, name) == []
    assert replay(content, "z3").problems == ()


@pytest.mark.parametrize("name", RULES)
def test_reading_gives_back_what_was_written(name: str) -> None:
    content = certificate(name)["derivation"]
    del content["example"]
    assert written_derivation(read_derivation(content)) == content


def test_a_derivation_of_another_rule_is_rejected() -> None:
    for name, other in zip(RULES, RULES[1:] + RULES[:1], strict=True):
        forged = certificate(name) | {"derivation": certificate(other)["derivation"]}
        assert "does not accept the derivation" in problems(forged, name)[0]


def test_a_derivation_that_is_missing_or_empty_is_rejected() -> None:
    for derivation in ({}, {"example": {}, "at": {}, "steps": [], "terms": []}, {"steps": 3}):
        assert problems(certificate(RULES[0]) | {"derivation": derivation}, RULES[0])


def _edits(content: dict[str, Any]) -> Iterator[tuple[str, Callable[[dict[str, Any]], object]]]:
    """Edits of which none leaves a derivation: what holds trivially, or is not needed, is left alone."""
    for j, (law, _, left, right, premises, data) in enumerate(content["steps"]):
        yield f"step {j} dropped", lambda d, j=j: d["steps"].pop(j)
        if left == right:
            continue
        yield f"step {j} of another law", lambda d, j=j: d["steps"][j].__setitem__(0, "renamed")
        yield (
            f"sides of step {j} exchanged",
            lambda d, j=j: d["steps"][j].__setitem__(slice(2, 4), d["steps"][j][3:1:-1]),
        )
        if premises and law != "sums of products":  # facts may be more than are needed
            yield f"premises of step {j} dropped", lambda d, j=j: d["steps"][j].__setitem__(4, [])
            earlier = [p - 1 for p in premises]
            yield f"premises of step {j} moved", lambda d, j=j, p=earlier: d["steps"][j].__setitem__(4, p)
        if any(part is not None for part in data):
            yield f"data of step {j} dropped", lambda d, j=j: d["steps"][j].__setitem__(5, [])


@pytest.mark.parametrize("name", RULES)
def test_an_edited_derivation_is_rejected(name: str) -> None:
    original = certificate(name)
    accepted, edits = [], list(_edits(original["derivation"]))
    for what, edit in edits:
        derivation = deepcopy(original["derivation"])
        edit(derivation)
        try:
            needed = required_obligations(rule_named(name), derivation)
        except Rejected:
            continue
        given = {(o["group"], o["name"]): o["smtlib"] for o in original["obligations"]}
        if all((n.group, n.name) in given and n.met_by(given[n.group, n.name]) for n in needed):
            accepted.append(what)
    assert len(edits) > 5 and accepted == []


@pytest.mark.parametrize("name", RULES)
def test_a_reordered_derivation_is_rejected(name: str) -> None:
    content = certificate(name)["derivation"]
    content["steps"].reverse()
    with pytest.raises(Rejected):
        required_obligations(rule_named(name), content)


def smallest(*terms: Any) -> dict[str, Any]:
    """A derivation of one step, with more terms; term 1 is 0 as an index, term 2 an element."""
    return {"at": {}, "steps": [["chain", 0, 2, 2, [], []]], "terms": [["under"], ["index"], ["read", "x"], *terms]}


@pytest.mark.parametrize(
    "term",
    [
        ["read", "q!1"],
        ["reduce", "sum", "x y", 1, 2],
        ["truth", "m!", True],
        ["truth", "m", 1],
        ["index", [1, [1, 1]]],
        ["index", [1, "x!"]],
        ["index", [1.5]],
        ["number", "one"],
        ["read", "x", 99],
        ["read", "x", -3],
        ["read", "x", True],
        ["read", "x", 2],
        ["apply", "exp", 1],
        ["hope"],
    ],
)
def test_what_is_no_term_is_rejected(term: list[Any]) -> None:
    read_derivation(smallest(["reduce", "sum", "y", 1, 2], ["truth", "m", True], ["read", "x", 1]))
    with pytest.raises(Rejected, match="the derivation must be of the published form"):
        read_derivation(smallest(term))


@pytest.mark.parametrize(
    "change",
    [
        {"more": []},
        {"steps": [["chain", 0, 2, 2, [-1], []]] * 2},
        {"steps": [["chain", 0, 2, 2, [], []], ["chain", 0, 2, 2, [-1], []]]},
        {"steps": [["chain", 0, 2, 2, [], []], ["chain", 0, 2, 2, [False], []]]},
        {"steps": [["chain", 0, 2, 2, [0], []]]},
        {"steps": [["chain", 0, -1, 2, [], []]]},
        {"at": {"x!": 1}},
        {"at": {"x": 2}},
        {"terms": [["under"], ["index"], ["read", "x"], *[["read", "x"]] * 100_000]},
    ],
    ids=lambda change: str(change)[:60],
)
def test_what_is_no_derivation_is_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(Rejected, match="the derivation must be of the published form"):
        read_derivation(smallest() | change)


def test_a_term_that_is_too_large_is_rejected_at_once() -> None:
    rule = rule_named(RULES[0])
    content = certificate(RULES[0])["derivation"]
    doubled = [["read", "x"], *(["apply", "add", j, j] for j in range(60))]
    with pytest.raises(Rejected, match="a term has at most 1000000 parts"):
        required_obligations(rule, content | {"terms": doubled})
    nested = [["under"], ["read", "x"], *(["apply", "exp", j] for j in range(1, 5000))]
    last = len(nested) - 1
    with pytest.raises(Rejected):
        required_obligations(rule, content | {"terms": nested, "steps": [["chain", 0, last, last, [], []]], "at": {}})


def test_an_obligation_that_the_derivation_does_not_need_is_not_enough() -> None:
    content = certificate(RULES[0])
    content["obligations"].pop()
    assert any("this obligation is missing" in p for p in problems(content, RULES[0]))


def test_other_claims_have_no_derivation() -> None:
    subject = TensorSubject(RULES[0], rule_named(RULES[0]))
    content = certificate(RULES[0])
    required = subject.required(content)
    assert not isinstance(required, str) and required.derived
