"""Programs that are any tree of loops: what is proved, and attacks of which none may be.

Every wrong program differs from the right one in one place, and two concrete runs show that it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Fragment, Function, Kernel, bv, const, ite, true, var
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.mapping.test_attacks import ATTACKS
from tests.chc.mapping.toy import M, N, copy_body, differs, fragment, go, mapping, model, scaled

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]
CELL = (var("cell_row", bv(32)), var("cell_column", bv(32)))


def flow(claim: TensorMapping, *, recurrent: bool = False) -> TensorMapping:
    """The claim with coordinates of its own, which selects the method under test."""
    return replace(
        claim,
        cell=((CELL[0], claim.rows), (CELL[1], claim.columns)),
        cell_column=CELL[1],
        sample_shapes=((1, 1), (1, 3), (2, 3), (3, 2), (4, 5), (5, 3), (6, 4)),
        shape_parameters=frozenset({"n", "m"}),
        recurrent=recurrent,
    )


def status(claim: TensorMapping, *, second: bool = True) -> Status:
    """The verdict; one solver is enough to see that a claim is not proved, and the stricter test."""
    verdict = prove(claim, discharger=Discharger(timeout=5.0, second=second), horn_timeout=3.0)
    return verdict.status


step = Function("step", {"acc": bv(8), "x": bv(8)}, bv(8), None)
step.body = (step.params[0] << 1) + (step.params[1] ^ step.params[0])  # in another order, another result
last = scaled("last", lambda x: x + 1)


def prefix_ir(k: Kernel, s: States) -> None:
    """dst[i, j] = last(fold over l of src[i, l])."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        acc = k.let("acc", const(0, 8))
        with k.loop("l", s["m"]) as x:
            k.assign(acc, step(acc, k.load("word", s["src"], i * s["m"] + x)))
        k.store(s["dst"], i * s["m"] + j, last(acc))


def phases(
    *,
    begin: int = 0,
    read: Callable[[Expr, Expr, States], Expr] = lambda i, x, s: x,
    extent: Callable[[States], Expr] = lambda s: s["m"],
    copied: Callable[[States], Expr] = lambda s: s["m"],
    turned: bool = False,
    finish: Callable[[Expr, Expr], Expr] = lambda acc, word: last(acc),
    choose: bool = False,
) -> Body:
    """Row by row: the row goes to a buffer, which overwrites the row before, and is folded from there."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"]) as t:

            def copy() -> None:
                with k.loop("c", copied(s)) as c:
                    k.store(s["tmp"], c, k.load("in", s["src"], t * s["m"] + c))

            def compute() -> None:
                with k.loop("o", s["m"]) as o:
                    acc = k.let("acc", const(begin, 8))
                    with k.loop("x", extent(s)) as x:
                        word = k.load("buffered", s["tmp"], read(t, x, s))
                        if choose:
                            with k.when("odd", x[0] == 1):
                                k.assign(acc, step(acc, word))
                        else:
                            k.assign(acc, step(acc, word))
                    k.store(s["dst"], t * s["m"] + o, finish(acc, word))

            for phase in (compute, copy) if turned else (copy, compute):
                phase()

    return body


RIGHT = flow(mapping(phases(), prefix_ir, abstract=frozenset({"step", "last"})))


def test_phases_inside_a_loop_over_time_and_folds_of_symbolic_length() -> None:
    verdict = prove(RIGHT)
    assert verdict.status is Status.PROVED, verdict.reason
    assert {o.group for o in verdict.obligations} >= {"values", "health", "no overflow", "toy: cells in fold 1"}
    assert all(len(o.answers) == 2 and o.discharged for o in verdict.obligations)
    names = [(o.group, o.name) for o in verdict.obligations]
    assert len(names) == len(set(names))


WRONG: dict[str, Body] = {
    "the row is folded before it is copied": phases(turned=True),
    "the fold begins with another value": phases(begin=1),
    "the fold leaves the first element out": phases(read=lambda i, x, s: ite(x == 0, const(1, 32), x)),
    "the fold runs backwards": phases(read=lambda i, x, s: s["m"] - 1 - x),
    "the fold stops early": phases(extent=lambda s: s["m"] - 1),
    "the last element of the row is not copied": phases(copied=lambda s: s["m"] - 1),
    "only odd elements count": phases(choose=True),
    "the end is left out": phases(finish=lambda acc, word: acc),
    "the buffer's next row is read": phases(read=lambda i, x, s: x + s["m"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_not_proved(name: str) -> None:
    claim = flow(mapping(WRONG[name], prefix_ir, abstract=frozenset({"step", "last"})))
    assert differs(claim, {"n": 3, "m": 4})
    assert status(claim, second=False) is not Status.PROVED


def running_ir(k: Kernel, s: States) -> None:
    """dst[i, j] = step(dst[i - 1, j], src[i, j]), with 0 before the first row."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        state = k.let("state", const(0, 8))
        with k.when("later", i != 0):
            k.assign(state, k.load("before", s["dst"], (i - 1) * s["m"] + j))
        k.store(s["dst"], i * s["m"] + j, step(state, k.load("word", s["src"], i * s["m"] + j)))


