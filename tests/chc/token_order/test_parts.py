"""What the theorem of token order rests on: accesses, the fields of a product's instructions, and the three modules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pysmt.shortcuts as smt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accel_models.vta.isa import ENCODINGS, Instruction, Load, Loops, MemoryId, Uop, decode, encode, encode_uop
from accel_models.vta.model import QUEUES, vta
from accel_models.vta.options import CHISEL, FSIM, HLS, PRESETS, VtaOptions
from accel_models.vta.order.footprint import footprints
from accel_models.vta.order.schedule import shuffled
from accel_models.vta.products import dense_program, post_steps
from accel_models.vta.tiling import Blocks, blocks_of
from chc.token_order import blocks as fields
from chc.token_order.accesses import Accesses, accesses_of, meetings, self_contained, words_of
from chc.token_order.family import DOUBLE, SINGLE, System, TokenRules
from chc.token_order.replay import Counterexample, replays, run_schedule
from chc.token_order.theorem import blocked_product
from ila_lang import Expr, Ila, Kernel, Machine, any_of, compile_terms, const, free_variables, substitute
from smt_encodings.claims import Unsupported
from smt_encodings.environment import fresh_symbols
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.printer import script
from smt_encodings.solvers import z3 as solver_z3
from tests.accel_models.vta.test_model import computations, loads, stores, uops

# -- accesses -------------------------------------------------------------------------------------------------


def of(instruction: Instruction, table: list[Uop], options: VtaOptions, prefix: str) -> Accesses:
    """The accesses of an instruction, or an assumption that it is accepted."""
    ila, machine = vta(options), Machine(vta(options))
    machine.values.update(dict.fromkeys(QUEUES, 1))
    word = encode(instruction, ENCODINGS[options.encoding])
    chosen = machine.decode({"command": 0, "insn": word})
    assume(not chosen.reserved)
    value = {ila.inputs["insn"]: const(word, 128)}
    latched = {ila.states[n]: substitute(v, value) for n, v in chosen.updates.items() if n not in QUEUES}
    words = []
    if isinstance(instruction, Loops):
        used = range(instruction.uop_bgn, max(instruction.uop_end, instruction.uop_bgn + 1))
        words = [encode_uop(table[u]) if u < len(table) else 0 for u in used]
    return accesses_of(chosen, latched, words_of(words), prefix)


def satisfiable(condition: Expr) -> bool:
    with fresh_symbols():
        answer = solver_z3.check(script([smt.And(BitEncoding().term(condition))]), 30)
    assert answer.status in ("sat", "unsat")
    return answer.status == "sat"


instructions = st.one_of(loads(), stores(), computations())


@pytest.mark.proof
@settings(max_examples=40)
@given(instructions, instructions, st.lists(uops, min_size=5, max_size=5), st.sampled_from([HLS, FSIM, CHISEL]))
def test_instructions_meet_where_their_footprints_do(
    left: Instruction, right: Instruction, table: list[Uop], options: VtaOptions
) -> None:
    """The kernels' texts and the enumeration of the static checker agree."""
    first, second = (of(x, table, options, p) for x, p in ((left, "a"), (right, "b")))
    assume(not any(satisfiable(c) for x in (first, second) for c in x.undefined))
    data = b"".join(encode_uop(u).to_bytes(4, "little") for u in table)
    start = Load(memory=MemoryId.UOP, x_size=len(table), dram_base=1 << 20)
    touched = footprints([start, left, right], [(1 << 22, data)], options)
    expected = {memory for _, memory in touched[1].conflicts(touched[2])}
    assert {memory for memory, condition in meetings(first, second).items() if satisfiable(condition)} == expected


def test_every_reading_is_self_contained() -> None:
    for options in PRESETS.values():
        assert self_contained(vta(options)) == []


def test_what_is_not_self_contained_is_said() -> None:
    ila = Ila("toy")
    command, insn = ila.input("command", 2), ila.input("insn", 128)
    size, mode, cells = ila.state("size", 8, 0), ila.state("mode", 8, 0), ila.memory("cells", 8, 8, 0)
    kernel = Kernel("work")
    with kernel.loop("i", size) as i:
        kernel.store(cells, i, mode)
    ila.instruction("RUN", "").set_decode((command == 0) & (mode == 1)).update(size, insn[7:0] + mode).start(kernel)
    ila.instruction("SET", "").set_decode(command == 1).update(mode, insn[7:0])
    assert self_contained(ila) == [
        "RUN: whether it executes depends on other state",
        "RUN: size depends on other state",
        "RUN: its kernel reads mode, which it does not latch",
    ]


