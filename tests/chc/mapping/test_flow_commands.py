"""What commands of a device do: at once, one after the other, and again and again from a host loop.

Every wrong claim takes a command for one at another moment, which two concrete runs show; its twin is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.program.commands import Decoded, generalised
from ila_lang import BOOL, Expr, Fragment, Ila, Kernel, Store, bv, const, ite, mem, true, var
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status, Unsupported
from tests.chc.mapping.test_flow import flow, status
from tests.chc.mapping.toy import PARAMETERS, Body, M, N, differs, go, mapping

States = Mapping[str, Expr]
FAR = const(70000, 32)
"""A place behind all outputs."""
PAIRS: dict[str, Callable[[bool], TensorMapping]] = {}


def pair(build: Callable[[bool], TensorMapping]) -> Callable[[bool], TensorMapping]:
    """Notes a pair of claims, of which the one for True is right."""
    PAIRS[build.__name__.replace("_", " ")] = build
    return build


def everywhere(value: int) -> Body:
    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, const(value, 8))

    return body


def write(program: Kernel, address: Expr, data: Expr) -> None:
    program.command("write", run=true, op=const(1, 4), address=address, data=data)


@pair
def two_stores_of_a_command_see_each_other(right: bool) -> TensorMapping:
    """One command takes dst to src, and tmp to what dst was (0); then tmp goes to dst."""
    ila = Ila("toy")
    run, op, at = ila.input("run", BOOL), ila.input("op", 4), ila.input("at", 32)
    src, dst, tmp = (ila.state(name, mem(32, 8)) for name in ("src", "dst", "tmp"))
    data = (src if right else dst).load(at)
    stores = [{dst: const(0, 8)}, {dst: src.load(at), tmp: data}, {dst: tmp.load(at)}]
    for code, values in enumerate(stores):
        instruction = ila.instruction(f"op{code}").set_decode(run & (op == code))
        for memory, value in values.items():
            instruction.update(memory, memory.store(at, value))
    ila.set_valid(run)
    program = Kernel("toy_program")
    with program.loop("i", N.zext(32)) as i, program.loop("j", M.zext(32)) as j:
        for code in range(len(stores)):
            program.command("step", run=true, op=const(code, 4), at=i * M.zext(32) + j)
    return flow(replace(mapping(), device=Fragment("toy_fragment", ila, dict(PARAMETERS), {}, program)))


@pair
def a_word_is_read_after_the_command_that_changes_it(right: bool) -> TensorMapping:
    """A word is 5 when a register takes it, and 9 then."""

    def program(p: Kernel, s: States) -> None:
        write(p, FAR, const(5, 8))
        p.command("read", run=true, op=const(2, 4), address=FAR)
        write(p, FAR, const(9, 8))
        with p.loop("i", N.zext(32)) as i, p.loop("j", M.zext(32)) as j:
            write(p, i * M.zext(32) + j, s["out"])

    return flow(mapping(None, everywhere(5 if right else 9), program=program))


@pair
def a_word_is_read_after_the_kernel_that_changes_it(right: bool) -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        k.store(s["dst"], FAR, const(9, 8))

    def program(p: Kernel, s: States) -> None:
        write(p, FAR, const(5, 8))
        p.command("read", run=true, op=const(2, 4), address=FAR)
        go(p)
        with p.loop("i", N.zext(32)) as i, p.loop("j", M.zext(32)) as j:
            write(p, i * M.zext(32) + j, s["out"])

    return flow(mapping(device, everywhere(5 if right else 9), program=program))


@pair
def a_word_is_read_after_the_loop_that_changes_it(right: bool) -> TensorMapping:
    """As above, where a host loop changes the word again and again and does something else then."""

    def program(p: Kernel, s: States) -> None:
        write(p, FAR, const(5, 8))
        p.command("read", run=true, op=const(2, 4), address=FAR)
        with p.loop("t", N.zext(32)):
            write(p, FAR, const(9, 8))
            with p.loop("v", M.zext(32)) as v:
                p.store(s["tmp"], v, const(1, 8))
        with p.loop("i", N.zext(32)) as i, p.loop("j", M.zext(32)) as j:
            write(p, i * M.zext(32) + j, s["out"])

    return flow(mapping(None, everywhere(5 if right else 9), program=program))


@pair
def what_a_kernel_sets_at_its_end_is_gone_in_the_next_iteration(right: bool) -> TensorMapping:
    """A host loop writes x, which is 0 at first, and starts a kernel that sets it to 5; or x is cleared each time."""

    def device(k: Kernel, s: States) -> None:
        k.store(s["tmp"], const(0, 32), const(0, 8))
        k.done(s["x"], const(5, 8))

    def program(p: Kernel, s: States) -> None:
        def clear() -> None:
            p.command("clear", run=true, op=const(3, 4), x_in=const(0, 8))

        if not right:
            clear()
        with p.loop("t", N.zext(32)) as t:
            if right:
                clear()
            write(p, t, s["x"])
            go(p)

    def ir(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"]) as t:
            k.store(s["dst"], t, const(0, 8))

    return flow(mapping(device, ir, program=program, columns=const(1, 32), extra=[("x", 8)]))


@pair
def what_is_set_before_a_loop_is_gone_in_the_next_iteration(right: bool) -> TensorMapping:
    """A host loop writes x, which is 0 at first, sets it to 5 and runs another loop; or x is cleared each time."""

    def program(p: Kernel, s: States) -> None:
        def set_to(value: int) -> None:
            p.command(f"set x to {value}", run=true, op=const(3, 4), x_in=const(value, 8))

        set_to(0)
        with p.loop("t", N.zext(32)) as t:
            if right:
                set_to(0)
            write(p, t, s["x"])
            set_to(5)
            with p.loop("v", M.zext(32)) as v:
                p.store(s["tmp"], v, const(1, 8))

    def ir(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"]) as t:
            k.store(s["dst"], t, const(0, 8))

    return flow(mapping(None, ir, program=program, columns=const(1, 32), extra=[("x", 8)]))


@pair
def two_registers_of_which_nothing_is_known_are_one(right: bool) -> TensorMapping:
    def program(p: Kernel, s: States) -> None:
        with p.loop("t", N.zext(32)) as t:
            write(p, t, s["x"] ^ s["x" if right else "y"])
            p.command("set x", run=true, op=const(3, 4), x_in=t[7:0])
            p.command("set y", run=true, op=const(4, 4), y_in=const(7, 8))

    def ir(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"]) as t:
            k.store(s["dst"], t, const(0, 8))

    registers = [("x", 8), ("y", 8)]
    return flow(mapping(None, ir, program=program, columns=const(1, 32), extra=registers))


@pair
def a_register_of_which_nothing_is_known_is_the_same_in_two_iterations(right: bool) -> TensorMapping:
    def program(p: Kernel, s: States) -> None:
        with p.loop("t", N.zext(32) + 1) as t:
            p.store(s["tmp"], t, s["x"])
            p.command("set x", run=true, op=const(3, 4), x_in=t[7:0])
        with p.loop("i", N.zext(32)) as i:
            p.store(s["dst"], i, s["tmp"].load(i) ^ s["tmp"].load(i + (0 if right else 1)))

    def ir(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"]) as t:
            k.store(s["dst"], t, const(0, 8))

    return flow(mapping(None, ir, program=program, columns=const(1, 32), extra=[("x", 8)]))


def again(program: Kernel, s: States, first: int, second: int) -> None:
    """A loop of commands runs twice, with another one the second time; a block beside it runs the first time only."""
    with program.loop("u", const(2, 8)) as u:
        with program.when("first", u == 0):
            program.store(s["tmp"], FAR, const(1, 8))
        with program.loop("v", N.zext(32)):
            op, new = ite(u == 0, const(first, 4), const(second, 4)), const(7, 8)
            program.command("either", run=true, op=op, x_in=new, y_in=new, address=FAR, data=const(9, 8))


@pair
def a_loop_sets_another_register_when_it_runs_again(right: bool) -> TensorMapping:
    def program(p: Kernel, s: States) -> None:
        p.command("set y", run=true, op=const(4, 4), y_in=const(5, 8))
        again(p, s, 3, 3 if right else 4)
        with p.loop("i", N.zext(32)) as i, p.loop("j", M.zext(32)) as j:
            write(p, i * M.zext(32) + j, s["y"])

    return flow(mapping(None, everywhere(5), program=program, extra=[("x", 8), ("y", 8)]))


@pair
def a_loop_writes_a_word_when_it_runs_again(right: bool) -> TensorMapping:
    """The word is 5 when a register takes it, and 9 then."""

    def program(p: Kernel, s: States) -> None:
        write(p, FAR, const(5, 8))
        p.command("read", run=true, op=const(2, 4), address=FAR)
        again(p, s, 3, 3 if right else 1)
        with p.loop("i", N.zext(32)) as i, p.loop("j", M.zext(32)) as j:
            write(p, i * M.zext(32) + j, s["out"])

    return flow(mapping(None, everywhere(5 if right else 9), program=program, extra=[("x", 8), ("y", 8)]))


@pytest.mark.parametrize("name", PAIRS)
def test_commands_are_taken_at_their_moments(name: str) -> None:
    right, wrong = PAIRS[name](True), PAIRS[name](False)
    assert differs(wrong, {"n": 2, "m": 3}) and not differs(right, {"n": 2, "m": 3})
    assert status(wrong) is Status.UNKNOWN
    assert status(right) is Status.PROVED


# -- what decoding refuses ----------------------------------------------------------------------------


def test_commands_that_do_different_things_have_no_form_in_common() -> None:
    counter, a, b, x, y = var("p", bv(2)), var("a", mem(8, 8)), var("b", mem(8, 8)), var("x", bv(8)), var("y", bv(8))

    def case(p: int, memory: Expr = a, **more: Kernel) -> Decoded:
        return Decoded([Store(memory, const(p, 8), const(5, 8))], {x: const(p, 8)}, **more)

    form = generalised([case(0), case(1)], counter, "it")
    assert [s.memory for s in form.stores] == [a] and set(form.updates) == {x}
    beside = Decoded(case(1).stores, {x: const(1, 8), y: const(1, 8)})
    for other in (case(1, b), case(1, kernel=Kernel("k")), beside, Decoded([], {x: const(1, 8)})):
        with pytest.raises(Unsupported, match="it does not do the same for every value of p"):
            generalised([case(0), other], counter, "it")
    with pytest.raises(Unsupported):
        generalised([case(0), case(1), case(2), case(0)], counter, "it")


@pytest.mark.parametrize("what", ["another instruction may be meant, too", "a memory becomes another one"])
def test_what_a_command_does_must_be_known(what: str) -> None:
    def program(p: Kernel, s: States) -> None:
        go(p)
        write(p, FAR, const(1, 8))

    claim = flow(mapping(program=program))
    assert status(claim) is Status.PROVED
    ila = claim.device.ila
    s, inputs = ila.states, ila.inputs
    if what.startswith("another"):
        ila.instruction("other").set_decode(ila.instructions["go"].decode & (inputs["n_in"] > 254))
    else:
        stored = s["tmp"].store(inputs["address"], inputs["data"])
        ila.instructions["write"].updates["dst"] = stored
        assert differs(claim, {"n": 2, "m": 3})
    assert status(claim) is Status.UNKNOWN
