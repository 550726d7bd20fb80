"""What must not happen in native code: accesses outside of arrays, runs without an end, code of somebody else."""

from __future__ import annotations

import copy
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ila_lang as il
from ila_lang import Ila, Kernel, Simulator, const, mem, var
from ila_lang.interpreter import machine as interpreter_machine
from ila_lang.native import arrays as arrays_module
from ila_lang.native import build, cache, session
from ila_lang.native import code as code_module
from ila_lang.native.arrays import ArrayMemory, call
from ila_lang.native.code import KernelCode
from ila_lang.native.layout import Layout
from ila_lang.streams import simulator

pytest.importorskip("llvmlite")

DATA, OUT = var("data", mem(32, 8)), var("out", mem(32, 8))


def counting(extent: il.Expr, width: int | None = None) -> Kernel:
    kernel = Kernel("counting")
    with kernel.loop("i", extent, width=width) as i:
        kernel.store(OUT, const(0, 32), OUT.load(0) * 3 + il.resize(i, 8))
    return kernel


# -- arrays and extents -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 7, 8])
def test_loads_end_with_the_array(size: int) -> None:
    kernel = Kernel("k")
    with kernel.loop("i", const(8, 32)) as i:
        kernel.store(OUT, i, DATA.load(i) + 1)
    arrays = {"data": np.arange(size), "out": np.zeros(8, np.int64)}
    if size == 8:
        il.run_on_arrays(kernel, {}, arrays)
        assert arrays["out"].tolist() == list(range(1, 9))
    else:
        with pytest.raises(ValueError, match=rf"^Address {size:#x} must lie in the array of data, which has {size} w"):
            il.run_on_arrays(kernel, {}, arrays)
        assert not arrays["out"].any()


def test_loads_that_no_condition_selects_may_leave_an_array() -> None:
    """In terms that share the load, too, and where a condition is itself loaded."""
    kernel = Kernel("k")
    with kernel.loop("i", const(16, 32)) as i:
        far = DATA.load(i * 4)
        inside = i < 4
        first = il.ite(inside & (DATA.load(i & 3) < 200), far + 1, const(7, 8))
        kernel.store(OUT, i, il.ite(inside, first + far, first))
    arrays = {"data": np.arange(13), "out": np.zeros(16, np.int64)}
    il.run_on_arrays(kernel, {}, arrays)
    assert arrays["out"].tolist() == [1, 9, 17, 25, *[7] * 12]
    with pytest.raises(ValueError, match=r"^Address 0xc must lie in the array of data, which has 12 words$"):
        il.run_on_arrays(kernel, {}, {"data": np.arange(12), "out": np.zeros(16, np.int64)})


def test_a_load_that_was_not_selected_before_is_checked_again() -> None:
    kernel = Kernel("k")
    kernel.store(OUT, 0, il.ite(var("c", il.BOOL), DATA.load(const(9, 32)), const(1, 8)))
    kernel.store(OUT, 1, DATA.load(const(9, 32)))
    with pytest.raises(ValueError, match=r"^Address 0x9 must lie in the array of data, which has 4 words$"):
        il.run_on_arrays(kernel, {"c": 0}, {"data": np.arange(4), "out": np.zeros(4, np.int64)})


def test_stores_and_addresses_that_wrap_around() -> None:
    kernel = Kernel("k")
    kernel.store(OUT, const(0, 32) - 1, const(1, 8))
    with pytest.raises(ValueError, match=r"^Address 0xffffffff must lie in the array of out, which has 4 words$"):
        il.run_on_arrays(kernel, {}, {"out": np.zeros(4, np.int64)})


@pytest.mark.parametrize("width", [8, 64, 200])
def test_extents_that_do_not_fit(width: int) -> None:
    kernel = counting(var("n", il.bv(width)), width=4)
    for extent in (16, 17, (1 << width) - 1):
        arrays = {"out": np.zeros(1, np.uint8)}
        if extent == 16:
            il.run_on_arrays(kernel, {"n": extent}, arrays)
        else:
            with pytest.raises(il.ExtentError, match=rf"^Extent {extent} must fit the counter i of counting$"):
                il.run_on_arrays(kernel, {"n": extent}, arrays)


