"""What must not happen in native code: accesses outside of arrays, runs without an end, code of somebody else."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ila_lang as il
from ila_lang import Ila, Kernel, Simulator, const, mem, var
from ila_lang.native import build, cache
from ila_lang.native.arrays import ArrayMemory

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


@pytest.mark.parametrize("damage", ["cut", "empty", "bit", "other", "link"])
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
    state = Ila("b")
    wide = state.state("wide", width, 0)
    state.instruction("add").update(wide, wide + (1 << 1000))
    machine = Simulator(state)
    machine.step({})
    assert machine.values == {"wide": 1 << 1000}
