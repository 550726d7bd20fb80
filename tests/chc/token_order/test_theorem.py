"""Token order on VTA: proofs of both kinds, what they are about, and faults that are refuted by replayed schedules."""

from __future__ import annotations

import doctest
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.mmio_program import ProgramError
from accel_models.vta.assembly import assemble
from accel_models.vta.isa import AluOp, Instruction, MemoryId, Uop, encode, encode_uop
from accel_models.vta.options import CHISEL, FSIM, HLS, VTA_ILA
from accel_models.vta.products import TensorProgram, dense_program, post_steps
from accel_models.vta.program import Program
from accel_models.vta.scratchpads import SCRATCHPADS
from accel_models.vta.tiling import Blocks
from chc.token_order import blocks
from chc.token_order.accesses import Access, Accesses
from chc.token_order.blocks import HALF, PART, kinds
from chc.token_order.family import DOUBLE, MOST_HALVES, SINGLE, Span, TokenRules, between
from chc.token_order.program import prove_program
from chc.token_order.replay import Counterexample, replays, run_in_order, run_schedule
from chc.token_order.runs import survey_program
from chc.token_order.theorem import blocked_product, prove_token_order, retoken, semantics, token_order_claim
from ila_lang import bv, true, var
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger, Requirements
from tests.accel_models.vta.elementwise import elementwise_program


def with_data(plan: TensorProgram) -> Program:
    """The program on random tensors."""
    source = np.random.default_rng(3)
    return plan.program(
        HLS,
        **{
            name: source.integers(0, 256, region.size).astype(np.uint8).tobytes()
            for name, region in plan.regions.items()
            if name not in ("uops", "output")
        },
    )


def counterexample(verdict: Verdict) -> Counterexample:
    """The counterexample of a refuted claim; it must replay."""
    assert verdict.status is Status.REFUTED, verdict.reason
    found = verdict.details["counterexample"]
    assert isinstance(found, Counterexample) and replays(found, HLS)
    return found


# -- any number of blocks -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def proved() -> Verdict:
    return prove_token_order()


@pytest.mark.proof
def test_blocked_products_of_any_size_have_token_order(proved: Verdict) -> None:
    assert proved.status is Status.PROVED, proved.reason
    assert proved.claim == token_order_claim()
    assert len(proved.obligations) > 100
    assert all(o.discharged and len(o.answers) == 2 for o in proved.obligations)
    names = [(o.group, o.name) for o in proved.obligations]
    assert len(set(names)) == len(names)
    groups = {o.group for o in proved.obligations}
    assert groups == {"argument", "health", "invariant blocked product", "footprints", "no overflow"}
    invariant = {o.name for o in proved.obligations if o.group == "invariant blocked product"}
    assert {n.removeprefix("excludes: ") for n in invariant if n.startswith("excludes: ")} == {
        "inputs overwritten while they are used", "inputs used before they are loaded",
        "outputs stored before they are computed", "outputs overwritten before they are stored",
        "finished before the work is", "tokens left over", "more tokens than a queue holds", "deadlock",
    }  # fmt: skip
    assert sum(n.startswith("kept when ") for n in invariant) == 11 and "holds at the start" in invariant
    stays = [o.name for o in proved.obligations if o.group == "footprints"]
    assert sum("half of INP" in n for n in stays) == 4 and sum("half of WGT" in n for n in stays) == 4
    assert sum("half of OUT" in n for n in stays) == 8 and sum("in DRAM" in n for n in stays) >= 4
    assert sum(n.endswith("accepted when its tokens are there") for n in stays) == len(kinds())
    assert proved.invariants["blocked product"][1] == (
        "0 <= g2l = number of rounds whose products have ended in 0 .. rounds - 3 - number of rounds whose loads have "
        "begun in 2 .. rounds - 1"
    )


@pytest.mark.proof
def test_the_obligations_can_be_generated_again(proved: Verdict) -> None:
    wanted = Requirements(second=False)
    assert prove_token_order(discharger=wanted).status is Status.UNKNOWN and wanted.complete
    given_ = {(o.group, o.name): o for o in proved.obligations}
    assert given_.keys() == {(r.group, r.name) for r in wanted.required}
    for required in wanted.required:
        obligation = given_[required.group, required.name]
        assert obligation.expected == required.expected
        assert required.met_by(obligation.smtlib), required.name


@pytest.mark.proof
@pytest.mark.slow
def test_products_in_one_buffer_have_token_order() -> None:
    verdict = prove_token_order(SINGLE)
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.claim.statement.startswith("blocked matrix product, one buffer: ")


