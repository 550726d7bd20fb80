"""What a value adds up, in whatever order: one *summand* for each iteration of some loops.

A fold whose step combines its register with something else, by an operator whose order is free, is the combination of
what it begins with and of that for each of its iterations: by induction over them.  Sums of sums are opened, in steps
as well; what a fold in a step begins with must be nothing.

A sum of integers that is cut to fewer bits is the sum of its summands that are cut, as it is modulo a power of two.
So is minus a sum.  One that is extended to more bits is the sum of its summands that are extended if it never leaves
its width: if so many summands as there are at most, each as large as any is, still fit.  Both are obligations, the
latter on all bits.  A part of a step that is read from memory is opened where a fold or a sum was stored there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pysmt.shortcuts as smt

from chc.mapping.arithmetic import exact
from chc.mapping.contents.folds import FoldUse
from chc.mapping.contents.values import Moment, Values
from chc.mapping.memory.cases import Split
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import narrow
from chc.mapping.operators import Operator
from chc.mapping.program.writes import Fold, Loops, Write
from chc.mapping.proof import Proof
from ila_lang import Expr, const, free_variables, ite, postorder, resize, substitute
from smt_encodings.claims import Unsupported
from smt_encodings.discharge import decide
from smt_encodings.environment import fresh, plain
from smt_encodings.expressions.bits import BitEncoding

from .extremes import extremes

Path = tuple[tuple[Expr | Write | None, Expr], ...]


@dataclass(frozen=True, eq=False)
class Summands:
    """One summand for each iteration of ``loops``, of which ``context`` has an arbitrary one.

    ``path`` leads there: a part of the value, then in turn a part of the step of the fold that the one before is, with
    the result of that fold, or a part of what the write stores, which is named, that gave the one before its value.
    ``casts`` are what is done to the summand then, outer ones first.
    """

    side: Values
    context: Context
    path: Path
    loops: Loops = ()
    casts: tuple[Callable[[Expr], Expr], ...] = ()

    def value(self, context: Context, at: Sequence[Expr]) -> Expr:
        """The summand at an iteration, which must exist: a term of a context for each of the loops."""
        value, _ = _reached(self.side, context, self.path, at)
        for cast in reversed(self.casts):
            value = cast(value)
        return value

    @property
    def here(self) -> Expr:
        """The summand in its own context."""
        return self.value(self.context, [c for c, _ in self.loops])


def _reached(side: Values, context: Context, path: Path, at: Sequence[Expr]) -> tuple[Expr, Moment | None]:
    """What a path leads to at an iteration, and when that is read; None for a part of the value itself."""
    value, moment = path[0][1], None
    for (_, part), (of, term) in pairwise(path):
        if isinstance(of, Write):
            moment = None if moment is None else side.origin(context, moment, part)
            same = moment is not None and moment.write is of
        else:
            use = side.folds.get(value)
            same = use is not None and use.fold.results[_place(use, value)] is of
            if use is not None:
                count = len(use.loops)
                counters = dict(zip((c for c, _ in use.loops), at[:count], strict=True))
                moment, at = side.step_of(use, counters), at[count:]
        if not same or moment is None:
            raise Unsupported("what is added up differs between iterations of a sum")
        value = side.read(context, moment, term)
    return value, moment


@dataclass
class Opened:
    """Opens sums of both sides."""

    proof: Proof
    _of_nothing: dict[Fold, Expr] = field(default_factory=dict)
    """By folds, the results of those that begin with what changes nothing."""
    _count: int = 0

    # -- operators -----------------------------------------------------------------------------------------

    def operator(self, side: Values, root: Expr) -> Operator | None:
        """The operator by which a sum combines; None where it is no sum."""
        node = _uncast(root)
        if node in side.folds:
            use = side.folds[node]
            node = use.fold.step[_place(use, node)]
            registers, folds = {*use.fold.registers}, side.definitions.schedule.folds
            while (known := self.proof.operators.applied(node)) is None:
                if node in folds and registers.issuperset(folds[node].initial):
                    registers |= {*folds[node].registers}
                    node = dict(zip(folds[node].results, folds[node].step, strict=True))[node]
                elif _has_body(node):
                    node = _unfolded(node)
                elif node.op == "ite":
                    node = next((a for a in node.args[1:] if a not in registers), node.args[0])
                else:
                    break
        else:
            known = (
                self.proof.operators.addition(node.sort) if self._is_sum(node) else self.proof.operators.applied(node)
            )
        return self.proof.operators.addition(root.sort) if known is not None and known.adds else known

    def _is_sum(self, term: Expr) -> bool:
        """Whether a term applies a function that adds up its operands, does nothing else, and is no symbol."""
        body = None if term.func is None or term.params[0] in self.proof.mapping.abstract else term.func.body
        return (
            body is not None
            and term.func is not None
            and body.op == "bvadd"
            and set(body.args) == set(term.func.params)
        )

    # -- sums ----------------------------------------------------------------------------------------------

    def roots(self, side: Values, value: Expr) -> list[Expr]:
        """The largest parts of a value that add up folds, in order."""
        order = postorder([value])
        adds = {n for n in order if n in side.folds}
        for node in order:
            plain_sum = node.op in ("bvadd", "bvsub") or _cast(node) is not None or self._is_sum(node)
            if plain_sum and any(a in adds for a in node.args):
                adds.add(node)
        inside = {a for n in order if n in adds for a in n.args}
        used = {a for n in order if n not in adds for a in n.args}
        return [n for n in order if n in adds and (n is value or n not in inside or n in used)]

    def written_out(self, side: Values, value: Expr) -> Expr:
        """A value with functions of folds written out that have a body and are neither abstract nor an operator."""
        for node in postorder([value]):
            means = _has_body(node) and node.params[0] not in self.proof.mapping.abstract
            if means and not self.proof.operators.applied(node) and any(n in side.folds for n in postorder(node.args)):
                return self.written_out(side, substitute(value, {node: _unfolded(node)}))
        return value

    def operands(self, term: Expr, operator: Operator, register: Expr | None = None) -> list[Expr]:
        """What an operator combines in a term; applications are opened for it, or for a register."""
        if operator.sums.of(term) is not None:
            return [o for a in term.args for o in self.operands(a, operator, register)]
        if operator.adds and term.op == "bvsub" and not _is_zero(term.args[0]):
            return [*self.operands(term.args[0], operator, register), _negative(term.args[1])]
        carries = register is not None and any(n is register for n in postorder([term]))
        if carries and term.op == "ite" and operator.unit is not None:
            return self._chosen(term, operator, register)
        if _has_body(term) and (carries or term.params[0] not in self.proof.mapping.abstract):
            opened = _unfolded(term)
            if carries or operator.sums.of(opened) is not None:
                return self.operands(opened, operator, register)
        return [] if operator.is_unit(term) else [term]

    def _chosen(self, term: Expr, operator: Operator, register: Expr | None) -> list[Expr]:
        """What a choice combines with a register that both arms carry; a choice among units beside it."""
        condition, *arms = term.args
        parts = [self.operands(arm, operator, register) for arm in arms]
        if any(sum(o is register for o in of) != 1 for of in parts) or register is None or operator.unit is None:
            return [term]
        one, other = ([o for o in of if o is not register] for of in parts)
        unit = operator.unit
        return [register, *(ite(condition, o, unit) for o in one), *(ite(condition, unit, o) for o in other)]

    def summands(self, side: Values, context: Context, terms: Sequence[Expr], operator: Operator) -> list[Summands]:
        """The summands of some values of a context together; raises Unsupported where a fold among them is no sum."""
        start = Summands(side, context, ())
        found = [s for t in terms for s in self._of(start, None, t, operator)]
        if any(n in side.folds for s in found if not s.loops for n in postorder([s.path[0][1]])):
            raise Unsupported(
                "the step of a fold does more than to combine its register with something by its operator"
            )
        return found

    def _of(self, at: Summands, of: Expr | Write | None, term: Expr, operator: Operator) -> Iterator[Summands]:
        """The summands of a term at the end of a path, in the step of the fold with a result or in a write, if any."""
        for operand in self.operands(term, operator):
            inner = _cast(operand)
            whole = replace(at, path=(*at.path, (of, operand)))
            is_fold = operand in (at.side.definitions.schedule.folds if at.path else at.side.folds)
            if operand.op == "load" and at.path:
                with suppress(Split):
                    is_fold = replace(whole, casts=()).here in at.side.folds
            parts: list[Summands] | None = None
            if is_fold:
                parts = self._of_fold(at, whole, operator)
            elif inner is not None and operator.adds:
                parts = self._of_cast(at, whole, *inner)
            elif at.path:
                parts = self._of_stored(whole, operator)
            yield from [whole] if parts is None else parts

    def _of_stored(self, whole: Summands, operator: Operator) -> list[Summands] | None:
        """The summands of what a write stored, or an iteration kept; None where that is no sum."""
        at, (_, part) = [c for c, _ in whole.loops], whole.path[-1]
        stored: Moment | None = None
        with suppress(Split):
            _, moment = _reached(whole.side, whole.context, whole.path, at)
            stored = None if moment is None else whole.side.origin(whole.context, moment, part)
        if stored is None:
            return None
        parts = list(self._of(whole, stored.write, stored.write.value, operator))
        return None if len(parts) == 1 and len(parts[0].path) == len(whole.path) + 1 else parts

    def _of_fold(self, at: Summands, whole: Summands, operator: Operator) -> list[Summands] | None:
        """The summands of a fold; None where it does not combine by the operator."""
        side, (value, _) = at.side, _reached(at.side, at.context, whole.path, [c for c, _ in at.loops])
        use = side.folds[value]
        if use.blocks is not None or use.cycle is not None:
            return None
        number = _place(use, value)
        register, step, initial = use.fold.registers[number], use.fold.step[number], use.initial[number]
        result = use.fold.results[number]
        if side.definitions.schedule.mentions(step, {r for r in use.fold.registers if r is not register}):
            return None
        others = self._beside(side, step, register, operator)
        if others is None:
            return None
        if at.path and not operator.is_unit(initial):
            return None
        inside = self._iteration(at, use)
        within = replace(whole, context=inside, loops=(*at.loops, *inside.ranges[len(at.context.ranges) :]))
        begin = [] if at.path else list(self._of(at, None, initial, operator))
        return [*begin, *(s for o in others for s in self._of(within, result, o, operator))]

    def _beside(self, side: Values, step: Expr, register: Expr, operator: Operator) -> list[Expr] | None:
        """What a step combines with its register; None where it does something else.

        A step that is a whole fold which goes on from the register combines with it what that fold is of nothing.
        """
        schedule, operands = side.definitions.schedule, self.operands(step, operator, register)
        others = [o for o in operands if o is not register]
        if len(others) + 1 == len(operands):
            own = register.sort == operator.sort and not any(schedule.mentions(o, {register}) for o in others)
            return others if own else None
        inner = schedule.folds.get(step)
        if inner is None or operator.unit is None or len(inner.initial) != 1 or inner.initial[0] is not register:
            return None
        (within,), (inner_step,) = inner.registers, inner.step
        if any(schedule.mentions(t, {register}) for t in (inner_step, *(e for _, e in inner.loops))):
            return None
        if self._beside(side, inner_step, within, operator) is None:
            return None
        if inner not in self._of_nothing:
            result = fresh("of_nothing", step.sort)
            schedule.folds[result] = replace(inner, initial=(operator.unit,), results=(result,))
            self._of_nothing[inner] = result
        return [self._of_nothing[inner]]

    def _iteration(self, at: Summands, use: FoldUse) -> Context:
        """An arbitrary iteration of a fold's loops."""
        self._count += 1
        name = f"{at.side.definitions.prefix}: sum {self._count}"
        counters: dict[Expr, Expr] = {}
        loops: list[tuple[Expr, Expr]] = []
        for counter, extent in use.loops:
            known = {**dict.fromkeys((c for c, _ in use.loops), const(0, 32)), **counters}
            own = fresh(f"sum{self._count}.{plain(counter.name)}", counter.sort)
            loops.append((own, substitute(extent, narrow({c: use.shifted(known)[c] for c in counters}))))
            counters[counter] = own
        return at.context.inside(tuple(loops), name)

    # -- other widths --------------------------------------------------------------------------------------

    def _of_cast(
        self, at: Summands, whole: Summands, inner: Expr, cast: Callable[[Expr], Expr]
    ) -> list[Summands] | None:
        """The summands of a sum of another width; None where it is no sum, or may leave its width."""
        narrower, (of, operand) = self.proof.operators.addition(inner.sort), whole.path[-1]
        parts = list(self._of(at, of, inner, narrower))
        if len(parts) == 1 and len(parts[0].path) == len(at.path) + 1:
            return None
        if operand.op in ("sext", "zext") and not self._fits(at, parts, is_signed=operand.op == "sext"):
            return None
        return [replace(p, casts=(cast, *p.casts)) for p in parts]

    def _fits(self, at: Summands, parts: Sequence[Summands], *, is_signed: bool) -> bool:
        """Whether a sum never leaves its width, proved."""
        self._count += 1
        name = f"{at.side.definitions.prefix}: sum {self._count}"
        low: list[Expr] = []
        high: list[Expr] = []
        for part in parts:
            own = part.loops[len(at.loops) :]
            if {c.name for c, _ in own} & set(free_variables(*(e for _, e in own))):
                return False
            bounds = self._bounds(part, f"{name}: summand {len(low) + 1}", is_signed=is_signed)
            if bounds is None:
                return False
            for sums, bound in ((low, -bounds[0]), (high, bounds[1])):
                size = max(bound, 0)
                sums.append(exact.product([*(e for _, e in own), const(size, max(size.bit_length(), 1))]))
        width = parts[0].here.width - is_signed if parts else 1
        for sums, most, what in ((high, (1 << width) - 1, "above"), (low, (1 << width) if is_signed else 0, "below")):
            fits = ~exact.less(const(most, width + 1), exact.total(sums))
            if not at.context.proves(fits):
                return False
            meaning = "as many summands as there are, each as large as any is, stay within the width of their sum"
            at.context.theorem("ranges", f"{name}: nothing {what}", fits, meaning)
        return True

    def _bounds(self, part: Summands, name: str, *, is_signed: bool) -> tuple[int, int] | None:
        """The least and the largest number that a summand is, proved of all operands; None if not found."""
        value, width = part.here, part.here.width
        found = extremes(value, is_signed=is_signed)
        least_of = -(1 << (width - 1)) if is_signed else 0
        if found is None or not least_of <= found[0] <= found[1] < least_of + (1 << width):
            return None
        low, high = found
        least, most = (const(x % (1 << width), width) for x in (low, high))
        inside = least.sle(value) & value.sle(most) if is_signed else (least <= value) & (value <= most)
        claim = BitEncoding().term(inside)
        if not decide([], claim):
            return None
        meaning = f"a summand is from {low} to {high}, whatever its operands are"
        self.proof.discharger.ask("ranges", name, [smt.Not(claim)], meaning)
        return low, high