def test_addresses_that_loops_carry_are_refused() -> None:
    ila = Ila("toy")
    size, cells = ila.state("size", 8, 0), ila.memory("cells", 8, 8, 0)
    kernel = Kernel("walk")
    place = kernel.let("place", const(0, 8))
    with kernel.loop("i", size):
        kernel.store(cells, place, 1)
        kernel.assign(place, place + 2)
    run = ila.instruction("RUN", "").start(kernel)
    with pytest.raises(Unsupported, match="RUN has addresses that depend on earlier iterations in this reading"):
        accesses_of(run, {size: const(3, 8)}, [], "a")


def test_accesses_that_what_loops_carry_guards_are_refused() -> None:
    """What is carried is 0 where the outer condition is met, and 1 where the inner one is."""
    ila = Ila("toy")
    size, cells = ila.state("size", 8, 0), ila.memory("cells", 8, 8, 0)
    kernel = Kernel("walk")
    step = kernel.let("step", const(0, 8))
    with kernel.loop("i", size) as i, kernel.when("first", step == 0):
        kernel.assign(step, step + 1)
        with kernel.when("then", step == 1):
            kernel.store(cells, i, 1)
    run = ila.instruction("RUN", "").start(kernel)
    with pytest.raises(Unsupported, match="RUN has addresses that depend on earlier iterations in this reading"):
        accesses_of(run, {size: const(3, 8)}, [], "a")


# -- the fields of a product's instructions -------------------------------------------------------------------


@cache
def compiled(term: Expr) -> tuple[list[Expr], Any]:
    variables = list(free_variables(term).values())
    return variables, compile_terms(variables, [term])


def value(term: Expr, sizes: Mapping[Expr, int]) -> int:
    variables, run = compiled(term)
    return int(run(*(sizes[v] for v in variables))[0])


KINDS = {k.name: k for k in fields.kinds()}
OTHERWISE = {
    "opcode",
    "memory",
    "reset_reg",
    "alu_opcode",
    "use_imm",
    "imm",
    "pop_prev",
    "pop_next",
    "push_prev",
    "push_next",
}
"""Fields that say which instruction it is, and tokens, which are compared elsewhere."""
HOST = Machine(vta())


@settings(max_examples=40)
@given(
    st.integers(1, 9), st.integers(1, 130), st.integers(1, 130), st.booleans(),
    st.builds(Blocks, st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2)), st.integers(0, 50),
)  # fmt: skip
def test_assembled_products_have_these_fields(
    rows: int, inputs: int, outputs: int, has_bias: bool, cut: Blocks, start: int
) -> None:
    plan = dense_program((rows, inputs, outputs), has_bias=has_bias, steps=post_steps(shift=3), blocks=cut, start=start)
    kinds = KINDS
    columns, depth = blocks_of(outputs), blocks_of(inputs)
    given_ = iter(plan.instructions[1:])
    whole = {fields.ALL_ROWS: rows, fields.ALL_COLUMNS: columns, fields.DEPTH: depth}
    whole |= {fields.BASES[n]: r.base for n, r in plan.regions.items() if n in fields.BASES}
    whole.setdefault(fields.BASES["bias"], 0)
    parts = list(cut.cut(depth, cut.inputs))
    spans = [(r, c) for r in cut.cut(rows, cut.rows) for c in cut.cut(columns, cut.outputs)]

    def check(name: str, sizes: dict[Expr, int]) -> None:
        kind, found = kinds[name], next(given_)
        sizes = sizes | {fields.FIRST_UOP: getattr(found, "uop_bgn", 0), fields.CHANNEL: 0}
        assert all(value(condition, sizes) for _, condition in fields.DOMAIN)
        for field in ENCODINGS["standard"].of(found.opcode):
            if field not in OTHERWISE:
                expected = value(kind.fields[field], sizes) if field in kind.fields else 0
                assert getattr(found, field, 0) == expected, (name, field)
        chosen = of_instruction(found)
        assert chosen == kind.instruction
        if kind.uop is not None:
            assert isinstance(found, Loops)
            for u in range(found.uop_bgn, found.uop_end):
                sizes[fields.CHANNEL] = u - found.uop_bgn
                assert kind.known is None or value(kind.known, sizes)
                for index, term in kind.uop.items():
                    assert getattr(plan.uops[u], index) == value(term, sizes), (name, index)

    for number, (row, column) in enumerate(spans):
        for p, part in enumerate(parts):
            at = number * len(parts) + p
            sizes = whole | {
                fields.ROW: row[0], fields.ROWS: row[1], fields.COLUMN: column[0], fields.COLUMNS: column[1],
                fields.INPUT: part[0], fields.LENGTH: part[1], fields.HALF: number % cut.halves,
                fields.PART: at % cut.halves, fields.STEP: 0,
            }  # fmt: skip
            check("load of inputs", sizes)
            check("load of weights", sizes)
            if p == 0:
                check("load of the bias" if has_bias else "clear", sizes)
            if row[1] * column[1] > 4:
                check("products", sizes)
            else:
                for k in range(part[1]):
                    check("products of a small block", sizes | {fields.STEP: k})
        for name in ("step SHR", "step MAX", "step MIN"):
            check(name, sizes)
        check("store", sizes)
    assert next(given_).opcode.name == "FINISH" and next(given_, None) is None


