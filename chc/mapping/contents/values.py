"""Values of cells as terms: read back from one cell through the program, with sources and folds left symbolic.

The value that a write stores is its term, with every load replaced by the value of the cell it reads (whose reaching
definition is proved first) and every fold by a symbol.  What remains are *sources*, cells as they were before the
program, and *folds*, which are compared with those of the other side (:mod:`chc.mapping.relate.equivalence`).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

from chc.mapping.arithmetic.exact import less
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Definition, Iteration, Reader, narrow
from chc.mapping.memory.reaching_definitions import ReachingDefinitions
from chc.mapping.program.statements import variable_text
from chc.mapping.program.writes import END, Fold, Loops, Point, Write, conjuncts_of
from ila_lang import Expr, MemSort, Sort, all_of, const, free_variables, postorder, resize, substitute, true
from smt_encodings.claims import Unsupported
from smt_encodings.environment import fresh, plain

from .alternating import Alternating, alternating
from .chains import accumulates, scatters
from .folds import FoldUse
from .gathers import Gather, gather_of
from .reduction import reduction
from .scatter_add import ScatterAdd, scatter_add
from .turns import Turns, in_turn
from .unrolled import Cycle, cycle

_NOTHING: Iteration = {}


@dataclass(frozen=True, eq=False)
class Source:
    """A cell of a memory as it was before the program, standing in values as ``symbol``."""

    memory: Expr
    reader: Reader
    symbol: Expr
    context: Context


@dataclass(frozen=True, eq=False)
class ScatteredReduction:
    """A cell to which scattered iterations of a write add: its value after ``definition``, standing as ``symbol``.

    The write's value is a term over the cell as it was before, which ``old`` reads.
    """

    definition: Definition
    old: Expr
    symbol: Expr
    context: Context


@dataclass(frozen=True, eq=False)
class Moment:
    """Where and when a term is read: in a write, in loops of folds around it, with what their registers hold."""

    write: Write
    at: Iteration
    inner: Loops = ()
    carried: Iteration = field(default_factory=dict)


@dataclass
class Values:
    """Values of one side's cells."""

    definitions: ReachingDefinitions
    sources: dict[Expr, Source] = field(default_factory=dict)
    folds: dict[Expr, FoldUse] = field(default_factory=dict)
    """By the symbols that stand for the folds' results."""
    scattered: dict[Expr, ScatteredReduction] = field(default_factory=dict)
    gathers: dict[tuple[object, ...], Gather] = field(default_factory=dict)
    earlier: dict[Expr, tuple[Context, Definition]] = field(default_factory=dict)
    """By symbols, values stored in earlier iterations of the loop over time: what the induction is about."""
    time: tuple[int, Expr] | None = None
    """The place of the loop over time, and its counter."""
    symbols: dict[Expr, Context] = field(default_factory=dict)
    """Where the symbols of values have one value: sources, results of folds, what registers hold in their steps."""
    _known: dict[tuple[object, ...], Expr] = field(default_factory=dict)
    _readers: dict[tuple[object, ...], Reader] = field(default_factory=dict)
    """By the keys of cells, what read them first."""
    _branches: int = 0
    _moved: int = 0

    def after(self, context: Context, memory: Expr, address: Expr) -> Expr:
        """The value of a cell after the program; its address is over the coordinates of the context."""
        return self.before(context, memory, Reader(address, None, {}), END)

    def before(self, context: Context, memory: Expr, reader: Reader, point: Point) -> Expr:
        """The value of a cell just before a point of the program."""
        cell = reader.cell()
        key = (context, memory, cell, point.place, point.counters)
        if key not in self._known:
            context.samples.require(cell)
            self._readers[key] = reader
            added = scatter_add(self.definitions, context, memory, reader, point)
            definition = self.definitions.of(context, memory, reader, point) if added is None else None
            if added is not None:
                self._known[key] = self._added(context, memory, reader, added)
            elif definition is None:
                self._known[key] = self._live_in(context, memory, reader)
            else:
                self._known[key] = self._stored(context, definition)
        self._readers[key].require_same(context, reader)
        return self._known[key]

    def _added(self, context: Context, memory: Expr, reader: Reader, added: ScatterAdd) -> Expr:
        """What scattered iterations add to what a cell held before their loops."""
        folds, value = added.folds(self.definitions, context), self.before(context, memory, reader, added.start)
        for fold, at in folds:
            value = self._use(FoldUse(fold, at, (), {}, (value,), self._symbols(context, fold), context))
        return value

    def idle(self, memory: Expr) -> Expr | None:
        """What all words of a memory hold before the program; None where that is not known."""
        fragment, sort = self.definitions.schedule.fragment, memory.sort
        if memory.name not in fragment.idle or fragment.ila.states.get(memory.name) is not memory:
            return None
        assert isinstance(sort, MemSort)
        return const(fragment.idle[memory.name], sort.data_width)

    def _live_in(self, context: Context, memory: Expr, reader: Reader) -> Expr:
        """The symbol of a cell as it was before the program."""
        idle = self.idle(memory)
        if idle is not None:
            return idle
        if memory.sort.addr_width < reader.address.width:  # type: ignore[union-attr]
            raise Unsupported(f"an element that {plain(memory.name)} has no word for may keep its value")
        key = (context, memory, reader.cell())
        self._readers.setdefault(key, reader).require_same(context, reader)
        if key not in self._known:
            name = f"source.{self.definitions.prefix}.{len(self.sources)}"
            symbol = self._symbol(context, name, memory.load(reader.address).sort)
            self.sources[symbol] = Source(memory, reader, symbol, context)
            self._known[key] = symbol
        return self._known[key]

    def _stored(self, context: Context, definition: Definition) -> Expr:
        write = definition.write
        copies = write.value.op == "load"  # what is copied has been computed elsewhere
        if self.time is not None and context.now is not None and write.loops and not copies:
            place, counter = self.time
            if write.place[0] == place and write.counters[0] is counter:
                sooner = less(definition.at[counter], context.now)
                if all(v for (v,) in context.samples.evaluate([sooner])):
                    key = (context, write, definition.vector)
                    if key not in self._known:
                        number = len(self.earlier)
                        prefix = self.definitions.prefix
                        meaning = "the induction over time is about an earlier iteration"
                        context.theorem("induction", f"{prefix}, earlier value {number}: earlier", sooner, meaning)
                        symbol = self._symbol(context, f"earlier.{prefix}.{number}", write.value.sort)
                        self.earlier[symbol] = context, definition
                        self._known[key] = symbol
                    return self._known[key]
        return self.computed(context, definition)

    def computed(self, context: Context, definition: Definition) -> Expr:
        """What a write stores at an iteration: its term, or a fold where it accumulates in the cell."""
        write = definition.write
        if scatters(self.definitions, context, definition):
            return self._scattered(context, definition)
        reduced = reduction(self.definitions, context, definition)
        if reduced is None:
            found = in_turn(self.definitions, context, definition)
            if found is not None:
                return self._in_turn(context, definition, found)
            return self.term(context, write, definition.at, (), write.value)
        initial = self._initial(context, reduced.first, reduced.begins)
        symbols = self._symbols(context, reduced.fold)
        return self._use(FoldUse(reduced.fold, definition.at, (), {}, (initial,), symbols, context, reduced.part))

    def _initial(self, context: Context, first: Definition, begins: Expr | None) -> Expr:
        """What updates of a cell begin with at the first iteration: a term over its counters, or the cell."""
        if begins is not None:
            return self.term(context, first.write, first.at, (), begins)
        reader = Reader(first.write.address, self.definitions.layout.instance(first.write), first.at)
        return self.before(context, first.write.memory, reader, first.point)

    def _in_turn(self, context: Context, definition: Definition, found: Turns) -> Expr:
        """The fold of several writes that update a cell in turn."""
        turns = (cycle if found.whole else alternating)(self.definitions, context, definition, found)
        update, initial = turns.members[0].update, self._initial(context, turns.start, turns.begins)
        result = fresh("turns.result", update.register.sort)
        fold = Fold(definition.write, turns.loops, (update.register,), (initial,), (update.value,), (result,))
        return self._use(
            FoldUse(fold, definition.at, (), {}, (initial,), self._symbols(context, fold), context, cycle=turns)
        )

    def _turn(self, context: Context, turns: Cycle | Alternating, at: Iteration, register: Expr) -> Expr:
        """What one iteration of writes that update a cell in turn makes of it."""
        for definition, member in turns.steps(self.definitions, context, at):
            if member.fold.loops:
                symbols = self._symbols(context, member.fold)
                register = self._use(FoldUse(member.fold, definition.at, (), {}, (register,), symbols, context))
            else:
                value, carried = member.update.value, {member.update.register: register}
                register = self.term(context, definition.write, definition.at, (), value, carried)
        return register

    def _scattered(self, context: Context, definition: Definition) -> Expr:
        write = definition.write
        key = (context, write, definition.vector, "scattered")
        if key not in self._known:
            number = len(self.scattered)
            symbol = self._symbol(context, f"revisited.{self.definitions.prefix}.{number}", write.value.sort)
            self.scattered[symbol] = ScatteredReduction(definition, write.memory.load(write.address), symbol, context)
            self._known[key] = symbol
        return self._known[key]

    def copied(self, context: Context, memory: Expr, address: Expr) -> Definition | None:
        """The write that computed the value of a cell after the program, behind writes that only copy it.

        None where no write did alone: it is a copy of what was there before, or scattered iterations add to it.
        """
        reader, point = Reader(address, None, {}), END
        while True:
            if scatter_add(self.definitions, context, memory, reader, point) is not None:
                return None
            definition = self.definitions.of(context, memory, reader, point)
            if definition is None:
                return None
            write = definition.write
            if write.value.op != "load" or write.value.args[0].op != "var":
                return definition
            memory, address = write.value.args
            reader = Reader(address, self.definitions.layout.instance(write), definition.at)
            if not context.samples.determine(reader.cell()):  # an address that is data
                return definition
            point = definition.point

    def term(
        self, context: Context, write: Write, at: Iteration, inner: Loops, term: Expr, carried: Iteration = _NOTHING
    ) -> Expr:
        """A term in the value of ``write`` at the iteration ``at``, which includes counters of ``inner`` loops.

        ``carried`` gives what the registers of folds around it hold.
        """
        here = narrow(at)
        point = Point(write.place, tuple(at[c] for c in write.counters))
        term, same = self._decided(context, write, term, here)
        values: dict[Expr, Expr] = {}
        for node in postorder([term]):
            if node.op == "load":
                memory, address = node.args
                if memory.op != "var":
                    raise Unsupported(f"{write.label} reads from a memory that a term makes")
                gather = gather_of(context, node, point, here, {**carried, **values})
                if gather is not None:
                    values[node] = self.gathers.setdefault(gather.key, gather).symbol
                    self.symbols[values[node]] = context
                    continue
                instance = self.definitions.layout.instance(write, inner)
                values[node] = self.before(context, memory, Reader(address, instance, at), point)
            elif node in self.definitions.schedule.folds:
                values[node] = self._fold(context, at, inner, node, carried)
            elif node in self.definitions.schedule.snapshots:
                snapshot = self.definitions.schedule.snapshots[node]
                values[node] = self.term(context, snapshot, {c: at[c] for c in snapshot.counters}, (), snapshot.value)
            elif node in self.definitions.schedule.unknown:
                values[node] = self._unknown(context, at, node)
        # at once: counters stand in the term, coordinates of the context in what replaces its parts
        result = substitute(term, {**here, **same, **values, **carried})
        stray = self.definitions.schedule.loop_variant(result)
        if stray is not None:  # two values of it would be one symbol
            raise Unsupported(f"the result depends on {variable_text(stray)}, which the program does not determine")
        return result

    def _unknown(self, context: Context, at: Iteration, symbol: Expr) -> Expr:
        """What state that is not followed holds at an iteration: a symbol for this iteration alone."""
        here = tuple(at[c] for c in self.definitions.schedule.unknown[symbol])
        context = context.smallest(here, self.symbols)
        key = (context, symbol, here)
        if key not in self._known:
            self._known[key] = self._symbol(context, plain(symbol.name), symbol.sort)
        return self._known[key]

    def _decided(self, context: Context, write: Write, term: Expr, here: Iteration) -> tuple[Expr, dict[Expr, Expr]]:
        """``term`` with every choice replaced by its branch whose condition sizes, coordinates and counters decide.

        With it, the forms in the context of conditions that remain.
        """
        branches: dict[Expr, Expr] = {}
        same: dict[Expr, Expr] = {}
        for node in postorder([term]):
            if node.op != "ite":
                continue
            condition = substitute(node.args[0], here)
            if condition.is_const:
                branches[node] = node.args[1 if condition.value else 2]
                continue
            if not context.samples.determine(condition):
                continue
            outcomes = {bool(v) for (v,) in context.samples.evaluate([condition])}
            holds = outcomes.pop()
            decided = condition if holds else ~condition
            if not outcomes and context.proves(decided):
                self._branches += 1
                name = f"{self.definitions.prefix}, branch {self._branches} of {write.label}"
                context.theorem("branches", name, decided, "this branch is the one that is taken")
                branches[node] = node.args[1 if holds else 2]
                continue
            form = self._same_condition(context, write, condition)
            if form is not None:
                same[node.args[0]] = form
        while branches and any(n in branches for n in postorder([term])):
            term = substitute(term, branches)
        return term, same

    def _same_condition(self, context: Context, write: Write, condition: Expr) -> Expr | None:
        """A choice's condition in terms of the context's conditions, equivalent by proof; None where there is none.

        Parts that speak of sizes alone stay as they are.
        """
        coordinates = {c.name for c, _ in context.ranges}
        parts = conjuncts_of(condition)
        sizes = [p for p in parts if not coordinates & set(free_variables(p))]
        here = all_of([p for p in parts if coordinates & set(free_variables(p))])
        for known in context.conditions:
            for form in (known, ~known):
                if form is here:
                    return None  # it stands there already
                same = here == form
                if all(v for (v,) in context.samples.evaluate([same])) and context.proves(same):
                    self._branches += 1
                    name = f"{self.definitions.prefix}, choice {self._branches} of {write.label}"
                    context.theorem("branches", name, same, "both conditions say the same")
                    return all_of([form, *sizes])
        return None

    def _fold(self, context: Context, at: Iteration, inner: Loops, result: Expr, carried: Iteration) -> Expr:
        schedule = self.definitions.schedule
        fold = schedule.folds[result]
        here = fold.here.counters
        # a result that is the same in all iterations of a loop around its use is compared once
        inner = tuple(loop for loop in self._around(fold, inner) if loop[0] not in set(here))
        at = {c: at[c] for c in (*here, *(c for c, _ in inner))}
        carried = {r: value for r, value in carried.items() if schedule.mentions(result, {r})}
        context = self._outermost(context, fold, inner, at, carried)
        key = (context, fold, tuple(at.values()), tuple(carried.items()))
        if key not in self._known:
            initial = tuple(self.term(context, fold.here, at, inner, t, carried) for t in fold.initial)
            symbols = self._symbols(context, fold)
            self._known[key] = self._use(FoldUse(fold, at, inner, carried, initial, symbols, context))
        use = self.folds[self._known[key]]
        return dict(zip(fold.results, use.symbols, strict=True))[result]

    def _outermost(self, context: Context, fold: Fold, inner: Loops, at: Iteration, carried: Iteration) -> Context:
        """The outermost context around this one where a fold has one value, and runs: its iteration exists there.

        Where it does not exist, what it reads has addresses that are not what the program computes.
        """
        around = context.outward(context.smallest([*at.values(), *carried.values()], self.symbols))
        here = narrow(at)
        ranges = [less(at[c], substitute(e, here)) for c, e in (*fold.here.loops, *inner)]
        runs = all_of([*ranges, substitute(fold.here.guard, here)])
        for outer in reversed(around[1:]):
            if runs is true or outer.proves(runs):
                self._moved += 1
                name = f"{self.definitions.prefix}, fold {self._moved} of {fold.here.label}"
                outer.theorem("moved", f"{name}: runs", runs, "its iteration exists wherever its value is used")
                return outer
        return context

    def _symbol(self, context: Context, name: str, sort: Sort) -> Expr:
        symbol = fresh(name, sort)
        self.symbols[symbol] = context
        return symbol

    def _symbols(self, context: Context, fold: Fold) -> tuple[Expr, ...]:
        prefix = f"fold_of.{self.definitions.prefix}.{len(self.folds)}"
        return tuple(self._symbol(context, f"{prefix}.{r.name}", r.sort) for r in fold.results)

    def _use(self, use: FoldUse) -> Expr:
        """Records a fold; gives the symbol of its first result."""
        use.context.samples.require(*(extent for _, extent in use.loops))
        self.folds |= dict.fromkeys(use.symbols, use)
        return use.symbols[0]

    def nested(self, use: FoldUse, count: int) -> FoldUse:
        """A fold over ``count`` loops, of folds over its others; as it was where it has no more loops than that."""
        if len(use.loops) <= count or use.part or use.blocks or use.cycle or use.selected:
            return use
        return replace(use, fold=self.definitions.schedule.nested(use.fold, count))

    def in_parts(self, use: FoldUse, length: Expr) -> FoldUse:
        """The rest of a fold that begins with the result of its first ``length`` iterations of the outermost loop.

        There must be as many.  Both have the same result: a loop may be interrupted.
        """
        extent = use.loops[0][1]
        begin = const(0, 32) if use.part is None else use.part[0]
        first = replace(
            use,
            symbols=self._symbols(use.context, use.fold),
            part=(begin, resize(length, extent.width)),
        )
        self._use(first)
        rest = (resize(begin, 32) + resize(length, 32), extent - resize(length, extent.width))
        return replace(use, initial=first.symbols, part=rest)

    def _around(self, fold: Fold, inner: Loops) -> Loops:
        """Those of the loops around the use of a fold that it depends on."""
        names = self.definitions.schedule.names(fold)
        around: list[tuple[Expr, Expr]] = []
        for counter, extent in reversed(inner):
            if counter.name in names:
                around.insert(0, (counter, extent))
                names |= set(free_variables(extent))
        return tuple(around)

    def unrolled(self, use: FoldUse) -> dict[Expr, Expr]:
        """The results of a fold over literal extents, by the symbols that stand for them, as terms without the fold."""
        registers = use.initial
        for iteration in itertools.product(*(range(extent.value) for _, extent in use.loops)):
            at = {c: const(k, 32) for (c, _), k in zip(use.loops, iteration, strict=True)}
            registers = self.step(use, use.context, registers, at)
        return dict(zip(use.symbols, registers, strict=True))

    def step(self, use: FoldUse, context: Context, registers: tuple[Expr, ...], at: Iteration) -> tuple[Expr, ...]:
        """What one iteration of a fold makes of ``registers``; ``at`` gives the fold's counters in ``context``.

        Variables that are registers, and nothing else so far, have their value in this iteration.
        """
        for register in registers:
            if register.op == "var":
                self.symbols.setdefault(register, context)
        counter = use.fold.loops[0][0]
        if use.blocks is not None:
            begin, length = use.blocks.at(at[counter])
            begin = begin if use.part is None else resize(use.part[0], 32) + begin
            symbols = self._symbols(context, use.fold)
            block = replace(use, initial=registers, symbols=symbols, context=context, part=(begin, length), blocks=None)
            self._use(block)
            return block.symbols
        if use.cycle is not None:
            return (self._turn(context, use.cycle, use.iteration(at), *registers),)
        carried = dict(zip(use.fold.registers, registers, strict=True))
        return tuple(self.in_step(use, context, t, at, carried) for t in use.fold.step)

    def in_step(self, use: FoldUse, context: Context, term: Expr, at: Iteration, carried: Iteration) -> Expr:
        """A part of a fold's step at one iteration; ``carried`` gives what its registers hold, where it has them."""
        return self.read(context, self.step_of(use, at, carried), term)

    def step_of(self, use: FoldUse, at: Iteration, carried: Iteration = _NOTHING) -> Moment:
        """One iteration of a fold."""
        own = use.fold.counters  # a fold in memory has loops of the write itself, or counts their iterations
        inner = (*use.inner, *(loop for loop in use.fold.loops if loop[0] not in own))
        return Moment(use.fold.here, use.iteration(at), inner, {**use.carried, **carried})

    def read(self, context: Context, moment: Moment, term: Expr) -> Expr:
        """The value of a term."""
        return self.term(context, moment.write, moment.at, moment.inner, term, moment.carried)

    def origin(self, context: Context, moment: Moment, part: Expr) -> Moment | None:
        """Where the value of a part of a term was stored as it is, or was kept; None for other parts."""
        snapshot = self.definitions.schedule.snapshots.get(part)
        if snapshot is not None:
            return Moment(snapshot, {c: moment.at[c] for c in snapshot.counters})
        if part.op != "load" or part.args[0].op != "var" or self.time is not None:
            return None
        memory, address = part.args
        reader = Reader(address, self.definitions.layout.instance(moment.write, moment.inner), moment.at)
        point = Point(moment.write.place, tuple(moment.at[c] for c in moment.write.counters))
        by_data = not context.samples.determine(reader.cell())
        if by_data or scatter_add(self.definitions, context, memory, reader, point) is not None:
            return None
        definition = self.definitions.of(context, memory, reader, point)
        if definition is None or accumulates(self.definitions, context, definition):
            return None
        return None if in_turn(self.definitions, context, definition) else Moment(definition.write, definition.at)