def test_long_and_wide_loops() -> None:
    """Loops that are cut into parts, with counters of any width."""
    for extent in (0, 1, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 1_000_003):
        expected = 0
        for i in range(extent):
            expected = (expected * 3 + i) & 255
        for width in (21, 64, 65, 100):
            arrays = {"out": np.zeros(1, np.uint8)}
            il.run_on_arrays(counting(var("n", il.bv(width))), {"n": extent}, arrays)
            assert arrays["out"][0] == expected, (extent, width)


def test_memories_of_another_form_are_refused() -> None:
    ila = Ila("a")
    go, memory = ila.input("go", 1), ila.memory("memory", 4, 8)
    kernel = Kernel("k")
    kernel.store(memory, const(15, 4), const(1, 8))
    ila.instruction("go").set_decode(go == 1).start(kernel)
    other = ila.memory("other", 4, 8)
    shared = ArrayMemory(il.MemSort(4, 8), 0)
    for wrong in ({"memory": ArrayMemory(il.MemSort(3, 8), 0)}, {"memory": {}}, {"memory": shared, other.name: shared}):
        machine = Simulator(ila)
        machine.memories.update(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^Memory memory of a must be an ArrayMemory of its sort, of its own$"):
            machine.step({"go": 1})


def test_a_device_that_is_not_used_any_more_leaves_no_memory_behind() -> None:
    ila = Ila("a")
    go, memory = ila.input("go", 1), ila.memory("memory", 4, 8)
    ila.instruction("go").set_decode(go == 1).update(memory, memory.store(0, 1))
    machine = Simulator(ila)
    machine.execute(il.CommandStream({"go": np.ones(3, np.int64)}))
    left = weakref.ref(machine.memories["memory"])
    gc.disable()
    try:
        del machine
        assert left() is None
    finally:
        gc.enable()


# -- code, and what it was made for ------------------------------------------------------------------------


def test_end_values_change_nothing_about_the_memories_of_the_code() -> None:
    """Neither do they need arguments, for they are not applied."""
    kernel, at, done = Kernel("k"), var("at", il.bv(32)), var("done", il.bv(8))
    kernel.store(OUT, 0, DATA.load(at))
    for _ in range(2):
        arrays = {"data": np.arange(8, dtype=np.uint8), "out": np.zeros(4, np.uint8)}
        il.run_on_arrays(kernel, {"at": 5}, arrays)
        assert arrays["out"].tolist() == [5, 0, 0, 0]
        for address in (8, 1000, 1 << 31):
            with pytest.raises(ValueError, match=rf"^Address {address:#x} must lie in the array of data, which has 8 "):
                il.run_on_arrays(kernel, {"at": address}, arrays)
        if not kernel.on_done:
            kernel.done(done, var("extra", mem(2, 8)).load(0) + var("more", il.bv(8)))


def test_code_refuses_arrays_that_it_was_not_made_for() -> None:
    kernel = Kernel("k")
    memory = var("m", mem(4, 8))
    kernel.store(memory, 15, const(1, 8))
    code = KernelCode(kernel, Layout([]), [memory])
    native = code.native({})
    assert native is not None
    for wrong in (np.zeros(15, np.uint8), np.zeros(16, np.uint16), np.zeros(32, np.uint8)[::2]):
        with pytest.raises(AssertionError, match=r"^Array m of kernel k must be what its code was made for$"):
            call(native.run, code, {}, {"m": wrong})
    whole = np.zeros(16, np.uint8)
    call(native.run, code, {}, {"m": whole})
    assert whole.tolist() == [0] * 15 + [1]


def test_a_kernel_that_changes_before_its_first_start_does_not_reach_foreign_memory() -> None:
    ila = Ila("a")
    go, memory = ila.input("go", 1), ila.memory("memory", 4, 8)
    kernel = Kernel("k")
    kernel.store(memory, 0, const(1, 8))
    ila.instruction("go").set_decode(go == 1).start(kernel)
    ila.instruction("stay").set_decode(go == 0)
    machine = Simulator(ila)
    machine.execute(il.CommandStream({"go": np.zeros(3, np.int64)}))
    kernel.store(var("memory2", mem(32, 8)), const(1 << 31, 32), const(1, 8))
    with pytest.raises(ValueError, match=r"^Model a must not change while a machine of it runs; make a new machine$"):
        machine.execute(il.CommandStream({"go": np.ones(3, np.int64)}))


def test_memories_of_the_name_but_not_of_the_device_have_no_code() -> None:
    kernel = Kernel("k")
    kernel.store(var("memory", mem(32, 8)), const(1 << 31, 32), const(1, 8))
    code = KernelCode(kernel, Layout([]), [var("memory", mem(4, 8))])
    assert code.native({}) is None and not code.is_native
    ila = Ila("a")
    ila.memory("memory", 4, 8)
    ila.instruction("go")
    program = Kernel("program")
    fragment = il.Fragment("f", ila, {}, {}, program)
    program.store(var("memory", mem(32, 8)), const(1 << 31, 32), const(1, 8))
    with pytest.raises(ValueError, match=r"^Fragment f must use only its parameters, tensors and device outputs, not"):
        Simulator(ila).run_fragment(fragment, {}, {})


def test_the_tensors_of_a_fragment_that_has_changed_are_those_of_its_code() -> None:
    ila = Ila("a")
    ila.instruction("go")
    program, size, narrow = Kernel("program"), var("n", il.bv(8)), var("t", mem(4, 8))
    program.store(narrow, 1, size)
    fragment = il.Fragment("f", ila, {"n": size}, {"t": narrow}, program)
    words = np.zeros(16, np.uint64)
    Simulator(ila).run_fragment(fragment, {"n": 7}, {"t": words})
    assert words.tolist() == [0, 7] + [0] * 14
    wide = var("t", mem(4, 64))
    program.body.clear()
    program.store(wide, 15, size.zext(64) + (1 << 40))
    fragment.tensors["t"] = wide
    Simulator(ila).run_fragment(fragment, {"n": 7}, {"t": words})
    assert words.tolist() == [0, 7] + [0] * 13 + [(1 << 40) + 7]


@pytest.mark.parametrize("trials", [0, 1 << 62])
def test_scalars_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch, trials: int) -> None:
    """In native code and on the interpreter."""
    monkeypatch.setattr(code_module, "TRIED", trials)
    kernel, n, wide = Kernel("k"), var("n", il.bv(4)), var("wide", il.bv(100))
    kernel.store(var("m", mem(3, 8)), 1, n.zext(8) + wide[7:0])
    kernel.store(var("m", mem(3, 8)), 2, const(trials % 251, 8))  # for the two to have code of their own
    array = np.zeros(8, np.uint8)
    il.run_on_arrays(kernel, {"n": True, "wide": np.uint8(2)}, {"m": array})  # type: ignore[dict-item]
    assert array[1] == 3
    for name, width in (("n", 4), ("wide", 100)):
        for value in (-1, 1 << width, 1 << 200):
            with pytest.raises(ValueError, match=rf"^Value {name} of kernel k must fit in {width} bits unsigned, not "):
                il.run_on_arrays(kernel, {"n": 0, "wide": 0, name: value}, {"m": array})
        with pytest.raises(TypeError, match=rf"^Value {name} of kernel k must be an integer, not 2.5$"):
            il.run_on_arrays(kernel, {"n": 0, "wide": 0, name: 2.5}, {"m": array})  # type: ignore[dict-item]