def running(
    *, first: int = 0, reset: bool = True, column: Callable[[Expr, States], Expr] = lambda j, s: j, skip: bool = False
) -> Body:
    """The same with the state in a buffer that every row overwrites."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"]) as t:
            with k.loop("o", s["m"]) as o:
                state = k.let("state", const(first, 8))
                with k.when("go_on", (t != 0) if reset else (t != 1)):
                    k.assign(state, k.load("kept", s["tmp"], column(o, s)))
                value = k.let("value", step(state, k.load("word", s["src"], t * s["m"] + o)))
                k.store(s["dst"], t * s["m"] + o, value)
            with k.loop("b", s["m"]) as b, k.when("keep", (t != 1) if skip else (t == t)):
                k.store(s["tmp"], b, k.load("new", s["dst"], t * s["m"] + b))

    return body


def test_a_state_is_followed_over_any_number_of_timesteps() -> None:
    claim = flow(mapping(running(), running_ir, abstract=frozenset({"step"})), recurrent=True)
    verdict = prove(claim)
    assert verdict.status is Status.PROVED, verdict.reason
    assert {"toy toy_kernel: toy.t with ir.i", "toy toy_kernel: toy.o with ir.j"} <= set(verdict.invariants)
    assert {o.name for o in verdict.obligations if o.group == "induction"} >= {
        "cases",
        "earlier.toy.0: an instance of the output",
        "toy, earlier value 0: earlier",
        "ir, earlier value 0: earlier",
    }


WRONG_STATE: dict[str, Body] = {
    "the first state is another one": running(first=1),
    "the second row begins anew": running(reset=False),
    "the state of another column": running(column=lambda j, s: s["m"] - 1 - j),
    "one row's state is not kept": running(skip=True),
}


@pytest.mark.parametrize("name", WRONG_STATE)
def test_a_wrong_state_is_not_proved(name: str) -> None:
    claim = flow(mapping(WRONG_STATE[name], running_ir, abstract=frozenset({"step"})), recurrent=True)
    assert differs(claim, {"n": 4, "m": 3})
    assert status(claim, second=False) is not Status.PROVED


def test_without_induction_a_state_is_not_proved() -> None:
    assert status(flow(mapping(running(), running_ir, abstract=frozenset({"step"}))), second=False) is Status.UNKNOWN


def test_plain_copies_are_proved() -> None:
    assert status(flow(mapping(copy_body, copy_body))) is Status.PROVED


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_on_the_other_method_do_not_succeed_here(name: str) -> None:
    assert status(flow(ATTACKS[name]()), second=False) is not Status.PROVED


def test_a_start_inside_a_host_loop_is_followed() -> None:
    def program(p: Kernel, s: States) -> None:
        with p.loop("again", const(2, 8)):
            go(p)

    claim = flow(mapping(phases(), prefix_ir, program=program, abstract=frozenset({"step", "last"})))
    assert status(claim) is Status.PROVED


def read_before(inside: bool) -> Callable[[Kernel, States], None]:
    """A word of dst is read, the kernel writes dst, and the word goes to all of tmp."""

    def program(p: Kernel, s: States) -> None:
        word = p.load("word", s["dst"], const(0, 32))
        if inside:
            with p.loop("again", N):
                go(p)
        else:
            go(p)
        with p.loop("u", N) as u, p.loop("v", M) as v:
            p.store(s["tmp"], u.zext(32) * M.zext(32) + v.zext(32), word)

    return program


def first_of_src(k: Kernel, s: States) -> None:
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        k.store(s["tmp"], i * s["m"] + j, k.load("word", s["src"], const(0, 32)))


@pytest.mark.parametrize("inside", [False, True])
def test_a_word_read_before_the_kernel_is_not_the_kernels(inside: bool) -> None:
    claim = replace(flow(mapping(copy_body, first_of_src, program=read_before(inside))), output=("tmp", "itmp"))
    assert differs(claim, {"n": 2, "m": 3})
    assert status(claim, second=False) is not Status.PROVED


def test_a_command_reads_before_it_writes() -> None:
    """One command writes a word and reads the same cell: the register holds what was there before."""

    def exchanging(wrong: bool) -> TensorMapping:
        def program(p: Kernel, s: States) -> None:
            with p.loop("u", N) as u, p.loop("v", M) as v:
                at = u.zext(32) * M.zext(32) + v.zext(32)
                p.command("swap", run=true, op=const(9, 4), address=at, data=const(7, 8))
                p.store(s["tmp"], at, s["out"])

        def ir(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                at = i * s["m"] + j
                old = k.load("old", s["src"], at)
                k.store(s["tmp"], at, const(7, 8) if wrong else old)

        claim = mapping(copy_body, ir)
        ila = claim.device.ila
        swap = ila.instruction("swap").set_decode(ila.inputs["run"] & (ila.inputs["op"] == 9))
        memory, address = ila.states["src"], ila.inputs["address"]
        swap.update(ila.states["out_reg" if "out_reg" in ila.states else "out"], memory.load(address))
        swap.update(memory, memory.store(address, ila.inputs["data"]))
        text = Kernel("toy_program")
        program(text, {**{n: ila.states[n] for n in ("src", "dst", "tmp")}, "out": ila.states["out"]})
        device = Fragment("toy_fragment", ila, dict(claim.parameters), claim.device.tensors, text)
        return flow(replace(claim, device=device, output=("tmp", "itmp")))

    assert status(exchanging(wrong=False)) is Status.PROVED
    assert differs(exchanging(wrong=True), {"n": 2, "m": 3})
    assert status(exchanging(wrong=True)) is not Status.PROVED


def test_a_fold_over_commands_is_refused() -> None:
    """The host adds up what it reads; the device's output register differs in every iteration."""

    def program(p: Kernel, s: States) -> None:
        total = p.let("total", const(0, 8))
        with p.loop("r", M) as r:
            p.assign(total, total + s["out"])
            p.command("read", run=true, op=const(2, 4), address=r.zext(32))
        with p.loop("u", N) as u, p.loop("v", M) as v:
            p.store(s["tmp"], u.zext(32) * M.zext(32) + v.zext(32), total)

    claim = flow(replace(mapping(copy_body, first_of_src, program=program), output=("tmp", "itmp")))
    verdict = prove(claim, discharger=Discharger(timeout=5.0, second=False))
    assert verdict.status is Status.UNKNOWN and "carries a register and commands a device" in verdict.reason


