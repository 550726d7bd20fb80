"""Execution by three modules: queues, tokens, and the order in which ready instructions execute.

Fetch sends each instruction to the queue of its module: STORE to the store module, LOAD of INP and WGT to the load
module, everything else to the compute module.  A module executes its queue in order; an instruction waits until the
tokens that it pops are there (and, where queues of tokens are bounded, until those that it pushes have room).  Which
ready module goes next is a policy: hardware gives no order, so a program means something only if every policy gives
the same memory, which :mod:`accel_models.vta.order.hazards` checks.

A push that has no room delays the whole instruction here.  In hardware the instruction executes and only its push
waits; a program can tell the two apart only by a deadlock, with more than eight tokens outstanding in both directions
at once.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, NoReturn, Protocol

from accel_models.mmio_program import ProgramError
from accel_models.vta.assembly import format_instruction
from accel_models.vta.isa import ENCODINGS, Encoding, Finish, Instruction, IsaError, Unit, decode
from accel_models.vta.model import CAPACITY, QUEUES, CommandKind
from accel_models.vta.options import HLS, VtaOptions
from ila_lang import CommandError
from ila_lang import Instruction as IlaInstruction

Policy = Callable[[Sequence[Unit]], Unit]
"""Chooses one of the modules that can go on."""


class Device(Protocol):
    """What a simulator of the model offers: :class:`ila_lang.Machine`, or one that is faster."""

    @property
    def values(self) -> MutableMapping[str, int]:
        """The scalar states."""

    @property
    def memories(self) -> Any:
        """The memories."""

    def step(self, inputs: Mapping[str, int]) -> IlaInstruction:
        """Executes one command."""

    def decode(self, inputs: Mapping[str, int]) -> IlaInstruction:
        """The instruction that a command selects."""


def fixed(*order: Unit) -> Policy:
    """The first module of ``order`` that can go on; load, compute, store by default.

    >>> fixed(Unit.STORE, Unit.LOAD, Unit.COMPUTE)([Unit.LOAD, Unit.COMPUTE]).name
    'LOAD'
    """
    chosen = order or tuple(Unit)
    if sorted(chosen) != list(Unit):
        raise ValueError(f"Order must name load, compute and store once each, not {', '.join(u.name for u in chosen)}")
    return lambda ready: next(unit for unit in chosen if unit in ready)


def shuffled(seed: int) -> Policy:
    """A module at random, reproducible from ``seed``."""
    source = random.Random(seed)
    return source.choice


def decode_program(words: Sequence[int], encoding: Encoding) -> list[Instruction]:
    """The instructions of a program; raises ProgramError with the number of the first word that encodes none."""
    instructions = []
    for number, word in enumerate(words, 1):
        try:
            instructions.append(decode(word, encoding))
        except IsaError as error:
            raise ProgramError(f"Instruction {number}: {error}") from None
    return instructions


def run_instructions(
    machine: Device, words: Sequence[int], options: VtaOptions = HLS, policy: Policy | None = None
) -> list[int]:
    """Executes a program on a machine of :func:`~accel_models.vta.model.vta` with the same options.

    Returns the numbers of the instructions, counted from 1, in the order in which they executed.

    Raises ProgramError where a word is no instruction, where FINISH is missing or not the last instruction, in a
    deadlock (with what each module waits for), where the model refuses an instruction, and where FINISH executes
    while another module still has instructions.  The machine has then executed what came before.
    """
    instructions = decode_program(words, ENCODINGS[options.encoding])
    if options.tokens == "none":
        queues = {Unit.COMPUTE: deque(range(len(words)))}
    else:
        require_finish(instructions)
        queues = {unit: deque(i for i, x in enumerate(instructions) if x.unit == unit) for unit in Unit}
    choose, executed = policy or fixed(), list[int]()
    while any(queues.values()):
        ready = [
            u for u, queue in queues.items() if queue and not waits(instructions[queue[0]], machine.values, options)
        ]
        if not ready:
            report_deadlock(instructions, queues, machine.values, options, len(executed))
        position = queues[choose(ready)].popleft()
        _execute(machine, words[position], instructions[position], position + 1)
        executed.append(position + 1)
        if isinstance(instructions[position], Finish):
            _require_idle(instructions, queues, position + 1)
    return executed


def token_order(
    instructions: Sequence[Instruction], options: VtaOptions, choose: Callable[[Sequence[int]], int]
) -> tuple[list[int], dict[str, int], dict[Unit, deque[int]]]:
    """An order of execution as far as tokens let it go, and the tokens and instructions left; nothing is executed.

    Instructions are positions from 0; ``choose`` takes one of those that are ready.
    """
    tokens = dict.fromkeys(QUEUES, 0)
    queues = {unit: deque(i for i, x in enumerate(instructions) if x.unit == unit) for unit in Unit}
    order: list[int] = []
    while ready := [q[0] for q in queues.values() if q and not waits(instructions[q[0]], tokens, options)]:
        position = choose(ready)
        queues[instructions[position].unit].popleft()
        for queue in instructions[position].pops():
            tokens[queue] -= 1
        for queue in instructions[position].pushes():
            tokens[queue] += 1
        order.append(position)
    return order, tokens, queues


def describe(instructions: Sequence[Instruction], number: int) -> str:
    """An instruction as messages give it: ``instruction 3 (store ...)``."""
    text = " ".join(format_instruction(instructions[number - 1]).split())
    return f"instruction {number} ({text})"


def require_finish(instructions: Sequence[Instruction]) -> None:
    """Raises ProgramError unless FINISH is the last instruction, and only that."""
    ends = [i for i, x in enumerate(instructions, 1) if isinstance(x, Finish)]
    if not ends:
        raise ProgramError(
            "Program must end with finish, which is missing: the host would wait for ever; add it, with a pop of the "
            "last store's token"
        )
    if ends[0] != len(instructions):
        raise ProgramError(
            f"finish (instruction {ends[0]}) must be the last instruction, but {describe(instructions, ends[0] + 1)} "
            "comes after it: whether it executes depends on timing; move finish to the end"
        )


def waits(instruction: Instruction, tokens: Mapping[str, int], options: VtaOptions) -> list[str]:
    """What the instruction waits for; ``tokens`` has the number in each queue."""
    if options.tokens == "none":
        return []
    reasons = [f"a token in {q}" for q in instruction.pops() if tokens[q] == 0]
    if options.tokens != "saturating8":
        _, most = CAPACITY[options.tokens]
        reasons += [f"room in {q} ({most} tokens)" for q in instruction.pushes() if tokens[q] >= most]
    return reasons


def report_deadlock(
    instructions: Sequence[Instruction],
    queues: Mapping[Unit, deque[int]],
    tokens: Mapping[str, int],
    options: VtaOptions,
    executed: int,
) -> NoReturn:
    """Raises ProgramError: what each module waits for."""
    lines = []
    for unit, queue in queues.items():
        state = "has nothing left to execute"
        if queue:
            missing = " and ".join(waits(instructions[queue[0]], tokens, options))
            state = f"waits at {describe(instructions, queue[0] + 1)} for {missing}"
        lines.append(f"  {unit.name.lower()} {state}")
    raise ProgramError(
        f"Program must not deadlock, but after {executed} of {len(instructions)} instructions no module can go on:\n"
        + "\n".join(lines)
        + "\nadd the pushes that are missing, or remove the pops"
    )


def _execute(machine: Device, word: int, instruction: Instruction, number: int) -> None:
    inputs = {"command": CommandKind.ISSUE, "insn": word}
    what = f"Instruction {number} ({' '.join(format_instruction(instruction).split())})"
    try:
        machine.step(inputs)
    except CommandError:
        name = machine.decode(inputs).name
        raise ProgramError(f"{what} must {_REFUSED[name]}") from None
    if machine.memories["fault"][0]:
        raise ProgramError(
            f"{what} must stay within the scratchpads, but the index of a micro-op, with factors times iterations, "
            "goes beyond one; correct the micro-ops, the factors or the iterations"
        )
    if machine.memories["fault"][1]:
        raise ProgramError(
            f"{what} must not read an accumulator before the write to it has arrived, but an iteration reads what one "
            "shortly before it has written; let more iterations pass between them, or split the instruction"
        )


_REFUSED = {
    "VTA_UNKNOWN": "be known to this reading of VTA, which it is not; use another instruction, or other options",
    "VTA_BLOCKED": "find its tokens, which it does not; use the same options for the model and for the schedule",
    "VTA_OUT_OF_RANGE": "stay within its scratchpad, DRAM (16 MiB) and the micro-op memory, but goes beyond one; "
    "correct its bases and sizes",
    "VTA_FINISHED": "come before finish, but another program has finished; give the host command START first",
    "VTA_FAULTED": "come to a machine without fault, but an earlier program left one; use a new machine",
}


def _require_idle(instructions: Sequence[Instruction], queues: Mapping[Unit, deque[int]], number: int) -> None:
    left = sorted(queue[0] + 1 for queue in queues.values() if queue)
    if left:
        raise ProgramError(
            f"finish (instruction {number}) must wait for all others, but {describe(instructions, left[0])} had not "
            "executed: whether it does depends on timing; let it push a token that leads to finish"
        )
