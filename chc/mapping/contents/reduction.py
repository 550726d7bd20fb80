"""In-memory reduction: a cell that one write updates again and again, as a fold.

A write whose value reads the very cell that it writes, such as ``acc[i] := acc[i] + x[k]``, is found to have written a
cell in several iterations, one after the other.  The counters in which these iterations differ are those of a *fold*:
it begins with what the cell held before the first of them, and one step is the write's value with a register in place
of the cell.  The obligations that make it so, for all sizes:

* the iteration that wrote the cell last is the last one of these counters;
* an iteration of the write between the first and the last one that writes the cell differs in no other counter;
* no other write writes the cell in between.

The address, the condition and the extents of other loops must not depend on the counters of the fold, so that all its
iterations exist and write the cell.  A fold over one loop may have some of its iterations, from one to another one:
those that a mask lets through, or that other loops have; that all of these exist is an obligation, then.  Those of
several loops, the last of which is cut short, are numbered (:mod:`chc.mapping.contents.numbered`).  Where the
extents of its own loops depend on each other otherwise, as in sums over pairs ``q <= p``, it is a fold of folds, and
that its first iteration exists is an obligation, too.

A write may begin anew instead of going on: its value is that of a cell which a choice replaces by something else, such
as 0, in the first iteration.  Then the fold begins with that, and what the cell held does not matter.  Obligations: the
choice does so in the first iteration, and takes the cell in all later ones.

Where the value is a sum that begins with the cell, both are one fold.  Where it adds a sum of its own to the cell, they
are if it makes no difference whether the cell is added at the end or at the beginning: the value with nothing summed up
is the cell, and a step of the sum may be done before or after the addition.  These are obligations about any numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pysmt.shortcuts as smt

from chc.mapping.arithmetic.exact import equal, successor
from chc.mapping.memory.cases import Split
from chc.mapping.memory.contexts import Context, before
from chc.mapping.memory.layout import Definition, Reader, narrow
from chc.mapping.memory.reaching_definitions import ReachingDefinitions
from chc.mapping.program.writes import Fold, Loops, Schedule, Write
from ila_lang import Expr, any_of, bv, const, free_variables, postorder, resize, substitute
from smt_encodings.claims import Unsupported
from smt_encodings.discharge import decide
from smt_encodings.environment import fresh, plain
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.values import differ

from .chains import begin_of, chains_of, counters_of, numbered_of
from .numbered import Numbered
from .updates import Update, is_one_sum, one_moment, update_of


@dataclass(frozen=True)
class Reduction:
    """A fold, and what it begins with: the cell as ``first`` finds it, or ``begins``, a term in that iteration.

    With ``part`` it has some of its iterations, as :class:`chc.mapping.contents.folds.FoldUse` says.
    """

    fold: Fold
    first: Definition
    begins: Expr | None
    part: tuple[Expr, Expr] | None


def reduction(side: ReachingDefinitions, context: Context, definition: Definition) -> Reduction | None:
    """The fold that a cell's last write is the end of; None where the write does not accumulate.

    Raises Unsupported where it does in a way that is not described above.
    """
    write = definition.write
    update = update_of(side.schedule, write)
    chains = chains_of(side, context, definition, update)
    counters = counters_of(write, chains)
    if update is None or not counters:
        return None
    name = f"{write.label} {side.schedule.writes.index(write)}, {side.numbered()}"
    loops = tuple(loop for loop in write.loops if loop[0] in counters)
    begin = begin_of(context, definition, counters, chains) if len(loops) == 1 else None
    ragged = len(loops) > 1 and (_depends(loops) is not None or clash(write, counters) is not None)
    numbered = numbered_of(context, definition, loops, chains) if ragged else None
    some = numbered is not None or (len(loops) == 1 and (begin is not None or clash(write, counters) is not None))
    require_independent(write, counters, exist=some, among=True)
    zero = const(0, 32) if begin is None else begin
    first = Definition(write, {c: zero if c in counters else t for c, t in definition.at.items()})
    part = None
    if numbered is not None:
        numbered.prove(context, f"{side.prefix}: accumulation", name, definition, loops)
    elif some:
        part = _part(context, side, name, first, definition, loops[0][0])
    else:
        ends(context, side, name, definition, loops)
    instance = side.layout.instance(write)
    reader = Reader(write.address, instance, first.at)
    _alone(context, side, name, definition, first, counters)
    side.not_killed(context, name, [write], reader, definition.point, first)
    begins = update.begins
    if begins is not None:
        _goes_on(context, side, name, first, numbered or loops, update.adds)
        begins = begins if begins_anew(context, side, name, first, update.adds) else None
    if numbered is None and _depends(loops) is not None:
        exists, meaning = first.exists(), "loops that depend on each other have a first iteration"
        context.theorem(f"{side.prefix}: accumulation", f"{name}: first", exists, meaning)
    over = loops if numbered is None else numbered.loops
    if (write, over) not in side.accumulations:
        side.accumulations[write, over] = fold_of(side, name, write, update, loops, numbered)
    fold = side.accumulations[write, over]
    return Reduction(fold, first, begins, part)


def _part(
    context: Context, side: ReachingDefinitions, name: str, first: Definition, last: Definition, counter: Expr
) -> tuple[Expr, Expr]:
    """The part of a loop from the first to the last iteration; that the write happens in all of it is proved."""
    group, (begin, end) = f"{side.prefix}: accumulation", (resize(d.at[counter], 32) for d in (first, last))
    context.theorem(
        group, f"{name}: begins", begin <= end, "the first iteration that adds up is not after the last one"
    )
    length = end + 1 - begin
    own = fresh(f"from.{plain(counter.name)}", bv(32))
    inside = context.inside(((own, length),), context.called(name))
    happens = Definition(first.write, {**first.at, counter: own + begin}).exists()
    inside.theorem(group, f"{name}: happens", happens, "the write happens in all iterations from the first to the last")
    return begin, length


def _goes_on(
    context: Context,
    side: ReachingDefinitions,
    name: str,
    first: Definition,
    over: Loops | Numbered,
    adds: Expr,
) -> None:
    """All later iterations than the first one go on from the cell."""
    here = narrow(first.at)
    loops = over.loops if isinstance(over, Numbered) else over
    names = {c: fresh(f"later.{plain(c.name)}", c.sort) for c, _ in loops}
    iterations = tuple((names[c], substitute(e, here | names)) for c, e in loops)
    inside = context.inside(iterations, context.called(name))
    later = any_of([c >= 1 for c in names.values()])
    at = over.digits_of(names[over.number]) if isinstance(over, Numbered) else names
    goal = later.implies(substitute(adds, here | narrow(at)))
    inside.theorem(f"{side.prefix}: accumulation", f"{name}: goes on", goal, "later iterations go on from the cell")


def begins_anew(context: Context, side: ReachingDefinitions, name: str, first: Definition, adds: Expr) -> bool:
    """Whether the first iteration does not take what the cell held, proved.

    Raises Split where it does at some samples only.
    """
    begins = ~substitute(adds, {c: resize(t, c.width) for c, t in first.at.items()})
    outcomes = {bool(v) for (v,) in context.samples.evaluate([begins])}
    if len(outcomes) > 1:
        problem = f"whether {first.write.label} begins anew in its first iteration differs between sizes or places"
        raise Split(problem, context, (begins, ~begins))
    (anew,) = outcomes
    what, meaning = ("begins anew", "anew") if anew else ("begins", "with what the cell holds")
    group, goal = f"{side.prefix}: accumulation", begins if anew else ~begins
    context.theorem(group, f"{name}: {what}", goal, f"the first iteration begins {meaning}")
    return anew


def require_independent(write: Write, counters: set[Expr], *, exist: bool = False, among: bool = False) -> None:
    """Raises Unsupported where the place, the condition or the number of iterations of a write depend on counters.

    Where its iterations ``exist``, by proof, its place alone matters; with ``among`` the extents of these counters' own
    loops may depend on each other.
    """
    counter = clash(write, counters, exist=exist, among=among)
    if counter is not None:
        raise Unsupported(f"{write.label} accumulates over {counter.name}, on which its address or a loop depends")


def clash(write: Write, counters: set[Expr], *, exist: bool = False, among: bool = True) -> Expr | None:
    """A counter on which the place, the condition or the number of iterations of a write depend, as said there."""
    extents = [e for c, e in write.loops if not (among and c in counters)]
    used = set(free_variables(write.address, *([] if exist else [*extents, write.guard])).values())
    return next((c for c in write.counters if c in counters and c in used), None)


def _depends(loops: Loops) -> int | None:
    """The last one of some loops whose extent depends on the counter of another; None where all are a rectangle."""
    counters = {c for c, _ in loops}
    dependent = (n for n, (_, e) in enumerate(loops) if counters & set(free_variables(e).values()))
    return max(dependent, default=None)


def ends(context: Context, side: ReachingDefinitions, name: str, definition: Definition, loops: Loops) -> None:
    """The last iteration that writes the cell is the last one of some loops."""
    here = {c: resize(t, c.width) for c, t in definition.at.items()}
    for counter, extent in loops:
        end = equal(successor(definition.at[counter]), substitute(extent, here))
        meaning = "the last iteration that writes the cell is the last one of the loop"
        context.theorem(f"{side.prefix}: accumulation", f"{name}: {plain(counter.name)} ends", end, meaning)


def _alone(
    context: Context, side: ReachingDefinitions, name: str, last: Definition, first: Definition, counters: set[Expr]
) -> None:
    """The write's own iterations in between that write the cell are those of the fold.

    Where the address determines all other counters, an iteration of the fold writes the cell exactly once: by the
    invariants of the loops of these counters.
    """
    write = last.write
    others = [c for c in write.counters if c not in counters]
    determined = side.layout.determined(write) or []
    if all(c in set(determined) for c in others):
        side.layout.accumulated.setdefault((write, tuple(others)), last)
        return
    instance = side.layout.instance(write)
    other = [instance.encoding.term(c) for c in instance.counters]
    begin, end = ([context.encoding.term(c) for c in o.vector] for o in (first, last))
    where = dict(zip(write.counters, zip(other, end, strict=True), strict=True))
    known = [smt.Equals(*where[c]) for c in determined]
    pairs = (other, begin), (end, other)
    within = [smt.Not(before(write.place, one, write.place, two)) for one, two in pairs]
    goal = smt.And([smt.Equals(*where[c]) for c in others])
    hypotheses = [*context.encoding.hypotheses, *instance.encoding.hypotheses, *within, *known]
    context.proof.follows(
        f"{side.prefix}: accumulation",
        f"{name}: only the fold's iterations",
        hypotheses,
        goal,
        "iterations of the write from the first to the last one that write the cell are those of the fold",
    )


def fold_of(
    side: ReachingDefinitions, name: str, write: Write, update: Update, loops: Loops, numbered: Numbered | None = None
) -> Fold:
    """What a write makes of its cell in all iterations of some of its loops, with those of a sum of its own.

    Where these are ``numbered``, the fold is over their numbers.
    """
    register, value = update.register, update.value
    schedule, added, result = side.schedule, update.sum, None
    own, cell = {c for c, _ in loops}, write.memory.load(write.address)
    loops = loops if numbered is None else numbered.loops
    if added is None:
        inner = {n for n in postorder([value]) if n in schedule.folds}
        if len(inner) == 1:
            (result,) = inner
            added = schedule.folds[result]
    if added is not None:
        rectangle = own.isdisjoint(free_variables(*(e for _, e in added.loops)).values())
        if numbered is not None and not rectangle:
            raise Unsupported(f"how often {write.label} adds depends on a loop of which the last block is short")
        if result is None or (rectangle and _onefold_of(side, name, write, value, register, result)):
            step = substitute(added.step[0], {added.registers[0]: register})
            loops, value = (*loops, *added.loops), step
    results = (fresh(f"{register.name}.result", cell.sort),)
    fold = Fold(write, loops, (register,), (cell,), (value,), results, {} if numbered is None else numbered.digits)
    return rectangular(schedule, fold)


def rectangular(schedule: Schedule, fold: Fold) -> Fold:
    """A fold of which no loop depends on another: those from the first dependent one on are folds of each step."""
    while (first := _depends(fold.loops)) is not None:
        fold = schedule.nested(fold, first)
    return fold


def _onefold_of(side: ReachingDefinitions, name: str, write: Write, value: Expr, register: Expr, result: Expr) -> bool:
    """Whether the cell may be added before the sum instead of after it; proved if so."""
    schedule = side.schedule
    added = schedule.folds[result]
    terms = (value, *added.step, *added.initial)
    if value.sort != result.sort or not is_one_sum(schedule, write, added):
        return False
    if not one_moment(schedule, added.here, write, schedule.sources(*terms)):
        return False
    (carried,), (step,), (start,) = added.registers, added.step, added.initial
    anything = fresh("any.sum", result.sort)

    def plus(total: Expr) -> Expr:
        return substitute(value, {result: total})

    equations = {
        "nothing is added": (plus(start), register),
        "a step before or after": (
            plus(substitute(step, {carried: anything})),
            substitute(step, {carried: plus(anything)}),
        ),
    }
    data = _data([*(t for pair in equations.values() for t in pair)])
    questions = {}
    for text, (left, right) in equations.items():
        encoding = BitEncoding(side.layout.proof.mapping.abstract)
        questions[text] = differ(encoding, substitute(left, data), substitute(right, data))
    if not all(decide([], smt.Not(q)) for q in questions.values()):
        return False
    for text, question in questions.items():
        meaning = "a sum that is added to a cell is the sum that begins with the cell"
        side.layout.proof.discharger.ask(f"{side.prefix}: accumulation", f"{name}: {text}", [question], meaning)
    return True


def _data(terms: list[Expr]) -> Mapping[Expr, Expr]:
    """Names for what terms load, which may be anything here."""
    loads = dict.fromkeys(n for n in postorder(terms) if n.op == "load")
    return {n: fresh(f"any.word{k}", n.sort) for k, n in enumerate(loads)}
