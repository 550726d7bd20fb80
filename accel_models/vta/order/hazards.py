"""The static check of a program's tokens: is its result the same under every schedule?

In each token queue one module pushes and one pops, so the k-th pop waits for the k-th push.  With the order in each
instruction queue this gives a partial order, and every schedule is one of its linearisations.  A program is
*token-correct* if it does not deadlock and if every two instructions of different modules, of which one writes what the
other reads or writes, are ordered as they stand in the program; then every schedule gives the memory that executing the
instructions one after the other gives.

The hazards by name: RAW through l2g (inputs and weights before they are read), WAR through g2l (not overwritten while
they are read), RAW through g2s (outputs before they are stored), WAR through s2g (not overwritten before they are
stored), and those between stores and loads through DRAM.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from accel_models.mmio_program import ProgramError
from accel_models.vta.isa import ENCODINGS, Finish, Instruction, Unit
from accel_models.vta.model import CAPACITY, QUEUES
from accel_models.vta.options import HLS, VtaOptions

from .footprint import footprints
from .schedule import decode_program, describe, report_deadlock, require_finish, token_order


@dataclass(frozen=True)
class Problem:
    """Why a program is not token-correct; ``first`` and ``second`` number the instructions concerned, from 1.

    ``kind``: "program" (no finish, or a word that is no instruction), "deadlock", "hazard" (two instructions are not
    ordered), "unfinished" (finish does not wait for an instruction), "left over" (tokens remain for the next program),
    "lost" (a push may find its saturating counter full); and, from :mod:`accel_models.vta.order.revisits`, "revisit"
    (an accumulator is read soon after it was written).
    """

    kind: Literal["program", "deadlock", "hazard", "unfinished", "left over", "lost", "revisit"]
    message: str
    first: int = 0
    second: int = 0


def check_tokens(
    words: Sequence[int], dram: Iterable[tuple[int, bytes]] = (), options: VtaOptions = HLS
) -> list[Problem]:
    """What is wrong with a program's tokens; nothing if it is token-correct.

    ``dram`` is what DRAM holds at the start: the micro-ops decide what GEMM and ALU touch.  Micro-ops that the program
    does not load are taken to be 0, as after reset.
    """
    try:
        instructions = decode_program(words, ENCODINGS[options.encoding])
        if options.tokens == "none":
            return []
        require_finish(instructions)
    except ProgramError as error:
        return [Problem("program", str(error))]
    try:
        order, left = token_run(instructions, options)
    except ProgramError as error:
        return [Problem("deadlock", str(error))]
    before = happens_before(instructions, order)
    problems = _hazards(instructions, before, dram, options)
    last = len(instructions) - 1
    for i in range(last):
        if not before[last] >> i & 1:
            message = f"finish (instruction {last + 1}) does not wait for {describe(instructions, i + 1)}"
            problems.append(
                Problem("unfinished", f"{message}; let it push a token that leads to finish", i + 1, last + 1)
            )
    for queue, tokens in left.items():
        if tokens:
            text = f"{queue} must be empty after finish, not hold {tokens}: the next program would find them"
            problems.append(Problem("left over", f"{text}; pop the tokens, or do not push them"))
    if options.tokens == "saturating8":
        problems += _lost(instructions, before)
    return problems


def token_run(instructions: Sequence[Instruction], options: VtaOptions) -> tuple[list[int], dict[str, int]]:
    """One order of execution (positions from 0), and the tokens left; raises ProgramError in a deadlock.

    Whether there is a deadlock does not depend on the order.

    Saturating counters count on here: with tokens lost it would depend, and :func:`_lost` finds them.
    """
    order, tokens, queues = token_order(instructions, options, lambda ready: ready[0])
    if any(queues.values()):
        report_deadlock(instructions, queues, tokens, options, len(order))
    return order, tokens


def happens_before(instructions: Sequence[Instruction], order: Sequence[int]) -> list[int]:
    """For each instruction, the set (bit i is position i) of those that every schedule executes before it.

    ``order`` is one order of execution, from :func:`token_run`.
    """
    pushes, pops = token_events(instructions)
    previous: dict[int, list[int]] = {i: [] for i in range(len(instructions))}
    for unit in Unit:
        of_unit = [i for i, x in enumerate(instructions) if x.unit == unit]
        for earlier, later in pairwise(of_unit):
            previous[later].append(earlier)
    for queue in QUEUES:
        for pushed, popped in zip(pushes[queue], pops[queue], strict=False):
            previous[popped].append(pushed)
    before = [0] * len(instructions)
    for i in order:
        for j in previous[i]:
            before[i] |= before[j] | 1 << j
    return before


def token_events(instructions: Sequence[Instruction]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """The positions of the instructions that push to each queue, and of those that pop from it, in order."""
    pushes: dict[str, list[int]] = {queue: [] for queue in QUEUES}
    pops: dict[str, list[int]] = {queue: [] for queue in QUEUES}
    for i, instruction in enumerate(instructions):
        for queue in instruction.pushes():
            pushes[queue].append(i)
        for queue in instruction.pops():
            pops[queue].append(i)
    return pushes, pops


def _hazards(
    instructions: Sequence[Instruction], before: Sequence[int], dram: Iterable[tuple[int, bytes]], options: VtaOptions
) -> list[Problem]:
    touched = footprints(instructions, dram, options)
    problems = []
    for j, later in enumerate(instructions):
        for i in range(j):
            if instructions[i].unit == later.unit or before[j] >> i & 1:
                continue
            conflicts = touched[i].conflicts(touched[j])
            if conflicts and not isinstance(later, Finish):
                what = ", ".join(f"{kind} on {memory}" for kind, memory in conflicts)
                relation = "executes before" if before[i] >> j & 1 else "may execute before"
                message = (
                    f"{describe(instructions, j + 1)} {relation} {describe(instructions, i + 1)}, on which it depends "
                    f"({what}); {_advice(instructions[i].unit, later.unit)}"
                )
                problems.append(Problem("hazard", message, i + 1, j + 1))
    return problems


def _advice(first: Unit, second: Unit) -> str:
    if abs(first - second) == 1:
        queue = f"{_LETTERS[first]}2{_LETTERS[second]}"
        return f"push a token into {queue} after the one and pop it before the other"
    return "lead a token from the one through the compute module to the other"


_LETTERS = {Unit.LOAD: "l", Unit.COMPUTE: "g", Unit.STORE: "s"}


def _lost(instructions: Sequence[Instruction], before: Sequence[int]) -> list[Problem]:
    """Pushes that may find 255 tokens: those that do not wait for the pop 255 tokens earlier."""
    _, most = CAPACITY["saturating8"]
    pushes, pops = token_events(instructions)
    problems = []
    for queue in QUEUES:
        for k, i in enumerate(pushes[queue][most:]):
            freeing = pops[queue][k] if k < len(pops[queue]) else None
            if freeing is None or not (before[i] >> freeing & 1 or freeing == i):
                message = f"{describe(instructions, i + 1)} may find {most} tokens in {queue}, and its own is then lost"
                problems.append(Problem("lost", f"{message}; let it wait for a pop", i + 1))
                break
    return problems