def test_the_tensors_of_a_fragment_must_be_separate_arrays() -> None:
    ila = Ila("a")
    x, s, memory = ila.input("x", 8), ila.state("s", 8, 0), ila.memory("memory", 3, 8, 0)
    ila.instruction("add").update(s, s + x).update(memory, memory.store(0, s))
    program, source, target = Kernel("program"), var("source", mem(3, 8)), var("target", mem(3, 8))
    with program.loop("i", const(5, 3)) as i:
        program.command(x=source.load(i))
        program.store(target, i + 1, s)
    fragment = il.Fragment("f", ila, {}, {"source": source, "target": target}, program)
    machine, both = Simulator(ila), np.zeros(12, np.uint8)
    for one, other in ((both[:8], both[:8]), (both[:8], both[4:])):
        with pytest.raises(ValueError, match=r"^Memories target and source must be separate arrays$"):
            machine.run_fragment(fragment, {}, {"source": one, "target": other})
    own = machine.memories["memory"].words
    for tensors in ({"source": own, "target": both[:8]}, {"source": both[:8], "target": own}):
        with pytest.raises(ValueError, match=r"^Tensor (source|target) of fragment f must be no memory of the device$"):
            machine.run_fragment(fragment, {}, tensors)
    assert not both.any() and machine.values == {"s": 0}


