"""Iterations of a fold that change nothing: masks and paddings of one side are shorter loops of the other.

A step that takes what it has accumulated under some outcome of its choices, such as ``x > i`` for a causal mask, does
nothing where they have this outcome.  A fold is then one over fewer iterations of each loop, in the same order: those
from one number on, as many as the other side has.  Obligations:

* under that outcome the step gives its registers back, whatever is read or computed elsewhere (**changes nothing**);
* the choices have it in all iterations that are left out (**left out**), and the loop has the others (**taken**).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from chc.mapping.arithmetic.exact import equal, less, total
from chc.mapping.contents.folds import FoldUse
from chc.mapping.contents.values import Values
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import narrow
from ila_lang import Expr, all_of, any_of, const, postorder, substitute
from smt_encodings.discharge import decide
from smt_encodings.environment import fresh, plain
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.values import differ, lemma_instances

from .beginnings import beginnings

_MOST_CHOICES = 4
"""Choices of a step whose outcomes are all tried."""


@dataclass(frozen=True)
class _Idle:
    """Under which outcomes of its choices a step changes nothing, and the questions of which that is the answer."""

    condition: Expr
    questions: tuple[list[FNode], ...]


def shortened(
    device: tuple[Values, FoldUse], ir: tuple[Values, FoldUse], context: Context, label: str
) -> tuple[FoldUse, FoldUse]:
    """The folds of both sides over as many loops, as folds of folds, and over as many iterations, where found."""
    (here, one), (there, other) = device, ir
    one, other = here.nested(one, len(other.loops)), there.nested(other, len(one.loops))
    other = taken(there, other, [e for _, e in one.loops], context, f"{label} of the IR")
    return taken(here, one, [e for _, e in other.loops], context, f"{label} of the device"), other


def taken(side: Values, use: FoldUse, lengths: Sequence[Expr], context: Context, label: str) -> FoldUse:
    """``use`` with so many iterations of each of its loops, where those that are left out change nothing.

    It is as it was where that is not found.
    """
    if len(use.loops) != len(lengths) or use.part or use.blocks or use.cycle or use.selected:
        return use
    longer = [not context.proves(equal(e, n)) for (_, e), n in zip(use.loops, lengths, strict=True)]
    idle = _idle(side, use) if any(longer) else None
    if idle is None:
        return use
    names = {c: fresh(f"any.{plain(c.name)}", c.sort) for c, _ in use.loops}
    inside = context.inside(tuple((names[c], e) for c, e in use.loops), f"{label}, all iterations")
    condition = substitute(idle.condition, narrow(use.iteration(names)))
    selected: list[tuple[Expr, Expr]] = []
    for (counter, extent), length, differs in zip(use.loops, lengths, longer, strict=True):
        for begin in beginnings(use, lengths, context) if differs else []:
            end = total([begin, length])
            outside = less(names[counter], begin) | ~less(names[counter], end)
            fits, goal = ~less(extent, end), outside.implies(condition)
            if all(v for (v,) in inside.samples.evaluate([goal])) and context.proves(fits) and inside.proves(goal):
                name = f"{label}, {plain(counter.name)}"
                context.theorem("lock-step", f"{name}: taken", fits, "the loop has the iterations that are taken")
                inside.theorem("lock-step", f"{name}: left out", goal, "iterations that are left out change nothing")
                selected.append((begin, length))
                break
        else:
            if differs:
                return use
            selected.append((const(0, 32), extent))
    for number, question in enumerate(idle.questions, 1):
        meaning = "under these outcomes of its choices a step changes nothing"
        side.definitions.layout.proof.discharger.ask("values", f"{label}: changes nothing, {number}", question, meaning)
    return replace(use, selected=tuple(selected))


def _idle(side: Values, use: FoldUse) -> _Idle | None:
    """When a fold's step changes nothing, by its choices over sizes, coordinates and counters; None where never."""
    fold, mapping = use.fold, side.definitions.layout.proof.mapping
    known = {*use.at, *(c for c, _ in fold.loops), *mapping.parameters.values()}
    anything = [_arbitrary(t) for t in fold.step]
    choices = [n for n in postorder(anything) if n.op == "ite"]
    conditions = [c for c in dict.fromkeys(n.args[0] for n in choices) if _over(c, known)]
    if not 0 < len(conditions) <= _MOST_CHOICES:
        return None
    outcomes, questions = [], []
    for values in itertools.product((False, True), repeat=len(conditions)):
        assumed = dict(zip(conditions, values, strict=True))
        branches = {n: n.args[1 if assumed[n.args[0]] else 2] for n in choices if n.args[0] in assumed}
        steps = [_branched(t, branches) for t in anything]
        encoding = BitEncoding(mapping.abstract)
        lemmas = lemma_instances(mapping.lemmas, [*steps, *fold.registers], encoding)
        different = smt.Or([differ(encoding, a, b) for a, b in zip(steps, fold.registers, strict=True)])
        if decide(lemmas, smt.Not(different)):
            outcomes.append(all_of([c if v else ~c for c, v in assumed.items()]))
            questions.append([*lemmas, different])
    return _Idle(any_of(outcomes), tuple(questions)) if outcomes else None


def _over(condition: Expr, known: set[Expr]) -> bool:
    nodes = postorder([condition])
    return all(n in known for n in nodes if n.op == "var") and all(n.op not in ("load", "apply") for n in nodes)


def _branched(term: Expr, branches: dict[Expr, Expr]) -> Expr:
    while any(n in branches for n in postorder([term])):
        term = substitute(term, branches)
    return term


def _arbitrary(term: Expr) -> Expr:
    """A step with anything in place of what it reads."""
    return substitute(term, {n: fresh("any.word", n.sort) for n in postorder([term]) if n.op == "load"})
