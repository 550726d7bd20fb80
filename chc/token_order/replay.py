"""Counterexamples to token order: a schedule that ends in another memory than the sequential order, or in a deadlock.

A schedule is a list of instructions, by number, in the order in which they execute; it is replayed on the scalar
interpreter with :func:`accel_models.vta.order.schedule.run_instructions`, which lets no instruction execute before its
tokens are there.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from accel_models.mmio_program import ProgramError
from accel_models.vta.isa import ENCODINGS, Instruction, Unit
from accel_models.vta.model import vta
from accel_models.vta.options import VtaOptions
from accel_models.vta.order.hazards import happens_before, token_run
from accel_models.vta.order.schedule import Policy, decode_program, require_finish, run_instructions, token_order
from accel_models.vta.program import Program, write_bytes
from ila_lang import Machine, Memory, MemSort

MEMORIES = ("dram", "out", "acc", "inp", "wgt", "uop")


@dataclass(frozen=True)
class Counterexample:
    """What a schedule does that the sequential order does not.

    ``schedule`` numbers instructions from 1.  ``memory`` and ``address`` name the first word that differs, with its
    value in the sequential order and after the schedule; in a deadlock, and where FINISH does not come last,
    ``message`` says what happens instead, and ``memory`` is empty.  ``contents`` is the seed of what each word of a
    memory that nothing was written to holds at the start (0: zeros); micro-ops that are not loaded are 0.
    """

    program: Program
    schedule: tuple[int, ...]
    message: str = ""
    memory: str = ""
    address: int = 0
    sequential: int = 0
    observed: int = 0
    contents: int = 0

    def summary(self) -> str:
        """The counterexample in a few words."""
        order = " ".join(map(str, self.schedule))
        if self.message:
            return f"schedule {order}: {self.message}" if order else self.message.partition("\n")[0]
        where = f"{self.memory}[{self.address:#x}]"
        return f"schedule {order} leaves {self.observed:#x} at {where}, the sequential order {self.sequential:#x}"


class _Drawn(Memory):
    """A memory in which every word that was never written has a value of its own, drawn from ``seed`` and its address.

    Like any other, it reads the same after other words were read or written.
    """

    def __init__(self, seed: str, width: int) -> None:
        super().__init__()
        self.seed, self.width = seed, width

    def __missing__(self, address: int) -> int:
        return random.Random(f"{self.seed} {address}").getrandbits(self.width)


def _machine(program: Program, options: VtaOptions, contents: int) -> Machine:
    """A machine with the program's data; other words are drawn from the seed ``contents``, but for micro-ops: 0."""
    machine = Machine(vta(options))
    for name in MEMORIES if contents else ():
        sort = machine.ila.states[name].sort if name in machine.memories else None
        if isinstance(sort, MemSort) and name != "uop":
            machine.memories[name] = _Drawn(f"{contents} {name}", sort.data_width)
    for addr, content in program.dram:
        write_bytes(machine, addr, content)
    return machine


def run_in_order(program: Program, options: VtaOptions, contents: int = 0) -> Machine:
    """The machine after the program's instructions one after the other, whatever their tokens."""
    machine = _machine(program, replace(options, tokens="none"), contents)
    run_instructions(machine, program.words, replace(options, tokens="none"))
    return machine


def run_schedule(program: Program, schedule: Sequence[int], options: VtaOptions, contents: int = 0) -> Machine:
    """The machine after the program in this order of execution, which the tokens must allow.

    Raises ProgramError as :func:`~accel_models.vta.order.schedule.run_instructions` does.
    """
    machine = _machine(program, options, contents)
    run_instructions(machine, program.words, options, _following(program, schedule, options))
    return machine


def _following(program: Program, schedule: Sequence[int], options: VtaOptions) -> Policy:
    instructions = decode_program(program.words, ENCODINGS[options.encoding])
    units = iter([instructions[n - 1].unit for n in schedule])

    def choose(ready: Sequence[Unit]) -> Unit:
        unit = next(units, ready[0])
        if unit not in ready:
            raise ValueError(f"Schedule must let only modules go on that can, not {unit.name.lower()}; correct it")
        return unit

    return choose


def race(program: Program, earlier: int, later: int, options: VtaOptions) -> Counterexample | None:
    """A schedule in which instruction ``later`` executes before ``earlier`` (numbers from 1) and memory differs.

    None where no such schedule exists, or where it leaves the same memory with the program's data.
    """
    instructions = decode_program(program.words, ENCODINGS[options.encoding])
    require_finish(instructions)
    before = happens_before(instructions, token_run(instructions, options)[0])
    if before[later - 1] >> (earlier - 1) & 1:
        return None
    needed = before[later - 1] | 1 << later - 1
    schedule = _with_priority(instructions, needed, options)
    return None if schedule is None else compare(program, schedule, options)


def _with_priority(instructions: Sequence[Instruction], first: int, options: VtaOptions) -> list[int] | None:
    """An order that the tokens allow in which the set ``first`` comes before all others; numbers from 1."""
    order, _, queues = token_order(
        instructions, options, lambda ready: next((i for i in ready if first >> i & 1), ready[0])
    )
    possible = not any(queues.values()) and all(first >> i & 1 for i in order[: first.bit_count()])
    return [i + 1 for i in order] if possible else None


def compare(program: Program, schedule: Sequence[int], options: VtaOptions, contents: int = 0) -> Counterexample | None:
    """The counterexample that this schedule is; None where it ends as the sequential order does, or that is refused."""
    try:
        sequential = run_in_order(program, options, contents)
    except ProgramError:
        return None
    try:
        run = run_schedule(program, schedule, options, contents)
    except ProgramError as error:
        return Counterexample(program, tuple(schedule), str(error).partition("\n")[0], contents=contents)
    for memory in MEMORIES:
        if memory in sequential.memories:
            left, right = sequential.memories[memory], run.memories[memory]
            for address in sorted({*left, *right}):
                if left[address] != right[address]:
                    values = left[address], right[address]
                    return Counterexample(program, tuple(schedule), "", memory, address, *values, contents=contents)
    return None


def deadlock(program: Program, options: VtaOptions) -> Counterexample | None:
    """The deadlock of a program, or None if it has none."""
    instructions = decode_program(program.words, ENCODINGS[options.encoding])
    try:
        token_run(instructions, options)
    except ProgramError as error:
        return Counterexample(program, (), str(error))
    return None


def replays(counterexample: Counterexample, options: VtaOptions) -> bool:
    """Whether a new run of the counterexample's schedule shows what it says.

    With a ``message``: the schedule does not execute the whole program, FINISH last, and the sequential order does.
    """
    try:
        sequential = run_in_order(counterexample.program, options, counterexample.contents)
    except ProgramError:
        return False
    try:
        other = run_schedule(counterexample.program, counterexample.schedule, options, counterexample.contents)
    except ProgramError:
        return bool(counterexample.message)
    if counterexample.message:
        return False
    values = (
        sequential.memories[counterexample.memory][counterexample.address],
        other.memories[counterexample.memory][counterexample.address],
    )
    return (
        values == (counterexample.sequential, counterexample.observed)
        and counterexample.sequential != counterexample.observed
    )
