"""What must hold for every size of the domain, also where the output has no element: commands decode, counters count.

Every wrong claim goes wrong only at sizes without an output cell, where an interpreter refuses the device's program;
its twin does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import pytest

from ila_lang import Expr, Kernel, Machine, const, ite, run_fragment, true
from ila_lang.interpreter.machine import CommandError
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.test_flow import flow, status
from tests.chc.mapping.toy import M, N, copy_body, go, mapping

States = Mapping[str, Expr]
DOMAIN = (("1 <= n <= 255", (const(1, 16) <= N) & (N <= 255)), ("m <= 255", M <= 255))
PAIRS: dict[str, Callable[[bool], TensorMapping]] = {}


def pair(build: Callable[[bool], TensorMapping]) -> Callable[[bool], TensorMapping]:
    """Notes a pair of claims, of which the one for True is right."""
    PAIRS[build.__name__.replace("_", " ")] = build
    return build


def refuse(claim: TensorMapping, name: str, unless: Expr) -> TensorMapping:
    """The claim about a device that takes a command only under a condition; otherwise it is reserved."""
    ila = claim.device.ila
    wanted = ila.instructions[name].decode
    ila.instructions[name].set_decode(wanted & unless)
    ila.instruction(f"{name}_refused").set_decode(wanted & ~unless).reserved = "it is not taken"
    return claim


@pair
def the_command_is_refused_without_columns(right: bool) -> TensorMapping:
    claim = mapping(domain=DOMAIN)
    return refuse(claim, "go", claim.device.ila.inputs["m_in"] >= (0 if right else 1))


@pair
def the_ir_refuses_the_command_without_columns(right: bool) -> TensorMapping:
    claim = mapping(domain=DOMAIN)
    refuse(claim, "go", true)
    ila = claim.ir.ila
    ila.set_valid(ila.inputs["run"] & (ila.inputs["m_in"] >= (0 if right else 1)))
    return claim


@pair
def a_start_without_effect_leaves_a_register_on_which_decoding_depends(right: bool) -> TensorMapping:
    def program(p: Kernel, s: States) -> None:
        p.command("set", run=true, op=const(3, 4), ready_in=const(0, 32))
        go(p)
        p.command("use", run=true, op=const(4, 4), other_in=const(0, 32))

    def device(k: Kernel, s: States) -> None:
        copy_body(k, s)
        k.done(s["ready"], const(1, 32))

    claim = mapping(device, program=program, domain=DOMAIN, extra=[("ready", 32), ("other", 32)])
    ila = claim.device.ila
    if not right:
        ila.instructions["go"].kernel_guard = ila.states["m_reg"] >= 1
    return refuse(claim, "set_other", ila.states["ready"] == 1)


@pair
def a_word_on_which_decoding_depends_is_not_written_without_columns(right: bool) -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        copy_body(k, s)
        with k.when("some", s["m"] >= (0 if right else 1)):
            k.store(s["tmp"], const(0, 32), const(1, 8))

    def program(p: Kernel, s: States) -> None:
        go(p)
        p.command("use", run=true, op=const(3, 4), other_in=const(0, 32))

    claim = mapping(device, program=program, domain=DOMAIN, extra=[("other", 32)])
    return refuse(claim, "set_other", claim.device.ila.states["tmp"].load(const(0, 32)) == 1)


@pair
def without_columns_a_table_has_another_entry(right: bool) -> TensorMapping:
    wide = N.zext(32)

    def program(p: Kernel, s: States) -> None:
        with p.loop("unit", const(4, 8)) as unit:
            last = wide * 3 if right else ite(M == 0, const(4000, 32), wide * 3)
            base = ite(unit == 0, const(0, 32), ite(unit == 1, wide, ite(unit == 2, wide * 2, last)))
            p.command("set", run=true, op=const(3, 4), base_in=base)
        go(p)

    claim = mapping(program=program, domain=DOMAIN, extra=[("base", 32)])
    return refuse(claim, "set_base", claim.device.ila.inputs["base_in"] <= 1000)


@pytest.mark.parametrize("name", PAIRS)
def test_what_decoding_relies_on_holds_for_every_size(name: str) -> None:
    for right in (True, False):
        claim = PAIRS[name](right)
        assert status(flow(claim)) == (Status.PROVED if right else Status.UNKNOWN)
        assert runs(claim, {"n": 3, "m": 2})
        assert runs(claim, {"n": 3, "m": 0}) is right


@pytest.mark.parametrize("width,wanted", [(8, Status.PROVED), (4, Status.UNKNOWN)])
def test_counters_are_wide_enough_for_every_size(width: int, wanted: Status) -> None:
    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"], width=width) as i, k.loop("j", s["m"]) as j:
            at = i.zext(32) * s["m"] + j
            k.store(s["dst"], at, k.load("word", s["src"], at))

    few = ("n <= 15 or m = 0", (N <= 15) | (M == 0))
    assert status(flow(mapping(device, domain=(*DOMAIN, few)))) is wanted


def runs(claim: TensorMapping, sizes: Mapping[str, int]) -> bool:
    """Whether both sides accept their programs, from random scalar state."""
    assert claim.holds(sizes)
    random = Random(1)
    for side in (claim.device, claim.ir):
        machine = Machine(side.ila)
        for name, state in side.ila.states.items():
            if name in machine.values:
                machine.values[name] = random.randrange(1 << state.width)
        try:
            run_fragment(side, sizes, {}, machine)
        except CommandError:
            return False
    return True
