"""Both sides compute the same value: sources paired, folds compared step by step, the rest by congruence.

Two folds whose loops run in lock-step are equal if they begin with the same values and one step, at an arbitrary common
iteration and for an arbitrary common accumulator, makes the same of it on both sides: by induction over the
iterations.  Nothing is asked of the operation, so a fold in another order is another value.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import pysmt.shortcuts as smt

from chc.mapping.arithmetic.exact import equal
from chc.mapping.horn.align import AlignedLevel, align
from chc.mapping.horn.names import index_text
from chc.mapping.horn.systems import LOCK_STEP, Nest, Track
from chc.mapping.memory.contexts import Scene
from chc.mapping.memory.layout import Reader
from chc.mapping.memory.values import FoldUse, Revisited, Source, Values
from chc.mapping.program.writes import Loops
from chc.mapping.proof import Proof
from chc.mapping.unsupported import Unsupported, told
from ila_lang import Expr, const, free_variables, ite, postorder, resize, substitute
from ila_lang.language.expr import variables_of
from smt_encodings.bits import BitEncoding
from smt_encodings.discharge import NotDischarged
from smt_encodings.environment import fresh, plain
from smt_encodings.values import differ, differing_values, falsifying, lemma_instances

from .induction import Goals
from .iterations import Iterations
from .scattered_reduction import Sides, holds_fold

__all__ = ["Agreement", "lock_step"]

MOST_UNROLLED = 64
"""Largest number of iterations of a fold that is written out where the other side has no fold."""


@dataclass
class Agreement:
    """Compares values of the device with values of the IR."""

    proof: Proof
    device: Values
    ir: Values
    goals: Goals
    iterations: Iterations = field(init=False)
    _equal: list[tuple[Scene, tuple[Expr, ...]]] = field(default_factory=list)
    """Symbols of both sides that were proved equal, each time with the scene in which they are, whose last one may
    stand for all; a symbol alone is any value."""
    _count: int = 0

    def __post_init__(self) -> None:
        self.iterations = Iterations(self.proof.mapping)

    def values(self, scene: Scene, name: str, left: Expr, right: Expr) -> None:
        """Proves that a value of the device is the value of the IR; both belong to ``scene``."""
        left, right = self._unrolled(left, right)
        self._pair_folds(scene, left, right)
        left = self._chosen_cells(left, right)
        unpaired = self._pair_sources(scene, left, right)
        self._pair_earlier(scene, left, right)
        shared = self._shared(scene)
        left, right = substitute(left, shared), substitute(right, shared)
        sizes = self.proof.mapping.parameters.values()
        determined = {*shared.values(), *unpaired, *sizes, *(c for c, _ in scene.ranges)}
        for variable in free_variables(left, right).values():
            if variable not in determined:
                raise Unsupported(f"the result depends on {self._told(variable)}, which the program does not determine")
        try:
            self._same(scene, name, left, right, set(shared.values()))
        except NotDischarged as error:
            if not unpaired or error.obligation.group != "values":
                raise
            memory = next(iter(unpaired.values()))
            raise Unsupported(f"the result depends on {memory.name} as it was before the program") from error

    def _shared(self, scene: Scene) -> dict[Expr, Expr]:
        """What stands for symbols that are equal in a scene: proved there, or in a scene around it.

        What was proved in an iteration of a loop is not known outside, where the loop may have none.
        """
        found: dict[Expr, Expr] = {}
        for where, symbols in self._equal:
            if scene.within(where):
                known = {found[s] for s in symbols if s in found}
                one = next((found[s] for s in reversed(symbols) if s in found), symbols[-1])
                found = {s: one if other in known else other for s, other in found.items()}
                found |= dict.fromkeys((*symbols, one), one)
        return found

    def _told(self, variable: Expr) -> str:
        """A variable of a value in words."""
        for side in (self.device, self.ir):
            if variable in side.sources:
                return f"a cell of {plain(side.sources[variable].memory.name)} that the other side does not read"
        return told(variable)

    def _same(self, scene: Scene, name: str, left: Expr, right: Expr, shared: Set[Expr]) -> None:
        mapping = self.proof.mapping
        operands = set(variables_of(left, right))
        structure = BitEncoding(mapping.abstract)
        lemmas = lemma_instances(mapping.lemmas, [left, right], structure)
        # a size among the operands, such as a number of elements, is within the domain
        within = [c for _, c in mapping.domain if operands.issuperset(variables_of(c))]
        self.proof.discharger.ask(
            "values",
            f"{name}: equal for uninterpreted functions",
            [*lemmas, *map(structure.term, within), differ(structure, left, right)],
            "both sides are the same term, for every choice of the data functions that satisfies the lemmas",
        )
        samples = _samples(scene, operands)
        for operand in sorted(operands & shared, key=lambda v: v.name):
            name_of = plain(operand.name)
            unrelated = substitute(left, {operand: fresh(f"unrelated.{name_of}", operand.sort)})
            for sample in samples:
                mine, theirs = substitute(unrelated, sample), substitute(right, sample)
                found = differing_values(mine, theirs)
                if found is None:
                    continue  # this operand has no effect, such as one that is multiplied with a state of zero
                self.proof.discharger.ask(
                    "health",
                    f"{name}: conclusion falsifiable",
                    falsifying(mine, theirs, found),
                    f"with an operand unrelated to {name_of} the sides differ, so equality is not trivial",
                    expected="sat",
                )
                return

    # -- sources ------------------------------------------------------------------------------------

    def _pair_sources(self, scene: Scene, left: Expr, right: Expr) -> dict[Expr, Expr]:
        """Pairs cells of input tensors; returns other cells that the device reads, with their memories.

        Whatever those hold, the values must be equal: nothing is assumed of them.
        """
        unpaired: dict[Expr, Expr] = {}
        shared = self._shared(scene)
        mapping = self.proof.mapping
        tensors = {mapping.device.tensor(a): mapping.ir.tensor(b) for a, b in mapping.inputs}
        theirs = [self.ir.sources[v] for v in free_variables(right).values() if v in self.ir.sources]
        for source in theirs:
            if source.memory not in set(tensors.values()):
                raise Unsupported(f"the IR reads {source.memory.name}, which no device tensor corresponds to")
        mine = [self.device.sources[v] for v in free_variables(left).values() if v in self.device.sources]
        for source in sorted(mine, key=lambda s: s.symbol.name):
            if source.symbol in shared:
                continue
            if source.memory not in tensors:
                unpaired[source.symbol] = source.memory
                continue
            partner = self._same_cell(source, tensors[source.memory], theirs)
            if partner is None:
                raise Unsupported(f"the IR does not read the element of {source.memory.name} that the device reads")
            number = plain(source.symbol.name).rpartition(".")[2]
            terms = [s.reader.term(s.scene) for s in (source, partner)]
            if terms[0] is not terms[1]:
                self.proof.discharger.follows(
                    "sources",
                    f"{plain(source.memory.name)}, {number}",
                    source.scene.encoding.hypotheses,
                    smt.Equals(*terms),
                    "both sides read the same element of the input tensor",
                )
            self._equal.append((source.scene, (source.symbol, partner.symbol)))
        return unpaired

    def _chosen_cells(self, left: Expr, right: Expr) -> Expr:
        """``left`` with a choice between two cells of a tensor, which the IR does not read, as the cell that is chosen.

        Such are the halves of a word that the device reads as a whole.
        """
        chosen: dict[Expr, Expr] = {}
        tensors = {
            self.proof.mapping.device.tensor(a): self.proof.mapping.ir.tensor(b) for a, b in self.proof.mapping.inputs
        }
        theirs = [self.ir.sources[v] for v in free_variables(right).values() if v in self.ir.sources]
        for node in postorder([left]):
            if node.op != "ite" or any(a not in self.device.sources for a in node.args[1:]):
                continue
            one, two = (self.device.sources[a] for a in node.args[1:])
            alike = one.memory is two.memory and one.memory in tensors and one.scene is two.scene
            if not alike or not one.scene.trials.determine(node.args[0]):
                continue
            if all(self._same_cell(source, tensors[one.memory], theirs) is not None for source in (one, two)):
                continue
            symbol = fresh(f"source.{self.device.origins.prefix}.{len(self.device.sources)}", node.sort)
            reader = Reader(ite(node.args[0], one.reader.there(), two.reader.there()), None, {})
            self.device.sources[symbol] = Source(one.memory, reader, symbol, one.scene)
            chosen[node] = symbol
        return substitute(left, chosen) if chosen else left

    @staticmethod
    def _same_cell(source: Source, memory: Expr, others: Sequence[Source]) -> Source | None:
        for other in others:
            if other.memory is memory and other.scene is source.scene:
                values = source.scene.trials.evaluate([source.reader.there(), other.reader.there()])
                if all(a == b for a, b in values):
                    return other
        return None

    # -- earlier timesteps --------------------------------------------------------------------------

    def _pair_earlier(self, scene: Scene, left: Expr, right: Expr) -> None:
        """Pairs values of earlier timesteps: instances of a goal, which hold by induction, or of a new goal."""
        shared = self._shared(scene)
        theirs = [(v, *self.ir.earlier[v]) for v in free_variables(right).values() if v in self.ir.earlier]
        for symbol in sorted(
            (v for v in free_variables(left).values() if v in self.device.earlier), key=lambda v: v.name
        ):
            if symbol in shared:
                continue
            here, origin = self.device.earlier[symbol]
            for partner, there, other in theirs:
                if there is here and self.goals.known(here, origin, other, plain(symbol.name)):
                    self._equal.append((here, (symbol, partner)))
                    break
            else:
                raise Unsupported(f"no value of the IR corresponds to what {origin.write.label} stored earlier")

    # -- folds --------------------------------------------------------------------------------------

    def _unrolled(self, left: Expr, right: Expr) -> tuple[Expr, Expr]:
        """Both values, with few literal iterations of a fold written out where one side has folds and the other none.

        Such are windows, which a device may spell out.
        """
        while True:
            mine, theirs = _folds_in(left, self.device), _folds_in(right, self.ir)
            side, folds = (self.ir, theirs) if not mine else (self.device, mine)
            few = [f for f in folds if isinstance(f, FoldUse) and 1 <= f.count <= MOST_UNROLLED]
            if (mine and theirs) or not few:
                return left, right
            terms = {symbol: term for fold in few for symbol, term in side.unrolled(fold).items()}
            left, right = substitute(left, terms), substitute(right, terms)

    def _pair_folds(self, scene: Scene, left: Expr, right: Expr) -> None:
        mine, theirs = _folds_in(left, self.device), [f for f in _folds_in(right, self.ir) if isinstance(f, FoldUse)]
        if len(mine) != len(theirs):
            raise Unsupported(f"the device folds {len(mine)} loops where the IR folds {len(theirs)}")
        for a, b in zip(mine, theirs, strict=True):
            symbol = a.symbol if isinstance(a, Revisited) else a.symbols[0]
            shared = self._shared(scene)
            if symbol in shared and shared[symbol] is shared.get(b.symbols[0]):
                continue
            if not (scene.within(a.scene) and scene.within(b.scene)):
                raise Unsupported("a value is used outside of the loops in which it is computed")
            if isinstance(a, Revisited):
                self._revisited(a, b)
            else:
                self._fold(a, b)

    def _revisited(self, mine: Revisited, theirs: FoldUse) -> None:
        """A fold of the device that has a cell of a memory for its register."""
        scene = max(mine.scene, theirs.scene, key=lambda s: len(s.ranges))
        self._count += 1
        name, own = f"fold {self._count}", f"fold{self._count}"
        step = holds_fold(Sides(self.device, self.ir, self.iterations), scene, mine, theirs, name, own)
        self._equal += [(step.scene, (symbol,)) for symbol in step.shared]
        self.values(step.scene, step.name, step.device, step.ir)
        total = fresh(f"total.{own}.0", mine.symbol.sort)
        self._equal.append((scene, (mine.symbol, theirs.symbols[0], total)))

    def _fold(self, mine: FoldUse, theirs: FoldUse) -> None:
        if [r.sort for r in mine.fold.registers] != [r.sort for r in theirs.fold.registers]:
            raise Unsupported("the folds of both sides carry registers of different sorts")
        # both are around the scene of the values that use them
        scene = max(mine.scene, theirs.scene, key=lambda s: len(s.ranges))
        self._count += 1
        name, own = f"fold {self._count}", f"fold{self._count}"
        label = f"{mine.fold.here.label}, {name}"
        levels = align(mine.loops, theirs.loops, scene.proves, by_sizes=True)
        if levels is None:
            mine_runs, their_runs = (" x ".join(index_text(e) for _, e in use.loops) for use in (mine, theirs))
            raise Unsupported(
                f"the loops of {label} and of {theirs.fold.here.label} do not correspond: they run "
                f"{mine_runs} times and {their_runs} times"
            )
        for number, (a, b) in enumerate(zip(mine.initial, theirs.initial, strict=True)):
            self.values(scene, f"{name}, initial value {number}", a, b)
        inside, at_mine = self.iterations.at(scene, mine.loops, name)
        at_theirs = _partner_counters(levels, mine.loops, theirs.loops, at_mine)
        here, there = (
            Track(side.origins.prefix, use.loops, tuple(at[c] for c, _ in use.loops))
            for side, use, at in ((self.device, mine, at_mine), (self.ir, theirs, at_theirs))
        )
        lock_step(scene, inside, label, levels, here, there)
        self.proof.levels.nests.append(Nest(label, here, [LOCK_STEP], (levels, there)))
        common = tuple(fresh(f"accumulator.{own}.{i}", r.sort) for i, r in enumerate(mine.fold.registers))
        self._equal += [(inside, (c,)) for c in common]
        steps = zip(
            self.device.step(mine, inside, common, at_mine),
            self.ir.step(theirs, inside, common, at_theirs),
            strict=True,
        )
        for number, (a, b) in enumerate(steps):
            self.values(inside, f"{name}, step {number}", a, b)
        for number, (a, b) in enumerate(zip(mine.symbols, theirs.symbols, strict=True)):
            # one result of either side may be that of several of the other, which are then all equal
            self._equal.append((scene, (a, b, fresh(f"total.{own}.{number}", a.sort))))


def lock_step(
    scene: Scene, inside: Scene, label: str, levels: Sequence[AlignedLevel], mine: Track, theirs: Track
) -> None:
    """The loops of both sides run equally often, and what is tracked in them, at ``inside``, is met at one time."""
    assert mine.at is not None and theirs.at is not None
    for level in levels:
        counter = plain(mine.loops[level.device][0].name)
        scene.theorem(
            "lock-step",
            f"{label}: {counter} and {level.name} run equally often",
            level.equal,
            "both loops have the same extent (or one is the product of two)",
        )
        if level.digit is not None:  # otherwise the other side's counter is composed of this one
            inside.theorem(
                "lock-step",
                f"{label}: {counter} and {level.name} meet the index together",
                equal(mine.at[level.device], level.digit(theirs.at[level.ir])),
                "one iteration of both loops, taken together, accumulates an index",
            )


def _samples(scene: Scene, operands: Set[Expr]) -> list[dict[Expr, Expr]]:
    """Values of the sizes and coordinates among some operands, as they occur together; a few different ones."""
    trials = scene.trials
    columns = [(i, v) for i, v in enumerate((*trials.parameters, *trials.variables)) if v in operands]
    found = dict.fromkeys(tuple(row[i] for i, _ in columns) for row in trials.rows)
    return [
        {v: const(x, v.width) for (_, v), x in zip(columns, values, strict=True)} for values in list(found)[:_SAMPLES]
    ]


_SAMPLES = 4


def _folds_in(value: Expr, side: Values) -> list[FoldUse | Revisited]:
    known: dict[Expr, FoldUse | Revisited] = {**side.folds, **side.revisited}
    return list(dict.fromkeys(known[v] for v in _in_order(value) if v in known))


def _in_order(value: Expr) -> list[Expr]:
    from ila_lang import postorder

    return [n for n in postorder([value]) if n.op == "var"]


def _partner_counters(
    levels: Sequence[AlignedLevel], mine: Loops, theirs: Loops, at: dict[Expr, Expr]
) -> dict[Expr, Expr]:
    """The counters of the other side's loops in terms of this side's: equal, or composed of two digits."""
    result: dict[Expr, Expr] = {}
    for number, (counter, _) in enumerate(theirs):
        parts = [level for level in levels if level.ir == number]
        value = const(0, 32)
        for level in parts:
            own, extent = mine[level.device]
            value = value * resize(extent, 32) + at[own] if len(parts) > 1 else at[own]
        result[counter] = value
    return result
