"""Programs of a node run on several threads, each with simulators of its own."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

from ila_lang import Ila, Kernel, Simulator, const
from rewrites.compiler.codegen import Devices, programs
from tests.rewrites.targets.nodes import case, normal

RUNS = (1, 2, 3)


def test_each_thread_has_simulators_of_its_own() -> None:
    ila, devices, meeting = Ila("a"), Devices(3), threading.Barrier(3, timeout=60)

    def run(number: int) -> tuple[int, Simulator]:
        meeting.wait()
        return number, devices.of(ila)

    found = devices.each(run, range(3))
    assert [number for number, _ in found] == [0, 1, 2] and len({id(device) for _, device in found}) == 3
    assert devices.of(ila) in [device for _, device in found]
    assert {id(device) for _, device in devices.each(run, range(3))} == {id(device) for _, device in found}


def test_results_are_those_of_one_thread() -> None:
    c = case("vta.dense", [normal(1, 40, 100), normal(2, 30, 100)])
    linear = case("flexasr.linear", [normal(1, 3, 20), normal(2, 70 * 64, 20), normal(3, 70 * 64)], activation="none")
    for one in (c, linear):
        values = [one.implementation().run(one.operands, Devices(threads)).value for threads in RUNS]
        assert all(np.array_equal(value, values[0]) for value in values)
    assert len(linear.implementation().calls) > 1


@pytest.mark.parametrize("threads", RUNS)
def test_an_error_is_raised_and_nothing_runs_any_more(threads: int) -> None:
    devices, began = Devices(threads), list[int]()

    def run(number: int) -> int:
        began.append(number)
        if number == 5:
            raise ValueError("five")
        time.sleep(0.001)
        return number

    with pytest.raises(ValueError, match="five"):
        devices.each(run, range(1000))
    count = len(began)
    assert count < 1000
    time.sleep(0.02)
    assert len(began) == count and devices.each(lambda number: -number, range(4)) == [0, -1, -2, -3]


def endless() -> Ila:
    ila = Ila("long")
    memory, go = ila.memory("m", 4, 8), ila.input("go", 1)
    kernel = Kernel("spin")
    with kernel.loop("i", const((1 << 32) - 1, 32)) as i, kernel.loop("j", i) as j:
        kernel.store(memory, const(0, 4), memory.load(0) * 3 + (i ^ j)[7:0])
    ila.instruction("go").set_decode(go == 1).start(kernel)
    return ila


def test_an_interrupt_ends_all_threads() -> None:
    ila, devices = endless(), Devices(2)
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    before = threading.active_count()
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        devices.each(lambda _: devices.of(ila).run_kernel(ila.kernels["spin"]), range(8))
    assert time.monotonic() - started < 30  # on a machine that is busy; the kernel would take years
    timer.join()
    assert threading.active_count() == before


def test_forked_processes_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    devices, seen = Devices(2), set[Any]()
    monkeypatch.setattr(programs.os, "getpid", lambda: -1)
    devices.each(lambda _: seen.add(threading.current_thread()), range(50))
    assert seen == {threading.current_thread()}
