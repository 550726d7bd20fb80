"""Token order of mutated programs, against all their schedules executed one by one on arrays."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from accel_models.vta.assembly import assemble
from accel_models.vta.isa import Instruction, decode, encode
from accel_models.vta.options import HLS
from accel_models.vta.order.hazards import check_tokens
from accel_models.vta.program import Program
from chc.token_order.program import prove_program
from chc.token_order.replay import Counterexample, replays
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.accel_models.vta.oracle import Oracle

TOKENS = ("pop_prev", "pop_next", "push_prev", "push_next")


# -- all schedules --------------------------------------------------------------------------------------------


def unit(x: Instruction) -> int:
    """LOAD of INP and WGT, everything else, STORE."""
    kind = type(x).__name__
    return 2 if kind == "Store" else 0 if kind == "Load" and x.memory.name in ("INP", "WGT") else 1  # type: ignore[attr-defined]


def result(oracle: Oracle) -> bytes:
    return b"".join(
        np.ascontiguousarray(getattr(oracle, n)).tobytes() for n in ("dram", "inp", "wgt", "acc", "out", "uop")
    )


def every_schedule(instructions: list[Instruction], dram: np.ndarray) -> set[bytes | str]:
    """What schedules end in: memories, "stuck", or "left" where FINISH comes before other instructions."""
    queues = [[x for x in instructions if unit(x) == u] for u in range(3)]
    ends: set[bytes | str] = set()
    seen: set[tuple[tuple[int, ...], bytes]] = set()
    waiting = [((0, 0, 0), Counter[tuple[int, int]](), Oracle(HLS, dram))]
    while waiting:
        done, tokens, oracle = waiting.pop()
        if (key := (done, result(oracle))) in seen:
            continue
        seen.add(key)
        if all(n == len(q) for n, q in zip(done, queues, strict=True)):
            ends.add(key[1])
            continue
        moved = False
        for u, queue in enumerate(queues):
            if done[u] == len(queue):
                continue
            x, left = queue[done[u]], tokens.copy()
            left.subtract([(v, u) for flag, v in ((x.pop_prev, u - 1), (x.pop_next, u + 1)) if flag])
            if min(left.values(), default=0) < 0:
                continue
            moved = True
            left.update([(u, v) for flag, v in ((x.push_prev, u - 1), (x.push_next, u + 1)) if flag])
            after = tuple(n + (v == u) for v, n in enumerate(done))
            if type(x).__name__ == "Finish":
                if sum(after) < len(instructions):
                    ends.add("left")
                    continue
                waiting.append((after, left, oracle))
                continue
            other = deepcopy(oracle)
            other.run(x)
            waiting.append((after, left, other))
        if not moved:
            ends.add("stuck")
    return ends


def sequential(instructions: list[Instruction], dram: np.ndarray) -> bytes:
    oracle = Oracle(HLS, dram)
    for x in instructions[:-1]:
        oracle.run(x)
    return result(oracle)


# -- programs that stop behind FINISH -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "load.inp size=1x1 pop=g2l\nfinish",
        "load.inp size=1x1\nfinish",
        "gemm uops=0:1\nstore dram=512 size=1x1 pop=g2s\nfinish",
        "gemm uops=0:1 push=g2s\nstore dram=512 size=1x1 pop=g2s\nstore dram=768 size=1x1 pop=g2s\nfinish",
    ],
)
def test_work_left_behind_finish_is_refuted(text: str) -> None:
    """The schedule that stops there replays; nothing of this is PROVED, with or without obligations."""
    words = tuple(assemble(text))
    assert check_tokens(words)
    verdict = prove_program(Program((), words), discharger=Discharger(second=False))
    assert verdict.status is Status.REFUTED, verdict.reason
    found = verdict.details["counterexample"]
    assert isinstance(found, Counterexample) and found.message and replays(found, HLS)


def test_a_deadlock_that_does_not_replay_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chc.token_order.program.replays", lambda *_: False)
    verdict = prove_program(Program((), tuple(assemble("load.inp size=1x1 pop=g2l\nfinish"))))
    assert verdict.status is Status.UNKNOWN and not verdict.obligations
    assert verdict.reason.startswith("Program must not deadlock, but after 1 of 2 instructions no module can go on:")


# -- mutated programs -----------------------------------------------------------------------------------------

PRODUCTS = """
load.uop dram=0 size=1x1
load.inp dram=16 size=1x1
load.wgt dram=2 size=1x1 push=l2g
gemm uops=0:1 reset pop=l2g push=g2l,g2s
load.inp sram=1 dram=17 size=1x1 pop=g2l push=l2g
store dram=128 size=1x1 pop=g2s push=s2g
alu.add uops=0:1 imm=3 pop=l2g,s2g push=g2s
store dram=160 size=1x1 pop=g2s push=s2g
finish pop=s2g
"""


def mutants(instructions: list[Instruction], count: int, seed: int) -> Iterator[list[Instruction]]:
    """A flag turned, two flags turned, an instruction doubled, dropped or moved; FINISH stays last."""
    source = random.Random(seed)

    def flag(x: list[Instruction], at: int, name: str) -> None:
        x[at] = replace(x[at], **{name: not getattr(x[at], name)})

    def turned(x: list[Instruction]) -> None:
        flag(x, source.randrange(len(x)), source.choice(TOKENS))

    def carried(x: list[Instruction]) -> None:
        name = source.choice(TOKENS)
        for at in source.sample(range(len(x)), 2):
            flag(x, at, name)

    def doubled(x: list[Instruction]) -> None:
        at = source.randrange(len(x) - 1)
        x.insert(at, x[at])

    def dropped(x: list[Instruction]) -> None:
        x.pop(source.randrange(len(x) - 1))

    def moved(x: list[Instruction]) -> None:
        x.insert(source.randrange(len(x) - 1), x.pop(source.randrange(len(x) - 1)))

    changes: list[Callable[[list[Instruction]], None]] = [turned, carried, doubled, dropped, moved]
    for number in range(count):
        changed = list(instructions)
        changes[number % len(changes)](changed)
        try:
            decoded = [decode(encode(x)) for x in changed]
        except ValueError:
            continue
        yield decoded


def campaign(count: int, seed: int) -> Counter[tuple[str, bool]]:
    """How often each verdict was given to a program that is right, or wrong."""
    dram = np.random.default_rng(seed).integers(0, 256, 4096).astype(np.uint8)
    dram[:4] = 0  # the micro-op: all indices 0
    seen: Counter[tuple[str, bool]] = Counter()
    start = [decode(w) for w in assemble(PRODUCTS)]
    for changed in [start, *mutants(start, count, seed)]:
        program = Program(((0, dram.tobytes()),), tuple(encode(x) for x in changed))
        ends = every_schedule(changed, dram)
        right = ends == {sequential(changed, dram)}
        verdict = prove_program(program, discharger=Discharger(second=False))
        assert right or verdict.status is not Status.PROVED, "\n".join(map(str, changed))
        assert verdict.status is not Status.PROVED or verdict.obligations
        assert not right or verdict.status is not Status.REFUTED, verdict.reason
        seen[verdict.status.value, right] += 1
    return seen


def test_no_mutant_with_a_wrong_schedule_is_proved() -> None:
    seen = campaign(25, seed=5)
    assert seen["PROVED", True] >= 3 and seen["REFUTED", False] >= 5, seen


@pytest.mark.slow
def test_no_mutant_of_many_with_a_wrong_schedule_is_proved() -> None:
    seen = campaign(400, seed=6)
    assert seen["PROVED", True] >= 40 and seen["REFUTED", False] >= 100, seen
