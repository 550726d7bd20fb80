"""Runs that a PROVED token order survives: schedules on the scalar interpreter, against the sequential order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from accel_models.vta.isa import ENCODINGS, Instruction, Unit
from accel_models.vta.options import VtaOptions
from accel_models.vta.order.schedule import Policy, decode_program, fixed, shuffled, token_order
from accel_models.vta.program import Program
from smt_encodings.claims import Runs

from .replay import Counterexample, compare

PRODUCTS = ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (1, 3), (3, 2))
"""Blocks and rounds of the products that are run: the smallest, and those at which buffers come back."""
SCHEDULES = 3
"""Schedules of each product."""
LONGEST = 400
"""Instructions of a program that is run."""


@dataclass(frozen=True)
class ProductRun:
    """A schedule of a blocked product that ends otherwise than the sequential order."""

    blocks: int
    rounds: int
    bias: bool
    counterexample: Counterexample


def survey_program(program: Program, options: VtaOptions) -> Runs:
    """Schedules with each order of preference among the modules, and random ones, on random initial contents."""
    instructions = decode_program(program.words, ENCODINGS[options.encoding])
    if len(instructions) > LONGEST:
        return Runs(0, (), (f"not run: a program of more than {LONGEST} instructions",))
    policies = [fixed(*order) for order in permutations(Unit)] + [shuffled(seed) for seed in range(SCHEDULES)]
    count = 0
    for count, counterexample in enumerate(_tried(program, instructions, policies, options), 1):
        if counterexample is not None:
            return Runs(count, ("schedules of the program",), difference=counterexample, shown=counterexample.summary())
    return Runs(count, ("schedules of the program",))


def survey_products(product: Callable[..., Program], options: VtaOptions) -> Runs:
    """Random schedules of small blocked products; ``product`` makes one of blocks, rounds, and with a bias or not."""
    count, at = 0, list[str]()
    for number, (blocks, rounds) in enumerate(PRODUCTS):
        bias = bool(number % 2)
        program = product(blocks, rounds, bias=bias)
        instructions = decode_program(program.words, ENCODINGS[options.encoding])
        at.append(f"blocks = {blocks}, rounds = {rounds}, {'with' if bias else 'without'} bias")
        policies = [shuffled(SCHEDULES * number + k) for k in range(SCHEDULES)]
        for counterexample in _tried(program, instructions, policies, options):
            count += 1
            if counterexample is not None:
                shown = f"{at[-1]}: {counterexample.summary()}"
                return Runs(count, tuple(at), difference=ProductRun(blocks, rounds, bias, counterexample), shown=shown)
    return Runs(count, tuple(at))


def _tried(
    program: Program, instructions: Sequence[Instruction], policies: Sequence[Policy], options: VtaOptions
) -> Iterator[Counterexample | None]:
    """The counterexample, or None, of each policy's schedule on random contents; equal schedules run once."""
    seen: set[tuple[int, ...]] = set()
    for number, policy in enumerate(policies):
        schedule = tuple(_schedule(instructions, policy, options))
        if schedule not in seen:
            seen.add(schedule)
            yield compare(program, schedule, options, number + 1)


def _schedule(instructions: Sequence[Instruction], policy: Policy, options: VtaOptions) -> list[int]:
    """The order (numbers from 1) that a policy chooses, as far as tokens let it go."""

    def choose(ready: Sequence[int]) -> int:
        by_unit = {instructions[i].unit: i for i in ready}
        return by_unit[policy(list(by_unit))]

    return [i + 1 for i in token_order(instructions, options, choose)[0]]
