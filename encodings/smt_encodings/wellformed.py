"""Well-formedness of models, by SMT: decodes exclusive and complete, kernels bounded.

ILAng leaves overlapping and incomplete decodes to the user (facts on ILAng, pain points); here they are obligations.
"""

from __future__ import annotations

from dataclasses import dataclass

import pysmt.shortcuts as smt

from ila_lang import Expr, For, Ila, Let, any_of, inline, resize, substitute, walk

from .bits import BitEncoding
from .claims import Obligation, Status, conclude
from .discharge import Discharger, NotDischarged
from .environment import fresh_symbols
from .printer import script

__all__ = ["Finding", "check_ila"]


@dataclass(frozen=True)
class Finding:
    """The outcome of one check: PROVED, REFUTED (``witness`` shows inputs and state) or UNKNOWN."""

    check: str
    status: Status
    witness: dict[str, int]


def check_ila(ila: Ila, *, timeout: float = 20.0, second: bool = True) -> list[Finding]:
    """Checks a model; ``timeout`` in seconds per solver and question.

    * no valid command in any state is decoded by two instructions;
    * every valid command in every state is decoded by one;
    * every loop of every kernel ends: its extent is read once, and its counter is wide enough to count it.
    """
    with fresh_symbols():
        return _check(ila, Discharger(timeout=timeout, second=second))


def _check(ila: Ila, discharger: Discharger) -> list[Finding]:
    encoding = BitEncoding()
    instructions = list(ila.instructions.values())
    findings = []
    for position, instruction in enumerate(instructions):
        others = any_of([i.decode for i in instructions[position + 1 :]])
        both = ila.valid & instruction.decode & others
        findings.append(_ask(discharger, encoding, f"{instruction.name} is decoded alone", both))
    uncovered = ila.valid & ~any_of([i.decode for i in instructions])
    findings.append(_ask(discharger, encoding, "every valid command is decoded", uncovered))
    for kernel in ila.kernels.values():
        lets = [s for s in walk(kernel.body) if isinstance(s, Let)]
        values = {s.target: s.value for s in lets if not s.update}
        for statement in walk(kernel.body):
            if isinstance(statement, For):
                name = f"loop {statement.counter.name} of {kernel.name} is bounded by its counter"
                extent = statement.extent
                for target, value in values.items():
                    extent = substitute(extent, {target: value})
                width = max(extent.width, statement.counter.width) + 1
                too_long = resize(extent, width) > (1 << statement.counter.width)
                findings.append(_ask(discharger, encoding, name, too_long))
    return findings


def _ask(discharger: Discharger, encoding: BitEncoding, name: str, bad: Expr) -> Finding:
    bad = inline(bad)
    if bad.is_const:
        return Finding(name, Status.REFUTED if bad.value else conclude((), "simplification")[0], {})
    text = script([smt.And(encoding.term(bad))], comment=name)
    try:
        asked = discharger.ask_text(Obligation(name, "well-formed", text, "unsat", name))
    except NotDischarged as error:
        answer = error.obligation.answers[0]
        status = Status.REFUTED if answer.status == "sat" else Status.UNKNOWN
        return Finding(name, status, dict(answer.model))
    return Finding(name, conclude([asked])[0], {})
