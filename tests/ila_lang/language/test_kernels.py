"""Kernels: compiled, on arrays and flattened, each against the plain walker."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Set
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ila_lang as il
from ila_lang import BOOL, Expr, Ila, Kernel, Memory, bv, const, var
from ila_lang.interpreter import machine as scalar
from ila_lang.language.kernel import For, Let, Load, Statement, Store
from ila_lang.native import code
from tests.ila_lang.oracle import COUNT, DST, SCALE, SRC, kernels, run_kernel, scalars, words

LARGE = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=150)


def walk_and_compile(kernel: Kernel, values: dict[str, int], memories: dict[str, dict[int, int]]) -> Any:
    """The memories after the compiled run, which must be those after the walk."""
    walked = {n: dict(m) for n, m in memories.items()}
    compiled = {n: Memory(0, m) for n, m in memories.items()}
    run_kernel(kernel, values, walked)
    il.compile_kernel(kernel)(dict(values), compiled, None)
    assert {n: dict(m) for n, m in compiled.items()} == walked, il.show_kernel(kernel)
    return walked


@given(kernels(), scalars, words, words)
@LARGE
def test_compiled_kernels(kernel: Kernel, values: dict[str, int], src: Any, dst: Any) -> None:
    walk_and_compile(kernel, values, {"src": src, "dst": dst})


@given(kernels(), scalars, words, words)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=30)
def test_kernels_on_arrays(kernel: Kernel, values: dict[str, int], src: dict[int, int], dst: dict[int, int]) -> None:
    """Whatever a kernel reads and writes, as native code and on the interpreter."""
    walked = walk_and_compile(kernel, values, {"src": src, "dst": dst})
    for tried in (0, 1 << 30):
        arrays = {"src": dense(src, 16), "dst": dense(dst, 512)}
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(code, "TRIED", tried)
            il.run_on_arrays(kernel, values, arrays)
        assert (arrays["dst"] == dense(walked["dst"], 512)).all(), il.show_kernel(kernel)


def dense(contents: dict[int, int], size: int) -> Any:
    array = np.zeros(size, np.uint8)
    for address, word in contents.items():
        array[address] = word
    return array


WORD, BYTE, BYTES = var("word", bv(16)), var("byte", bv(8)), var("bytes", il.mem(32, 8))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            lambda: Load(WORD, BYTES, const(0, 32)),
            "bytes must be a memory of words of 16 bits at addresses of 32, not of sort mem32x8",
        ),
        (
            lambda: Load(BYTE, BYTES, const(0, 8)),
            "bytes must be a memory of words of 8 bits at addresses of 8, not of sort mem32x8",
        ),
        (
            lambda: Store(BYTES, const(0, 32), WORD),
            "bytes must be a memory of words of 16 bits at addresses of 32, not of sort mem32x8",
        ),
        (lambda: Let(WORD, BYTE), "Value of register word must have sort bv16, not bv8"),
        (lambda: Let(BYTES, BYTES), "Register bytes must be a bit-vector, not of sort mem32x8"),
        (lambda: For(WORD, il.true, ()), "Counter word and its extent must be bit-vectors"),
    ],
)
def test_statements_are_of_the_sorts_of_their_parts(statement: Callable[[], Statement], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        statement()
    assert str(caught.value) == message


def device(kernel: Kernel) -> Ila:
    ila = Ila("device")
    go, more = ila.input("go", BOOL), ila.input("more", bv(4))
    for variable in (COUNT, SCALE, SRC, DST):
        ila.state(variable.name, variable.sort)
    kernel.done(SCALE, SRC.load(SCALE) + COUNT)
    run = ila.instruction("run").set_decode(go).update(COUNT, (COUNT + more) & 3)
    run.update(DST, DST.store(3, more))
    run.start(kernel, (COUNT != 1) | (SCALE > 3))
    return ila


@given(kernels(), scalars, words, words, st.integers(0, 15))
@LARGE
def test_child_ilas_do_what_kernels_do(kernel: Kernel, values: dict[str, int], src: Any, dst: Any, more: int) -> None:
    ila = device(kernel)
    inputs = {"go": 1, "more": more}
    assert il.child_differs(ila, "run", inputs, values, {"src": src, "dst": dst}) is None, il.show_kernel(kernel)


# -- what went wrong once, or would be easy to get wrong -------------------------------------------------


def test_an_invariant_of_a_carried_register_is_computed_again() -> None:
    kernel = Kernel("k")
    acc = kernel.let("acc", const(0, 4))
    kernel.let("before", acc + 1)
    with kernel.loop("i", COUNT) as i:
        kernel.store(DST, i.zext(9), acc + 1)
        kernel.assign(acc, acc + 1)
    kernel.store(DST, const(9, 9), acc + 1)
    walked = walk_and_compile(kernel, {"count": 3}, {"dst": {}})
    assert walked["dst"] == {0: 1, 1: 2, 2: 3, 9: 4}


def test_a_load_after_a_store_sees_it() -> None:
    kernel = Kernel("k")
    place = const(5, 9)
    kernel.let("before", DST.load(place))
    with kernel.loop("i", COUNT):
        kernel.store(DST, place, DST.load(place) + 1)
    kernel.store(DST, const(6, 9), DST.load(place))
    assert walk_and_compile(kernel, {"count": 3}, {"dst": {5: 2}})["dst"] == {5: 5, 6: 5}


def test_extents_are_read_when_a_loop_is_entered() -> None:
    kernel = Kernel("k")
    limit = kernel.let("limit", COUNT)
    with kernel.loop("i", limit) as i:
        kernel.assign(limit, limit + 5)
        with kernel.loop("j", limit & 3) as j:
            kernel.store(DST, (i * 4 + j).zext(9), limit)
    walk_and_compile(kernel, {"count": 3}, {"dst": {}})
    assert il.child_differs(device(kernel), "run", {"go": 1, "more": 0}, {"count": 3}) is None


def matmul(width: int = 16) -> Kernel:
    """``c = a * b`` for square matrices of size ``n``."""
    kernel, n = Kernel("matmul"), var("n", bv(8))
    a, b, c = (var(name, il.mem(12, width)) for name in "abc")

    def at(row: Expr, column: Expr) -> Expr:
        return row.zext(12) * n.zext(12) + column.zext(12)

    with kernel.loop("i", n) as i, kernel.loop("j", n) as j:
        acc = kernel.let("acc", const(0, width))
        with kernel.loop("k", n) as k:
            kernel.assign(acc, acc + kernel.load("x", a, at(i, k)) * kernel.load("y", b, at(k, j)))
        kernel.store(c, at(i, j), acc)
    return kernel


@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_matrix_product(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = (rng.integers(0, 1 << 16, 49) for _ in "ab")
    arrays = {"a": a, "b": b, "c": np.zeros(49, np.int64)}
    il.run_on_arrays(matmul(), {"n": n}, arrays)
    square = a[: n * n].reshape(n, n) @ b[: n * n].reshape(n, n) % (1 << 16)
    assert (arrays["c"][: n * n] == square.ravel()).all()


def in_place(kernel: Kernel, read: Expr, written: Expr) -> Kernel:
    with kernel.loop("i", COUNT) as i:
        kernel.store(DST, written + i.zext(9), kernel.load("w", DST, read + i.zext(9)))
    return kernel


def test_loads_and_stores_of_one_memory() -> None:
    start = np.arange(512, dtype=np.int64) % 16
    arrays = {"dst": start.copy()}
    il.run_on_arrays(in_place(Kernel("k"), const(0, 9), const(2, 9)), {"count": 3}, arrays)
    assert arrays["dst"][:6].tolist() == [0, 1, 0, 1, 0, 5]
    arrays = {"dst": start.copy()}
    il.run_on_arrays(in_place(Kernel("k"), const(0, 9), const(3, 9)), {"count": 3}, arrays)
    assert arrays["dst"][:6].tolist() == [0, 1, 2, 0, 1, 2]
    # each word is read before it is overwritten
    arrays = {"dst": start.copy()}
    il.run_on_arrays(in_place(Kernel("k"), const(1, 9), const(0, 9)), {"count": 3}, arrays)
    assert arrays["dst"][:4].tolist() == [1, 2, 3, 3]


def test_order_of_statements_in_place() -> None:
    """A later statement of the same iteration sees a store; an earlier one does not."""
    early, late = Kernel("k"), Kernel("k")
    for kernel, first in ((early, True), (late, False)):
        with kernel.loop("i", COUNT) as i:
            if not first:
                kernel.store(DST, i.zext(9), SCALE)
            word = kernel.load("w", DST, i.zext(9))
            kernel.store(DST, i.zext(9) + (0 if first else 64), word + 1)
    arrays = {"dst": np.zeros(512, np.int64)}
    il.run_on_arrays(early, {"count": 3}, arrays)
    assert arrays["dst"][:4].tolist() == [1, 1, 1, 0]
    il.run_on_arrays(late, {"count": 3, "scale": 2}, arrays)
    assert arrays["dst"][[0, 2, 3, 64, 66, 67]].tolist() == [2, 2, 0, 3, 3, 0]


def message(kernel: Kernel, values: dict[str, int], arrays: dict[str, Any]) -> str:
    with pytest.raises(ValueError) as caught:
        il.run_on_arrays(kernel, values, arrays)
    return str(caught.value)


def test_what_runs_on_arrays_refuse() -> None:
    zeros = {"dst": np.zeros(4, np.uint8), "src": np.zeros(16, np.uint8)}
    fixed = Kernel("k")
    with fixed.loop("i", COUNT):
        fixed.store(DST, const(0, 9), SCALE)
    assert message(fixed, {"count": 2}, zeros) == "Kernel k must be given the value scale"
    assert message(fixed, {"count": 2, "scale": 1}, {}) == "Kernel k must be given the memory dst"

    away = Kernel("k")
    away.store(DST, const(4, 9), SCALE)
    assert message(away, {"scale": 1}, zeros) == ("Address 0x4 must lie in the array of dst, which has 4 words")
    wrong = {"dst": np.full(4, 16, np.uint8)}
    assert message(away, {"scale": 1}, wrong) == "Words of dst must lie in 0 .. 15"
    shared = np.zeros(16, np.uint8)
    assert message(in_place_from_src(), {"count": 1}, {"dst": shared, "src": shared}) == (
        "Memories dst and src must be separate arrays"
    )
    talks = Kernel("k")
    talks.command(go=SCALE)
    assert message(talks, {"scale": 1}, {}) == "Kernel k must issue no commands to run on arrays"


def in_place_from_src() -> Kernel:
    kernel = Kernel("k")
    with kernel.loop("i", COUNT) as i:
        kernel.store(DST, i.zext(9), kernel.load("w", SRC, i))
    return kernel


def test_the_micro_instructions() -> None:
    ila = Ila("acc")
    go = ila.input("go", BOOL)
    n, mem = ila.state("n", 8), ila.memory("mem", 8, 8)
    kernel = Kernel("sum")
    total = kernel.let("total", const(0, 8))
    with kernel.loop("i", n) as i:
        kernel.assign(total, total + kernel.load("word", mem, i))
    kernel.store(mem, const(0xFF, 8), total)
    kernel.done(n, 0)
    ila.instruction("run").set_decode(go).start(kernel, n < 0x80)
    child = il.child_ila(ila, "run")
    assert list(child.inputs) == ["go", "step"]
    assert list(child.states) == [
        "n", "mem", "sum_valid", "sum_state", "sum_total", "sum_i", "sum_i_limit", "sum_word",
    ]  # fmt: skip
    assert list(child.instructions) == [
        "run", "segment_0", "i_enter", "segment_1", "i_next", "i_leave", "segment_2", "done",
    ]  # fmt: skip

    machine = il.Machine(child)
    machine.values["n"] = 3
    machine.memories["mem"].update({0: 4, 1: 5, 2: 6})
    with pytest.raises(il.CommandError, match="not a valid command"):
        machine.step({"step": 1})
    assert il.run_child(machine, "sum", {"go": 1}) == 2 + 3 * 2 + 2
    assert machine.memories["mem"][0xFF] == 15
    assert machine.values["n"] == machine.values["sum_valid"] == 0
    assert il.run_child(machine, "sum", {"go": 1}) == 4  # the loop is skipped
    machine.values["n"] = 0x80
    assert il.run_child(machine, "sum", {"go": 1}) == 0  # the start condition does not hold
    machine.values["n"] = 9
    with pytest.raises(RuntimeError, match="Kernel sum did not end within 3 micro-instructions"):
        il.run_child(machine, "sum", {"go": 1}, limit=3)
    with pytest.raises(il.CommandError, match="not a valid command"):
        machine.step({"go": 1, "step": 0})


def test_exactly_one_micro_instruction_decodes() -> None:
    kernel = Kernel("k")
    with kernel.loop("i", COUNT) as i, kernel.loop("j", i) as j:
        kernel.store(DST, j.zext(9), kernel.load("w", SRC, i))
    child = il.child_ila(device(kernel), "run")
    parameters = [*child.inputs.values(), *child.states.values()]
    decodes = [i.decode for i in child.instructions.values()]
    run = il.compile_terms(parameters, [child.valid, *decodes])
    rng = np.random.default_rng(0)
    accepted = 0
    for _ in range(3000):
        arguments = [
            Memory() if isinstance(p.sort, il.MemSort)
            else int(rng.integers(0, 2 if p.sort == BOOL else 1 << p.width))
            for p in parameters
        ]  # fmt: skip
        valid, *hits = run(*arguments)
        accepted += bool(valid)
        assert not valid or sum(map(bool, hits)) == 1
    assert accepted > 500


def test_what_has_no_child() -> None:
    ila = device(Kernel("k"))
    ila.instruction("nop").set_decode(il.false)
    with pytest.raises(ValueError, match=r"^device has no instruction walk$"):
        il.child_ila(ila, "walk")
    with pytest.raises(ValueError, match=r"^Instruction nop must start a kernel to have a child-ILA$"):
        il.child_ila(ila, "nop")


def test_differences_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel("k")
    kernel.store(DST, const(1, 9), SCALE)
    ila = device(kernel)
    real = il.child_ila(ila, "run")
    segment = real.instructions["segment_0"]
    segment.updates["dst"] = DST.store(1, 7)
    monkeypatch.setattr("ila_lang.interpreter.flatten.child_ila", lambda *_: real)
    assert il.child_differs(ila, "run", {"go": 1, "more": 2}) == "dst[0x1]: kernel 0x0, child 0x7"


@pytest.mark.parametrize(("timesteps", "vectors", "mode"), [(4, 2, 0), (5, 1, 1), (2, 1, 2), (0, 0, 0), (7, 3, 2)])
def test_flexasr_layer_reduce(timesteps: int, vectors: int, mode: int) -> None:
    """The child-ILA and the vectorised run of a real kernel in place."""
    model = pytest.importorskip("accel_models.flexasr.model")
    ila = model.flexasr()
    run = ila.instructions["GB_LAYER_REDUCE_START"]
    rng = np.random.default_rng(timesteps)
    values = {
        "gb_layer_reduce_is_valid": 1,
        "gb_layer_reduce_mode": mode,
        "gb_layer_reduce_num_timestep_1": timesteps,
        "gb_layer_reduce_num_vector_1": vectors,
        "gb_core_mem_mngr_large_base_large_0": 3,
        "gb_core_mem_mngr_large_num_vector_0": vectors,
    }
    assert values.keys() <= ila.states.keys()
    buffer = "gb_core_large_buffer"
    array = rng.integers(0, 256, 1 << ila.states[buffer].sort.addr_width).astype(np.uint8)
    contents = dict(enumerate(array[:8192].tolist()))
    start = {"if_axi_wr": 1, "addr_in": find_start(ila, run)}
    assert il.child_differs(ila, run.name, start, values, {buffer: contents}) is None

    machine = il.Machine(ila)
    machine.values.update(values)
    machine.memories[buffer].update(enumerate(array.tolist()))
    il.run_on_arrays(run.kernel, machine.values, {buffer: array})
    machine.step(start)
    assert machine.values["top_interrupt_request"]
    words = machine.memories[buffer]
    assert array.tolist() == [words[i] for i in range(len(array))]


def find_start(ila: Ila, instruction: il.Instruction) -> int:
    """The first address whose write the instruction decodes: the start registers are few."""
    decode = il.compile_terms(list(ila.inputs.values()), [ila.valid & instruction.decode])
    for region in range(16):
        for index in range(32):
            for top in (0x33, 0x34):
                address = top << 24 | region << 20 | index << 4
                if decode(*({"if_axi_wr": 1, "addr_in": address}.get(n, 0) for n in ila.inputs))[0]:
                    return address
    raise AssertionError(instruction.name)


def test_a_word_that_every_iteration_stores_and_loads() -> None:
    kernel = Kernel("k")
    with kernel.loop("i", COUNT) as i:
        kernel.store(DST, const(7, 9), i)
        kernel.store(DST, kernel.load("w", DST, const(7, 9)).zext(9), 9)
    arrays = {"dst": np.zeros(512, np.uint8)}
    il.run_on_arrays(kernel, {"count": 5}, arrays)
    assert arrays["dst"][:8].tolist() == [9, 9, 9, 9, 9, 0, 0, 4]


def test_loops_whose_extents_are_counters() -> None:
    kernel = Kernel("k")
    with kernel.loop("i", COUNT) as i:
        kernel.store(DST, i.zext(9), i)
        with kernel.loop("j", i) as j, kernel.loop("k", COUNT) as k:
            word = kernel.load("w", DST, k.zext(9))
            kernel.store(DST, il.concat(const(1, 1), i[1:0], j[1:0], k), word + j)
    walked: Any = {"dst": {}}
    run_kernel(kernel, {"count": 4}, walked)
    arrays = {"dst": np.zeros(512, np.uint8)}
    il.run_on_arrays(kernel, {"count": 4}, arrays)
    assert (arrays["dst"] == dense(walked["dst"], 512)).all()


def test_an_extent_that_does_not_fit_its_counter_is_refused_by_both_interpreters_with_the_same_words() -> None:
    ila = Ila("a")
    size, rows, out = ila.input("size", 16), ila.state("rows", 16), ila.memory("out", 16, 8)
    kernel = Kernel("fill")
    with kernel.loop("r", rows, width=8) as r:
        kernel.store(out, r.zext(16), r)
    ila.instruction("go").set_decode(il.true).update(rows, size).start(kernel)
    for machine in (il.Machine(ila), il.Simulator(ila)):
        machine.step({"size": 256})
        assert machine.memories["out"][255] == 255
        with pytest.raises(il.ExtentError, match=r"^Extent 257 must fit the counter r of fill$"):
            machine.step({"size": 257})


def test_an_extent_of_a_program_that_does_not_fit_its_counter_is_refused() -> None:
    n = var("n", bv(16))
    ila = Ila("a")
    ila.instruction("go").set_decode(il.true)
    program = Kernel("send")
    with program.loop("i", n, width=2):
        program.command("go")
    fragment = il.Fragment("f", ila, {"n": n}, {}, program)
    il.run_fragment(fragment, {"n": 4}, {})
    with pytest.raises(il.ExtentError, match=r"^Extent 5 must fit the counter i of send$"):
        il.run_fragment(fragment, {"n": 5}, {})


def test_a_program_is_compiled_once_and_again_where_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def compiled(kernel: Kernel, volatile: Set[Expr]) -> Callable[..., None]:
        made.append(kernel)
        return il.compile_kernel(kernel, volatile)

    monkeypatch.setattr(scalar, "compile_kernel", compiled)
    program, out = Kernel("p"), var("out", il.mem(4, 8))
    program.store(out, const(1, 4), const(1, 8))
    fragment, host = il.Fragment("f", Ila("a"), {}, {"out": out}, program), Memory()
    for _ in range(2):
        il.run_fragment(fragment, {}, {"out": host})
    assert made == [program] and dict(host) == {1: 1}
    program.store(out, const(2, 4), const(2, 8))
    il.run_fragment(fragment, {}, {"out": host})
    assert made == [program, program] and dict(host) == {1: 1, 2: 2}
    left = weakref.ref(program)
    del program, fragment
    made.clear()
    gc.collect()
    assert left() is None


def test_python_numbers_are_addresses_and_words_of_a_known_width_and_refused_elsewhere() -> None:
    kernel, out = Kernel("k"), var("out", il.mem(4, 8))
    kernel.store(out, 3, kernel.load("word", out, 2))
    memory = Memory(0, {2: 7})
    il.compile_kernel(kernel)({}, {"out": memory}, None)
    assert memory[3] == 7
    number: Any = 4

    def loop() -> None:
        with kernel.loop("i", number):
            pass

    for make, message in (
        (loop, "Extent of loop i in kernel k must be an expression, such as const(4, 8), not 4"),
        (
            lambda: kernel.let("x", number),
            "Value of register x in kernel k must be an expression, such as const(4, 8), not 4",
        ),
        (
            lambda: kernel.command("go", write=number),
            "Input write of a command in kernel k must be an expression, such as const(4, 8) or true, not 4",
        ),
        (lambda: kernel.store(number, 0, 0), "Memory of a store in kernel k must be an expression, not 4"),
        (
            lambda: kernel.load("y", number, 0),
            "Memory that register y is loaded from in kernel k must be an expression, not 4",
        ),
    ):
        with pytest.raises(TypeError) as caught:
            make()
        assert str(caught.value) == message
