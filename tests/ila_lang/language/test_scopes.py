"""What names mean: scopes of counters and registers, and errors where one name would stand for two things."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ila_lang import (
    BOOL,
    Expr,
    For,
    Fragment,
    Ila,
    Kernel,
    Let,
    Load,
    Machine,
    Store,
    bv,
    const,
    mem,
    run_fragment,
    true,
    var,
)
from ila_lang.interpreter.compile import Memory
from ila_lang.mapping import SizeError, TensorMapping

SRC, DST = var("src", mem(8, 8)), var("dst", mem(8, 8))
OUTER, INNER, WORD = (var(name, bv(8)) for name in "ijw")
FOUR = const(4, 8)
OWN = "{} of kernel k must have a name of its own, not that of a counter or register whose scope it is in"

OUTSIDE = (
    "Name {0} in kernel k must be used inside of its scope only, not outside; if a state or parameter {0} is meant "
    "there, give the counter or register {0} another name"
)


def error(kind: type[Exception], build: Callable[[], Any]) -> str:
    with pytest.raises(kind) as caught:
        build()
    return str(caught.value)


# -- kernels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            [
                For(
                    OUTER,
                    FOUR,
                    (Load(WORD, SRC, OUTER * 4 + INNER), For(INNER, FOUR, (Store(DST, OUTER * 4 + INNER, WORD),))),
                )
            ],
            OUTSIDE.format("j"),
        ),
        (
            [For(OUTER, FOUR, (Load(WORD, SRC, OUTER),)), Store(DST, FOUR, WORD)],
            OUTSIDE.format("w"),
        ),
        (
            [For(OUTER, FOUR, (For(OUTER, FOUR, (Store(DST, OUTER, FOUR),)),))],
            OWN.format("Counter i"),
        ),
        (
            [Let(WORD, FOUR), For(OUTER, FOUR, (Load(WORD, SRC, OUTER),))],
            OWN.format("Register w"),
        ),
        (
            [For(OUTER, FOUR, (Let(WORD, OUTER, update=True),))],
            "Register w of kernel k must be introduced before it is assigned",
        ),
        (
            [For(OUTER, FOUR, (Store(DST, var("i", bv(4)).zext(8), FOUR),))],
            "Name i in kernel k must stand for one thing, not two of two sorts",
        ),
    ],
)
def test_names_that_a_kernel_uses_outside_of_their_scope(body: list[Any], message: str) -> None:
    assert error(ValueError, lambda: Kernel("k", body=body)) == message


def test_a_body_that_is_changed_later_is_checked_where_the_kernel_is_started() -> None:
    ila = Ila("m")
    dst = ila.memory("dst", 8, 8)
    kernel = Kernel("k")
    with kernel.loop("i", FOUR) as i:
        kernel.store(dst, i, FOUR)
    kernel.body.append(Store(dst, i, FOUR))
    message = OUTSIDE.format("i")
    assert error(ValueError, lambda: ila.instruction("go").start(kernel)) == message


def test_a_counter_with_the_name_of_a_state() -> None:
    ila = Ila("m")
    dst, n = ila.memory("dst", 8, 8), ila.state("n", 8, 0)
    kernel = Kernel("k")
    with kernel.loop("n", n) as i:
        kernel.store(dst, i, FOUR)
    assert error(ValueError, lambda: ila.instruction("go").start(kernel)) == OUTSIDE.format("n")


def test_loops_one_after_the_other_may_have_counters_of_one_name() -> None:
    kernel = Kernel(
        "k",
        body=[
            For(OUTER, FOUR, (Store(DST, OUTER, OUTER),)),
            For(OUTER, FOUR, (Load(WORD, DST, OUTER), Store(DST, OUTER, WORD))),
        ],
    )
    assert list(kernel.external_variables()) == ["dst"]


def test_a_memory_is_no_register_to_be_set_at_the_end() -> None:
    kernel = Kernel("k")
    message = "State dst at the end of k must be no memory; use store in the kernel"
    assert error(TypeError, lambda: kernel.done(DST, DST.store(FOUR, FOUR))) == message
    ila = Ila("m")
    dst = ila.memory("dst", 8, 8)
    kernel = Kernel("k", on_done={"dst": dst.store(FOUR, FOUR)})
    assert error(TypeError, lambda: ila.instruction("go").start(kernel)) == message


def test_a_register_does_not_outlive_its_kernel() -> None:
    kernel = Kernel("k")
    total = kernel.let("total", FOUR)
    with kernel.loop("i", FOUR) as i:
        kernel.assign(total, total + i)
    message = (
        "State acc at the end of k must be set (done) to a term over states; total is a register or counter "
        "of the kernel, which has ended: store it in a memory of one word"
    )
    assert error(ValueError, lambda: kernel.done(var("acc", FOUR.sort), total + 1)) == message
    assert error(ValueError, lambda: kernel.done(var("acc", FOUR.sort), i)) == message.replace("total", "i")
    assert not kernel.on_done


# -- fragments and mappings ------------------------------------------------------------------------------


def device(*states: tuple[str, int]) -> Ila:
    ila = Ila("m")
    data = ila.input("data", 8)
    for name, width in states:
        ila.instruction(f"set_{name}").set_decode(ila.input(f"is_{name}", BOOL)).update(
            ila.state(name, width, 0), data.zext(width)
        )
    return ila


def fragment(ila: Ila, build: Callable[[Kernel], None], **arguments: Any) -> Fragment:
    kernel = Kernel("p")
    build(kernel)
    return Fragment("f", ila, **{"parameters": {}, "tensors": {}, "program": kernel} | arguments)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (
            {"tensors": {"a": DST, "dst": DST}},
            ValueError,
            "Tensor a of fragment f must be the variable of this name, not dst",
        ),
        (
            {"parameters": {"n": OUTER}},
            ValueError,
            "Size n of fragment f must be the variable of this name, not i",
        ),
        ({"parameters": {"dst": DST}}, TypeError, "Size dst of fragment f must be a bit-vector, not mem8x8"),
        ({"tensors": {"i": OUTER}}, TypeError, "Tensor i of fragment f must be a memory, not bv8"),
        (
            {"parameters": {"dst": var("dst", bv(8))}, "tensors": {"dst": DST}},
            ValueError,
            "Name dst in fragment f must stand for one size, tensor or register",
        ),
        (
            {"parameters": {"i": OUTER}},
            ValueError,
            "Name i in fragment f must stand for one size, tensor or register",
        ),
    ],
)
def test_names_of_a_fragment_that_stand_for_two_things(
    arguments: dict[str, Any], kind: type[Exception], message: str
) -> None:
    def build(kernel: Kernel) -> None:
        with kernel.loop("i", FOUR):
            pass

    assert error(kind, lambda: fragment(device(), build, **arguments)) == message


def small_claim() -> TensorMapping:
    sides = []
    for name, memory in (("m", "dst"), ("ir", "idst")):
        ila = Ila(name)
        ila.memory(memory, 8, 8)
        ila.memory(memory + "2", 8, 8)
        ila.memory(memory + "3", 8, 16)
        sides.append(fragment(ila, lambda kernel: None, parameters={"n": var("n", bv(8))}))
    n = var("n", bv(8))
    return TensorMapping(
        name="claim",
        ir=sides[1],
        device=sides[0],
        parameters={"n": n},
        domain=(("1 <= n", const(1, 8) <= n),),
        rows=n.zext(32),
        columns=const(1, 32),
        inputs=(),
        output=("dst", "idst"),
        lemmas=(),
        abstract=frozenset(),
        sizes_of=lambda rows, columns: {"n": rows},
        statement="",
    )


N = var("n", bv(8))
ROW = var("row", bv(32))
COLUMN = var("column", bv(32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"parameters": {"n": N, "m": N}},
            "Size m of claim must be the variable of this name, not n",
        ),
        ({"parameters": {}, "domain": ()}, "Size n of fragment f must be a size of mapping claim, too"),
        (
            {"inputs": (("dst", "idst"), ("dst2", "idst"))},
            "Inputs of claim must pair each tensor once; idst has two partners",
        ),
        (
            {"inputs": (("dst", "idst"), ("dst", "idst2"))},
            "Inputs of claim must pair each tensor once; dst has two partners",
        ),
        ({"rows": 4}, "Rows of claim must be an expression of 32 bits, such as const(4, 32), not 4"),
        (
            {"inputs": (("dst", "idst3"),)},
            "Inputs of claim must pair tensors with elements of one width; dst has 8 bits, idst3 has 16",
        ),
        (
            {"output": ("d", "idst")},
            "Tensor of fragment f must be one of dst, dst2, dst3, not d",
        ),
        (
            {"cell": ((ROW, N.zext(32)), (ROW, const(1, 32)))},
            "Coordinate row of claim must have a name of its own, not that of another coordinate",
        ),
        (
            {"cell": ((N, N),)},
            "Coordinate n of claim must have a name of its own, not that of a size",
        ),
        (
            {"cell": ((ROW, N.zext(32)),), "cell_column": COLUMN},
            "Cell of claim must use only its coordinates and sizes, not column",
        ),
        (
            {"cell": ((ROW, N.zext(32)), (COLUMN, ROW))},
            "Extent of coordinate column of claim must be over its sizes alone, not row",
        ),
        (
            {"row_coordinates": 2},
            "Cell of claim must have coordinates for its row and beside them for its column, not 2 of 2 for its row",
        ),
        (
            {"row_coordinates": 0},
            "Cell of claim must have coordinates for its row and beside them for its column, not 0 of 2 for its row",
        ),
        ({"rows": N}, "Rows of claim must have 32 bits, not bv8"),
        ({"columns": N == 1}, "Columns of claim must have 32 bits, not bool"),
    ],
)
def test_mappings_that_are_malformed(change: dict[str, Any], message: str) -> None:
    claim = small_claim()
    assert error((ValueError, TypeError), lambda: replace(claim, **change)) == message  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("idle", "message"),
    [
        ({"dts": 0}, "Idle value of fragment f must be of a state of m (dst, dst2, dst3), not of dts"),
        ({"dst3": 1 << 16}, "Idle value of dst3 in fragment f must be from 0 to 65535, not 65536"),
        ({"dst": -1}, "Idle value of dst in fragment f must be from 0 to 255, not -1"),
    ],
)
def test_idle_values_that_are_malformed(idle: dict[str, int], message: str) -> None:
    assert error(ValueError, lambda: replace(small_claim().device, idle=idle)) == message


def test_a_program_sets_no_state_at_its_end() -> None:
    program = Kernel("host")
    device = small_claim().device
    program.done(device.ila.state("r", 8), 1)
    message = "Program of fragment f must set no state at its end, not r; kernels do"
    assert error(ValueError, lambda: replace(device, program=program)) == message


def test_an_output_fits_its_memory() -> None:
    claim = replace(small_claim(), columns=const(2, 32))
    claim.require({"n": 128})
    assert error(SizeError, lambda: claim.require({"n": 129})) == (
        "Output of mapping claim must fit dst, which has 256 words; given n = 129, where it has 258"
    )


def test_an_input_has_no_idle_value() -> None:
    """Otherwise both sides could begin with contradictory contents, and the claim would say nothing."""
    claim = replace(small_claim(), inputs=(("dst2", "idst2"),))
    message = "Inputs of claim must be arbitrary; fragment f gives dst2 an idle value"
    assert error(ValueError, lambda: replace(claim, device=replace(claim.device, idle={"dst2": 0}))) == message
    message = "Inputs of claim must be arbitrary; fragment f gives idst2 an idle value"
    assert error(ValueError, lambda: replace(claim, ir=replace(claim.ir, idle={"idst2": 0}))) == message
    replace(claim, ir=replace(claim.ir, idle={"idst": 255}))  # the output may have one


# -- runs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [8, 16])
def test_a_size_hides_a_register_of_its_name_and_leaves_it_alone(width: int) -> None:
    """The program stores its size n; the device's register n is set to 9 by a command, and still is when it ends."""
    ila = device(("n", 8))
    size, out = var("n", bv(width)), var("out", mem(8, 8))

    def build(kernel: Kernel) -> None:
        kernel.command(is_n=true, data=const(9, 8))
        with kernel.loop("i", size.zext(16), width=8) as i:
            kernel.store(out, i, size[7:0])

    sized = fragment(ila, build, parameters={"n": size}, tensors={"out": out})
    host, machine = Memory(), Machine(ila)
    run_fragment(sized, {"n": 3}, {"out": host}, machine)
    assert dict(host) == {0: 3, 1: 3, 2: 3}
    assert machine.values == {"n": 9}