@pytest.mark.proof
@pytest.mark.slow
@pytest.mark.parametrize("options", [FSIM, replace(CHISEL, back_to_back="sequential")], ids=["fsim", "chisel"])
def test_blocked_products_have_token_order_in_other_readings(options: Any) -> None:
    verdict = prove_token_order(options=options)
    assert verdict.status is Status.PROVED, verdict.reason


def test_blocked_products_without_tokens_are_not_proved() -> None:
    verdict = prove_token_order(options=VTA_ILA, discharger=Discharger(second=False))
    assert (verdict.status, verdict.reason) == (Status.UNKNOWN, "a reading without tokens has one schedule only")


@pytest.mark.proof
def test_blocked_products_run_in_the_words_of_their_reading() -> None:
    verdict = prove_token_order(options=replace(HLS, encoding="older"))
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.runs is not None and verdict.runs.count > 10


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "loads do not wait": ({"load_pops": ()}, "inputs overwritten while they are used"),
    "loads are one round ahead too many": (
        {"load_pops": between("rounds", 3), "product_pushes": between("rounds", 0, 3)},
        "inputs overwritten while they are used",
    ),
    "one push is missing": ({"product_pushes": between("rounds", 1, 2)}, "deadlock"),
    "products do not wait": ({"product_pops": (), "load_pushes": ()}, "inputs used before they are loaded"),
    "a STORE comes before its products": (
        {"store_pops": (), "block_pushes": ()},
        "outputs stored before they are computed",
    ),
    "blocks do not wait": (
        {"block_pops": (), "store_pushes": DOUBLE.store_pushes[1:]},
        "outputs overwritten before they are stored",
    ),
    # each module runs ahead by one round or block too many: the weakest rules that are wrong
    "products are one round ahead": (
        {"product_pops": between("rounds", 1), "load_pushes": between("rounds", 0, 1)},
        "inputs used before they are loaded",
    ),
    "STOREs are one block ahead": (
        {"store_pops": between("blocks", 1), "block_pushes": between("blocks", 0, 1)},
        "outputs stored before they are computed",
    ),
    "blocks are one ahead too many": (
        {
            "block_pops": between("blocks", 3),
            "store_pushes": (*between("blocks", 0, 3), Span(("blocks", -1), ("blocks", 0))),
        },
        "outputs overwritten before they are stored",
    ),
    "loads wait one round too early": ({"load_pops": between("rounds", 1)}, "deadlock"),
    "FINISH does not wait": ({"finish": 0, "store_pushes": DOUBLE.store_pushes[:1]}, "finished before the work is"),
}


SLOW = {"loads do not wait", "products do not wait", "a STORE comes before its products", "blocks do not wait"}


@pytest.mark.proof
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in FAULTS])
def test_wrong_rules_are_refuted(name: str) -> None:
    changes, bad = FAULTS[name]
    verdict = prove_token_order(replace(DOUBLE, **changes), discharger=Discharger(second=False))
    found = counterexample(verdict)
    assert f"excludes: {bad}" in str(verdict.details["unproved"])
    assert bool(found.message) is (bad in ("deadlock", "finished before the work is"))
    if not found.message:
        assert found.memory == "dram" and found.observed != found.sequential


def test_claims_name_what_they_are_about() -> None:
    claim = token_order_claim()
    assert claim.subject == "vta_token_order"
    assert claim.statement == (
        "blocked matrix product, double buffering: every schedule of the three modules executes all instructions, "
        "FINISH last, and ends in the memories and tokens that executing them one after the other gives"
    )
    assert "any number of rounds" in claim.size_domain and "rows * length <= 1024" in claim.size_domain
    assert semantics() == semantics()
    assert semantics(SINGLE)["relation"] != semantics()["relation"]
    assert semantics(options=FSIM)["device"] != semantics()["device"]


# -- the rules are those of the programs ----------------------------------------------------------------------

shapes = st.tuples(st.integers(1, 9), st.integers(1, 130), st.integers(1, 130))


@settings(max_examples=60)
@given(shapes, st.booleans(), st.booleans(), st.builds(Blocks, *[st.integers(1, 3)] * 3, st.integers(1, 2)))
def test_assembled_products_follow_the_rules(
    shape: tuple[int, int, int], has_bias: bool, steps: bool, cut: Blocks
) -> None:
    plan = dense_program(shape, has_bias=has_bias, steps=post_steps(shift=20) if steps else (), blocks=cut)
    rules = {1: SINGLE, 2: DOUBLE}[cut.halves]
    assert tuple(retoken(plan.instructions, rules)) == plan.instructions
    without = [replace(x, pop_prev=False, pop_next=False, push_prev=False, push_next=False) for x in plan.instructions]
    assert tuple(retoken(without, rules)) == plan.instructions


