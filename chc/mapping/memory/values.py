"""Values of cells as terms: read back from one cell through the program, with sources and folds left symbolic.

The value that a write stores is its term, with every load replaced by the value of the cell it reads (whose origin is
proved first) and every fold by a symbol.  What remains are *sources*, cells as they were before the program, and
*folds*, which are compared with those of the other side (:mod:`chc.mapping.relate.equivalence`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

from chc.mapping.arithmetic.exact import less
from chc.mapping.program.writes import Fold, Loops, Write
from chc.mapping.unsupported import Unsupported, told
from ila_lang import Expr, MemSort, Sort, all_of, const, free_variables, postorder, resize, substitute, true
from smt_encodings.environment import fresh, plain

from .contexts import Scene, conjuncts_of
from .layout import At, Origin, Reader
from .reaching_definitions import Origins
from .reduction import accumulation, wanders
from .samples import END, Point

__all__ = ["FoldUse", "Revisited", "Source", "Values"]

_NOTHING: At = {}


@dataclass(frozen=True, eq=False)
class Source:
    """A cell of a memory as it was before the program, standing in values as ``symbol``."""

    memory: Expr
    reader: Reader
    symbol: Expr
    scene: Scene


@dataclass(frozen=True, eq=False)
class FoldUse:
    """A fold at one iteration of the loops around it.

    ``inner`` are counters of folds around it, ``carried`` what their registers hold there, and ``initial`` the values
    it begins with.
    """

    fold: Fold
    at: At
    inner: Loops
    carried: At
    initial: tuple[Expr, ...]
    symbols: tuple[Expr, ...]
    scene: Scene

    @property
    def loops(self) -> Loops:
        """Counters and extents, the latter over the coordinates of the scene."""
        here = _narrow(self.at)
        return tuple((c, substitute(e, here)) for c, e in self.fold.loops)

    @property
    def count(self) -> int:
        """The number of iterations, where all extents are literals; otherwise 0."""
        return math.prod(e.value if e.is_const else 0 for _, e in self.loops)


@dataclass(frozen=True, eq=False)
class Revisited:
    """A cell to which one write adds again and again: its value after the iteration ``origin``, standing as ``symbol``.

    The write's value is a term over the cell as it was before, which ``old`` reads.
    """

    origin: Origin
    old: Expr
    symbol: Expr
    scene: Scene


@dataclass
class Values:
    """Values of one side's cells."""

    origins: Origins
    sources: dict[Expr, Source] = field(default_factory=dict)
    folds: dict[Expr, FoldUse] = field(default_factory=dict)
    """By the symbols that stand for the folds' results."""
    revisited: dict[Expr, Revisited] = field(default_factory=dict)
    earlier: dict[Expr, tuple[Scene, Origin]] = field(default_factory=dict)
    """By symbols, values stored in earlier iterations of the loop over time: what the induction is about."""
    time: tuple[int, Expr] | None = None
    """The place of the loop over time, and its counter."""
    symbols: dict[Expr, Scene] = field(default_factory=dict)
    """Where the symbols of values have one value: sources, results of folds, what registers hold in their steps."""
    _known: dict[tuple[object, ...], Expr] = field(default_factory=dict)
    _readers: dict[tuple[object, ...], Reader] = field(default_factory=dict)
    """By the keys of cells, what read them first."""
    _branches: int = 0
    _moved: int = 0

    def after(self, scene: Scene, memory: Expr, address: Expr) -> Expr:
        """The value of a cell after the program; its address is over the coordinates of the scene."""
        return self._cell(scene, memory, Reader(address, None, {}), END)

    def _cell(self, scene: Scene, memory: Expr, reader: Reader, point: Point) -> Expr:
        there = reader.there()
        key = (scene, memory, there, point.place, point.counters)
        if key not in self._known:
            scene.trials.require(there)
            self._readers[key] = reader
            origin = self.origins.of(scene, memory, reader, point)
            if origin is None:
                self._known[key] = self._before_all(scene, memory, reader)
            else:
                self._known[key] = self._stored(scene, origin)
        self._readers[key].require_same(scene, reader)
        return self._known[key]

    def idle(self, memory: Expr) -> Expr | None:
        """What all words of a memory hold before the program; None where that is not known."""
        fragment, sort = self.origins.schedule.fragment, memory.sort
        if memory.name not in fragment.idle or fragment.ila.states.get(memory.name) is not memory:
            return None
        assert isinstance(sort, MemSort)
        return const(fragment.idle[memory.name], sort.data_width)

    def _before_all(self, scene: Scene, memory: Expr, reader: Reader) -> Expr:
        """The symbol of a cell as it was before the program."""
        idle = self.idle(memory)
        if idle is not None:
            return idle
        if memory.sort.addr_width < reader.address.width:  # type: ignore[union-attr]
            raise Unsupported(f"an element that {plain(memory.name)} has no word for may keep its value")
        key = (scene, memory, reader.there())
        self._readers.setdefault(key, reader).require_same(scene, reader)
        if key not in self._known:
            name = f"source.{self.origins.prefix}.{len(self.sources)}"
            symbol = self._symbol(scene, name, memory.load(reader.address).sort)
            self.sources[symbol] = Source(memory, reader, symbol, scene)
            self._known[key] = symbol
        return self._known[key]

    def _stored(self, scene: Scene, origin: Origin) -> Expr:
        write = origin.write
        copies = write.value.op == "load"  # what is copied has been computed elsewhere
        if self.time is not None and scene.now is not None and write.loops and not copies:
            place, counter = self.time
            if write.place[0] == place and write.counters[0] is counter:
                sooner = less(origin.at[counter], scene.now)
                if all(v for (v,) in scene.trials.evaluate([sooner])):
                    key = (scene, write, tuple(origin.at[c] for c in write.counters))
                    if key not in self._known:
                        number = len(self.earlier)
                        prefix = self.origins.prefix
                        meaning = "the induction over time is about an earlier iteration"
                        scene.theorem("induction", f"{prefix}, earlier value {number}: earlier", sooner, meaning)
                        symbol = self._symbol(scene, f"earlier.{prefix}.{number}", write.value.sort)
                        self.earlier[symbol] = scene, origin
                        self._known[key] = symbol
                    return self._known[key]
        return self.computed(scene, origin)

    def computed(self, scene: Scene, origin: Origin) -> Expr:
        """What a write stores at an iteration: its term, or a fold where it accumulates in the cell."""
        write = origin.write
        if wanders(self.origins, scene, origin):
            return self._visited(scene, origin)
        found = accumulation(self.origins, scene, origin)
        if found is None:
            return self.term(scene, write, origin.at, (), write.value)
        initial = self._cell(scene, write.memory, found.reader, found.start)
        return self._use(FoldUse(found.fold, origin.at, (), {}, (initial,), self._symbols(scene, found.fold), scene))

    def _visited(self, scene: Scene, origin: Origin) -> Expr:
        key = (scene, origin.write, tuple(origin.at[c] for c in origin.write.counters), "revisited")
        if key not in self._known:
            number = len(self.revisited)
            symbol = self._symbol(scene, f"revisited.{self.origins.prefix}.{number}", origin.write.value.sort)
            self.revisited[symbol] = Revisited(origin, origin.write.memory.load(origin.write.address), symbol, scene)
            self._known[key] = symbol
        return self._known[key]

    def copied(self, scene: Scene, memory: Expr, address: Expr) -> Origin | None:
        """The write that computed the value of a cell after the program, behind writes that only copy it.

        None where nothing computed it: it is a copy of what was there before.
        """
        reader, point = Reader(address, None, {}), END
        while True:
            origin = self.origins.of(scene, memory, reader, point)
            if origin is None:
                return None
            write = origin.write
            if write.value.op != "load" or write.value.args[0].op != "var":
                return origin
            memory, address = write.value.args
            reader = Reader(address, self.origins.layout.spot(write), origin.at)
            point = Point(write.place, tuple(origin.at[c] for c in write.counters))

    def choices(self, scene: Scene, origin: Origin) -> list[Expr]:
        """The conditions, over coordinates and sizes alone, by which the value that ``origin`` stores is chosen."""
        folds, here = self.origins.schedule.folds, _narrow(origin.at)
        terms, seen = [origin.write.value], 0
        while seen < len(terms):  # steps of folds, too
            found = (folds[n] for n in postorder([terms[seen]]) if n in folds)
            terms += [t for fold in found for t in (*fold.initial, *fold.step)]
            seen += 1
        conditions = [substitute(n.args[0], here) for n in postorder(terms) if n.op == "ite"]
        return list(dict.fromkeys(c for c in conditions if scene.trials.determine(c)))

    def term(self, scene: Scene, write: Write, at: At, inner: Loops, term: Expr, carried: At = _NOTHING) -> Expr:
        """A term in the value of ``write`` at the iteration ``at``, which includes counters of ``inner`` loops.

        ``carried`` gives what the registers of folds around it hold.
        """
        here = _narrow(at)
        point = Point(write.place, tuple(at[c] for c in write.counters))
        term, same = self._decided(scene, write, term, here)
        values: dict[Expr, Expr] = {}
        for node in postorder([term]):
            if node.op == "load":
                memory, address = node.args
                if memory.op != "var" or any(n.op == "load" for n in postorder([address])):
                    raise Unsupported(f"{write.label} reads at an address that is itself read from memory")
                if any(n in self.origins.schedule.folds for n in postorder([address])):
                    raise Unsupported(f"{write.label} reads at an address that a loop computes")
                spot = self.origins.layout.spot(write, inner)
                values[node] = self._cell(scene, memory, Reader(address, spot, at), point)
            elif node in self.origins.schedule.folds:
                values[node] = self._fold(scene, at, inner, node, carried)
            elif node in self.origins.schedule.kept:
                kept = self.origins.schedule.kept[node]
                values[node] = self.term(scene, kept, {c: at[c] for c in kept.counters}, (), kept.value)
            elif node in self.origins.schedule.unknown:
                values[node] = self._unknown(scene, at, node)
        # at once: counters stand in the term, coordinates of the scene in what replaces its parts
        result = substitute(term, {**here, **same, **values, **carried})
        stray = self.origins.schedule.moving(result)
        if stray is not None:  # two values of it would be one symbol
            raise Unsupported(f"the result depends on {told(stray)}, which the program does not determine")
        return result

    def _unknown(self, scene: Scene, at: At, symbol: Expr) -> Expr:
        """What state that is not followed holds at an iteration: a symbol for this iteration alone."""
        here = tuple(at[c] for c in self.origins.schedule.unknown[symbol])
        scene = scene.smallest(here, self.symbols)
        key = (scene, symbol, here)
        if key not in self._known:
            self._known[key] = self._symbol(scene, plain(symbol.name), symbol.sort)
        return self._known[key]

    def _decided(self, scene: Scene, write: Write, term: Expr, here: At) -> tuple[Expr, dict[Expr, Expr]]:
        """``term`` with every choice replaced by its branch whose condition sizes, coordinates and counters decide.

        With it, the forms in the scene of conditions that remain.
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
            if not scene.trials.determine(condition):
                continue
            outcomes = {bool(v) for (v,) in scene.trials.evaluate([condition])}
            holds = outcomes.pop()
            decided = condition if holds else ~condition
            if not outcomes and scene.proves(decided):
                self._branches += 1
                name = f"{self.origins.prefix}, branch {self._branches} of {write.label}"
                scene.theorem("branches", name, decided, "this branch is the one that is taken")
                branches[node] = node.args[1 if holds else 2]
                continue
            form = self._same_condition(scene, write, condition)
            if form is not None:
                same[node.args[0]] = form
        while branches and any(n in branches for n in postorder([term])):
            term = substitute(term, branches)
        return term, same

    def _same_condition(self, scene: Scene, write: Write, condition: Expr) -> Expr | None:
        """A choice's condition in terms of the scene's conditions, equivalent by proof; None where there is none.

        Parts that speak of sizes alone stay as they are.
        """
        coordinates = {c.name for c, _ in scene.ranges}
        parts = conjuncts_of(condition)
        sizes = [p for p in parts if not coordinates & set(free_variables(p))]
        here = all_of([p for p in parts if coordinates & set(free_variables(p))])
        for known in scene.conditions:
            for form in (known, ~known):
                if form is here:
                    return None  # it stands there already
                same = here == form
                if all(v for (v,) in scene.trials.evaluate([same])) and scene.proves(same):
                    self._branches += 1
                    name = f"{self.origins.prefix}, choice {self._branches} of {write.label}"
                    scene.theorem("branches", name, same, "both conditions say the same")
                    return all_of([form, *sizes])
        return None

    def _fold(self, scene: Scene, at: At, inner: Loops, result: Expr, carried: At) -> Expr:
        schedule = self.origins.schedule
        fold = schedule.folds[result]
        here = fold.here.counters
        # a result that is the same in all iterations of a loop around its use is compared once
        inner = tuple(loop for loop in self._around(fold, inner) if loop[0] not in set(here))
        at = {c: at[c] for c in (*here, *(c for c, _ in inner))}
        carried = {r: value for r, value in carried.items() if schedule.mentions(result, {r})}
        scene = self._outermost(scene, fold, inner, at, carried)
        key = (scene, fold, tuple(at.values()), tuple(carried.items()))
        if key not in self._known:
            initial = tuple(self.term(scene, fold.here, at, inner, t, carried) for t in fold.initial)
            self._known[key] = self._use(FoldUse(fold, at, inner, carried, initial, self._symbols(scene, fold), scene))
        use = self.folds[self._known[key]]
        return dict(zip(fold.results, use.symbols, strict=True))[result]

    def _outermost(self, scene: Scene, fold: Fold, inner: Loops, at: At, carried: At) -> Scene:
        """The outermost scene around this one where a fold has one value, and runs: its iteration exists there.

        Where it does not exist, what it reads has addresses that are not what the program computes.
        """
        around = scene.outward(scene.smallest([*at.values(), *carried.values()], self.symbols))
        here = _narrow(at)
        ranges = [less(at[c], substitute(e, here)) for c, e in (*fold.here.loops, *inner)]
        runs = all_of([*ranges, substitute(fold.here.guard, here)])
        for place in reversed(around[1:]):
            if runs is true or place.proves(runs):
                self._moved += 1
                name = f"{self.origins.prefix}, fold {self._moved} of {fold.here.label}"
                place.theorem("moved", f"{name}: runs", runs, "its iteration exists wherever its value is used")
                return place
        return scene

    def _symbol(self, scene: Scene, name: str, sort: Sort) -> Expr:
        symbol = fresh(name, sort)
        self.symbols[symbol] = scene
        return symbol

    def _symbols(self, scene: Scene, fold: Fold) -> tuple[Expr, ...]:
        prefix = f"fold_of.{self.origins.prefix}.{len(self.folds)}"
        return tuple(self._symbol(scene, f"{prefix}.{r.name}", r.sort) for r in fold.results)

    def _use(self, use: FoldUse) -> Expr:
        """Notes a fold; gives the symbol of its first result."""
        use.scene.trials.require(*(extent for _, extent in use.loops))
        self.folds |= dict.fromkeys(use.symbols, use)
        return use.symbols[0]

    def _around(self, fold: Fold, inner: Loops) -> Loops:
        """Those of the loops around the use of a fold that it depends on."""
        names = self.origins.schedule.names(fold)
        found: list[tuple[Expr, Expr]] = []
        for counter, extent in reversed(inner):
            if counter.name in names:
                found.insert(0, (counter, extent))
                names |= set(free_variables(extent))
        return tuple(found)

    def unrolled(self, use: FoldUse) -> dict[Expr, Expr]:
        """The results of a fold over literal extents, by the symbols that stand for them, as terms without the fold."""
        registers = use.initial
        for iteration in itertools.product(*(range(extent.value) for _, extent in use.loops)):
            at = {c: const(k, 32) for (c, _), k in zip(use.loops, iteration, strict=True)}
            registers = self.step(use, use.scene, registers, at)
        return dict(zip(use.symbols, registers, strict=True))

    def step(self, use: FoldUse, scene: Scene, registers: tuple[Expr, ...], at: At) -> tuple[Expr, ...]:
        """What one iteration of a fold makes of ``registers``; ``at`` gives the fold's counters in ``scene``.

        Variables that are registers, and nothing else so far, have their value in this iteration.
        """
        for register in registers:
            if register.op == "var":
                self.symbols.setdefault(register, scene)
        own = set(use.fold.here.counters)  # a fold in memory has loops of the write itself
        inner = (*use.inner, *(loop for loop in use.fold.loops if loop[0] not in own))
        everywhere = {**use.at, **at}
        carried = {**use.carried, **dict(zip(use.fold.registers, registers, strict=True))}
        return tuple(self.term(scene, use.fold.here, everywhere, inner, t, carried) for t in use.fold.step)


def _narrow(at: At) -> dict[Expr, Expr]:
    return {c: resize(w, c.width) for c, w in at.items()}