# -- threads and what is kept -------------------------------------------------------------------------------


def in_threads(count: int, run: Callable[[], Any]) -> list[Any]:
    """What a function gives, or raises, in threads that begin together."""
    found: list[Any] = []
    together = threading.Barrier(count)

    def one() -> None:
        together.wait()
        try:
            found.append(run())
        except Exception as error:
            found.append(error)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def slow(make: Callable[..., Any], made: list[Any]) -> Callable[..., Any]:
    def slower(*arguments: Any, **more: Any) -> Any:
        time.sleep(0.05)
        made.append(make(*arguments, **more))
        return made[-1]

    return slower


def test_threads_share_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one would free the code that the other one runs."""
    made: dict[str, list[Any]] = {}
    for module, name in (
        (interpreter_machine, "_Shared"),
        (simulator, "DeviceCode"),
        (session, "KernelCode"),
        (session, "fragment_text"),
        (session, "compiled"),
        (build, "compiled"),
        (arrays_module, "KernelCode"),
    ):
        made[f"{module.__name__}.{name}"] = seen = []
        monkeypatch.setattr(module, name, slow(getattr(module, name), seen))
    ila = Ila("a")
    go, memory = ila.input("go", 1), ila.memory("memory", 4, 8, 0)
    kernel = Kernel("k")
    kernel.store(memory, 3, memory.load(3) + 1)
    ila.instruction("go").set_decode(go == 1).start(kernel)
    program = Kernel("program")
    program.command(go=const(1, 1))
    fragment = il.Fragment("f", ila, {}, {}, program)

    def run() -> int:
        machine = Simulator(ila)
        machine.execute(il.CommandStream({"go": np.ones(3, np.int64)}))
        machine.run_fragment(fragment, {}, {})
        array = np.zeros(9, np.uint8)
        il.run_on_arrays(kernel, {}, {"memory": array})
        return int(machine.memories["memory"][3] * 10 + array[3])

    assert in_threads(3, run) == [41] * 3
    assert {name: len(seen) for name, seen in made.items()} == {
        name: 3 if name == "ila_lang.native.build.compiled" else 1 for name in made
    }


def test_what_is_compiled_is_freed_with_what_it_was_compiled_of() -> None:
    def use() -> list[weakref.ref[Any]]:
        ila = Ila("a")
        go, n = ila.input("go", 1), ila.state("n", 8, 0)
        memory = ila.memory("memory", 3, 8, 0)
        kernel, other = Kernel("k"), Kernel("other")
        kernel.store(memory, 0, n)
        other.store(var("m", mem(3, 8)), 0, const(1, 8))
        ila.instruction("go").set_decode(go == 1).update(n, n + 1).start(kernel)
        program = Kernel("program")
        program.command(go=const(1, 1))
        machine = Simulator(ila)
        machine.execute(il.CommandStream({"go": np.ones(3, np.int64)}))
        machine.run_fragment(il.Fragment("f", ila, {}, {}, program), {}, {})
        il.Machine(ila).step({"go": 1})
        il.run_on_arrays(other, {}, {"m": np.zeros(8, np.uint8)})
        assert machine._session is not None
        code = machine._session.code
        return [weakref.ref(x) for x in (ila, kernel, other, program, code, code._code.code, code.kernels[kernel])]

    left = use()
    gc.collect()
    assert [reference() for reference in left] == [None] * len(left)


@pytest.mark.parametrize("value", [-1, 256, 1 << 64])
def test_states_that_were_set_to_what_does_not_fit_are_refused(value: int) -> None:
    ila = Ila("a")
    n, go = ila.state("n", 8, 0), ila.input("go", 1)
    ila.state("wide", 100, 0)
    ila.instruction("go").set_decode(go == 1).update(n, n + 1)
    machine = Simulator(ila)
    machine.values["n"] = value
    with pytest.raises(ValueError, match=f"Value n must fit in 8 bits unsigned, not {value}"):
        machine.execute(il.CommandStream({"go": np.ones(2, np.int64)}))


# -- interrupts -------------------------------------------------------------------------------------------


def interrupted(run: Any) -> float:
    """Seconds of this process from an interrupt, half a second after the start, to the end of a run."""
    times: list[float] = []

    def send() -> None:
        times.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.5, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        timer.cancel()
    return time.process_time() - times[0]


@pytest.mark.parametrize("nested", [False, True])
def test_an_interrupt_ends_a_kernel(nested: bool) -> None:
    kernel = Kernel("long")
    if nested:
        with kernel.loop("i", const((1 << 32) - 1, 32)) as i, kernel.loop("j", i) as j:
            kernel.store(OUT, const(0, 32), OUT.load(0) * 3 + (i ^ j)[7:0])
    else:
        kernel = counting(const((1 << 40) - 1, 40))
    assert interrupted(lambda: il.run_on_arrays(kernel, {}, {"out": np.zeros(1, np.uint8)})) < 1


def test_an_interrupt_ends_a_stream_and_a_fragment() -> None:
    ila = Ila("a")
    n = ila.state("n", 8, 0)
    go = ila.input("go", 1)
    ila.instruction("go").set_decode(go == 1).update(n, n * 3 + 1)
    program = Kernel("program")
    with program.loop("i", const((1 << 32) - 1, 32)):
        program.command(go=const(1, 1))
    fragment = il.Fragment("long", ila, {}, {}, program)
    machine = Simulator(ila)
    assert interrupted(lambda: machine.run_fragment(fragment, {}, {})) < 1
    machine.execute(il.CommandStream({"go": np.ones(3, np.int64)}))


@pytest.mark.parametrize("what", ["stream", "fragment", "division"])
def test_an_interrupt_ends_many_short_kernels_and_one_of_few_long_iterations(what: str) -> None:
    """None of the first makes as many iterations as are counted, and one of the last takes as long as thousands."""
    width = 512 if what == "division" else 64
    ila = Ila("a")
    go, x = ila.input("go", 1), ila.state("x", width, 12345)
    word = ila.memory("word", 1, width)
    kernel = Kernel("kernel")
    acc = kernel.let("acc", x)
    with kernel.loop("i", const(1_000_000, 32)) as i:
        new = (~acc) // ((acc >> (width // 2 + 3)) + 1) if what == "division" else acc * acc + (acc >> 3)
        kernel.assign(acc, new + i.zext(width))
    kernel.store(word, const(0, 1), acc)
    ila.instruction("go").set_decode(go == 1).start(kernel)
    program = Kernel("program")
    with program.loop("j", const(50_000, 32)):
        program.command(go=const(1, 1))
    fragment, machine = il.Fragment("program", ila, {}, {}, program), Simulator(ila)
    stream = il.CommandStream({"go": np.ones(50_000, np.int64)})
    run = (lambda: machine.run_fragment(fragment, {}, {})) if what == "fragment" else (lambda: machine.execute(stream))
    assert interrupted(run) < 1


# -- one device, one thread -------------------------------------------------------------------------------


def test_a_second_thread_is_refused() -> None:
    ila = Ila("a")
    go, n = ila.input("go", 1), ila.state("n", 8, 0)
    ila.instruction("go").set_decode(go == 1).update(n, n + 1)
    machine, stream = Simulator(ila), il.CommandStream({"go": np.ones(5_000, np.int64)})
    machine.execute(stream)
    session = machine._session
    assert session is not None
    errors: list[BaseException] = []

    def run() -> None:
        try:
            machine.execute(stream)
        except RuntimeError as error:
            errors.append(error)

    with session.busy:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert [str(e) for e in errors] == ["A device of a must be used by one thread at a time; make another one"]
    with pytest.raises(TypeError, match="A Simulator of a cannot be copied; make another one"):
        copy.copy(machine)


# -- the cache --------------------------------------------------------------------------------------------


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield tmp_path / "ilaverify" / "native"


TEXT = "define i32 @answer() {{\n  ret i32 {}\n}}\n"


def answer(number: int) -> int:
    code = build.compiled(TEXT.format(number))
    assert code is not None
    return code.function("answer")()


def entries(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.o"))


def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    make = build.object_of
    monkeypatch.setattr(build, "object_of", lambda text, *more: seen.append(text) or make(text, *more))
    return seen


def test_what_is_known_is_not_compiled_again(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = compilations(monkeypatch)
    assert build.compiled(TEXT.format(42), known_only=True) is None
    assert [answer(42), answer(42), answer(43), answer(42)] == [42, 42, 43, 42]
    assert len(seen) == 2
    assert len(entries(private)) == 2
    assert private.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["cut", "empty", "bit", "other", "link", "pipe", "large"])
def test_damaged_and_foreign_entries_are_compiled_again(
    private: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    seen = compilations(monkeypatch)
    assert answer(42) == 42
    (entry,) = entries(private)
    content = entry.read_bytes()
    match damage:
        case "cut":
            entry.write_bytes(content[:-1])
        case "empty":
            entry.write_bytes(b"")
        case "bit":
            entry.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
        case "other":  # intact, but the code of another text
            assert answer(43) == 43
            (other,) = [e for e in entries(private) if e != entry]
            entry.write_bytes(other.read_bytes())
        case "pipe":
            entry.unlink()
            os.mkfifo(entry)
        case "large":
            os.truncate(entry, cache.MOST_BYTES + 1)
        case "link":
            elsewhere = private.parent / "elsewhere"
            entry.rename(elsewhere)
            entry.symlink_to(elsewhere)
    before = len(seen)
    assert answer(42) == 42
    assert len(seen) == before + 1
    assert answer(42) == 42
    assert len(seen) == before + 1


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_directory_that_is_not_private_is_not_used(private: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    private.mkdir(parents=True)
    private.chmod(mode)
    seen = compilations(monkeypatch)
    assert [answer(42), answer(42)] == [42, 42]
    assert len(seen) == 2
    assert not entries(private)


def test_where_no_directory_can_be_made_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache.directory() is None
    assert answer(42) == 42


def test_the_oldest_entries_go(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_ENTRIES", 4)
    for number in range(6):
        cache.keep(f"{number}", b"x")
        for age, entry in enumerate(entries(private)):
            os.utime(entry, (age, age))
    assert [e.stem for e in entries(private)] == ["2", "3", "4", "5"] or len(entries(private)) <= 4
    assert cache.find("5") == b"x"


def test_the_target_and_the_text_are_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {cache.key(target, text) for target in ("a", "b") for text in ("x", "y")}
    assert len(keys) == 4
    assert all(part in build._target()[3] for part in build._target()[:3])


# -- without a compiler -----------------------------------------------------------------------------------

WITHOUT = """
import sys
sys.modules["llvmlite"] = None
import numpy as np
import ila_lang as il
from ila_lang import Ila, Kernel, Simulator, CommandStream, const
ila = Ila("a")
go, memory, n = ila.input("go", 1), ila.memory("memory", 4, 8), ila.state("n", 5, 0)
kernel = Kernel("k")
with kernel.loop("i", n) as i:
    kernel.store(memory, i[3:0], i.zext(8) + 1)
