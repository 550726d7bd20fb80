"""Commands and loops whose shape the CHC method does not follow: it says so, and proves nothing.

Every program here would do what the IR does if the method overlooked what it refuses; runs show that it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Function, Ila, Kernel, bv, const, ite, true
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.mapping.test_domain import refuse, runs
from tests.chc.mapping.test_flow import flow
from tests.chc.mapping.toy import M, N, copy_body, differs, fragment, go, mapping, model

States = Mapping[str, Expr]
SIZES = {"n": 3, "m": 4}
FOUR = const(4, 32)
step = Function("step", {"acc": bv(8), "x": bv(8)}, bv(8), None)
step.body = (step.params[0] << 1) + (step.params[1] ^ step.params[0])


def refused(claim: TensorMapping, reason: str) -> None:
    verdict = prove(claim, discharger=Discharger(timeout=5.0), horn_timeout=3.0)
    assert verdict.status is Status.UNKNOWN
    assert reason in verdict.reason, verdict.reason


def test_a_command_that_only_a_reserved_instruction_takes() -> None:
    def program(p: Kernel, s: States) -> None:
        p.command("use", run=true, op=const(3, 4), other_in=const(0, 32))
        go(p)

    claim = mapping(program=program, extra=[("other", 32)])
    ila = claim.device.ila
    refuse(claim, "set_other", ila.inputs["other_in"] == 1)
    assert not runs(claim, SIZES)
    refused(flow(claim), "use of toy_fragment selects set_other_refused: it is not taken")


def device_of(claim: TensorMapping, program: Callable[[Kernel, States], None], ila: Ila) -> TensorMapping:

    return replace(claim, device=fragment(ila, "", program))


def test_a_command_that_writes_a_memory_under_a_condition_on_data() -> None:
    def program(p: Kernel, s: States) -> None:
        go(p)
        word = p.load("word", s["src"], const(0, 32))
        p.command("poke", run=true, op=const(9, 4), address=const(0, 32), data=word)

    ila = model("toy", "", copy_body)
    data, memory = ila.inputs["data"], ila.states["dst"]
    poke = ila.instruction("poke").set_decode(ila.inputs["run"] & (ila.inputs["op"] == 9))
    poke.update(memory, ite(data > 5, memory.store(ila.inputs["address"], const(0, 8)), memory))
    claim = device_of(mapping(), program, ila)
    assert differs(claim, SIZES)
    refused(flow(claim), "poke of toy_fragment writes dst under a condition that stays open")


def other_effect(ila: Ila, kind: str) -> None:
    """An instruction that does something else than ``write`` does."""
    other = ila.instruction("other").set_decode(ila.inputs["run"] & (ila.inputs["op"] == 9))
    address, data, dst, tmp = ila.inputs["address"], ila.inputs["data"], ila.states["dst"], ila.states["tmp"]
    if kind == "another word":
        other.update(dst, dst.store(address + 9, data))
    elif kind == "another value":
        other.update(dst, dst.store(address, data + 1))
    elif kind == "another memory":
        other.update(tmp, tmp.store(address, data))
    elif kind == "a register, too":
        other.update(dst, dst.store(address, data)).update(ila.states["out"], const(1, 8))
    elif kind == "a kernel":
        kernel = Kernel("other_kernel")
        kernel.store(dst, const(0, 32), const(1, 8))
        other.update(dst, dst.store(address, data)).start(kernel)
    else:
        other.update(ila.states["out"], data)


_BEFORE, _OTHER = "depends on dst as it was before the program", "case 1: equal for uninterpreted functions"
KINDS = {
    "another word": _BEFORE,
    "another value": _OTHER,
    "another memory": _BEFORE,
    "a kernel": _OTHER,
    "nothing": _BEFORE,
    "a register, too": "depends on out after a loop that changes it",
}


@pytest.mark.parametrize("kind", KINDS)
def test_commands_of_a_short_loop_of_which_one_does_something_else(kind: str) -> None:
    def program(p: Kernel, s: States) -> None:
        with p.loop("unit", const(4, 8)) as unit:
            op = ite(unit == 3, const(9, 4), const(1, 4))
            p.command("put", run=true, op=op, address=unit.zext(32), data=const(7, 8))
        if kind == "a register, too":
            p.store(s["dst"], const(0, 32), s["out"])

    def ir(k: Kernel, s: States) -> None:
        with k.loop("j", FOUR) as j:
            k.store(s["dst"], j, const(7, 8))

    ila = model("toy", "", None)
    other_effect(ila, kind)
    claim = device_of(mapping(None, ir, rows=const(1, 32), columns=FOUR), program, ila)
    assert differs(claim, SIZES)
    refused(flow(claim), KINDS[kind])


def test_a_sum_that_leaves_out_an_iteration_far_away() -> None:
    """Word 100 is not added where there are more than 101: an iteration that no sample has."""

    def device(k: Kernel, s: States) -> None:
        k.store(s["dst"], const(0, 32), const(0, 8))
        with k.loop("x", s["n"]) as x, k.when("taken", (x != 100) | (s["n"] <= 101)):
            old = k.load("old", s["dst"], const(0, 32))
            k.store(s["dst"], const(0, 32), step(old, k.load("word", s["src"], x)))

    def ir(k: Kernel, s: States) -> None:
        acc = k.let("acc", const(0, 8))
        with k.loop("x", s["n"]) as x:
            k.assign(acc, step(acc, k.load("word", s["src"], x)))
        k.store(s["dst"], const(0, 32), acc)

    claim = mapping(device, ir, rows=const(1, 32), columns=const(1, 32), abstract=frozenset({"step"}))
    assert not differs(claim, {"n": 50, "m": 1}, rounds=2) and differs(claim, {"n": 110, "m": 1}, rounds=2)
    refused(flow(claim), "toy_kernel 1, 2: happens' (toy: accumulation) needs the answer unsat")


def cleared(bits: int) -> TensorMapping:
    """The device first clears 2^bits words of a memory that nobody reads."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("z", const(1 << bits, 32)) as z:
            k.store(s["tmp"], z, const(0, 8))
        with k.loop("t", s["m"]) as t:
            k.store(s["tmp"], t, const(1, 8))
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("x", s["tmp"], j))

    def ones(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, const(1, 8))

    return flow(mapping(body, ones))