def test_a_counter_and_a_register_of_the_program_hide_outputs_of_their_names() -> None:
    ila = device(("i", 8), ("w", 8), ("v", 8))
    out = var("out", mem(8, 8))

    def build(kernel: Kernel) -> None:
        kernel.command(is_i=true, data=const(9, 8))
        kernel.command(is_v=true, data=const(5, 8))
        w = kernel.let("w", const(7, 8))
        with kernel.loop("i", const(2, 8)) as i:
            kernel.store(out, i, i + w + ila.states["v"])

    host = Memory()
    machine = run_fragment(fragment(ila, build, tensors={"out": out}), {}, {"out": host})
    assert dict(host) == {0: 12, 1: 13}
    assert machine.values == {"i": 9, "w": 0, "v": 5}


def test_a_host_tensor_with_the_name_of_a_memory_is_another_one() -> None:
    ila = Ila("m")
    ila.instruction("write").set_decode(ila.input("go", BOOL)).update(
        memory := ila.memory("buf", 4, 8), memory.store(const(0, 4), const(9, 8))
    )
    tensor = var("buf", mem(8, 8))

    def build(kernel: Kernel) -> None:
        kernel.command(go=true)
        kernel.store(tensor, const(1, 8), tensor.load(const(0, 8)) + 1)

    host = Memory(0, {0: 3})
    machine = run_fragment(fragment(ila, build, tensors={"buf": tensor}), {}, {"buf": host})
    assert dict(host) == {0: 3, 1: 4}
    assert dict(machine.memories["buf"]) == {0: 9}