ila.instruction("go").set_decode(go == 1).update(n, n + 1).start(kernel)
ila.instruction("stay").set_decode(go == 0).update(n, n)
for _ in range(2):
    machine = Simulator(ila)
    found = machine.execute(CommandStream({"go": np.array([1, 0, 1])}), ["n"])
    print([(int(a), int(b)) for a, b in found["n"]], machine.memories["memory"].words.tolist()[:3])
program = Kernel("program")
program.command(go=const(1, 1))
machine.run_fragment(il.Fragment("f", ila, {}, {}, program), {}, {})
words = np.zeros(16, np.int64)
il.run_on_arrays(kernel, {"n": 2}, {"memory": words})
print(machine.values, words.tolist()[:3], machine.plain_runs(CommandStream({"go": np.array([1])})))
"""


def test_without_llvmlite_the_interpreter_serves_and_says_so_once() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    line = "[(0, 1), (1, 1), (2, 2)] [1, 2, 0]\n"
    assert done.stdout == line + line + "{'n': 3} [1, 2, 0] []\n"
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("note: simulators run on the interpreter, which is slower, because llvmlite cannot")


# -- what has no native code ------------------------------------------------------------------------------


def test_what_is_too_wide_is_left_to_the_interpreter() -> None:
    """An instruction, a kernel and a whole device of words above the limit, beside others."""
    width = 1100
    ila = Ila("a")
    kind, data = ila.input("kind", 2), ila.input("data", 600)
    memory, n = ila.memory("memory", 2, width, 0), ila.state("n", 8, 0)
    ila.instruction("narrow").set_decode(kind == 0).update(n, n + 1)
    ila.instruction("wide").set_decode(kind == 1).update(memory, memory.store(n[1:0], il.concat(data, data[499:0])))
    kernel = Kernel("k")
    kernel.store(memory, 3, memory.load(0) * memory.load(1) + 1)
    ila.instruction("go").set_decode(kind >= 2).start(kernel)
    rows = np.random.default_rng(1).integers(0, 256, (40, 75), np.uint8)
    stream = il.CommandStream({"kind": np.random.default_rng(2).integers(0, 4, 40), "data": rows})
    slow, fast = il.Machine(ila), Simulator(ila)
    for number in range(40):
        slow.step(stream.command(number))
    fast.execute(stream)
    assert fast.values == slow.values
    assert [fast.memories["memory"][a] for a in range(4)] == [slow.memories["memory"][a] for a in range(4)]
    product = il.concat(data, data) * il.concat(data, data)
    ila.instructions["narrow"].set_decode((kind == 0) & (product == 0))
    ila.instruction("other").set_decode((kind == 0) & (product != 0)).update(n, n + 3)
    slow, fast = il.Machine(ila), Simulator(ila)
    for number in range(40):
        slow.step(stream.command(number))
    assert [(k, int(v)) for k, v in fast.execute(stream, ["n"])["n"]][-1][1] == fast.values["n"] == slow.values["n"]
    assert fast.plain_runs(stream) == []
    program = Kernel("program")
    program.command(kind=const(0, 2))
    fast.run_fragment(il.Fragment("f", ila, {}, {}, program), {}, {})
    assert fast.values["n"] == slow.values["n"] + 1
    state = Ila("b")
    wide = state.state("wide", width, 0)
    state.instruction("add").update(wide, wide + (1 << 1000))
    machine = Simulator(state)
    machine.step({})
    assert machine.values == {"wide": 1 << 1000}


def test_long_decodes_have_native_code() -> None:
    ila = Ila("a")
    x, s = ila.input("x", 16), ila.state("s", 16, 3)
    condition = (x == 0) & (s == 3)
    for number in range(1, 1500):
        condition = condition | ((x == number) & (s == number + 3))
    ila.instruction("next").set_decode(condition).update(s, s + 1)
    machine = Simulator(ila)
    machine.execute(il.CommandStream({"x": np.arange(3)}))
    assert machine.values == {"s": 6}
