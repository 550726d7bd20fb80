"""What instructions touch: against enumeration, against what the model changes, and which pairs conflict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.vta.assembly import parse_instruction
from accel_models.vta.isa import Alu, AluOp, Gemm, Instruction, Load, Loops, MemoryId, Store, Uop, encode_uop
from accel_models.vta.options import CHISEL, FSIM, HLS, VtaOptions
from accel_models.vta.order.footprint import Footprint, footprints
from ila_lang import CommandError
from tests.accel_models.vta.device import contents, issue
from tests.accel_models.vta.test_model import computations, loads, prepared, stores, uops

READINGS = [HLS, FSIM, CHISEL]


def bits(cells: int) -> set[int]:
    return {i for i in range(cells.bit_length()) if cells >> i & 1}


def of(instruction: Instruction, table: list[Uop], options: VtaOptions = HLS) -> Footprint:
    """The footprint after a load of the micro-ops."""
    data = b"".join(encode_uop(u).to_bytes(4, "little") for u in table)
    load = Load(memory=MemoryId.UOP, x_size=len(table), x_stride=0)
    return footprints([load, instruction], [(0, data)], options)[1]


@given(computations(), st.lists(uops, min_size=5, max_size=5), st.sampled_from(READINGS))
def test_loops_reach_what_enumeration_reaches(x: Loops, table: list[Uop], options: VtaOptions) -> None:
    outer, inner, end = x.iter_out, x.iter_in, x.uop_end
    if options.zero_iterations == "do_while":
        outer, inner, end = max(1, outer), max(1, inner), max(end, x.uop_bgn + 1)
    reached: dict[str, set[int]] = {"dst": set(), "src": set(), "wgt": set()}
    for y in range(outer):
        for z in range(inner):
            for u in range(x.uop_bgn, end):
                for name, depth in (("dst", 2048), ("src", 2048), ("wgt", 1024)):
                    outward, inward = (getattr(x, f"{name}_factor_{side}", 0) for side in ("out", "in"))
                    reached[name].add((getattr(table[u], name) + y * outward + z * inward) % depth)
    found = of(x, table, options)
    if isinstance(x, Alu) and x.alu_opcode is AluOp.MUL and options is HLS:
        assert not found.writes
        return
    assert bits(found.writes["acc"]) == reached["dst"]
    clears_only = isinstance(x, Gemm) and x.reset_reg and options is CHISEL
    assert ("out" in found.writes) is (options.store_source == "out" and not clears_only)
    if "out" in found.writes:
        assert bits(found.writes["out"]) == reached["dst"]
    if isinstance(x, Gemm):
        products = not x.reset_reg or options is HLS
        assert bits(found.reads.get("inp", 0)) == (reached["src"] if products else set())
        assert bits(found.reads.get("wgt", 0)) == (reached["wgt"] if products else set())
        assert bits(found.reads["acc"]) == reached["dst"]
    else:
        assert isinstance(x, Alu)
        destination_only = x.use_imm and options is not CHISEL
        assert bits(found.reads["acc"]) == reached["dst"] | (set() if destination_only else reached["src"])


@settings(max_examples=40)
@given(st.one_of(loads(), stores(), computations()), st.sampled_from(READINGS), st.integers(0, 99))
def test_what_changes_is_written(instruction: Instruction, options: VtaOptions, seed: int) -> None:
    table = [Uop(), Uop(dst=1, src=1, wgt=1), Uop(dst=3), Uop(src=5), Uop(wgt=2)]
    machine, oracle = prepared(options, seed, table)
    before = {name: contents(machine, name) for name in machine.memories if name != "dram"}
    try:
        issue(machine, instruction, options)
    except CommandError:
        return
    if machine.memories["fault"][0]:
        return
    found = of(instruction, table, options)
    for name, old in before.items():
        new = contents(machine, name)
        changed = np.flatnonzero((new != old).reshape(len(old), -1).any(axis=1)).tolist()
        assert set(changed) <= bits(found.writes.get(name, 0)), name
    dram = machine.memories["dram"]
    for address in range(8192):
        if dram[address] != oracle.dram[address]:
            assert any(a <= address < b for a, b in found.dram_writes)


def test_transfers_touch_rows_of_dram() -> None:
    load = of(Load(memory=MemoryId.ACC, sram_base=3, dram_base=2, y_size=3, x_size=2, x_stride=5), [])
    assert load.dram_reads == ((128, 256), (448, 576), (768, 896))
    assert bits(load.writes["acc"]) == set(range(3, 9))
    store = of(Store(sram_base=3, dram_base=2, y_size=3, x_size=2, x_stride=2), [])
    assert store.dram_writes == ((32, 128),)
    assert bits(store.reads["out"]) == set(range(3, 9))
    assert of(Load(memory=MemoryId.INP, y_size=3, x_size=1, x_stride=0), []).dram_reads == ((0, 16),)
    assert of(Store(y_size=0, x_size=3), []) == Footprint(reads={"out": 0})


CONFLICTS = [
    ("load.inp sram=4 dram=100 size=1x2", "gemm uops=0:1 src=0,0 iters=1x1", []),
    ("load.inp sram=0 dram=100 size=1x2", "gemm uops=0:1 iters=1x1", [("RAW", "inp")]),
    ("gemm uops=0:1 iters=1x1", "load.wgt dram=8 size=1x1", [("WAR", "wgt")]),
    ("gemm uops=0:1 iters=1x1", "store dram=100 size=1x1", [("RAW", "out")]),
    ("store dram=100 size=1x1", "gemm uops=0:1 iters=1x1", [("WAR", "out")]),
    ("store dram=100 size=1x1", "load.inp dram=100 size=1x1", [("RAW", "dram")]),
    ("load.inp dram=100 size=1x1", "store dram=100 size=1x1", [("WAR", "dram")]),
    ("store dram=100 size=1x1", "store dram=100 size=1x1", [("WAW", "dram")]),
    ("load.inp dram=100 size=1x1", "store dram=101 size=1x1", []),
    ("load.inp dram=100 size=1x1", "load.inp dram=100 size=1x1", [("WAW", "inp")]),
    ("load.acc dram=30 size=1x1", "gemm uops=0:1 iters=1x1", [("RAW", "acc"), ("WAW", "acc")]),
]


@pytest.mark.parametrize(("first", "second", "expected"), CONFLICTS)
def test_conflicts(first: str, second: str, expected: list[tuple[str, str]]) -> None:
    left, right = footprints([parse_instruction(first), parse_instruction(second)], (), HLS)
    assert left.conflicts(right) == expected


def test_micro_ops_come_from_padded_rows_in_the_simulator() -> None:
    table = [Uop(dst=5), Uop(dst=6), Uop(dst=7), Uop(dst=8)]
    data = b"".join(encode_uop(u).to_bytes(4, "little") for u in table)
    load = parse_instruction("load.uop size=2x1 stride=2 pad=1,0,1,0")
    alu = parse_instruction("alu.add uops=0:6 iters=1x1 imm=1")
    # a row of two zeros, then zero and 5, zero and 7
    assert bits(footprints([load, alu], [(0, data)], FSIM)[1].writes["acc"]) == {0, 5, 7}
    # one row without pads: 5
    assert bits(footprints([load, alu], [(0, data)], HLS)[1].writes["acc"]) == {5, 0}


def test_micro_ops_lie_where_they_are_loaded() -> None:
    data = encode_uop(Uop(dst=5)).to_bytes(4, "little")
    load, alu = parse_instruction("load.uop sram=9 size=1x1"), parse_instruction("alu.add uops=9:10 imm=1")
    assert bits(footprints([load, alu], [(0, data)], HLS)[1].writes["acc"]) == {5}