@pytest.mark.parametrize("name", ["fold1.x", "source.toy.0", "accumulator.fold1.0", "total.fold1.0"])
def test_no_name_of_a_parameter_captures_a_name_of_the_proof(name: str) -> None:
    extra = var(name, bv(16))
    claim = mapping(phases(), prefix_ir, parameters={"n": N, "m": M, name: extra}, abstract=frozenset({"step", "last"}))
    claim = flow(replace(claim, sizes_of=lambda r, c: {"n": r, "m": c, name: 3}))
    verdict = prove(claim, discharger=Discharger(timeout=5.0))
    assert verdict.status is Status.PROVED, verdict.reason


# -- names ----------------------------------------------------------------------------------------------


def sum_of_two(turned: bool, name: str) -> TensorMapping:
    """The device adds every element to itself, the IR to the one on the other side of the row."""

    def adding(other: Callable[[Expr, States], Expr]) -> Body:
        def body(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                first = k.load("first", s["src"], i * s["m"] + other(j, s))
                k.store(s["dst"], i * s["m"] + j, first + k.load("second", s["src"], i * s["m"] + j))

        return body

    claim = mapping(adding(lambda j, s: j), adding(lambda j, s: s["m"] - 1 - j if turned else j))
    return flow(replace(claim, device=fragment(model(name, "", adding(lambda j, s: j)), "")))


@pytest.mark.parametrize("name", ["toy", "ir"])
def test_a_device_with_the_name_of_the_other_side(name: str) -> None:
    """Cells of both sides would have one name, and those of the IR stand for each other."""
    assert differs(sum_of_two(True, name), {"n": 3, "m": 2})
    assert status(sum_of_two(True, name)) is Status.UNKNOWN
    verdict = prove(sum_of_two(False, name))
    assert verdict.status is Status.PROVED, verdict.reason
