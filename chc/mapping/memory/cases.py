"""Proofs by cases: where one of several writes gives a cell its value, what tells them apart is assumed in turn.

A library overwrites a sum with its first product and adds the others, or peels the first iteration off a loop.  Which
write a cell gets its value from then differs between sizes and places.  A condition that tells the writes apart is
guessed at the samples (:mod:`.distinctions`), and the comparison that met the cell is proved again under it, and under
its negation.  A guess that is wrong makes an obligation of a case fail.  That the cases leave nothing out is an
obligation, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from chc.mapping.program.writes import Point, Schedule
from ila_lang import Expr, any_of
from smt_encodings.claims import Unsupported

from .contexts import Context
from .distinctions import Sampled, telling_apart

MOST_CASES = 32
"""Cases of one comparison."""


class Split(Unsupported):
    """A value in ``context`` has several reaching definitions, which ``conditions``, of which one holds, tell apart."""

    def __init__(self, problem: str, context: Context, conditions: Sequence[Expr]) -> None:
        super().__init__(problem)
        self.context, self.conditions = context, conditions


def in_cases(context: Context, name: str, compare: Callable[[Context, str], None]) -> None:
    """Proves something in a context, or in each of cases of it where its values are split.

    ``compare`` gets the context and a name; what it adds to the proof before it raises Split is true in any case.
    """
    pending, count = [(context, name)], 0
    while pending:
        case, case_name = pending.pop(0)
        try:
            compare(case, case_name)
        except Split as split:
            if split.context is not case or count + len(pending) >= MOST_CASES:
                raise
            meaning = "a value has its reaching definition in one of the cases, and there are no others"
            case.theorem("cases", f"{case_name or 'the output'}: the cases are all", any_of(split.conditions), meaning)
            cases = []
            for condition in split.conditions:
                count += 1
                name_of = f"{name}{', ' if name else ''}case {count}"
                cases.append((case.where(condition, name_of), name_of))
            pending = [*cases, *pending]


def split(context: Context, schedule: Schedule, memory: Expr, sampled: Sampled, address: Expr, point: Point) -> Split:
    """The cases of a cell of a memory, at ``address``, that different writes gave its value before a point.

    Raises Unsupported where no condition is found that tells them apart.
    """
    numbers = [None if s is None else s[0] for s in sampled]
    labels = Counter("no write" if n is None else schedule.writes[n].label for n in dict.fromkeys(numbers))
    which = ", ".join(label if count == 1 else f"{label} ({count} writes)" for label, count in labels.items())
    problem = (
        f"which write gives a cell of {memory.name} its value differs between sizes or places: {which}; "
        "what tells them apart must be a first or last iteration, a size, the end of a loop, or an even number"
    )
    condition = telling_apart(context, schedule, memory, sampled, (address, point))
    if condition is None:
        raise Unsupported(problem)
    return Split(problem, context, (condition, ~condition))
