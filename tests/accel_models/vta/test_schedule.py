"""Three modules and four token queues: order does not matter where tokens are right, and what is said where not."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accel_models.mmio_program import ProgramError
from accel_models.vta.assembly import assemble
from accel_models.vta.isa import AluOp, Instruction, Unit, Uop, encode, encode_uop
from accel_models.vta.model import vta
from accel_models.vta.options import CHISEL, FSIM, HLS, VTA_ILA, VtaOptions
from accel_models.vta.order.hazards import Problem, check_tokens
from accel_models.vta.order.schedule import Policy, fixed, run_instructions, shuffled
from accel_models.vta.products import TensorProgram, dense_program, post_steps
from accel_models.vta.program import write_bytes
from accel_models.vta.tiling import Blocks
from ila_lang import Machine
from tests.accel_models.vta.elementwise import elementwise_program

UOPS = ((0, b"".join(encode_uop(u).to_bytes(4, "little") for u in (Uop(), Uop(dst=1, src=1, wgt=0)))),)

CORRECT = """
load.uop sram=0 dram=0 size=1x2
load.inp sram=0 dram=16 size=1x2
load.wgt sram=0 dram=2 size=1x1 push=l2g
gemm uops=0:2 iters=1x1 reset pop=l2g
gemm uops=0:2 iters=1x1 push=g2l,g2s
store sram=0 dram=64 size=1x2 pop=g2s push=s2g
load.inp sram=0 dram=18 size=1x2 pop=g2l push=l2g
gemm uops=0:2 iters=1x1 pop=l2g,s2g push=g2s
store sram=0 dram=66 size=1x2 pop=g2s push=s2g
finish pop=s2g
"""


def final(words: list[int], policy: Policy | None = None, options: VtaOptions = HLS) -> dict[int, int]:
    """DRAM after the program."""
    machine = Machine(vta(options))
    write_bytes(machine, *UOPS[0])
    data = np.random.default_rng(5).integers(0, 256, 1024).astype(np.uint8)
    write_bytes(machine, 256, data.tobytes())
    run_instructions(machine, words, options, policy)
    return {a: b for a, b in machine.memories["dram"].items() if b}


def without(program: str, *tokens: str) -> list[int]:
    """The program with tokens removed: ``"7 pop=g2l"`` removes that from instruction 7."""
    lines = program.strip().splitlines()
    for token in tokens:
        number, what = token.split()
        assert what in lines[int(number) - 1]
        lines[int(number) - 1] = lines[int(number) - 1].replace(f" {what}", "")
    return assemble("\n".join(lines))


# -- schedules ------------------------------------------------------------------------------------------------


def test_the_correct_program_is_correct_under_every_order() -> None:
    words = assemble(CORRECT)
    assert check_tokens(words, UOPS) == []
    expected = final(words)
    assert any(address >= 1024 for address in expected)
    for order in permutations(Unit):
        assert final(words, fixed(*order)) == expected
    for seed in range(10):
        assert final(words, shuffled(seed)) == expected


def test_orders_are_reproducible_and_differ() -> None:
    words = assemble(CORRECT)

    def order(policy: Policy) -> list[int]:
        return run_instructions(Machine(vta()), words, HLS, policy)

    assert order(shuffled(3)) == order(shuffled(3))
    assert len({tuple(order(shuffled(seed))) for seed in range(10)}) > 1
    assert order(fixed()) == [2, 3, 1, 4, 5, 7, 6, 8, 9, 10]
    with pytest.raises(ValueError, match=r"^Order must name load, compute and store once each, not LOAD$"):
        fixed(Unit.LOAD)


def test_without_tokens_the_order_is_the_programs() -> None:
    program = dense_program((2, 16, 16)).program(VTA_ILA, input=bytes(32), weights=bytes(256))
    machine = Machine(vta(VTA_ILA))
    assert run_instructions(machine, program.words, VTA_ILA) == list(range(1, len(program.words) + 1))


# -- the static check: a missing token is found, and some schedule shows it ----------------------------------


@pytest.mark.parametrize(
    ("removed", "kinds", "message"),
    [
        (
            ("3 push=l2g", "7 push=l2g", "4 pop=l2g", "8 pop=l2g,s2g", "6 push=s2g"),
            {"hazard", "unfinished"},
            "instruction 4 (gemm uops=0:2 iters=1x1 reset) may execute before instruction 2 (load.inp sram=0 dram=16 "
            "size=1x2), on which it depends (RAW on inp); push a token into l2g after the one and pop it before the "
            "other",
        ),
        (
            ("7 pop=g2l", "5 push=g2l,g2s", "6 pop=g2s"),
            {"hazard"},
            "instruction 7 (load.inp sram=0 dram=18 size=1x2 push=l2g) may execute before instruction 4 (gemm "
            "uops=0:2 iters=1x1 reset pop=l2g), on which it depends (WAR on inp); push a token into g2l after the "
            "one and pop it before the other",
        ),
        (
            ("5 push=g2l,g2s", "6 pop=g2s", "7 pop=g2l", "9 pop=g2s", "8 push=g2s"),
            {"hazard"},
            "instruction 6 (store sram=0 dram=64 size=1x2 push=s2g) may execute before instruction 4 (gemm uops=0:2 "
            "iters=1x1 reset pop=l2g), on which it depends (RAW on out); push a token into g2s after the one and pop "
            "it before the other",
        ),
    ],
)
def test_missing_tokens(removed: tuple[str, ...], kinds: set[str], message: str) -> None:
    words = without(CORRECT, *removed)
    problems = check_tokens(words, UOPS)
    assert message in [p.message for p in problems]
    assert kinds <= {p.kind for p in problems}


def test_a_store_must_be_over_before_outputs_are_overwritten() -> None:
    lines = CORRECT.strip().splitlines()
    lines[5] = lines[5].replace(" push=s2g", "")
    lines[7] = lines[7].replace("pop=l2g,s2g", "pop=l2g")
    words = assemble("\n".join(lines))
    problems = [p for p in check_tokens(words, UOPS) if p.kind == "hazard"]
    assert [(p.first, p.second) for p in problems] == [(6, 8)]
    assert problems[0].message == (
        "instruction 8 (gemm uops=0:2 iters=1x1 pop=l2g push=g2s) may execute before instruction 6 (store sram=0 "
        "dram=64 size=1x2 pop=g2s), on which it depends (WAR on out); push a token into s2g after the one and pop it "
        "before the other"
    )
    results = {tuple(sorted(final(words, shuffled(seed)).items())) for seed in range(20)}
    assert len(results) > 1


def test_a_load_of_what_a_store_writes() -> None:
    text = """load.uop sram=0 dram=0 size=1x1
    alu.add uops=0:1 iters=1x1 imm=5 push=g2s
    store sram=0 dram=64 size=1x1 pop=g2s{}
    load.inp sram=0 dram=64 size=1x1{} push=l2g
    finish pop={}"""
    racing = assemble(text.format(" push=s2g", "", "l2g,s2g"))
    assert [p.message for p in check_tokens(racing, UOPS)] == [
        "instruction 4 (load.inp sram=0 dram=64 size=1x1 push=l2g) may execute before instruction 3 (store sram=0 "
        "dram=64 size=1x1 pop=g2s push=s2g), on which it depends (RAW on dram); lead a token from the one through the "
        "compute module to the other"
    ]
    through_compute = text.replace("load.inp", "gemm uops=0:0 pop=s2g push=g2l\n load.inp")
    assert check_tokens(assemble(through_compute.format(" push=s2g", " pop=g2l", "l2g")), UOPS) == []


def test_what_is_left_over() -> None:
    words = assemble("load.inp size=1x1 push=l2g\nfinish")
    assert check_tokens(words) == [
        Problem(
            "unfinished",
            "finish (instruction 2) does not wait for instruction 1 (load.inp sram=0 dram=0 size=1x1 push=l2g); let it "
            "push a token that leads to finish",
            1, 2,
        ),
        Problem(
            "left over",
            "l2g must be empty after finish, not hold 1: the next program would find them; pop the tokens, or do not "
            "push them",
        ),
    ]  # fmt: skip


def test_tokens_that_saturating_counters_lose() -> None:
    nothing = "load.acc size=1x0"
    words = assemble(
        f"{nothing} push=g2s\n" * 256
        + "store size=1x0 pop=g2s\n" * 255
        + "store size=1x0 pop=g2s push=s2g\nfinish pop=s2g"
    )
    computes_first = fixed(Unit.COMPUTE, Unit.LOAD, Unit.STORE)
    assert check_tokens(words, (), FSIM) == []
    assert len(run_instructions(Machine(vta(FSIM)), words, FSIM, computes_first)) == len(words)
    assert [(p.kind, p.first, p.message) for p in check_tokens(words, (), CHISEL)] == [
        (
            "lost", 256,
            "instruction 256 (load.acc sram=0 dram=0 size=1x0 push=g2s) may find 255 tokens in g2s, and its own is "
            "then lost; let it wait for a pop",
        )
    ]  # fmt: skip
    with pytest.raises(ProgramError, match=r"(?s)must not deadlock.*store waits at instruction 512 .* a token in g2s"):
        run_instructions(Machine(vta(CHISEL)), words, CHISEL, computes_first)
    stores_first = fixed(Unit.STORE, Unit.COMPUTE, Unit.LOAD)
    assert len(run_instructions(Machine(vta(CHISEL)), words, CHISEL, stores_first)) == len(words)


def test_unknown_micro_ops_touch_everything() -> None:
    text = """load.uop sram=0 dram=0 size=1x1
    alu.add uops=0:1 iters=1x1 imm=5 push=g2s
    store sram=0 dram=0 size=1x1 pop=g2s push=s2g
    load.uop sram=0 dram=0 size=1x1 pop=s2g
    load.inp sram=2000 dram=10 size=1x1
    gemm uops=0:1
    finish"""
    kinds = {(p.kind, p.second) for p in check_tokens(assemble(text), UOPS)}
    assert ("hazard", 6) in kinds


# -- deadlocks and the end ------------------------------------------------------------------------------------


def refusal(text: str, options: VtaOptions = HLS) -> str:
    with pytest.raises(ProgramError) as error:
        run_instructions(Machine(vta(options)), assemble(text), options)
    return str(error.value)


def test_deadlock() -> None:
    text = "load.inp size=1x1 push=l2g\nload.wgt size=1x1 pop=g2l\ngemm pop=l2g,s2g\nstore pop=g2s\nfinish"
    message = (
        "Program must not deadlock, but after 1 of 5 instructions no module can go on:\n"
        "  load waits at instruction 2 (load.wgt sram=0 dram=0 size=1x1 pop=g2l) for a token in g2l\n"
        "  compute waits at instruction 3 (gemm uops=0:0 iters=1x1 pop=l2g,s2g) for a token in s2g\n"
        "  store waits at instruction 4 (store sram=0 dram=0 size=1x0 pop=g2s) for a token in g2s\n"
        "add the pushes that are missing, or remove the pops"
    )
    assert refusal(text) == message
    assert check_tokens(assemble(text)) == [Problem("deadlock", message)]


def test_full_queues_can_deadlock() -> None:
    text = "gemm push=g2s\n" * 9 + "finish"
    message = refusal(text)
    assert "compute waits at instruction 9 (gemm uops=0:0 iters=1x1 push=g2s) for room in g2s (8 tokens)" in message
    assert "store has nothing left to execute" in message
    assert run_instructions(Machine(vta(FSIM)), assemble(text), FSIM) == list(range(1, 11))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "gemm",
            "Program must end with finish, which is missing: the host would wait for ever; add it, with a pop of the "
            "last store's token",
        ),
        (
            "finish\ngemm",
            "finish (instruction 1) must be the last instruction, but instruction 2 (gemm uops=0:0 iters=1x1) comes "
            "after it: whether it executes depends on timing; move finish to the end",
        ),
        (
            "gemm push=g2s\nstore pop=g2s\nstore size=1x1\nfinish",
            "finish (instruction 4) must wait for all others, but instruction 2 (store sram=0 dram=0 size=1x0 "
            "pop=g2s) had not executed: whether it does depends on timing; let it push a token that leads to finish",
        ),
        (
            "load.inp sram=2047 size=1x2\nfinish",
            "Instruction 1 (load.inp sram=2047 dram=0 size=1x2) must stay within its scratchpad, DRAM (16 MiB) and "
            "the micro-op memory, but goes beyond one; correct its bases and sizes",
        ),
        (
            "alu.add uops=0:1 iters=2x1 dst=2047,0\nalu.add uops=0:1 iters=3x1 dst=2047,0\nfinish",
            "Instruction 2 (alu.add uops=0:1 iters=3x1 dst=2047,0) must stay within the scratchpads, but the index of "
            "a micro-op, with factors times iterations, goes beyond one; correct the micro-ops, the factors or the "
            "iterations",
        ),
    ],
)
def test_messages(text: str, message: str) -> None:
    assert refusal(text) == message


def test_more_messages() -> None:
    assert refusal("alu.mul\nfinish", CHISEL) == (
        "Instruction 1 (alu.mul uops=0:0 iters=1x1) must be known to this reading of VTA, which it is not; use "
        "another instruction, or other options"
    )
    machine = Machine(vta())
    run_instructions(machine, [3])
    with pytest.raises(ProgramError) as error:
        run_instructions(machine, [3])
    assert str(error.value) == (
        "Instruction 1 (finish) must come before finish, but another program has finished; give the host command "
        "START first"
    )
    with pytest.raises(ProgramError, match=r"^Instruction 2: opcode \(bits 2:0\) must be"):
        run_instructions(Machine(vta()), [3, 7])
    assert [p.kind for p in check_tokens([3, 7])] == ["program"]
    assert [p.kind for p in check_tokens([])] == ["program"]


# -- assembled programs are token-correct, and every token of theirs counts ----------------------------------

plans = st.builds(
    lambda rows, inputs, outputs, bias, cut: dense_program((
        rows, 16 * inputs, 16 * outputs), has_bias=bias, steps=post_steps(shift=3), blocks=cut
    ),
    st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.booleans(),
    st.none() | st.builds(Blocks, st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2)),
) | st.builds(
    lambda rows, columns, second, capacity: elementwise_program(
        rows, 16 * columns, [(AluOp.ADD, None if second else 3)], second=second, capacity=capacity
    ),
    st.integers(1, 5), st.integers(1, 4), st.sampled_from(["row", "matrix", None]), st.sampled_from([4, 8, 2048]),
)  # fmt: skip


def words_of(plan: TensorProgram, instructions: list[Instruction] | None = None) -> list[int]:
    return [encode(x) for x in instructions or plan.instructions]


@settings(max_examples=40)
@given(plans, st.sampled_from([HLS, FSIM, replace(CHISEL, encoding="standard")]))
def test_assembled_programs_are_token_correct(plan: TensorProgram, options: VtaOptions) -> None:
    uops = b"".join(encode_uop(u).to_bytes(4, "little") for u in plan.uops)
    assert check_tokens(words_of(plan), [(plan.regions["uops"].addr, uops)], options) == []


@settings(max_examples=40)
@given(plans, st.data())
def test_a_program_without_one_of_its_tokens_is_not(plan: TensorProgram, data: st.DataObject) -> None:
    flags = [
        (i, flag)
        for i, x in enumerate(plan.instructions)
        for flag in ("pop_prev", "pop_next", "push_prev", "push_next")
        if getattr(x, flag)
    ]
    assume(flags)
    at, flag = data.draw(st.sampled_from(flags))
    changed = list(plan.instructions)
    changed[at] = replace(changed[at], **{flag: False})  # type: ignore[arg-type]
    uops = b"".join(encode_uop(u).to_bytes(4, "little") for u in plan.uops)
    problems = check_tokens(words_of(plan, changed), [(plan.regions["uops"].addr, uops)])
    assert problems
    assert all(re.search(r"; |\n", p.message) for p in problems)
