"""A scattered in-memory reduction: its cell holds what a fold of the other side has in its register.

The fold's iterations are numbered by its counters.  For each of them an iteration of the write is named, and the claim
"after it, the cell holds what the register holds" is proved by induction over the fold's iterations, which follow each
other lexicographically:

* the write has these iterations (**happens**), and the last one is the one that gave the cell its value (**last**);
* the reaching definition of the old value that an iteration reads is the one named for the iteration before
  (**before**, in the   cases of how many counters start anew), so by induction it is the register's value there;
* with the same old value, or at the first iteration with the register's initial one, both sides store the same.

What the cell held before the first iteration does not matter, or is what the register begins with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chc.mapping.arithmetic.exact import equal, less
from chc.mapping.contents.folds import FoldUse
from chc.mapping.contents.values import ScatteredReduction, Values
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Reader, narrow
from chc.mapping.program.writes import Loops, Point, conjuncts_of
from ila_lang import Expr, all_of, any_of, const, ite, resize, substitute, true
from ila_lang.language.expr import variables_of
from smt_encodings.claims import Unsupported
from smt_encodings.environment import fresh, plain

from .iterations import Iterations
from .run_ups import iterations_of


@dataclass(frozen=True)
class Sides:
    """The values of both sides, and iterations of their loops."""

    device: Values
    ir: Values
    iterations: Iterations


@dataclass(frozen=True)
class Step:
    """Values of both sides that must be equal in a context, whatever the value of symbols that they share."""

    context: Context
    name: str
    device: Expr
    ir: Expr
    shared: tuple[Expr, ...]
    initial: tuple[Expr, Expr] | None = None
    """What both sides begin with, which must be equal around the context; None where it does not matter."""


@dataclass(frozen=True)
class _Induction:
    """The claim that is proved by induction, for its parts.

    ``inside`` is the context of an iteration of the fold, numbered by ``counters``; ``at`` names the iteration of the
    write for each of them.  ``group`` and ``name`` are those of the obligations.
    """

    cell: ScatteredReduction
    inside: Context
    counters: Loops
    at: dict[Expr, Expr]
    group: str
    name: str


def holds_fold(sides: Sides, context: Context, cell: ScatteredReduction, use: FoldUse, name: str, own: str) -> Step:
    """Proves that ``cell`` holds the result of the fold ``use``, but for the step, which it returns.

    Both belong to ``context``.  Raises Unsupported and NotDischarged where that is not proved.
    """
    write, definitions = cell.definition.write, sides.device.definitions
    if len(use.fold.registers) != 1 or use.fold.registers[0].sort != write.value.sort:
        raise Unsupported(f"what {write.label} adds up in {write.memory.name} is no single register of the other side")
    group = f"{definitions.prefix}: accumulation"
    inside, at_use = sides.iterations.at(context, use.loops, own)
    counters = inside.ranges[len(context.ranges) :]
    if len(counters) != len(use.loops) or not counters:
        raise Unsupported(f"the iterations of {name} are not numbered by its counters")
    at = iterations_of(sides.device, inside, cell, counters)
    induction = _Induction(cell, inside, counters, at, group, name)
    _exist(induction)
    _ends(induction, context)
    cases = _before(induction, sides)
    first = all_of([counter == 0 for counter, _ in counters])
    last = all_of([counter == resize(extent, counter.width) - 1 for counter, extent in counters])
    inside.theorem(group, f"{name}: cases", any_of([first, *cases]), "an iteration is the first one or follows another")
    step = replace(inside, conditions=(first, last))
    old, start = (fresh(f"{what}.{own}", write.value.sort) for what in ("old", "start"))
    left = sides.device.term(step, write, at, (), substitute(write.value, {cell.old: old}))
    (initial,) = use.initial
    (right,) = sides.ir.step(use, step, (old,), at_use)
    starts = {first: true, **{counter: const(0, counter.width) for counter, _ in counters}}
    if old in set(variables_of(substitute(left, starts))):
        return Step(step, f"{name}, step", left, right, (old,), (_begins(induction, sides, context), initial))
    return Step(
        step,
        f"{name}, step",
        substitute(left, {old: ite(first, start, old)}),
        substitute(right, {old: ite(first, initial, old)}),
        (old, start),
    )


def _exist(claim: _Induction) -> None:
    """The write has the iterations, and its condition holds in them."""
    write, at = claim.cell.definition.write, claim.at
    here = narrow(at)
    # components are compared before they are cut to the counters' widths
    conditions = [less(at[c], substitute(e, here)) for c, e in write.loops]
    conditions += conjuncts_of(substitute(write.guard, here))
    for number, condition in enumerate(conditions, 1):
        meaning = f"{write.label} has an iteration for each one of the fold"
        claim.inside.theorem(claim.group, f"{claim.name}: happens, {number}", condition, meaning)


def _ends(claim: _Induction, context: Context) -> None:
    """The last iteration exists, and it is the one that gave the cell its value."""
    group, name, definition = claim.group, claim.name, claim.cell.definition
    ends = {c: resize(e, c.width) - 1 for c, e in claim.counters}
    some = all_of([e >= 1 for _, e in claim.counters])
    context.theorem(group, f"{name}: some iteration", some, "the fold has iterations")
    for loop in definition.write.counters:
        same = equal(substitute(claim.at[loop], ends), definition.at[loop])
        meaning = "the last iteration gave the cell its value"
        context.theorem(group, f"{name}: last, {plain(loop.name)}", same, meaning)


def _begins(claim: _Induction, sides: Sides, context: Context) -> Expr:
    """What the cell holds before the first iteration."""
    write, layout = claim.cell.definition.write, sides.device.definitions.layout
    first = {c: substitute(t, {counter: counter * 0 for counter, _ in claim.counters}) for c, t in claim.at.items()}
    reader = Reader(write.address, layout.instance(write), first)
    point = Point(write.place, tuple(first[c] for c in write.counters))
    return sides.device.before(context, write.memory, reader, point)


def _before(claim: _Induction, sides: Sides) -> list[Expr]:
    """What an iteration reads was stored by the one named for the fold's iteration before; the cases, which are all."""
    write, definitions = claim.cell.definition.write, sides.device.definitions
    at, counters = claim.at, claim.counters
    reader = Reader(write.address, definitions.layout.instance(write), at)
    point = Point(write.place, tuple(at[c] for c in write.counters))
    cases = []
    for level in reversed(range(len(counters))):
        counter, inner = counters[level][0], counters[level + 1 :]
        condition = all_of([counter >= 1, *(c == 0 for c, _ in inner)])
        cases.append(condition)
        case = claim.inside.where(condition, f"{claim.name}, {plain(counter.name).rpartition('.')[2]} goes on")
        before = {counter: counter - 1, **{c: resize(e, c.width) - 1 for c, e in inner}}
        likely = [substitute(at[c], before) for c in write.counters]
        definition = definitions.of(case, write.memory, reader, point, likely)
        if definition is None or definition.write is not write:
            raise Unsupported(f"a cell of {write.memory.name} is written by others while {write.label} adds up")
        for loop in write.counters:
            same = equal(substitute(at[loop], before), definition.at[loop])
            meaning = "the iteration before stored what is read"
            case.theorem(claim.group, f"{case.name}: before, {plain(loop.name)}", same, meaning)
    return cases