def _place(use: FoldUse, symbol: Expr) -> int:
    """Which of a fold's results a symbol stands for."""
    return next(k for k, known in enumerate(use.symbols) if known is symbol)


def _cast(term: Expr) -> tuple[Expr, Callable[[Expr], Expr]] | None:
    """What a term extends, or cuts to its lowest bits, and how; None for other terms."""
    width = term.width if hasattr(term.sort, "width") else 0
    if term.op == "sext":
        return term.args[0], lambda t: t.sext(width)
    if term.op == "zext":
        return term.args[0], lambda t: t.zext(width)
    if term.op == "extract" and term.params[1] == 0:
        return term.args[0], lambda t: resize(t, width)
    if term.op == "bvneg" or (term.op == "bvsub" and _is_zero(term.args[0])):
        return term.args[-1], _negative
    return None


def _is_zero(term: Expr) -> bool:
    return term.is_const and term.value == 0


def _negative(term: Expr) -> Expr:
    """Minus an integer, modulo a power of two."""
    return -term


def _uncast(term: Expr) -> Expr:
    while (inner := _cast(term)) is not None:
        term = inner[0]
    return term


def _has_body(term: Expr) -> bool:
    return term.func is not None and term.func.body is not None


def _unfolded(term: Expr) -> Expr:
    assert term.func is not None
    return term.func.unfold(term.args)
