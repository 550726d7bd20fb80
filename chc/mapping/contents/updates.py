"""How a write updates the cell that it writes."""

from __future__ import annotations

from dataclasses import dataclass

from chc.mapping.program.writes import Fold, Schedule, Write
from ila_lang import Expr, postorder, substitute, true
from ila_lang.language.expr import variables_of
from smt_encodings.environment import fresh, plain


@dataclass(frozen=True)
class Update:
    """How the value of a write depends on its own cell.

    It is ``value``, with ``register`` for the cell if ``adds`` holds, and otherwise for ``begins``; where there is no
    such choice, ``begins`` is None.  With ``sum`` it is a fold that begins with the register.
    """

    register: Expr
    value: Expr
    adds: Expr
    begins: Expr | None
    sum: Fold | None


def update_of(schedule: Schedule, write: Write) -> Update | None:
    """How a write updates the cell that it writes; None where it does not."""
    own = write.memory.load(write.address)
    register = fresh(f"cell.{plain(write.memory.name)}", own.sort)
    added = schedule.folds.get(write.value)
    whole = added.initial[0] if added is not None and is_one_sum(schedule, write, added) else write.value
    if not any(n is own for n in postorder([whole])):
        return None
    choices = [n for n in postorder([whole]) if n.op == "ite" and any(a is own for a in n.args[1:])]
    value, adds, begins = substitute(whole, {own: register}), true, None
    if len(choices) == 1:
        condition, then, otherwise = choices[0].args
        chosen = substitute(whole, {choices[0]: register})
        known = {*write.counters, *schedule.fragment.parameters.values()}
        if known.issuperset(variables_of(condition)) and not any(n is own for n in postorder([chosen, condition])):
            adds, begins = (condition, otherwise) if then is own else (~condition, then)
            value = chosen
    if added is None or whole is write.value:
        return Update(register, value, adds, begins, None)
    return Update(register, value, adds, begins, added) if value is register else None


def is_one_sum(schedule: Schedule, write: Write, added: Fold) -> bool:
    """Whether a fold that a write stores has one register, and reads what it does as the write would."""
    terms = [*added.step, *added.initial]
    return (
        len(added.registers) == 1
        and not any(n in schedule.folds or n in schedule.snapshots for n in postorder(terms))
        and one_moment(schedule, added.here, write, schedule.sources(*terms))
    )


def one_moment(schedule: Schedule, here: Write, write: Write, memories: set[Expr]) -> bool:
    """Whether a write reads from memories what is read before, at ``here``, in the same iteration of the same loops."""
    if here.place[:-1] != write.place[:-1]:
        return False
    return not any(here.place < w.place < write.place for m in memories for w in schedule.writes_to(m))