@pytest.mark.parametrize("shape", [(2000, 256, 256), (3, 40000, 17), (64, 64, 64), (1, 5000, 300)])
def test_products_that_are_cut_to_fit_follow_the_rules(shape: tuple[int, int, int]) -> None:
    plan = dense_program(shape)
    rules = DOUBLE if sum(x.opcode.name == "STORE" for x in plan.instructions) > 1 or _rounds(plan) > 1 else SINGLE
    assert tuple(retoken(plan.instructions, rules)) == plan.instructions


def _rounds(plan: TensorProgram) -> int:
    return sum(getattr(x, "memory", None) == 2 for x in plan.instructions)


# -- single programs ------------------------------------------------------------------------------------------


@pytest.mark.proof
@pytest.mark.parametrize("options", [HLS, FSIM, CHISEL])
def test_a_product_has_token_order(options: Any) -> None:
    plan = dense_program((2, 20, 20), has_bias=True, steps=post_steps(shift=5), blocks=Blocks(2, 1, 1, 2))
    verdict = prove_program(with_data(plan), options)
    assert verdict.status is Status.PROVED, verdict.reason
    assert all(o.discharged for o in verdict.obligations)
    assert {o.group for o in verdict.obligations} == {
        "argument", "tokens", "defined", "order", "independent", "micro-ops", "health",
    }  # fmt: skip
    assert verdict.claim.size_domain == (
        f"this program of {len(plan.instructions)} instructions with its micro-ops (0 where it loads none); all other "
        "contents of memories"
    )


@pytest.mark.proof
def test_elementwise_programs_have_token_order() -> None:
    plan = elementwise_program(2, 40, [(AluOp.ADD, None), (AluOp.SHR, 3)], second="matrix", capacity=4)
    verdict = prove_program(with_data(plan), discharger=Discharger(second=False))
    assert verdict.status is Status.PROVED, verdict.reason


@pytest.mark.proof
@pytest.mark.slow
def test_a_long_product_has_token_order() -> None:
    verdict = prove_program(with_data(dense_program((2000, 256, 256))))
    assert verdict.status is Status.PROVED, verdict.reason


def edited(change: Any) -> Program:
    """A product in four rounds and two blocks, with some instructions changed, by number."""
    program = blocked_product(DOUBLE, 2, 2)
    instructions: list[Instruction] = list(PLAN.instructions)
    assert tuple(encode(x) for x in instructions) == program.words
    change(instructions)
    return replace(program, words=tuple(encode(x) for x in instructions))


PLAN = dense_program((1, 32, 32), steps=post_steps(shift=6), blocks=Blocks(1, 1, 1, 2))


def flags(number: int, **values: bool) -> Any:
    def change(instructions: list[Instruction]) -> None:
        instructions[number - 1] = replace(instructions[number - 1], **values)

    return change


def both(*changes: Any) -> Any:
    def change(instructions: list[Instruction]) -> None:
        for each in changes:
            each(instructions)

    return change


def moved(number: int, to: int) -> Any:
    def change(instructions: list[Instruction]) -> None:
        instructions.insert(to - 1, instructions.pop(number - 1))

    return change


