"""A run puts each text to a solver once: what may be passed on, and what may not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reports import checker
from reports.checker import SOLVERS, replay
from smt_encodings.claims import Answer

TRUE = "(set-logic ALL)\n(declare-fun x () Int)\n(assert (< x x))\n(check-sat)\n"
OPEN = "(set-logic ALL)\n(declare-fun x () Int)\n(assert (< x 1))\n(check-sat)\n"


def certificate(*questions: tuple[str, str]) -> dict[str, object]:
    """The part of a certificate that is replayed: scripts with the answers that they should have."""
    names = [{"group": "g", "name": f"n{k}", "smtlib": s, "expected": e} for k, (s, e) in enumerate(questions)]
    return {"obligations": names}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What was put to which solver, from now on."""
    found: list[tuple[str, str]] = []

    def noting(name: str, check: Callable[[str, float], Answer]) -> Callable[[str, float], Answer]:
        def noted(smtlib: str, timeout: float) -> Answer:
            found.append((name, smtlib))
            return check(smtlib, timeout)

        return noted

    monkeypatch.setattr(checker, "SOLVERS", {name: noting(name, check) for name, check in SOLVERS.items()})
    return found


@pytest.mark.parametrize("solver", ["z3", "cvc5"])
def test_a_text_is_asked_once_whatever_its_comments_say(solver: str, asked: list[tuple[str, str]]) -> None:
    many = certificate((TRUE, "unsat"), ("; one\n; two\n" + TRUE, "unsat"), (OPEN, "sat"), ("; x\n" + OPEN, "sat"))
    done = replay(many, solver)
    assert (done.problems, done.obligations, done.asked) == ((), 4, 2)
    assert asked == [(solver, TRUE), (solver, OPEN)]


def test_answers_are_passed_on_within_a_run_and_to_no_other_solver(asked: list[tuple[str, str]]) -> None:
    answered: dict[str, str] = {}
    assert replay(certificate((TRUE, "unsat")), "cvc5", 60.0, answered).asked == 1
    assert replay(certificate(("; again\n" + TRUE, "unsat")), "cvc5", 60.0, answered).asked == 0
    assert replay(certificate((TRUE, "unsat")), "z3", 60.0, answered).asked == 1
    assert replay(certificate((TRUE, "unsat")), "cvc5").asked == 1
    assert [name for name, _ in asked] == ["cvc5", "z3", "cvc5"]


@pytest.mark.parametrize("solver", ["z3", "cvc5"])
def test_an_answer_that_is_passed_on_is_compared(solver: str) -> None:
    done = replay(certificate((OPEN, "sat"), (OPEN, "unsat"), (TRUE, "sat")), solver)
    assert done.asked == 2 and len(done.problems) == 2
    assert done.problems[0].startswith("g: n1: expected unsat, ") and done.problems[0].endswith(" says sat")
    assert done.problems[1].startswith("g: n2: expected sat, ") and done.problems[1].endswith(" says unsat")


@pytest.mark.parametrize(
    "other",
    [
        OPEN.replace("< x 1", "< x 2"),  # another byte
        "(set-logic ALL)\n; no comment at the head\n" + OPEN.removeprefix("(set-logic ALL)\n"),
        "; \r;\n" + OPEN,  # what ends this line differs between readers
        "; \u2028;\n" + OPEN,
        "\n" + OPEN,
        ";" + OPEN,  # the line with the logic is the comment
    ],
)
def test_another_text_is_another_question(other: str, asked: list[tuple[str, str]]) -> None:
    assert replay(certificate((OPEN, "sat"), (other, "sat")), "cvc5").asked == 2
    assert asked == [("cvc5", OPEN), ("cvc5", other)]


def test_a_comment_alone_asks_nothing() -> None:
    for text in ("; (check-sat)", "; (check-sat)\n"):
        assert len(replay(certificate((text, "unsat"), (text, "unsat")), "cvc5").problems) == 2


def test_what_a_solver_did_not_know_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["unknown", "unknown", "unsat"])
    monkeypatch.setattr(checker, "SOLVERS", {"z3": lambda smtlib, timeout: Answer(next(answers), 0.0, "z3")})
    done = replay(certificate((TRUE, "unsat"), (TRUE, "unsat"), (TRUE, "unsat")), "z3")
    assert done.asked == 2 and len(done.problems) == 1 and "n0" in done.problems[0]