def test_a_loop_that_is_too_long_to_be_tried() -> None:
    assert prove(cleared(9), discharger=Discharger(timeout=5.0), horn_timeout=3.0).status is Status.PROVED
    refused(
        cleared(20),
        "toy toy_kernel writes tmp more than 524288 times at sample sizes, too often to be tried; give smaller sample "
        "shapes or shorter loops",
    )


def test_a_state_that_commands_change_in_each_iteration_is_named() -> None:
    """Rows go to two memories in turn, as ``sel`` says: the first one is not where the IR has it."""
    ila = model("toy", "", None, extra=[("sel", 1)])
    sel, run, op = ila.states["sel"], ila.inputs["run"], ila.inputs["op"]
    for code, name in enumerate(("dst", "tmp")):
        memory = ila.states[name]
        put = memory.store(ila.inputs["address"], ila.inputs["data"])
        ila.instruction(f"put_{name}").set_decode(run & (op == 9) & (sel == code)).update(memory, put)
    ila.instruction("swap").set_decode(run & (op == 10)).update(sel, ~sel)

    def program(p: Kernel, s: States) -> None:
        p.command("set", run=true, op=const(3, 4), sel_in=const(1, 1))
        with p.loop("i", N.zext(32)) as i:
            with p.loop("j", M.zext(32)) as j:
                word = p.load("word", s["src"], i * M.zext(32) + j)
                p.command("put", run=true, op=const(9, 4), address=i * M.zext(32) + j, data=word)
            p.command("swap", run=true, op=const(10, 4))

    claim = flow(device_of(mapping(), program, ila))
    assert differs(claim, SIZES)
    reason = "loop j changes other state in some iterations of the loops around, as its instructions are chosen by sel"
    refused(claim, f"{reason}, which swap changes there")