# 2-3 loads, 4 clear, 5 products (push g2l); 6-7 loads, 8 products (push g2l); 9-11 steps (11 pushes g2s); 12 store;
# 13-14 loads (13 pops g2l); 15 clear, 16 products; 17-18 loads (17 pops g2l), 19 products; 20-22 steps; 23 store;
# 24 finish
EDITS: dict[str, tuple[Any, str]] = {
    "a token is dropped": (flags(3, push_next=False), "deadlock"),
    "a pop is dropped": (flags(8, pop_prev=False), "memory"),
    "a return token is not awaited": (flags(13, pop_next=False), "memory"),
    "pop and push are swapped": (flags(12, pop_prev=False, push_prev=True), "end"),
    "a push goes to the wrong queue": (flags(8, push_prev=False, push_next=True), "deadlock"),
    "a STORE does not wait": (both(flags(12, pop_prev=False), flags(11, push_next=False)), "memory"),
    "FINISH does not wait": (both(flags(24, pop_next=False), flags(23, push_prev=False)), "end"),
    "the clear does not wait": (flags(4, pop_prev=False), "memory"),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", EDITS)
def test_faults_are_refuted(name: str) -> None:
    change, kind = EDITS[name]
    verdict = prove_program(edited(change), discharger=Discharger(second=False))
    found = counterexample(verdict)
    if kind == "deadlock":
        assert found.message.startswith("Program must not deadlock") and verdict.reason == found.message.split("\n")[0]
    elif kind == "end":
        assert "must wait for all others" in found.message
    else:
        assert not found.message
        sequential, other = run_in_order(found.program, HLS), run_schedule(found.program, found.schedule, HLS)
        assert sequential.memories["dram"] != other.memories["dram"]
        assert sorted(found.schedule) == list(range(1, 25))


def test_the_edited_program_is_right_before() -> None:
    assert prove_program(edited(lambda _: None), discharger=Discharger(second=False)).status is Status.PROVED


# -- what is not proved ---------------------------------------------------------------------------------------


def test_a_race_without_a_visible_difference_is_unknown() -> None:
    # both put zeros where zeros are
    words = tuple(
        assemble(
            "load.inp dram=64 size=1x1\ngemm uops=0:1 push=g2s\nstore dram=512 size=1x1 pop=g2s push=s2g\n"
            "finish pop=s2g"
        )
    )
    verdict = prove_program(Program((), words))
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason == (
        "instruction 2 (gemm uops=0:1 iters=1x1 push=g2s) may execute before instruction 1 (load.inp sram=0 dram=64 "
        "size=1x1), and both may access one word of inp"
    )


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("finish", VTA_ILA, "a reading without tokens has one schedule only"),
        (
            "alu.add uops=0:1 imm=1\nfinish",
            replace(HLS, back_to_back="stale"),
            "ALU_ADD_IMM has addresses that depend on earlier iterations in this reading",
        ),
        (
            "load.inp sram=2048 size=1x1 push=l2g\nfinish pop=l2g",
            HLS,
            "instruction 1 (load.inp sram=2048 dram=0 size=1x1 push=l2g) is refused: it goes beyond a scratchpad, "
            "beyond DRAM or beyond the micro-ops",
        ),
    ],
)
def test_what_the_proof_does_not_cover(text: str, options: Any, reason: str) -> None:
    from accel_models.vta.isa import ENCODINGS

    words = tuple(assemble(text, ENCODINGS[options.encoding]))
    verdict = prove_program(Program((), words), options)
    assert (verdict.status, verdict.reason) == (Status.UNKNOWN, reason)


def test_an_index_beyond_a_scratchpad_is_not_proved() -> None:
    words = tuple(assemble("alu.add uops=0:1 iters=3x1 dst=1024,0 src=1024,0 imm=1\nfinish"))
    verdict = prove_program(Program((), words))
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.startswith("obligation 'instruction 1' (defined) needs the answer unsat; z3")


def test_micro_ops_that_a_store_writes_are_not_proved() -> None:
    text = "alu.add uops=0:1 imm=1 push=g2s\nstore dram=0 size=1x1 pop=g2s push=s2g\nload.uop size=1x1 pop=s2g\nfinish"
    verdict = prove_program(Program(((0, bytes(4)),), tuple(assemble(text))))
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.startswith("obligation 'STORE 2 leaves the micro-ops of LOAD 3' (micro-ops) needs")


MICRO_OP = encode_uop(Uop(0, 5, 0)).to_bytes(4, "little")
RACY = """
load.uop dram=1 size=1x1
gemm uops=0:1
load.inp sram=5 dram=64 size=1x1 push=l2g
finish pop=l2g
"""
ORDERED = """
load.uop dram=1 size=1x1
load.inp sram=5 dram=64 size=1x1 push=l2g
gemm uops=0:1 pop=l2g
finish
"""


@pytest.mark.parametrize("text", [RACY, ORDERED])
@pytest.mark.parametrize(
    ("dram", "missing"),
    [
        ((), "0x4 .. 0x7"),
        (((0, bytes(4)), (8, bytes(64))), "0x4 .. 0x7"),
        (((4, MICRO_OP[:3]),), "0x7 .. 0x7"),
        (((5, MICRO_OP[1:2]),), "0x4 .. 0x4 and 2 more"),
    ],
)
def test_micro_ops_that_the_program_does_not_give_are_unknown(
    text: str, dram: tuple[tuple[int, bytes], ...], missing: str
) -> None:
    """The claim is for all other contents of DRAM, and which words are accessed depends on these."""
    verdict = prove_program(Program(dram, tuple(assemble(text))), discharger=Discharger(second=False))
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason == (
        "instruction 1 (load.uop sram=0 dram=1 size=1x1) must load micro-ops that the program gives, for they decide "
        f"which words instructions access, but DRAM bytes {missing} are not in its dram; put them there"
    )


