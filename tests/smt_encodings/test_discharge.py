"""Obligations: which scripts meet a requirement, how solvers are asked, and what their answers may be."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pysmt.shortcuts as smt
import pytest
from pysmt.environment import Environment, pop_env, push_env
from pysmt.smtlib.printers import to_smtlib
from pysmt.typing import BOOL, INT, BVType, FunctionType

from smt_encodings import answers, discharge
from smt_encodings.claims import Answer, Obligation, Status
from smt_encodings.discharge import Discharger, NotDischarged, Requirement, Requirements, conjuncts, decide
from smt_encodings.printer import script, term_text
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

ENVIRONMENT = Environment()  # symbols below are made while this module is imported; conftest.py gives them to each test
ENVIRONMENT.enable_infix_notation = True
push_env(ENVIRONMENT)

X, Y = smt.Symbol("x", INT), smt.Symbol("y", INT)
GOAL = smt.LT(smt.Plus(X, Y), smt.Int(20))
HYPOTHESES = [smt.LT(X, smt.Int(10)), smt.LT(Y, smt.Int(10)), smt.LE(smt.Int(0), X)]


def required(exact: bool = False) -> Requirement:
    text = script([smt.Not(GOAL), *HYPOTHESES], comment="a theorem\nof two lines")
    return Requirement("group", "name", "unsat", text, exact)


LINES = required().smtlib.splitlines()


def text(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def test_the_script_itself_is_met_and_comments_do_not_count() -> None:
    for exact in (False, True):
        assert required(exact).met_by(required().smtlib)
        assert required(exact).met_by(text("; other words", *LINES[2:]))


@pytest.mark.parametrize("kept", [(1, 1, 1), (1, 1, 0), (0, 0, 0), (0, 1, 1)])
def test_hypotheses_may_be_left_out_unless_the_script_must_be_exact(kept: tuple[int, ...]) -> None:
    chosen = [h for h, keep in zip(HYPOTHESES, kept, strict=True) if keep]
    fewer = script([smt.Not(GOAL), *chosen])
    assert required().met_by(fewer)
    assert required(exact=True).met_by(fewer) is all(kept)


REPLACED = {
    "goal": ("(not (< (+ x y) 20))", "(not (< (+ x y) 21))"),
    "goal dropped": ("(assert (not (< (+ x y) 20)))\n", ""),
    "hypothesis changed": ("(< x 10)", "(< x 9)"),
    "declaration changed": ("(declare-fun x () Int)", "(declare-fun x () Real)"),
    "definition for declaration": ("(declare-fun x () Int)", "(define-fun x () Int 3)"),
    "assertion added": ("(check-sat)", "(assert (= x 0))\n(check-sat)"),
    "contradiction added": ("(check-sat)", "(assert false)\n(check-sat)"),
    "assertion before the goal": ("(assert (not", "(assert (< x 10))\n(assert (not"),
    "contradiction on the line of another": ("(check-sat)", "(check-sat)(assert false)"),
    "definition added": ("(check-sat)", "(define-fun z () Int 0)\n(check-sat)"),
    "option added": ("(set-logic ALL)", "(set-option :produce-models true)\n(set-logic ALL)"),
    "output redirected": ("(check-sat)", '(set-option :regular-output-channel "x")\n(check-sat)'),
    "push": ("(check-sat)", "(push)\n(check-sat)"),
    "reset": ("(check-sat)", "(reset)\n(assert false)\n(check-sat)"),
    "echo": ("(check-sat)", '(check-sat)\n(echo "unsat")'),
    "question with assumptions": ("(check-sat)", "(check-sat-assuming (false))"),
    "other logic": ("(set-logic ALL)", "(set-logic QF_LIA)"),
    "assertion over two lines": ("(check-sat)", "(assert\nfalse)\n(check-sat)"),
    "goal over two lines": ("(assert (not (< (+ x y) 20)))", "(assert (not\n(< (+ x y) 20)))"),
    "leading space": ("(check-sat)", " (assert false)\n(check-sat)"),
    "tab": ("(check-sat)", "\t(assert false)\n(check-sat)"),
    "return": ("(check-sat)", ";\r(assert false)\n(check-sat)"),
    "all lines end with CRLF": ("\n", "\r\n"),
    "CRLF before an assertion": ("(check-sat)", "; a\r\n(assert false)\r\n(check-sat)"),
    "goal hidden in a comment": ("(assert (not", ";\x0b(assert (not"),
    "goal hidden behind a next line": ("(assert (not", ";\x85(assert (not"),
    "goal hidden behind a line separator": ("(assert (not", ";\u2028(assert (not"),
    "goal in a comment": ("(assert (not", "; (assert (not"),
    "null byte": ("(check-sat)", "\x00(check-sat)"),
    "quoted symbol around the rest": ("(check-sat)", "(declare-fun |\n(check-sat)\n| () Int)"),
    "string around the rest": ("(check-sat)", '(echo "\n(check-sat)\n")'),
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("change", REPLACED)
def test_any_other_line_is_refused(change: str, exact: bool) -> None:
    old, new = REPLACED[change]
    changed = required().smtlib.replace(old, new)
    assert changed != required().smtlib
    assert not required(exact).met_by(changed)


@pytest.mark.parametrize("mark", ["|p{}|", '"p{}"', '|"| "p{}"'])
def test_a_line_in_a_quoted_name_or_text_is_no_comment(mark: str) -> None:
    one, other = (f"(set-logic ALL)\n(assert (f {mark.format(f'{chr(10)};{n}{chr(10)}')}))\n" for n in (1, 2))
    for exact in (False, True):
        assert not Requirement("group", "name", "unsat", one, exact).met_by(other)
    asked = []

    def check(smtlib: str, timeout: float, patience: float) -> Answer:
        asked.append(smtlib)
        return Answer("unsat", 0.0, "nobody")

    for text_ in (one, other, one):
        answers.ask(check, text_, 5)
    assert asked == [one, other]


@pytest.mark.parametrize(
    "change", ["", "\n", ";", "(check-sat)\n", "(assert false)\n(check-sat)\n", text(*LINES[:-1])[:-20]]
)
def test_a_script_without_the_goal_is_refused(change: str) -> None:
    assert not required(exact=True).met_by(change)
    assert not required().met_by(change)


def test_an_exact_script_must_have_its_order_and_no_line_twice() -> None:
    assert not required(exact=True).met_by(text(*reversed(LINES)))
    assert not required(exact=True).met_by(text(*LINES, "(check-sat)"))


# -- asking -----------------------------------------------------------------------------------------


def test_a_theorem_is_discharged_by_both_solvers_from_enough_hypotheses() -> None:
    seen: list[Obligation] = []
    discharger = Discharger(timeout=5, progress=seen.append)
    found = discharger.follows("g", "n", HYPOTHESES, GOAL, "meaning")
    assert found.discharged and [a.solver.split()[0] for a in found.answers] == ["z3", "cvc5"]
    assert discharger.obligations == seen == [found]
    assert required().met_by(found.smtlib)
    assert "; g: n\n; meaning\n" in found.smtlib


@pytest.mark.parametrize("hypotheses", [HYPOTHESES[:1], [], HYPOTHESES[1:]])
def test_what_does_not_follow_is_not_discharged(hypotheses: list[object]) -> None:
    discharger = Discharger(timeout=5)
    with pytest.raises(NotDischarged, match=r"'n' \(g\) needs the answer unsat; z3 .*: sat") as caught:
        discharger.follows("g", "n", hypotheses, GOAL, "meaning")
    assert not caught.value.obligation.discharged
    assert [o.discharged for o in discharger.obligations] == [False]


def test_all_hypotheses_are_used_where_they_are_needed() -> None:
    chain = [smt.Symbol(f"c{i}", INT) for i in range(12)]
    steps = [smt.LT(a, b) for a, b in itertools.pairwise(chain)]
    noise = [smt.LT(X, Y)] * 3
    assert (
        Discharger(timeout=5).follows("g", "n", [smt.And(*noise, *steps)], smt.LT(chain[0], chain[-1]), "m").discharged
    )


class Solvers:
    """Solvers that answer what is in few assertions, or in some order; they count what they are asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, z3: Callable[[str], str], cvc5: Callable[[str], str]) -> None:
        self.asked: list[tuple[str, str]] = []
        for module, answer in ((solver_z3, z3), (solver_cvc5, cvc5)):
            name = module.__name__.rpartition(".")[2]

            def check(smtlib: str, *_: float, name: str = name, answer: Callable[[str], str] = answer) -> Answer:
                self.asked.append((name, smtlib))
                return Answer(answer(smtlib), 0.0, name)

            monkeypatch.setattr(module, "check", check)
        monkeypatch.setattr(answers, "_ANSWERED", {})
        monkeypatch.setattr(discharge, "_enough", lambda hypotheses, goal: hypotheses)