def of_instruction(instruction: Instruction) -> str:
    HOST.values.update(dict.fromkeys(QUEUES, 1))
    return HOST.decode({"command": 0, "insn": encode(instruction)}).name


# -- the three modules ----------------------------------------------------------------------------------------


def steps_of(program_words: tuple[int, ...], order: list[int]) -> list[str]:
    """The steps of the modules in a schedule of a product with one instruction per load and product."""
    found: list[str] = []
    listed = [decode(w) for w in program_words]
    fresh = True
    for number in order:
        x = listed[number - 1]
        rest = [y for y in listed[number:] if y.unit == x.unit]
        match x.opcode.name, getattr(x, "memory", None):
            case "LOAD", MemoryId.INP:
                found.append("load begins")
            case "LOAD", MemoryId.WGT:
                found.append("load ends")
            case "LOAD", MemoryId.ACC:
                found.append("block begins")
            case "GEMM", _ if getattr(x, "reset_reg", False):
                found.append("block begins")
            case "GEMM", _:
                found += ["first products begin" if fresh else "products begin", "products end"]
                following = rest[0].opcode.name
                fresh = following == "ALU"
                if not fresh:
                    found.append("block goes on")
            case "ALU", _ if rest[0].opcode.name != "ALU":
                found.append("block ends")
            case "STORE", _:
                found += ["store begins", "store ends"]
            case "FINISH", _:
                found.append("finish")
    return found


@pytest.mark.parametrize("rules", [DOUBLE, SINGLE], ids=["double", "single"])
@pytest.mark.parametrize(("blocks", "rounds"), [(1, 1), (1, 3), (3, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("bias", [False, True])
def test_schedules_are_runs_of_the_modules(rules: TokenRules, blocks: int, rounds: int, bias: bool) -> None:
    """Each step of a real schedule is one that the modules can make, the invariant holds, and nothing bad is met."""
    from accel_models.vta.order.schedule import run_instructions

    program = blocked_product(rules, blocks, rounds, bias=bias)
    system = System(rules)
    transitions = {t.name: t for t in system.transitions}
    machine = Machine(vta())
    order = run_instructions(machine, program.words, HLS, shuffled(blocks + rounds))
    n = system.symbols
    state: dict[Any, Any] = {s: smt.Int(0) if s.symbol_type() == smt.INT else smt.FALSE() for s in n.values()}
    state |= {n["rounds"]: smt.Int(blocks * rounds), n["blocks"]: smt.Int(blocks), n["fresh"]: smt.TRUE()}
    state[n["bias"]] = smt.Bool(bias)

    def holds(term: Any) -> bool:
        return bool(term.substitute(state).simplify().is_true())

    assert holds(system.init)
    for name in steps_of(program.words, order):
        assert holds(transitions[name].guard), name
        state |= {s: t.substitute(state).simplify() for s, t in transitions[name].updates.items()}
        assert all(map(holds, system.invariant())), name
        assert not any(map(holds, system.bad().values())), name
    assert holds(n["finished"])


def test_a_counterexample_that_does_not_replay() -> None:
    program = blocked_product(DOUBLE, 1, 1)
    order = tuple(range(1, len(program.words) + 1))
    assert not replays(Counterexample(program, order, "", "dram", 0, 1, 2), HLS)
    assert not replays(Counterexample(program, order, "Program must not deadlock"), HLS)
    with pytest.raises(ValueError, match="Schedule must let only modules go on that can, not store; correct it"):
        run_schedule(program, order[::-1][1:], HLS)


def test_rules_count_what_they_hold() -> None:
    system = System(DOUBLE)
    for rule in (DOUBLE.load_pops, DOUBLE.store_pushes, DOUBLE.product_pushes, ()):
        for rounds in range(1, 6):
            sizes = {"rounds": rounds, "blocks": rounds}
            point = {system.symbols[n]: smt.Int(v) for n, v in sizes.items()}
            total = 0
            for number in range(rounds + 1):
                counted = system.count(rule, smt.Int(number)).substitute(point).simplify()
                assert counted.constant_value() == total
                followed = any(span.holds(number, sizes) for span in rule)
                assert system.holds(rule, smt.Int(number)).substitute(point).simplify().is_true() is followed
                total += followed


def test_instructions_have_variables_of_their_own() -> None:
    """One variable must not stand for the counters of two instructions."""
    ila = vta()
    load = ila.instructions["LOAD_INP"]
    latched = {ila.states[n]: const(2, ila.states[n].width) for n in load.updates if n not in QUEUES}
    sides = [accesses_of(load, latched, [], prefix) for prefix in ("a", "b")]
    names = [free_variables(any_of([x.where for x in side.accesses])).keys() for side in sides]
    assert names[0] and len(names[0]) == len(names[1]) and not names[0] & names[1]
