"""Loops of models are bounded by their counters: what a register holds where the loop is reached is what counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ila_lang import BOOL, Expr, ExtentError, Ila, Kernel, Machine, bv, const, mem, true, uninterpreted
from smt_encodings.claims import Status
from smt_encodings.wellformed import check_ila

Build = Callable[[Kernel, dict[str, Expr]], Expr]


def device(build: Build, when: Callable[[dict[str, Expr]], Expr] | None = None, n: int | None = None) -> Ila:
    """A device whose kernel has statements of ``build``, then a loop of so many iterations with a counter of 8 bits."""
    ila = Ila("m")
    run = ila.input("run", BOOL)
    states = {"n": ila.state("n", bv(32)), "d": ila.state("d", mem(32, 32))}
    kernel = Kernel("k")
    extent = build(kernel, states)
    with kernel.loop("last", extent, width=8) as i:
        kernel.store(states["d"], i.zext(32), const(1, 32))
    instruction = ila.instruction("go").set_decode(run).start(kernel, true if when is None else when(states))
    if n is not None:
        instruction.update(states["n"], n)
    ila.set_valid(run)
    return ila


def status(ila: Ila) -> Status:
    (found,) = [f for f in check_ila(ila) if f.check == "loop last of k is bounded by its counter"]
    return found.status


def assigned(*values: int) -> Build:
    def build(kernel: Kernel, states: dict[str, Expr]) -> Expr:
        r = kernel.let("r", const(values[0], 32))
        for value in values[1:]:
            kernel.assign(r, const(value, 32))
        return r

    return build


def earlier_value(kernel: Kernel, states: dict[str, Expr]) -> Expr:
    r = kernel.let("r", const(3, 32))
    kernel.assign(r, const(300, 32))
    early = kernel.let("early", r)
    kernel.assign(r, const(3, 32))
    return early


def assigned_in_loop(kernel: Kernel, states: dict[str, Expr]) -> Expr:
    r = kernel.let("r", const(0, 32))
    with kernel.loop("i", const(3, 8)):
        kernel.assign(r, r + 100)
    return r


def assigned_in_own_iterations(kernel: Kernel, states: dict[str, Expr]) -> Expr:
    """The second iteration finds what the first one assigned."""
    r = kernel.let("r", const(3, 32))
    with kernel.loop("i", const(2, 8)):
        with kernel.loop("inner", r, width=8) as j:
            kernel.store(states["d"], j.zext(32), const(1, 32))
        kernel.assign(r, const(300, 32))
    return const(1, 32)


def difference_over_a_loop(kernel: Kernel, states: dict[str, Expr]) -> Expr:
    """What a register held before a loop is not what it holds after it."""
    r = kernel.let("r", const(0, 32))
    before = kernel.let("before", r)
    with kernel.loop("i", const(3, 8)):
        kernel.assign(r, r + 100)
    return r - before


def difference_over_a_store(kernel: Kernel, states: dict[str, Expr]) -> Expr:
    before = kernel.let("before", states["d"].load(const(0, 32)))
    kernel.store(states["d"], const(0, 32), before + 300)
    return states["d"].load(const(0, 32)) - before


def triangle(kernel: Kernel, states: dict[str, Expr]) -> Expr:
    with kernel.loop("i", const(256, 32), width=8) as i, kernel.loop("j", i.zext(32) + 1, width=8) as j:
        kernel.store(states["d"], j.zext(32), const(1, 32))
    return const(1, 32)


def loaded(kernel: Kernel, states: dict[str, Expr]) -> Expr:
    return kernel.load("r", states["d"], const(7, 32))


def from_state(kernel: Kernel, states: dict[str, Expr]) -> Expr:
    return states["n"]


PROVED, REFUTED, UNKNOWN = Status.PROVED, Status.REFUTED, Status.UNKNOWN


@pytest.mark.parametrize(
    ("ila", "expected"),
    [
        (device(assigned(3)), PROVED),
        (device(assigned(300)), REFUTED),
        (device(assigned(3, 300)), REFUTED),
        (device(assigned(300, 3)), PROVED),
        (device(earlier_value), REFUTED),
        (device(assigned_in_loop), REFUTED),
        (device(difference_over_a_loop), REFUTED),
        (device(difference_over_a_store), REFUTED),
        (device(triangle), PROVED),
        (device(loaded), REFUTED),
        (device(from_state), REFUTED),
        (device(from_state, n=256), PROVED),
        (device(from_state, when=lambda s: s["n"] <= 256), PROVED),
        (device(from_state, when=lambda s: s["n"] <= 257), REFUTED),
    ],
    ids=lambda value: value.name if isinstance(value, Status) else "",
)
def test_the_value_where_the_loop_is_reached_counts(ila: Ila, expected: Status) -> None:
    assert status(ila) is expected


def test_a_register_assigned_by_an_earlier_iteration() -> None:
    ila = device(assigned_in_own_iterations)
    found = {f.check.split()[1]: f.status for f in check_ila(ila) if f.check.startswith("loop")}
    assert found == {"i": PROVED, "inner": REFUTED, "last": PROVED}


def test_what_does_not_replay_is_unknown() -> None:
    def build(kernel: Kernel, states: dict[str, Expr]) -> Expr:
        r = kernel.let("r", const(300, 32))
        with kernel.when("always", states["n"] == states["n"] + 0):
            kernel.assign(r, const(3, 32))
        return r

    ila = device(build)
    machine: Any = Machine(ila)
    machine.step({"run": 1})
    assert status(ila) is UNKNOWN


def test_refuted_names_a_state_from_which_the_run_ends() -> None:
    ila = device(from_state)
    (found,) = [f for f in check_ila(ila) if f.status is REFUTED]
    machine = Machine(ila)
    machine.values["n"] = found.witness["n"]
    with pytest.raises(ExtentError, match="must fit the counter last of k"):
        machine.step({"run": found.witness["run"]})


def test_kernels_of_one_name_are_both_checked() -> None:
    ila = device(assigned(300))
    other, run = Kernel("k"), ila.inputs["run"]
    with other.loop("last", const(3, 8)):
        pass
    ila.instruction("no").set_decode(~run).start(other)
    assert [f.status for f in check_ila(ila) if f.check.startswith("loop")] == [REFUTED, PROVED]


def test_a_decode_by_a_function_without_a_body_is_not_refuted() -> None:
    ila = Ila("m")
    run = ila.input("run", bv(8))
    odd = uninterpreted("odd", BOOL, x=bv(8))
    ila.instruction("go").set_decode(odd(run))
    assert [f.status for f in check_ila(ila)] == [PROVED, UNKNOWN]