def assertions(smtlib: str) -> int:
    return smtlib.count("(assert ")


EQUATION = smt.Equals(X, smt.Symbol("c", INT))


def equation_first(smtlib: str) -> bool:
    return "(assert (= x c))" in [line for line in smtlib.splitlines() if line.startswith("(assert")][1:2]


def test_what_cvc5_does_not_answer_is_asked_with_fewer_hypotheses(monkeypatch: pytest.MonkeyPatch) -> None:
    core = solver_z3.core
    waits: list[float] = []

    def patient(text: str, seconds: float, patience: float) -> list[int] | None:
        waits.append(seconds)
        return core(text, 5.0) if seconds > 1 else None

    def few(text: str) -> str:
        return "unsat" if assertions(text) <= 3 else "unknown"

    monkeypatch.setattr(solver_z3, "core", patient)
    solvers = Solvers(monkeypatch, lambda text: "unsat" if assertions(text) > 2 else "unknown", few)
    found = Discharger().follows("g", "n", [*HYPOTHESES, smt.LT(Y, smt.Int(100))], GOAL, "m")
    assert found.discharged and assertions(found.smtlib) == 3
    assert waits == [0.3, discharge.SECOND]
    assert required().met_by(found.smtlib)
    assert ("cvc5", found.smtlib) in solvers.asked


