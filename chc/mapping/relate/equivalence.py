"""Both sides compute the same value: sources paired, folds compared step by step, the rest by congruence.

Two folds whose loops run in lock-step are equal if they begin with the same values and one step, at an arbitrary common
iteration and for an arbitrary common accumulator, makes the same of it on both sides: by induction over the
iterations.  Nothing is asked of the operation, so a fold in another order is another value.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import pysmt.shortcuts as smt

from chc.mapping.contents.folds import FoldUse
from chc.mapping.contents.values import ScatteredReduction, Source, Values
from chc.mapping.horn.align import align
from chc.mapping.horn.names import index_text
from chc.mapping.horn.systems import LOCK_STEP, Nest, Track
from chc.mapping.memory.cases import Split, in_cases
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Reader
from chc.mapping.program.statements import variable_text
from chc.mapping.proof import Proof
from ila_lang import Expr, const, free_variables, ite, postorder, substitute, true
from ila_lang.language.expr import variables_of
from smt_encodings.claims import Unsupported
from smt_encodings.discharge import NotDischarged
from smt_encodings.environment import fresh, plain
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.values import differ, differing_values, falsifying, lemma_instances

from .any_order import AnyOrder, NoSums
from .block_lengths import partner_length
from .blocks import partnered
from .elements import makes_no_difference, same_cell
from .few_iterations import all_iterations, last_iterations
from .gathered import pairs
from .idle import shortened, taken
from .induction import Goals
from .iterations import Iterations
from .lockstep import lock_step, partner_counters
from .padding import padded, without_padding
from .run_ups import often
from .scattered_reduction import Sides, holds_fold


class InNoOrder(Unsupported):
    """Folds that are equal neither in lock-step nor in any order: reasons, that of lock-step first, each once.

    A reason may be about the folds inside a sum, which have such reasons of their own.
    """

    def __init__(self, *reasons: Unsupported) -> None:
        each = (r.reasons if isinstance(r, InNoOrder) else (str(r),) for r in reasons)
        self.reasons: tuple[str, ...] = tuple(dict.fromkeys(itertools.chain.from_iterable(each)))
        first, *others = self.reasons
        super().__init__(f"{first}; in any order, {'; '.join(others)}" if others else first)


@dataclass
class Equivalence:
    """Compares values of the device with values of the IR."""

    proof: Proof
    device: Values
    ir: Values
    goals: Goals
    iterations: Iterations = field(init=False)
    any_order: AnyOrder = field(init=False)
    _equal: list[tuple[Context, tuple[Expr, ...]]] = field(default_factory=list)
    """Symbols of both sides that were proved equal, each time with the context in which they are, whose last one may
    stand for all; a symbol alone is any value."""
    _count: int = 0

    def __post_init__(self) -> None:
        self.iterations = Iterations(self.proof.mapping)
        self.any_order = AnyOrder(self.proof, self.device, self.ir, self.values)

    def values(self, context: Context, name: str, left: Expr, right: Expr) -> None:
        """Proves that a value of the device is the value of the IR; both belong to ``context``."""
        left, right = self._folded(context, name, left, right)
        self._equal += pairs((self.device, self.ir), left, right, self._shared(context), self.values)
        left = self._chosen_cells(left, right)
        unpaired = self._pair_sources(context, name, left, right)
        self._pair_earlier(context, left, right)
        shared = self._shared(context)
        left, right = substitute(left, shared), substitute(right, shared)
        sizes = self.proof.mapping.parameters.values()
        determined = {*shared.values(), *unpaired, *sizes, *(c for c, _ in context.ranges)}
        for variable in free_variables(left, right).values():
            if variable not in determined:
                raise Unsupported(f"the result depends on {self._text(variable)}, which the program does not determine")
        try:
            self._same(context, name, left, right, set(shared.values()))
        except NotDischarged as error:
            memory = next((m for m in unpaired.values() if m is not None), None)
            if memory is None or error.obligation.group != "values":
                raise
            raise Unsupported(f"the result depends on {memory.name} as it was before the program") from error

    def _shared(self, context: Context) -> dict[Expr, Expr]:
        """What stands for symbols that are equal in a context: proved there, or in a context around it.

        What was proved in an iteration of a loop is not known outside, where the loop may have none.
        """
        shared: dict[Expr, Expr] = {}
        for where, symbols in self._equal:
            if context.within(where):
                known = {shared[s] for s in symbols if s in shared}
                one = next((shared[s] for s in reversed(symbols) if s in shared), symbols[-1])
                shared = {s: one if other in known else other for s, other in shared.items()}
                shared |= dict.fromkeys((*symbols, one), one)
        return shared

    def _are_others(self, context: Context, left: Expr, right: Expr) -> bool:
        """Whether values of what both sides share differ for some data, so that lock-step is no way to compare them."""
        shared = self._shared(context)
        return shared.keys() >= set(variables_of(left, right)) and bool(
            differing_values(substitute(left, shared), substitute(right, shared))
        )

    def _text(self, variable: Expr) -> str:
        """A variable of a value in words."""
        for side in (self.device, self.ir):
            if variable in side.sources:
                return f"a cell of {plain(side.sources[variable].memory.name)} that the other side does not read"
        return variable_text(variable)

    def _same(self, context: Context, name: str, left: Expr, right: Expr, shared: Set[Expr]) -> None:
        mapping = self.proof.mapping
        operands = set(variables_of(left, right))
        structure = BitEncoding(mapping.abstract)
        lemmas = lemma_instances(mapping.lemmas, [left, right], structure)
        # a size among the operands, such as a number of elements, is within the domain
        conditions = [c for _, c in mapping.domain]
        if mapping.cell_beyond:  # a choice by whether an element exists is decided
            conditions += mapping.cell_conditions
        within = [c for c in conditions if operands.issuperset(variables_of(c))]
        self.proof.discharger.ask(
            "values",
            f"{name}: equal for uninterpreted functions",
            [*lemmas, *map(structure.term, within), differ(structure, left, right)],
            "both sides are the same term, for every choice of the data functions that satisfies the lemmas",
        )
        samples = _samples(context, operands)
        for operand in sorted(operands & shared, key=lambda v: v.name):
            name_of = plain(operand.name)
            unrelated = substitute(left, {operand: fresh(f"unrelated.{name_of}", operand.sort)})
            for sample in samples:
                device, ir = substitute(unrelated, sample), substitute(right, sample)
                witness = differing_values(device, ir)
                if witness is None:
                    continue  # this operand has no effect, such as one that is multiplied with a state of zero
                self.proof.discharger.ask(
                    "health",
                    f"{name}: conclusion falsifiable",
                    falsifying(device, ir, witness),
                    f"with an operand unrelated to {name_of} the sides differ, so equality is not trivial",
                    expected="sat",
                )
                return

    # -- sources ------------------------------------------------------------------------------------

    def _pair_sources(self, context: Context, name: str, left: Expr, right: Expr) -> dict[Expr, Expr | None]:
        """Pairs cells of input tensors; returns other cells that the device reads, with their memories.

        Whatever those hold, the values must be equal: nothing is assumed of them.  None stands for the memory of
        elements of tensors by which the value does not change, as those that are multiplied with 0.
        """
        unpaired: dict[Expr, Expr | None] = {}
        shared = self._shared(context)
        mapping = self.proof.mapping
        tensors = {mapping.device.tensor(a): mapping.ir.tensor(b) for a, b in mapping.inputs}
        ir_sources = [self.ir.sources[v] for v in free_variables(right).values() if v in self.ir.sources]
        for source in ir_sources:
            if source.memory not in set(tensors.values()):
                raise Unsupported(f"the IR reads {source.memory.name}, which no device tensor corresponds to")
        device_sources = [self.device.sources[v] for v in free_variables(left).values() if v in self.device.sources]
        for source in sorted(device_sources, key=lambda s: s.symbol.name):
            if source.symbol in shared:
                continue
            if source.memory not in tensors:
                unpaired[source.symbol] = source.memory
                continue
            partner = _partner(source, tensors[source.memory], ir_sources)
            if partner is None:
                if makes_no_difference(mapping, left, source.symbol):
                    unpaired[source.symbol] = None
                    continue
                raise Unsupported(f"{name}: the device reads an element of {source.memory.name} that the IR does not")
            number = plain(source.symbol.name).rpartition(".")[2]
            terms = [s.reader.term(s.context) for s in (source, partner)]
            if terms[0] is not terms[1]:
                self.proof.discharger.follows(
                    "sources",
                    f"{plain(source.memory.name)}, {number}",
                    source.context.encoding.hypotheses,
                    smt.Equals(*terms),
                    "both sides read the same element of the input tensor",
                )
            self._equal.append((source.context, (source.symbol, partner.symbol)))
        return unpaired

    def _chosen_cells(self, left: Expr, right: Expr) -> Expr:
        """``left`` with a choice between two cells of a tensor, which the IR does not read, as the cell that is chosen.

        Such are the halves of a word that the device reads as a whole.
        """
        chosen: dict[Expr, Expr] = {}
        tensors = {
            self.proof.mapping.device.tensor(a): self.proof.mapping.ir.tensor(b) for a, b in self.proof.mapping.inputs
        }
        ir_sources = [self.ir.sources[v] for v in free_variables(right).values() if v in self.ir.sources]
        for node in postorder([left]):
            if node.op != "ite" or any(a not in self.device.sources for a in node.args[1:]):
                continue
            one, two = (self.device.sources[a] for a in node.args[1:])
            alike = one.memory is two.memory and one.memory in tensors and one.context is two.context
            if not alike or not one.context.samples.determine(node.args[0]):
                continue
            if all(_partner(source, tensors[one.memory], ir_sources) is not None for source in (one, two)):
                continue
            symbol = fresh(f"source.{self.device.definitions.prefix}.{len(self.device.sources)}", node.sort)
            reader = Reader(ite(node.args[0], one.reader.cell(), two.reader.cell()), None, {})
            self.device.sources[symbol] = Source(one.memory, reader, symbol, one.context)
            chosen[node] = symbol
        return substitute(left, chosen) if chosen else left

    # -- earlier timesteps --------------------------------------------------------------------------

    def _pair_earlier(self, context: Context, left: Expr, right: Expr) -> None:
        """Pairs values of earlier timesteps: instances of a goal, which hold by induction, or of a new goal."""
        shared = self._shared(context)
        ir_values = [(v, *self.ir.earlier[v]) for v in free_variables(right).values() if v in self.ir.earlier]
        for symbol in sorted(
            (v for v in free_variables(left).values() if v in self.device.earlier), key=lambda v: v.name
        ):
            if symbol in shared:
                continue
            here, definition = self.device.earlier[symbol]
            for partner, there, other in ir_values:
                if there is here and self.goals.known(here, definition, other, plain(symbol.name)):
                    self._equal.append((here, (symbol, partner)))
                    break
            else:
                raise Unsupported(f"no value of the IR corresponds to what {definition.write.label} stored earlier")

    # -- folds --------------------------------------------------------------------------------------

    def _folded(self, context: Context, name: str, left: Expr, right: Expr) -> tuple[Expr, Expr]:
        """Both values, with folds that are equal in lock-step or sums that are equal in any order."""
        nests, known = len(self.proof.levels.nests), len(self._equal)
        one, other = self._unrolled(context, left, right)
        other = self._last_written_out(context, one, other)
        try:
            self._pair_folds(context, one, other)
        except Split:
            raise
        except Unsupported as problem:
            del self.proof.levels.nests[nests:], self._equal[known:]  # what was for lock-step alone
            try:
                one, other, totals = self.any_order.shared(context, name, left, right)
            except Split:
                raise
            except NoSums:
                raise InNoOrder(problem) from problem
            except Unsupported as reason:
                raise InNoOrder(problem, reason) from problem
            self._equal += [(context, (t,)) for t in totals]
        return one, other

    def _unrolled(self, context: Context, left: Expr, right: Expr) -> tuple[Expr, Expr]:
        """Both values, with few iterations of a fold written out where one side has folds and the other none.

        Such are windows, which a device may spell out, and loops whose first iteration it peels.
        """
        while True:
            device_folds, ir_folds = _folds_in(left, self.device), _folds_in(right, self.ir)
            side, folds = (self.ir, ir_folds) if not device_folds else (self.device, device_folds)
            if device_folds and ir_folds:
                return left, right
            few = [all_iterations(context, side, f) for f in folds if isinstance(f, FoldUse)]
            terms = {symbol: term for results in few for symbol, term in results.items()}
            if not terms:
                return left, right
            left, right = substitute(left, terms), substitute(right, terms)

    def _last_written_out(self, context: Context, left: Expr, right: Expr) -> Expr:
        """The IR's value with the last iterations of its fold written out, if the device's is shorter by a few.

        What the device makes of its own fold is then compared with these iterations.
        """
        folds = [*_folds_in(left, self.device), *_folds_in(right, self.ir)]
        device, ir = folds if len(folds) == 2 else (None, None)
        if not (isinstance(device, FoldUse) and isinstance(ir, FoldUse)) or left in set(device.symbols):
            return right
        begins = all(t.is_const or t in self.device.sources for t in device.initial)  # not with iterations written out
        length = partner_length(context, (self.device, device), (self.ir, ir)) if begins else None
        return right if length is None else substitute(right, last_iterations(context, self.ir, ir, length))

    def _pair_folds(self, context: Context, left: Expr, right: Expr) -> None:
        device_folds = _folds_in(left, self.device)
        ir_folds = [f for f in _folds_in(right, self.ir) if isinstance(f, FoldUse)]
        if len(device_folds) != len(ir_folds):
            raise Unsupported(f"the device folds {len(device_folds)} loops where the IR folds {len(ir_folds)}")
        for a, b in zip(device_folds, ir_folds, strict=True):
            symbol = a.symbol if isinstance(a, ScatteredReduction) else a.symbols[0]
            shared = self._shared(context)
            if symbol in shared and shared[symbol] is shared.get(b.symbols[0]):
                continue
            if not (context.within(a.context) and context.within(b.context)):
                raise Unsupported("a value is used outside of the loops in which it is computed")
            if isinstance(a, ScatteredReduction):
                self._scattered(a, b)
            else:
                self._fold(a, b)

    def _scattered(self, cell: ScatteredReduction, use: FoldUse) -> None:
        """A fold of the device that has a cell of a memory for its register."""
        context = max(cell.context, use.context, key=lambda s: len(s.ranges))
        self._count += 1
        name, own = f"fold {self._count}", f"fold{self._count}"
        use = taken(self.ir, use, often(self.device, context, cell, use), context, f"{name} of the IR")
        step = holds_fold(Sides(self.device, self.ir, self.iterations), context, cell, use, name, own)
        if step.initial is not None:
            self.values(context, f"{name}, initial value", *step.initial)
        self._equal += [(step.context, (symbol,)) for symbol in step.shared]
        self.values(step.context, step.name, step.device, step.ir)
        total = fresh(f"total.{own}.0", cell.symbol.sort)
        self._equal.append((context, (cell.symbol, use.symbols[0], total)))

    def _fold(self, device: FoldUse, ir: FoldUse) -> None:
        if [r.sort for r in device.fold.registers] != [r.sort for r in ir.fold.registers]:
            raise Unsupported("the folds of both sides carry registers of different sorts")
        # both are around the context of the values that use them
        context = max(device.context, ir.context, key=lambda s: len(s.ranges))
        self._count += 1
        name, own = f"fold {self._count}", f"fold{self._count}"
        label = f"{device.fold.here.label}, {name}"
        levels = align(device.loops, ir.loops, context.proves, by_sizes=True) if device.cycle is None else None
        if levels is None and device.cycle is None:
            one, other = shortened((self.device, device), (self.ir, ir), context, label)
            levels = align(one.loops, other.loops, context.proves, by_sizes=True)
            device, ir = (device, ir) if levels is None else (one, other)
        if levels is None:
            ir = partnered(context, label, (self.device, device), (self.ir, ir))
            levels = align(device.loops, ir.loops, context.proves, by_sizes=True)
        forms = [ir] if levels is not None else list(padded(context, label, device, ir))
        if levels is None and forms:
            levels = align(device.loops, forms[0].loops, context.proves, by_sizes=True)
        if levels is None:
            device_runs, ir_runs = (" x ".join(index_text(e) for _, e in use.loops) for use in (device, ir))
            raise Unsupported(
                f"the loops of {label} and of {ir.fold.here.label} do not correspond: they run "
                f"{device_runs} times and {ir_runs} times"
            )
        begins = list(zip(device.initial, ir.initial, strict=True))
        if any(self._are_others(context, a, b) for a, b in begins):
            raise Unsupported(f"the loops of {label} and of {ir.fold.here.label} begin with different values")
        for number, (a, b) in enumerate(begins):
            self.values(context, f"{name}, initial value {number}", a, b)
        inside, at_device = self.iterations.at(context, device.loops, name)
        at_ir = partner_counters(levels, device.loops, forms[0].loops, at_device)
        common = tuple(fresh(f"accumulator.{own}.{i}", r.sort) for i, r in enumerate(device.fold.registers))
        if forms[0].longer is not None:

            def kept(case: Context) -> list[tuple[Expr, Expr]]:
                return list(zip(self.device.step(device, case, common, at_device), common, strict=True))

            ir = without_padding(self.proof, inside, name, kept, [(form, form.has(at_ir)) for form in forms])
        here, there = (
            Track(side.definitions.prefix, use.loops, tuple(at[c] for c, _ in use.loops))
            for side, use, at in ((self.device, device, at_device), (self.ir, ir, at_ir))
        )
        lock_step(context, inside, label, levels, here, there)
        self.proof.levels.nests.append(Nest(label, here, [LOCK_STEP], (levels, there)))
        self._equal += [(inside, (c,)) for c in common]

        def step(case: Context, case_name: str) -> None:
            steps = zip(
                self.device.step(device, case, common, at_device),
                self.ir.step(ir, case, common, at_ir),
                strict=True,
            )
            for number, (a, b) in enumerate(steps):
                self.values(case, f"{case_name}, step {number}", a, b)

        has = ir.has(at_ir)
        in_cases(inside if has is true else inside.where(has, f"{name}, within"), name, step)
        for number, (a, b) in enumerate(zip(device.symbols, ir.symbols, strict=True)):
            # one result of either side may be that of several of the other, which are then all equal
            self._equal.append((context, (a, b, fresh(f"total.{own}.{number}", a.sort))))


def _partner(source: Source, memory: Expr, others: Sequence[Source]) -> Source | None:
    """A cell of a memory that may be at the index of another one, in its context."""
    among = [other for other in others if other.memory is memory and other.context is source.context]
    found = same_cell(source, among)
    return None if found is None else among[found]


def _samples(context: Context, operands: Set[Expr]) -> list[dict[Expr, Expr]]:
    """Values of the sizes and coordinates among some operands, as they occur together; a few different ones."""
    samples = context.samples
    columns = [(i, v) for i, v in enumerate((*samples.parameters, *samples.variables)) if v in operands]
    rows = dict.fromkeys(tuple(row[i] for i, _ in columns) for row in samples.rows)
    return [
        {v: const(x, v.width) for (_, v), x in zip(columns, values, strict=True)} for values in list(rows)[:_SAMPLES]
    ]


_SAMPLES = 4


def _folds_in(value: Expr, side: Values) -> list[FoldUse | ScatteredReduction]:
    known: dict[Expr, FoldUse | ScatteredReduction] = {**side.folds, **side.scattered}
    return list(dict.fromkeys(known[v] for v in _in_order(value) if v in known))


def _in_order(value: Expr) -> list[Expr]:
    return [n for n in postorder([value]) if n.op == "var"]
