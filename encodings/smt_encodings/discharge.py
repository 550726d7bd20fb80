"""Asking solvers: every obligation goes to z3 and, unless the caller says otherwise, to cvc5 as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from .answers import ask, lines_of
from .caching import cached_with_symbols
from .claims import Answer, Obligation, Status, conclude
from .printer import script
from .renaming import numbered
from .solvers import cvc5 as solver_cvc5
from .solvers import z3 as solver_z3


class NotDischarged(Exception):
    """An obligation that did not get its expected answer; carries it, and words on where it is false."""

    def __init__(self, obligation: Obligation, where: str = "") -> None:
        self.obligation = obligation
        answers = ", ".join(f"{a.solver}: {a.status}{' ' + a.reason if a.reason else ''}" for a in obligation.answers)
        super().__init__(
            f"obligation '{obligation.name}' ({obligation.group}) needs the answer {obligation.expected}; "
            f"{answers}{where}"
        )


MOMENT = 0.15
"""Seconds of the first attempt at a question that decides the form of a proof."""

QUICK = 1.0
"""Seconds per solver for an obligation that has an alternative."""

SECOND = 5.0
"""Seconds per solver for another form of an obligation that one solver answered and the other one did not."""

PATIENCE = 5.0
"""Questions that decide the form of a proof are limited by the solvers' own counters, so that a proof has the same form
on every machine; the clock ends them only after this multiple of their time."""


def conjuncts(terms: Iterable[FNode]) -> list[FNode]:
    """The terms with conjunctions taken apart, each once."""
    parts: dict[FNode, None] = {}
    stack = list(terms)[::-1]
    while stack:
        term = stack.pop()
        if term.is_and():
            stack.extend(reversed(term.args()))
        else:
            parts[term] = None
    return list(parts)


def _enough(hypotheses: list[FNode], goal: FNode) -> list[FNode]:
    """The first of a few growing sets of hypotheses, by symbols shared with the goal, that suffices."""
    reached = set(goal.get_free_variables())
    chosen: list[FNode] = []
    for _ in range(4):
        grown = [h for h in hypotheses if h.get_free_variables() <= reached]
        if len(grown) > len(chosen) or not chosen:
            chosen = grown
            if len(chosen) == len(hypotheses):
                break
            if decide(chosen, goal, 0.5):
                return chosen
        reached |= {s for h in hypotheses if h.get_free_variables() & reached for s in h.get_free_variables()}
    return hypotheses


def _other_forms(negated: FNode, hypotheses: list[FNode]) -> Iterator[list[FNode]]:
    """Sets of hypotheses for a question that one solver answered: as few as z3 needs, then these and all of them with
    equations first, which cvc5 eliminates symbols by only where they come before other uses."""
    needed = solver_z3.core(script([negated, *hypotheses]), SECOND, PATIENCE)
    forms = [hypotheses]
    if needed is not None:
        least = [hypotheses[i - 1] for i in needed if i > 0]
        for each in list(least):
            fewer = [h for h in least if h is not each]
            if ask(solver_z3.check, script([negated, *fewer]), MOMENT, PATIENCE).status == "unsat":
                least = fewer
        yield least
        forms = [least, hypotheses]
    for form in forms:
        ordered = sorted(form, key=lambda h: not h.is_equals())
        if ordered != form:
            yield ordered


@cached_with_symbols(10_000)
def _question(*assertions: FNode) -> str:
    """The script of a question to which the answer is a status, which symbols' names have no part in: loops that are
    alike ask one text."""
    return numbered(script(assertions))


def decide(hypotheses: list[FNode], goal: FNode, timeout: float = 8.0) -> bool:
    """Whether a solver proves that ``goal`` follows from ``hypotheses``; False also where none knows.

    On the nonlinear questions of index arithmetic either solver may answer in milliseconds what the other one does not
    answer at all.  z3 begins, for a moment: it answers most of them, and what does not follow it refutes at once.
    """
    text = _question(smt.Not(goal), *hypotheses)
    for check, seconds in ((solver_z3.check, MOMENT), (solver_cvc5.check, 1.0), (solver_z3.check, timeout)):
        status = ask(check, text, min(seconds, timeout), PATIENCE).status
        if status != "unknown":
            return status == "unsat"
    return False


@dataclass
class Discharger:
    """Collects obligations and their answers.

    ``timeout`` is in seconds per solver and obligation; ``second`` also asks cvc5; ``progress`` is called with each
    result, and ``asking`` with the name of each question before it is asked, so that a solver that hangs can be traced
    to its question.
    """

    timeout: float = 20.0
    second: bool = True
    progress: Callable[[Obligation], None] | None = None
    asking: Callable[[Obligation], None] | None = None
    obligations: list[Obligation] = field(default_factory=list)
    _pending: list[tuple[int, Answer, solver_cvc5.Pending]] = field(default_factory=list)

    def ask(
        self,
        group: str,
        name: str,
        assertions: Iterable[FNode],
        meaning: str,
        *,
        expected: str = "unsat",
    ) -> Obligation:
        """Puts one question to the solvers; raises NotDischarged unless all give the ``expected`` answer."""
        text = script(assertions, comment=f"{group}: {name}\n{meaning}")
        return self.ask_text(Obligation(name, group, text, expected, meaning))

    def follows(self, group: str, name: str, hypotheses: Sequence[FNode], goal: FNode, meaning: str) -> Obligation:
        """Asks whether ``goal`` follows from ``hypotheses``; the obligation may use fewer of them.

        Dropping hypotheses makes the theorem stronger and usually the solvers' work easier; where it does not, a larger
        set is tried.  What one solver answers and the other one does not is asked again in other forms.
        """
        negated = smt.Not(goal)
        everything = conjuncts(hypotheses)

        def written(chosen: list[FNode]) -> Obligation:
            text = script([negated, *chosen], comment=f"{group}: {name}\n{meaning}")
            return Obligation(name, group, text, "unsat", meaning)

        for chosen in self._selections(negated, everything):
            tried = self._answers(written(chosen), QUICK, PATIENCE)
            if tried.discharged or any(a.status == "sat" for a in tried.answers):
                return self._finish(tried)
        asked = self._with_other(self._answers(written(everything), self.timeout))
        if {a.status for a in asked.answers} == {"unsat", "unknown"}:
            for chosen in _other_forms(negated, everything):
                tried = self._answers(written(chosen), SECOND, PATIENCE)
                if tried.discharged:
                    return self._finish(tried)
        return self._finish(asked)

    def _with_other(self, asked: Obligation) -> Obligation:
        """The obligation with an answer of cvc5, too, where z3 has none and cvc5 has one at once."""
        if self.second and asked.answers[-1].status == "unknown" and len(asked.answers) == 1:
            other = ask(solver_cvc5.check, asked.smtlib, min(QUICK, self.timeout), PATIENCE)
            if other.status == "unsat":
                return replace(asked, answers=(*asked.answers, other))
        return asked

    def _selections(self, negated: FNode, hypotheses: list[FNode]) -> Iterator[list[FNode]]:
        """Sets of hypotheses to try, the most promising one first; the last one is everything."""
        enough = _enough(hypotheses, smt.Not(negated))
        yield enough
        needed = solver_z3.core(script([negated, *enough]), 0.3, PATIENCE)
        if needed is not None:
            yield [enough[i - 1] for i in needed if i > 0]
        yield hypotheses

    def ask_text(self, obligation: Obligation) -> Obligation:
        """As :meth:`ask`, for an obligation whose script is already written."""
        return self._finish(self._answers(obligation, self.timeout))

    def ask_in_background(self, obligation: Obligation) -> None:
        """Puts a question to z3 now and to cvc5 in another process; :meth:`settle` must follow.

        These are few and take seconds, so z3 is limited by its own counter, as where a proof finds its form.
        Raises NotDischarged where z3 does not give the expected answer.
        """
        if self.asking is not None:
            self.asking(obligation)
        waiting = solver_cvc5.start(obligation.smtlib, self.timeout) if self.second else None
        answer = solver_z3.check(obligation.smtlib, self.timeout, PATIENCE)
        if waiting is None or answer.status != obligation.expected:
            if waiting is not None:
                waiting.stop()
            self._finish(replace(obligation, answers=(answer,)))
        else:
            self.obligations.append(obligation)
            self._pending.append((len(self.obligations) - 1, answer, waiting))

    def settle(self) -> None:
        """Waits for all background answers; raises NotDischarged where one is not the expected one."""
        while self._pending:
            position, first, waiting = self._pending.pop(0)
            answered = replace(self.obligations[position], answers=(first, waiting.wait()))
            self.obligations[position] = answered
            if self.progress is not None:
                self.progress(answered)
            if not answered.discharged:
                raise NotDischarged(answered)

    def conclude(self) -> tuple[Status, str]:
        """The verdict once everything that a proof needs has been asked: PROVED, or ERROR with the reason."""
        self.settle()
        return conclude(self.obligations)

    def abandon(self) -> None:
        """Stops background questions whose answers are not needed any more; what z3 said of them is kept."""
        while self._pending:
            position, first, waiting = self._pending.pop()
            waiting.stop()
            self.obligations[position] = replace(self.obligations[position], answers=(first,))

    def _answers(self, obligation: Obligation, timeout: float, patience: float = 1.0) -> Obligation:
        if self.asking is not None:
            self.asking(obligation)
        limits = min(timeout, self.timeout), patience
        answers: list[Answer] = [ask(solver_z3.check, obligation.smtlib, *limits)]
        if self.second and answers[0].status == obligation.expected:
            answers.append(ask(solver_cvc5.check, obligation.smtlib, *limits))
        return replace(obligation, answers=tuple(answers))

    def _finish(self, answered: Obligation) -> Obligation:
        self.obligations.append(answered)
        if self.progress is not None:
            self.progress(answered)
        if not answered.discharged:
            raise NotDischarged(answered)
        return answered


@dataclass
class Requirements(Discharger):
    """Records what would be asked, without asking: a certificate's obligations are compared with this list.

    ``complete`` says that the prover ran to its end, so that the list has all its obligations.
    """

    required: list[Requirement] = field(default_factory=list)
    complete: bool = False

    def conclude(self) -> tuple[Status, str]:
        """UNKNOWN: no solver was asked."""
        self.complete = True
        return Status.UNKNOWN, "the obligations were written down, and nobody was asked"

    def ask_text(self, obligation: Obligation) -> Obligation:
        """Notes an obligation that must appear exactly as it is."""
        self.required.append(
            Requirement(
                obligation.group, obligation.name, obligation.expected, obligation.smtlib, True, obligation.meaning
            )
        )
        return obligation

    def ask_in_background(self, obligation: Obligation) -> None:
        """As :meth:`ask_text`."""
        self.ask_text(obligation)

    def follows(self, group: str, name: str, hypotheses: Sequence[FNode], goal: FNode, meaning: str) -> Obligation:
        """Notes an obligation of which hypotheses may be left out."""
        text = script([smt.Not(goal), *conjuncts(hypotheses)], comment=f"{group}: {name}\n{meaning}")
        self.required.append(Requirement(group, name, "unsat", text, False, meaning))
        return Obligation(name, group, text, "unsat", meaning)


@dataclass(frozen=True)
class Requirement:
    """One obligation that a proof of a claim must contain; its first assertion is the negated goal.

    With ``exact`` the script must be this one; otherwise assertions after the first may be missing.
    """

    group: str
    name: str
    expected: str
    smtlib: str
    exact: bool
    meaning: str = ""

    def met_by(self, smtlib: str) -> bool:
        """Whether a script is this obligation or a stronger one."""
        if not smtlib.replace("\n", "").isprintable():
            return False  # what else ends a line differs between readers
        if self.exact:
            return lines_of(smtlib) == lines_of(self.smtlib)
        script, required = lines_of(smtlib), lines_of(self.smtlib)
        goals = [next((x for x in lines if x.startswith("(assert ")), None) for lines in (script, required)]
        allowed = {*required, "(set-logic ALL)", "(set-logic QF_BV)"}
        return goals[0] is not None and goals[0] == goals[1] and all(x in allowed for x in script)
