"""PROVED is said last, in one place, and only of what was discharged."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import pytest

from smt_encodings.claims import Answer, Claim, Equality, Obligation, Status, Verdict, conclude
from smt_encodings.discharge import Discharger, Requirements

CLAIM = Claim("it", "holds", "everywhere", Equality.BIT_EXACT, (), ())
ROOT = Path(__file__).parents[2]


def obligation(*statuses: str, expected: str = "unsat") -> Obligation:
    answers = tuple(Answer(s, 0.0, solver) for s, solver in zip(statuses, ("z3", "cvc5"), strict=False))
    return Obligation("all elements", "elements", "(check-sat)\n", expected, "equal", answers)


GOOD = obligation("unsat", "unsat")


def test_proved_needs_grounds() -> None:
    assert conclude([GOOD]) == (Status.PROVED, "")
    assert conclude([], "normal form") == (Status.PROVED, "")
    nothing = Status.ERROR, "PROVED needs an obligation, an enumeration or a derivation; this attempt has none"
    assert conclude([]) == nothing
    verdict = Verdict(Status.PROVED, CLAIM, "chc", 0.0)
    assert (verdict.status, verdict.reason) == nothing


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (obligation(), "needs the answer unsat; nobody was asked"),
        (obligation("unsat", "unknown"), "needs the answer unsat; z3: unsat, cvc5: unknown"),
        (obligation("sat"), "needs the answer unsat; z3: sat"),
        (obligation("unsat", expected="sat"), "needs the answer sat; z3: unsat"),
    ],
)
def test_proved_needs_every_answer(bad: Obligation, said: str) -> None:
    for grounds in ({}, {"decided_by": "normal form"}):
        verdict = Verdict(Status.PROVED, CLAIM, "chc", 0.0, obligations=[GOOD, bad], details=dict(grounds))
        assert verdict.status is Status.ERROR
        assert verdict.reason == f"PROVED needs every obligation discharged; 'all elements' (elements) {said}"


def test_two_obligations_of_one_name_are_an_error() -> None:
    """``check`` compares obligations by group and name: of two that share both, it could see one."""
    other = replace(GOOD, smtlib="(assert true)\n(check-sat)\n")
    said = "PROVED needs obligations with names of their own; two are called 'all elements' (elements)"
    assert conclude([GOOD, other]) == (Status.ERROR, said) == Discharger(obligations=[GOOD, GOOD]).conclude()
    verdict = Verdict(
        Status.PROVED, CLAIM, "chc", 0.0, obligations=[GOOD, other], details={"decided_by": "normal form"}
    )
    assert (verdict.status, verdict.reason) == (Status.ERROR, said)
    for apart in ({"name": "one element"}, {"group": "values"}):
        assert conclude([GOOD, replace(other, **apart)])[0] is Status.PROVED


@pytest.mark.parametrize("details", [{"enumerations": [{}]}, {"derivation": ["step"]}, {"decided_by": "normal form"}])
def test_grounds_without_a_solver(details: dict[str, object]) -> None:
    assert Verdict(Status.PROVED, CLAIM, "lemma", 0.0, details=details).status is Status.PROVED
    empty = Verdict(Status.PROVED, CLAIM, "lemma", 0.0, details=dict.fromkeys(details, None))
    assert empty.status is Status.ERROR


def test_no_verdict_becomes_proved() -> None:
    verdict = Verdict(Status.UNKNOWN, CLAIM, "chc", 0.0, obligations=[GOOD])
    with pytest.raises(TypeError, match="A verdict is PROVED when it is made or never"):
        verdict.status = Status.PROVED
    assert verdict.status is Status.UNKNOWN
    assert replace(verdict, status=Status.PROVED).status is Status.PROVED
    assert replace(verdict, status=Status.PROVED, obligations=[]).status is Status.ERROR


def test_dischargers_conclude() -> None:
    assert Discharger().conclude()[0] is Status.ERROR
    assert Discharger(obligations=[GOOD]).conclude() == (Status.PROVED, "")
    written = Requirements()
    assert not written.complete
    assert written.conclude() == (Status.UNKNOWN, "the obligations were written down, and nobody was asked")
    assert written.complete


def _said(tree: ast.AST) -> Iterator[ast.AST]:
    """Where ``Status.PROVED`` is returned with a reason, made a verdict's status, or assigned to one."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and node.attr == "PROVED" and ast.unparse(node.value) == "Status"):
            continue
        parent = parents[node]
        while isinstance(parent, (ast.IfExp, ast.Tuple)):
            node, parent = parent, parents[parent]
            if isinstance(node, ast.Tuple) and not isinstance(parent, ast.Compare):
                yield node
        if isinstance(parent, ast.Call) and ast.unparse(parent.func).endswith(("Verdict", "Finding")):
            yield parent
        if isinstance(parent, ast.Assign):
            targets = [t for target in parent.targets for t in ast.walk(target)]
            if any(ast.unparse(t).rpartition(".")[2] == "status" for t in targets):
                yield parent


def test_provers_say_it_nowhere_else() -> None:
    folders = ("bmc", "chc", "encodings", "ilaverify", "reports", "rewrites")
    found = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "Status.PROVED" in (text := path.read_text(encoding="utf-8"))
        for node in _said(ast.parse(text))
    ]
    door = [place for place in found if place.startswith("encodings/smt_encodings/claims.py")]
    assert len(door) == 1 and found == door


@pytest.mark.parametrize(
    "text",
    [
        "status, reason = Status.PROVED, ''",
        "verdict = Verdict(Status.PROVED, claim, 'chc', 0.0)",
        "verdict.status = Status.PROVED",
        "status = Status.REFUTED if bad else Status.PROVED",
        "def f():\n    return Status.PROVED, '' if x else y",
        "return_ = Finding(name, Status.REFUTED if bad else Status.PROVED, {})",
    ],
)
def test_such_places_are_found(text: str) -> None:
    assert list(_said(ast.parse(text)))


@pytest.mark.parametrize(
    "made",
    [
        Answer("unsat", 0.0, "z3"),
        Obligation("n", "g", "(check-sat)", "unsat", "m"),
        Claim("s", "t", "d", Equality.BIT_EXACT, (), ()),
    ],
    ids=lambda made: type(made).__name__,
)
def test_what_was_said_does_not_change(made: object) -> None:
    for field in fields(made):  # type: ignore[arg-type]
        with pytest.raises(FrozenInstanceError):
            setattr(made, field.name, "other")