@pytest.mark.parametrize("late", ["z3", "cvc5"])
def test_what_one_solver_does_not_answer_is_asked_with_equations_first(
    late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solver_z3, "core", lambda *_: None)
    orders = {"z3": lambda _: "unsat", "cvc5": lambda _: "unsat"} | {
        late: lambda text: "unsat" if equation_first(text) else "unknown"
    }
    Solvers(monkeypatch, orders["z3"], orders["cvc5"])
    found = Discharger().follows("g", "n", [*HYPOTHESES, EQUATION], GOAL, "m")
    assert found.discharged and equation_first(found.smtlib)
    exact = Requirement("g", "n", "unsat", script([smt.Not(GOAL), *HYPOTHESES, EQUATION]), False)
    assert exact.met_by(found.smtlib)


def test_what_neither_solver_answers_and_what_is_false_has_no_other_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_z3, "core", lambda *_: None)
    monkeypatch.setattr(discharge, "_other_forms", lambda *_: pytest.fail("another form was asked"))
    for z3, cvc5, said in (
        ("unknown", "unknown", "z3: unknown"),
        ("unknown", "sat", "z3: unknown"),
        ("unsat", "sat", "z3: unsat, cvc5: sat"),
        ("sat", "unsat", "z3: sat"),
    ):
        Solvers(monkeypatch, lambda _, z3=z3: z3, lambda _, cvc5=cvc5: cvc5)  # type: ignore[misc]
        with pytest.raises(NotDischarged, match=f"needs the answer unsat; {said}$"):
            Discharger().follows("g", "n", HYPOTHESES, GOAL, "m")


