"""Token order of one program, proved: every schedule ends as the sequential order does, and none deadlocks.

A state of the schedule is how many instructions each module has executed.  What the tokens enforce is an invariant of
these three numbers: the k-th instruction that pops from a queue has executed only if the k-th that pushes to it has.
From it follow, each an obligation for both solvers,

* no deadlock, and never more tokens than a queue holds;
* for each instruction, how many of the other modules' have executed before it in every schedule;
* for each instruction, that it cannot meet those of other modules that stand before it in the program and may still
  be missing: their accesses, read off the kernels, have no common address with a store among them;
* that no instruction is undefined in its reading, and no STORE writes micro-ops.

docs/explanation/vta_tokens.md says why the theorem follows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import INT

from accel_models.vta.isa import ENCODINGS, Instruction, Load, Loops, MemoryId, Store, Unit
from accel_models.vta.model import CAPACITY, QUEUES, CommandKind, vta
from accel_models.vta.options import HLS, VtaOptions
from accel_models.vta.order.footprint import footprints
from accel_models.vta.order.hazards import happens_before, token_events, token_run
from accel_models.vta.order.schedule import decode_program, describe, require_finish
from accel_models.vta.program import Program, write_bytes
from ila_lang import Instruction as IlaInstruction
from ila_lang import Machine, Memory, any_of, const, substitute
from smt_encodings.claims import Claim, Equality, Interpretation, Status, Unsupported, Verdict
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh_symbols
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.runs import surviving

from .accesses import Accesses, accesses_of, meetings, require_tokens, self_contained, words_of
from .lemmas import ASSUMPTIONS, prove_lemmas
from .replay import Counterexample, deadlock, race, replays
from .runs import survey_program

MOST_TRIED = 40  # schedules, in search of one that shows a race

STATEMENT = (
    "every schedule of the three modules executes all instructions, FINISH last, and ends in the memories and tokens "
    "that executing them one after the other gives"
)


def claim_of(instructions: int) -> Claim:
    """What a PROVED says of one program."""
    return Claim(
        subject="vta_program",
        statement=STATEMENT,
        size_domain=f"this program of {instructions} instructions with its micro-ops (0 where it loads none); "
        "all other contents of memories",
        equality=Equality.BIT_EXACT,
        interpretations=(Interpretation.UNINTERPRETED,),
        assumptions=ASSUMPTIONS,
    )


def prove_program(
    program: Program,
    options: VtaOptions = HLS,
    *,
    discharger: Discharger | None = None,
) -> Verdict:
    """Proves token order of a program, or refutes it by a schedule that is replayed.

    The answer is REFUTED where a replayed schedule ends in another memory, in a deadlock or with instructions left
    behind FINISH, with the :class:`~chc.token_order.replay.Counterexample` as detail "counterexample"; UNKNOWN where
    two instructions may meet in either order, but no difference shows with the program's data.  Raises ProgramError
    where the program has no FINISH at its end, or a word that is no instruction.
    """
    start = time.perf_counter()
    instructions = decode_program(program.words, ENCODINGS[options.encoding])
    require_finish(instructions)
    asked = discharger or Discharger()
    status, details = Status.UNKNOWN, dict[str, object]()
    counterexample = deadlock(program, options)
    if counterexample is not None:
        reason = counterexample.message
    else:
        with fresh_symbols():
            try:
                _Proof(program, options, asked, instructions).run()
                status, reason = asked.conclude()
            except (Unsupported, NotDischarged) as error:
                reason = str(error)
            except _Race as error:
                reason = str(error)
                counterexample = _race_that_shows(program, instructions, options, error)
    if counterexample is not None and replays(counterexample, options):
        details = {"unproved": reason, "counterexample": counterexample}
        status, reason = Status.REFUTED, counterexample.summary()
    seconds, claim = time.perf_counter() - start, claim_of(len(instructions))
    verdict = Verdict(status, claim, "token order", seconds, reason, asked.obligations, details=details)
    return surviving(verdict, lambda: survey_program(program, options))


def _race_that_shows(
    program: Program, instructions: Sequence[Instruction], options: VtaOptions, first: _Race
) -> Counterexample | None:
    """A schedule whose memory differs: two instructions may race without a trace where others race, too."""
    touched = footprints(instructions, program.dram, options)
    pairs = [(first.earlier, first.later)]
    pairs += [
        (i + 1, j + 1)
        for j, later in enumerate(instructions)
        for i in range(j)
        if instructions[i].unit != later.unit and touched[i].conflicts(touched[j])
    ]
    for earlier, later_number in pairs[:MOST_TRIED]:
        counterexample = race(program, earlier, later_number, options)
        if counterexample is not None:
            return counterexample
    return None


class _Race(Exception):
    """Two instructions (numbers from 1) that may meet, and that some schedule executes in the other order."""

    def __init__(self, earlier: int, later: int, instructions: Sequence[Instruction], memory: str) -> None:
        self.earlier, self.later = earlier, later
        super().__init__(
            f"{describe(instructions, later)} may execute before {describe(instructions, earlier)}, and both may "
            f"access one word of {memory}"
        )


class _Given(Memory):
    """DRAM with the bytes that a program gives; ``missed`` are the addresses of others that were read."""

    def __init__(self, program: Program, dram: Mapping[int, int]) -> None:
        super().__init__(0, {a: dram[a] for addr, content in program.dram for a in range(addr, addr + len(content))})
        self.missed: set[int] = set()

    def __missing__(self, address: int) -> int:
        self.missed.add(address)
        return 0


def _show_bytes(addresses: Iterable[int]) -> str:
    """The first range among addresses, and how many bytes lie outside of it."""
    listed = sorted(addresses)
    first = [a for n, a in enumerate(listed) if a == listed[0] + n]
    rest = len(listed) - len(first)
    return f"{first[0]:#x} .. {first[-1]:#x}" + (f" and {rest} more" if rest else "")


@dataclass
class _Proof:
    """One proof; positions of instructions count from 0."""

    program: Program
    options: VtaOptions
    discharger: Discharger
    instructions: Sequence[Instruction]
    accesses: list[Accesses] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.executed = {unit: smt.Symbol(f"executed_{unit.name.lower()}", INT) for unit in Unit}
        self.members = {u: [i for i, x in enumerate(self.instructions) if x.unit == u] for u in Unit}
        self.place = {i: n for members in self.members.values() for n, i in enumerate(members)}
        self.pushes, self.pops = token_events(self.instructions)
        order, self.left = token_run(self.instructions, self.options)
        self.before = happens_before(self.instructions, order)

    def run(self) -> None:
        """Asks everything."""
        require_tokens(self.options)
        ila = vta(self.options)
        problems = self_contained(ila)
        if problems:
            raise Unsupported("; ".join(problems))
        self.accesses = self._accesses()
        prove_lemmas(self.discharger)
        self._tokens()
        self._defined()
        for later in range(len(self.instructions)):
            self._order(later)
            self._independent(later)
        self._health()

    # -- what instructions touch ---------------------------------------------------------------------------------

    def _accesses(self) -> list[Accesses]:
        """Accesses by instruction; micro-ops are those that the program's own LOADs bring, on the interpreter.

        Raises Unsupported where the program does not give what such a LOAD reads.
        """
        machine = Machine(vta(self.options))
        for addr, content in self.program.dram:
            write_bytes(machine, addr, content)
        dram = machine.memories["dram"] = _Given(self.program, machine.memories["dram"])
        accesses = []
        for number, (word, instruction) in enumerate(zip(self.program.words, self.instructions, strict=True), 1):
            machine.values.update(dict.fromkeys(QUEUES, 1))
            inputs = {"command": CommandKind.ISSUE, "insn": word}
            chosen = machine.decode(inputs)
            if chosen.reserved:
                raise Unsupported(f"{describe(self.instructions, number)} is refused: {chosen.reserved}")
            words: list[int] = []
            if isinstance(instruction, Loops):
                begin, depth = instruction.uop_bgn, self.options.uop_depth
                uops = machine.memories["uop"]
                words = [uops[u % depth] for u in range(begin, max(instruction.uop_end, begin + 1))]
            elif isinstance(instruction, Load) and instruction.memory == MemoryId.UOP:
                machine.step(inputs)
                if dram.missed:
                    raise Unsupported(
                        f"{describe(self.instructions, number)} must load micro-ops that the program gives, for they "
                        f"decide which words instructions access, but DRAM bytes {_show_bytes(dram.missed)} are not in "
                        "its dram; put them there"
                    )
            accesses.append(self._accesses_of(chosen, word, words, f"i{number}"))
        for i, store in enumerate(self.instructions):
            for j, load in enumerate(self.instructions):
                if isinstance(store, Store) and isinstance(load, Load) and load.memory == MemoryId.UOP:
                    self._ask_apart(
                        "micro-ops", f"STORE {i + 1} leaves the micro-ops of LOAD {j + 1}", accesses[i], accesses[j]
                    )
        return accesses

    def _accesses_of(self, chosen: IlaInstruction, word: int, words: Sequence[int], prefix: str) -> Accesses:
        ila = chosen.ila
        value = {ila.inputs["insn"]: const(word, 128)}
        latched = {ila.states[n]: substitute(v, value) for n, v in chosen.updates.items() if n not in QUEUES}
        return accesses_of(chosen, latched, words_of(words), prefix)

    def _ask_apart(self, group: str, name: str, left: Accesses, right: Accesses) -> None:
        met = meetings(left, right)
        if met:
            meaning = "no value of the loop counters gives both the same address"
            self.discharger.ask(group, name, [BitEncoding().term(any_of(list(met.values())))], meaning)

    def _defined(self) -> None:
        for number, accesses in enumerate(self.accesses, 1):
            if accesses.undefined:
                meaning = "no iteration makes the instruction undefined in this reading"
                term = BitEncoding().term(any_of(list(accesses.undefined)))
                self.discharger.ask("defined", f"instruction {number}", [term], meaning)

    # -- what tokens enforce -------------------------------------------------------------------------------------

    def done(self, i: int) -> FNode:
        """That an instruction has executed."""
        return smt.GT(self.executed[self.instructions[i].unit], smt.Int(self.place[i]))

    def count(self, positions: Sequence[int]) -> FNode:
        """How many of some instructions have executed."""
        return smt.Plus([smt.Int(0), *(smt.Ite(self.done(i), smt.Int(1), smt.Int(0)) for i in positions)])

    def tokens(self, queue: str) -> FNode:
        """How many tokens a queue holds: those pushed and not popped."""
        return smt.Minus(self.count(self.pushes[queue]), self.count(self.pops[queue]))

    def invariant(self) -> FNode:
        """Each pop comes after its push, and no module executes more than it has."""
        ranges = [
            smt.And(smt.LE(smt.Int(0), n), smt.LE(n, smt.Int(len(self.members[u])))) for u, n in self.executed.items()
        ]
        edges = [
            smt.Implies(self.done(popped), self.done(pushed))
            for queue in QUEUES
            for pushed, popped in zip(self.pushes[queue], self.pops[queue], strict=False)
        ]
        return smt.And(*ranges, *edges)

    def goes_on(self, unit: Unit) -> FNode:
        """That a module has an instruction left, and finds its tokens."""
        here = self.executed[unit]
        needed = [
            smt.Implies(smt.Equals(here, smt.Int(self.place[i])), smt.GE(self.tokens(queue), smt.Int(1)))
            for i in self.members[unit]
            for queue in self.instructions[i].pops()
        ]
        return smt.And(smt.LT(here, smt.Int(len(self.members[unit]))), *needed)

    def _tokens(self) -> None:
        ask, invariant = self.discharger.ask, self.invariant()
        start = {n: smt.Int(0) for n in self.executed.values()}
        ask(
            "tokens",
            "start",
            [smt.Not(invariant.substitute(start))],
            "the invariant holds before the first instruction",
        )
        for unit, here in self.executed.items():
            if self.members[unit]:
                moved = invariant.substitute({here: smt.Plus(here, smt.Int(1))})
                meaning = f"the invariant still holds after {unit.name.lower()} has executed an instruction"
                ask("tokens", f"step of {unit.name.lower()}", [invariant, self.goes_on(unit), smt.Not(moved)], meaning)
        end = [smt.GE(n, smt.Int(len(self.members[u]))) for u, n in self.executed.items()]
        stuck = [smt.Not(self.goes_on(unit)) for unit in Unit]
        meaning = "where instructions are left, a module can go on: there is no deadlock"
        ask("tokens", "progress", [invariant, smt.Not(smt.And(end)), *stuck], meaning)
        _, most = CAPACITY[self.options.tokens]
        for queue in QUEUES:
            if len(self.pushes[queue]) > most:
                meaning = f"{queue} never holds more than {most} tokens, so that no push waits or is lost"
                ask("tokens", f"room in {queue}", [invariant, smt.GT(self.tokens(queue), smt.Int(most))], meaning)

    def _order(self, later: int) -> None:
        """Every schedule executes these before: a number of the first instructions of each other module."""
        missing = [
            smt.LT(self.executed[unit], smt.Int(count))
            for unit in Unit
            if unit != self.instructions[later].unit and (count := self._known(later, unit))
        ]
        if missing:
            meaning = f"what the argument takes to execute before instruction {later + 1} has then executed"
            conditions = [self.invariant(), self.done(later), smt.Or(missing)]
            self.discharger.ask("order", f"before instruction {later + 1}", conditions, meaning)

    def _known(self, later: int, unit: Unit) -> int:
        known = [self.before[later] >> i & 1 for i in self.members[unit]]
        assert known == sorted(known, reverse=True), "a module executes in order"
        return sum(known)

    def _independent(self, later: int) -> None:
        """Those that stand before it in the program and may be missing do not meet it."""
        last = later == len(self.instructions) - 1
        met = []
        for earlier in range(later):
            if self.instructions[earlier].unit == self.instructions[later].unit:
                continue
            if self.before[later] >> earlier & 1:
                continue
            if last:
                raise _Race(earlier + 1, later + 1, self.instructions, "the end of the program")
            for memory, condition in meetings(self.accesses[earlier], self.accesses[later]).items():
                met.append((earlier, memory, condition))
        if not met:
            return
        meaning = f"instruction {later + 1} cannot meet those before it in the program that may execute after it"
        name = f"instruction {later + 1}"
        try:
            self.discharger.ask("independent", name, [BitEncoding().term(any_of([c for _, _, c in met]))], meaning)
        except NotDischarged as error:
            if error.obligation.answers[0].status != "sat":
                raise
            for earlier, memory, condition in met:
                single = Discharger(timeout=self.discharger.timeout, second=False)
                try:
                    single.ask("race", name, [BitEncoding().term(condition)], meaning)
                except NotDischarged:
                    raise _Race(earlier + 1, later + 1, self.instructions, memory) from None
            raise

    def _health(self) -> None:
        """The conclusions are not empty: the end is reached, and some instructions do depend on each other."""
        end = [smt.Equals(n, smt.Int(len(self.members[u]))) for u, n in self.executed.items()]
        meaning = "the invariant admits the state in which everything has executed"
        self.discharger.ask("health", "end satisfiable", [self.invariant(), *end], meaning, expected="sat")
        touched = footprints(self.instructions, self.program.dram, self.options)
        for later in range(len(self.instructions)):
            for earlier in range(later):
                different = self.instructions[earlier].unit != self.instructions[later].unit
                if different and touched[earlier].conflicts(touched[later]):
                    met = meetings(self.accesses[earlier], self.accesses[later])
                    meaning = f"instructions {earlier + 1} and {later + 1} do meet, so that their order matters"
                    term = BitEncoding().term(any_of(list(met.values())))
                    self.discharger.ask("health", "some instructions meet", [term], meaning, expected="sat")
                    return