def test_a_run_needs_all_sizes_and_tensors() -> None:
    def build(kernel: Kernel) -> None:
        kernel.store(DST, const(0, 8), N)

    given = fragment(device(), build, parameters={"n": N}, tensors={"dst": DST})
    assert error(ValueError, lambda: run_fragment(given, {}, {})) == "Fragment f must be given n, dst"


def test_an_expression_is_read_by_its_variables_not_by_their_names() -> None:
    """One program may not use a size and a register of one name; two sorts of it in one term are not mixed up."""
    narrow, wide = var("k", bv(4)), var("k", bv(8))
    kernel = Kernel("k")
    kernel.store(DST, wide, narrow.zext(8))
    message = "Name k in kernel k must stand for one thing, not two of two sorts"
    assert error(ValueError, kernel.external_variables) == message


def test_a_name_of_the_provers_is_no_name_of_a_variable() -> None:
    message = "Name of a variable must be an identifier, not 'i!2'"
    assert error(ValueError, lambda: var("i!2", bv(8))) == message


def test_hidden_outputs_are_none_that_the_program_can_read() -> None:
    ila = device(("n", 8))

    def build(kernel: Kernel) -> None:
        kernel.store(DST, const(0, 8), ila.states["n"])

    size: Expr = var("n", bv(16))
    message = "Fragment f must use only its parameters, tensors and device outputs, not n"
    assert error(ValueError, lambda: fragment(ila, build, parameters={"n": size}, tensors={"dst": DST})) == message