def test_what_no_form_helps_is_not_discharged(monkeypatch: pytest.MonkeyPatch) -> None:
    for z3, cvc5 in (("unsat", "unknown"), ("unknown", "unsat")):
        Solvers(monkeypatch, lambda _, z3=z3: z3, lambda _, cvc5=cvc5: cvc5)  # type: ignore[misc]
        with pytest.raises(NotDischarged, match=f"needs the answer unsat; z3: {z3}, cvc5: {cvc5}$"):
            Discharger().follows("g", "n", [*HYPOTHESES, EQUATION], GOAL, "m")
        Solvers(monkeypatch, lambda _, z3=z3: z3, lambda _: "unknown")  # type: ignore[misc]
        alone = Discharger(second=False)
        if z3 == "unknown":
            with pytest.raises(NotDischarged, match=r"needs the answer unsat; z3: unknown$"):
                alone.follows("g", "n", HYPOTHESES, GOAL, "m")


class Ready:
    """A background question that is answered already."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.stopped = False

    def wait(self) -> Answer:
        return self.answer

    def stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize(
    "first,second", [("unknown", "unsat"), ("sat", "unsat"), ("unsat", "sat"), ("unsat", "unknown")]
)
def test_one_answer_that_is_not_the_expected_one_is_too_many(
    first: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solver_z3, "check", lambda *_: Answer(first, 0.0, "z3 x"))
    monkeypatch.setattr(solver_cvc5, "check", lambda *_: Answer(second, 0.0, "cvc5 x"))
    monkeypatch.setattr(solver_cvc5, "start", lambda *_: Ready(Answer(second, 0.0, "cvc5 x")))
    with pytest.raises(NotDischarged):
        Discharger().ask("g", "n", [GOAL], "m")
    with pytest.raises(NotDischarged):
        Discharger().follows("g", "n", HYPOTHESES, GOAL, "m")
    with pytest.raises(NotDischarged):
        background = Discharger()
        background.ask_in_background(Obligation("n", "g", "(check-sat)", "unsat", "m"))
        background.settle()


def test_a_background_answer_joins_its_obligation() -> None:
    discharger = Discharger(timeout=10)
    discharger.ask_in_background(Obligation("n", "g", script([smt.And(X < 0, X > 0)]), "unsat", "m"))
    assert len(discharger.obligations[0].answers) == 0 and not discharger.obligations[0].discharged
    discharger.settle()
    assert [a.status for a in discharger.obligations[0].answers] == ["unsat", "unsat"]
    assert discharger.obligations[0].discharged


def test_abandoned_questions_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = Ready(Answer("unsat", 0.0, "cvc5 x"))
    monkeypatch.setattr(solver_cvc5, "start", lambda *_: ready)
    discharger = Discharger(timeout=10)
    discharger.ask_in_background(Obligation("n", "g", script([smt.And(X < 0, X > 0)]), "unsat", "m"))
    discharger.abandon()
    discharger.settle()
    assert ready.stopped and len(discharger.obligations[0].answers) == 1


def test_a_background_process_that_fails_is_an_error() -> None:
    pending = solver_cvc5.start("(set-logic ALL)\n(assert nothing)\n(check-sat)\n", 5)
    with pytest.raises(RuntimeError, match="cvc5 process ended"):
        pending.wait()


def test_ctrl_c_that_ends_a_background_process_is_no_failure() -> None:
    script = "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGINT)"
    with pytest.raises(KeyboardInterrupt):
        solver_cvc5.Pending(subprocess.Popen([sys.executable, "-c", script], text=True)).wait()


def test_what_takes_long_has_the_same_answer_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_cvc5, "ALONE", 0.0)
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.default_int_handler)
    asked: list[tuple[float, ...]] = []
    begin = solver_cvc5.start
    monkeypatch.setattr(solver_cvc5, "start", lambda text, *most: asked.append(most) or begin(text, *most))  # type: ignore[func-returns-value]
    answer = solver_cvc5.check(script([X > 1, Y > X, smt.Equals(X * Y * Y, smt.Int(2023))]), 20.0, 30.0)
    assert answer.status == "sat" and asked == [(20.0, 30.0)]


def test_a_health_check_expects_sat() -> None:
    assert Discharger(timeout=5).ask("g", "n", HYPOTHESES, "m", expected="sat").discharged
    with pytest.raises(NotDischarged):
        Discharger(timeout=5).ask("g", "n", [X < 0, X > 0], "m", expected="sat")


def test_an_obligation_that_nobody_answered_is_not_discharged() -> None:
    assert not Obligation("n", "g", "(check-sat)", "unsat", "m").discharged


def test_requirements_ask_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for solver in (solver_z3, solver_cvc5):
        monkeypatch.setattr(solver, "check", lambda *_: pytest.fail("a solver was asked"))
    requirements = Requirements()
    requirements.follows("g", "a", HYPOTHESES, smt.FALSE(), "m")
    requirements.ask("g", "b", [smt.TRUE()], "m", expected="sat")
    requirements.ask_in_background(Obligation("c", "g", "(check-sat)", "unsat", "m"))
    requirements.settle()
    assert [(r.name, r.expected, r.exact) for r in requirements.required] == [
        ("a", "unsat", False),
        ("b", "sat", True),
        ("c", "unsat", True),
    ]
    assert requirements.obligations == []


def test_conjunctions_are_taken_apart() -> None:
    a, b, c = (smt.Symbol(n, BOOL) for n in ("p", "q", "r"))
    assert conjuncts([smt.And(a, smt.And(b, c)), b]) == [a, b, c]


def test_decide_says_true_only_on_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decide(HYPOTHESES, GOAL) and not decide(HYPOTHESES[:1], GOAL)
    for module in (solver_z3, solver_cvc5):
        monkeypatch.setattr(module, "check", lambda *_: Answer("unknown", 0.0, ""))
    assert not decide(HYPOTHESES, GOAL)
    assert discharge.QUICK > 0


@pytest.mark.parametrize("status", ["sat", "unsat"])
def test_the_first_answer_decides_and_no_other_is_asked_for(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, float, float]] = []

    def solver(name: str, *answers: str) -> Callable[[str, float, float], Answer]:
        left = list(answers)

        def check(_: str, seconds: float, patience: float) -> Answer:
            asked.append((name, seconds, patience))
            return Answer(left.pop(0), 0.0, name)

        return check

    for mine, theirs, wanted in (
        ([status], [], ["z3"]),
        (["unknown"], [status], ["z3", "cvc5"]),
        (["unknown", status], ["unknown"], ["z3", "cvc5", "z3"]),
    ):
        monkeypatch.setattr(solver_z3, "check", solver("z3", *mine))
        monkeypatch.setattr(solver_cvc5, "check", solver("cvc5", *theirs))
        asked.clear()
        assert decide(HYPOTHESES, GOAL, 3.0) is (status == "unsat")
        assert asked == [(n, t, discharge.PATIENCE) for n, t in zip(wanted, (discharge.MOMENT, 1.0, 3.0), strict=False)]


@pytest.mark.parametrize(("took", "given", "wanted", "again"), [(0.5, 8, 1, False), (2, 8, 1, True), (2, 1, 1, False)])
def test_an_answer_is_taken_again_unless_it_needs_more_time(
    took: float, given: float, wanted: float, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the last one took longer by the clock than it was given, on a busy machine, and would take as long again
    monkeypatch.setattr(answers, "_ANSWERED", {})
    calls: list[float] = []

    def check(_: str, seconds: float, patience: float) -> Answer:
        calls.append(seconds)
        return Answer("unsat", took, "a solver")

    for seconds in (given, wanted):
        assert answers.ask(check, "(check-sat)", seconds, 5.0).status == "unsat"
    assert calls == ([given, wanted] if again else [given])


def test_answers_are_told_to_another_process_with_the_names_that_were_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    # as in a process that was forked, and then in the one it was forked from
    monkeypatch.setattr(answers, "_ANSWERED", {})
    monkeypatch.setattr(answers, "_OWN", {})
    y = smt.Symbol("y", INT)
    true, false = (script([smt.Equals(X, smt.Int(3)), smt.GT(X, smt.Int(n))]) for n in (2, 3))
    given = [answers.ask(solver_z3.check, text, 5) for text in (true, false)]
    assert [(a.status, a.model.get("x")) for a in given] == [("sat", 3), ("unsat", None)]
    text = json.dumps(answers.told())

    def asked(*_: object, **__: object) -> Answer:
        raise AssertionError("asked again")

    monkeypatch.setattr(answers, "_ANSWERED", {})
    monkeypatch.setattr(solver_z3, "_attempt", asked)
    answers.believe(json.loads(text))
    assert [answers.ask(solver_z3.check, text, 5) for text in (true, false)] == given
    assert answers.ask(solver_z3.check, false.replace("x", "y"), 5) == given[1]
    for other in (true.replace("x", "y"), script([smt.Equals(y, smt.Int(4)), smt.GT(y, smt.Int(4))])):
        with pytest.raises(AssertionError, match="asked again"):
            answers.ask(solver_z3.check, other, 5)
    monkeypatch.setattr(solver_cvc5, "_answer", asked)
    with pytest.raises(AssertionError, match="asked again"):  # one solver does not answer for the other
        answers.ask(solver_cvc5.check, false, 5)


@pytest.mark.parametrize("what", [Status.PROVED, Status.UNKNOWN])
def test_a_status_is_not_a_truth_value(what: Status) -> None:
    with pytest.raises(TypeError, match="compare its status"):
        bool(what)


# -- printer ----------------------------------------------------------------------------------------


V, W = smt.Symbol("v", BVType(8)), smt.Symbol("w", BVType(8))
F = smt.Symbol("f", FunctionType(BVType(8), [BVType(8)]))
ARRAY = smt.Symbol("m", smt.ArrayType(BVType(4), BVType(8)))
TERMS = {
    "bits": ([smt.BVULT(V, smt.BVAdd(V, W))], "QF_BV", "sat"),
    "bits that contradict": ([smt.BVULT(V, W), smt.BVULT(W, V)], "QF_BV", "unsat"),
    "bits and Booleans": ([smt.Iff(smt.Symbol("p", BOOL), smt.Equals(V, W))], "ALL", "sat"),
    "functions": ([smt.Equals(V, W), smt.Not(smt.Equals(smt.Function(F, [V]), smt.Function(F, [W])))], "ALL", "unsat"),
    "arrays": ([smt.Equals(smt.Select(ARRAY, smt.BV(3, 4)), V)], "ALL", "sat"),
    "integers": ([smt.Equals(X, smt.Int(-3)), smt.LE(smt.Times(X, X), smt.Int(8))], "ALL", "unsat"),
    "names": ([smt.Equals(smt.Symbol("a b", INT), smt.Symbol("size!e1!div16", INT))], "ALL", "sat"),
    "no symbols": ([smt.FALSE()], "ALL", "unsat"),
    "nothing": ([], "ALL", "sat"),
}


@pytest.mark.parametrize("what", TERMS)
def test_scripts_are_read_by_both_solvers(what: str) -> None:
    terms, logic, status = TERMS[what]
    printed = script(terms, comment="a\nb\x0bc\u2028(assert false)")
    assert f"(set-logic {logic})" in printed
    assert printed.count("(check-sat)") == 1 and printed.endswith("(check-sat)\n")
    assert solver_z3.check(printed, 5).status == status
    assert solver_cvc5.check(printed, 5).status == status


def test_small_terms_are_printed_as_pysmt_prints_them_in_any_environment() -> None:
    for _ in range(2):
        for terms, _, _ in TERMS.values():
            assert [term_text.__wrapped__(t) for t in terms] == [to_smtlib(t, daggify=False) for t in terms]
        push_env()
        term = smt.LE(smt.Symbol("w", INT), smt.Int(-2))  # elsewhere this name is eight bits
        assert term_text(term) == "(<= w (- 2))"
        pop_env()


def test_a_large_term_is_printed_with_shared_parts() -> None:
    term = V
    for _ in range(12):
        term = smt.BVAdd(term, term)
    printed = script([smt.Equals(term, W)])
    assert len(printed) < 1_000  # as a tree it has 4096 leaves
    assert solver_z3.check(printed, 5).status == solver_cvc5.check(printed, 5).status == "sat"


# -- solvers ----------------------------------------------------------------------------------------

SOLVERS = {"z3": solver_z3.check, "cvc5": solver_cvc5.check}
MALFORMED = [
    "(assert",
    "(assert x)\n(check-sat)",
    "(set-logic ALL)\n(assert (+ 1 2))\n(check-sat)",
    "(assert true))\n(check-sat)",
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("smtlib", MALFORMED)
def test_malformed_text_is_an_error(solver: str, smtlib: str) -> None:
    with pytest.raises(ValueError, match="well-formed SMT-LIB"):
        SOLVERS[solver](smtlib, 5)


def factor(bits: int, number: int) -> str:
    return (
        f"(set-logic ALL)\n(declare-fun p () (_ BitVec {bits}))\n(declare-fun q () (_ BitVec {bits}))\n"
        f"(assert (= (bvmul ((_ zero_extend {bits}) p) ((_ zero_extend {bits}) q)) (_ bv{number} {2 * bits})))\n"
        f"(assert (bvult (_ bv1 {bits}) p))\n(assert (bvult (_ bv1 {bits}) q))\n(check-sat)\n"
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_out_of_time_is_unknown(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock: the solver's own counter leaves it 1,000 times as long."""
    for each in (solver_z3, solver_cvc5):
        monkeypatch.setattr(each, "STEPS", 1000 * each.STEPS)
    prime_product = 1000000000000000003 * 1000000000000000009
    start = time.perf_counter()
    answer = SOLVERS[solver](factor(64, prime_product), 0.02)
    assert answer.status == "unknown"
    assert time.perf_counter() - start < 20