def test_micro_ops_that_the_program_gives_decide() -> None:
    """One after the other, they are proved; where the load does not wait, another schedule ends otherwise."""
    given_ = ((4, MICRO_OP[:1]), (5, MICRO_OP[1:]))
    racy, ordered = (Program(given_, tuple(assemble(text))) for text in (RACY, ORDERED))
    assert prove_program(ordered, discharger=Discharger(second=False)).status is Status.PROVED
    assert prove_program(racy, discharger=Discharger(second=False)).status is not Status.PROVED
    ends = [run_schedule(racy, order, HLS, 1).memories["acc"] for order in ((1, 2, 3, 4), (3, 1, 2, 4))]
    assert ends[0] != ends[1]


def test_runs_fill_every_word_with_a_value_of_its_own() -> None:
    """A load that overtakes a product leaves no trace where all of DRAM holds one value."""
    text = """
    load.inp dram=64 size=1x1 push=l2g
    gemm uops=0:1 pop=l2g push=g2l
    load.inp dram=65 size=1x1 pop=g2l push=l2g
    finish pop=l2g
    """
    racy = text.replace(" push=g2l", "").replace(" pop=g2l", "")
    assert survey_program(Program((), tuple(assemble(text))), HLS).difference is None
    assert survey_program(Program((), tuple(assemble(racy))), HLS).difference is not None


def test_a_program_without_finish_is_refused() -> None:
    with pytest.raises(ProgramError, match="Program must end with finish, which is missing"):
        prove_program(Program((), tuple(assemble("load.inp size=1x1"))))


def test_rules_as_data() -> None:
    assert isinstance(DOUBLE, TokenRules) and DOUBLE.halves == 2 and SINGLE.halves == 1
    assert [n for n in range(5) if between("rounds", 2)[0].holds(n, {"rounds": 4})] == [2, 3]
    assert [n for n in range(5) if between("rounds", 0, 2)[0].holds(n, {"rounds": 4})] == [0, 1]


@pytest.mark.parametrize("halves", [-1, 0, 3, 4])
def test_rules_in_more_parts_than_footprints_are_proved_for_are_refused(halves: int) -> None:
    reason = f"token rules must use a scratchpad as a whole or in 2 halves, not in {halves} parts"
    with pytest.raises(ValueError, match=reason):
        replace(DOUBLE, halves=halves)
    parts = 1 << PART.width
    assert parts == 1 << HALF.width == MOST_HALVES
    assert all(SCRATCHPADS[m].depth == parts * n for m, n in ((MemoryId.INP, 1024), (MemoryId.WGT, 512)))


def test_rules_that_programs_cannot_follow_are_refused() -> None:
    with pytest.raises(ValueError, match="FINISH must pop 0 or 1 tokens, not 2: an instruction pops one of a queue"):
        replace(DOUBLE, finish=2)
    with pytest.raises(ValueError, match="a bound of a span must count from rounds, blocks or nothing, not 'loaded'"):
        Span(("", 0), ("loaded", 0))


def test_the_document_shows_what_happens() -> None:
    text = (Path(__file__).parents[3] / "docs" / "explanation" / "vta_tokens.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "tokens", "docs/explanation/vta_tokens.md", 0)
    report: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(session, out=report.append)
    assert outcome.failed == 0, "".join(report)
    assert outcome.attempted >= 10


def test_the_document_shows_the_invariant(proved: Verdict) -> None:
    text = (Path(__file__).parents[3] / "docs" / "explanation" / "vta_tokens.md").read_text(encoding="utf-8")
    for line in proved.invariants["blocked product"]:
        assert line in text


def test_an_address_is_asked_about_in_each_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """One address under one condition: in two memories it must stay in two places."""
    kind, at = kinds()[0], var("at", bv(32))
    touched = Accesses(tuple(Access(memory, False, at, true) for memory in ("inp", "dram", "inp")), ())
    asked: list[str] = []
    monkeypatch.setattr(blocks, "kinds", lambda: [kind])
    monkeypatch.setattr(blocks, "accesses", lambda kind, options: touched)
    monkeypatch.setattr(blocks._Questions, "follows", lambda self, kind, name, where, goal: asked.append(name))
    monkeypatch.setattr(blocks, "_lemma", lambda discharger: None)
    blocks.prove_footprints(Discharger(second=False))
    assert asked == [
        "load 1 in the round's half of INP",
        "load 2 in the region of input in DRAM",
        "accepted when its tokens are there",
    ]