CUBES = (  # an open problem
    "(set-logic ALL)\n(declare-fun p () Int)\n(declare-fun q () Int)\n(declare-fun r () Int)\n"
    "(assert (= (+ (* p p p) (* q q q) (* r r r)) 114))\n(check-sat)\n"
)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_solvers_own_counter_ends_a_question_long_before_the_clock(solver: str) -> None:
    assert SOLVERS[solver](required().smtlib, 0.1, 1000.0).status == "unsat"
    start = time.perf_counter()
    assert SOLVERS[solver](CUBES, 0.1, 1000.0).status == "unknown"
    assert time.perf_counter() - start < 50  # of 100 seconds by the clock


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_question_is_no_theorem(solver: str) -> None:
    if solver == "cvc5":
        assert SOLVERS[solver]('(set-logic ALL)\n(check-sat)\n(echo "unsat")\n', 5).status == "sat"
        # z3 reads assertions only; that exactly one question is asked is replay's business
        assert SOLVERS[solver]("(set-logic ALL)\n(assert false)\n", 5).status == "unknown"
    assert SOLVERS[solver]("(set-logic ALL)\n", 5).status != "unsat"


def test_a_model_names_the_values() -> None:
    answer = solver_z3.check(script([smt.Equals(X, smt.Int(7)), smt.Equals(V, smt.BV(200, 8))]), 5)
    assert (answer.status, answer.model["x"], answer.model["v"]) == ("sat", 7, 200)


def test_a_core_contradicts_itself() -> None:
    assertions = [Y > 5, X < 0, smt.LE(Y, smt.Int(100)), X > 0]
    core = solver_z3.core(script(assertions), 5)
    assert core is not None and set(core) == {1, 3}
    assert solver_z3.core(script(assertions[:3]), 5) is None


pop_env()
