"""Tasks in processes: one that crashes, hangs, or takes too much memory costs itself and leaves nothing behind."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilaverify.proving import workers
from ilaverify.proving.workers import Ended, Task, begun, note, run_tasks


def hang() -> str:
    time.sleep(1000)
    return "never"


def spin() -> str:
    while True:
        pass


def grow() -> str:
    data = []
    while True:
        data.append(np.empty(1 << 28, np.uint8))


def abort() -> str:
    faulthandler.disable()
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def crash() -> str:
    faulthandler.disable()
    os.kill(os.getpid(), signal.SIGSEGV)
    return "never"


def leave() -> str:
    os._exit(7)


def leave_quietly() -> str:
    os._exit(0)


def fail() -> str:
    raise ValueError("no \u0000 such thing")


def quit_python() -> str:
    raise SystemExit(0)


def run(*tasks: tuple[str, Callable[[], str]], **limits: Any) -> dict[str, Ended]:
    settings = {"jobs": 2, "timeout": 20.0, "memory": 4096} | limits
    with closing(run_tasks([Task(name, what) for name, what in tasks], **settings)) as ends:
        found = {end.name: end for end in ends}
    assert len(found) == len(tasks)
    return found


@pytest.mark.parametrize(
    ("task", "failure"),
    [
        (leave, "its process ended with exit code 7"),
        (leave_quietly, "its process ended without an answer"),
        (fail, "ValueError: no \x00 such thing"),
        (quit_python, "SystemExit: 0"),
        (abort, "its process was ended by SIGABRT; probably out of memory (limit 4096 MB, --memory): terminate called "
         "after throwing an instance of 'std::bad_alloc'"),
        (crash,
         "its process was ended by SIGSEGV, as where memory ends (limit 4096 MB, --memory), or by a crash"),
        (lambda: os.kill(os.getpid(), signal.SIGSYS) or "", "its process was ended by SIGSYS"),
    ],
)  # fmt: skip
def test_a_broken_task_costs_itself_only(task: Callable[[], str], failure: str) -> None:
    found = run(("good", lambda: "text é"), ("bad", task), ("other", lambda: "x" * 10**6))
    assert (found["bad"].text, found["bad"].failure) == (None, failure)
    assert (found["good"].text, found["good"].failure) == ("text é", "")
    assert found["other"].text == "x" * 10**6


@pytest.mark.parametrize("task", [hang, spin])
def test_a_task_that_hangs_is_ended(task: Callable[[], str]) -> None:
    found = run(("bad", task), ("good", lambda: "x"), timeout=1.0)
    assert found["bad"].failure == "no answer within 1 s; give more time with --timeout" and found["bad"].text is None
    assert found["good"].text == "x"


def order(jobs: int, tasks: list[Callable[[], str]]) -> list[int]:
    """The numbers of tasks as they end."""
    named = [Task(str(number), task) for number, task in enumerate(tasks)]
    with closing(run_tasks(named, jobs=jobs, timeout=60.0, memory=4096)) as ends:
        return [int(end.name) for end in ends]


def test_short_tasks_end_while_the_longest_runs(tmp_path: Path) -> None:
    def longest() -> str:
        while not (tmp_path / "1").exists():
            time.sleep(0.01)
        time.sleep(0.3)  # in which the end of the other one is noticed
        return ""

    def last() -> str:
        (tmp_path / "1").touch()
        return ""

    assert order(2, [longest, last, str, str, str]) == [4, 3, 2, 1, 0]


def test_one_process_takes_short_and_long_tasks_in_turns() -> None:
    assert order(1, [str] * 5) == [4, 0, 3, 1, 2]


def after(question: str, then: Callable[[], object]) -> Callable[[], str]:
    def task() -> str:
        note("an earlier question")
        note(question)
        return str(then())

    return task


@pytest.mark.parametrize(
    ("then", "failure"),
    [
        (
            lambda: time.sleep(60),
            "no answer within 1 s; give more time with --timeout; the last question was cells: read 2",
        ),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), "was ended by SIGTERM; the last question was cells: read 2"),
        (lambda: 1 // 0, "ZeroDivisionError: integer division or modulo by zero; the last question was cells: read 2"),
    ],
)
def test_a_process_that_dies_leaves_its_last_question(then: Callable[[], object], failure: str) -> None:
    (end,) = run_tasks([Task("x", after("cells: read 2", then))], jobs=1, timeout=1.0, memory=4096)
    assert end.text is None and failure in end.failure
    (end,) = run_tasks([Task("x", after("q", lambda: "fine"))], jobs=1, timeout=10, memory=4096)
    assert (end.text, end.failure) == ("fine", "")
    note("outside of tasks, nothing happens")


def test_a_task_that_takes_too_much_memory_is_ended() -> None:
    found = run(("bad", grow), ("good", lambda: "x"), memory=2048)
    assert found["bad"].text is None and found["good"].text == "x"
    assert found["bad"].failure == "out of memory (limit 2048 MB, --memory)"


def test_what_a_task_started_ends_with_it(tmp_path: Path) -> None:
    def start_solver() -> str:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        (tmp_path / "pid").write_text(str(process.pid))
        return hang()

    run(("bad", start_solver), timeout=1.0)
    pid = int((tmp_path / "pid").read_text())
    assert ended(pid)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ended(pid: int) -> bool:
    """Whether a process ends within a minute."""
    until = time.monotonic() + 60
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(pid)


@pytest.mark.parametrize(("jobs", "least"), [(1, 1), (3, 2)])
def test_no_more_jobs_than_asked_for_run_at_once(jobs: int, least: int, tmp_path: Path) -> None:
    """Each task waits for the others until as many have met as should."""
    running = tmp_path / "running"
    running.mkdir()

    def count() -> str:
        (running / str(os.getpid())).touch()
        time.sleep(0.02)
        most = 0
        while not (tmp_path / "met").exists():
            most = max(most, len(list(running.iterdir())))
            if most >= least:
                (tmp_path / "met").touch()
        most = max(most, len(list(running.iterdir())))
        (running / str(os.getpid())).unlink()
        return str(most)

    most = max(int(e.text or 0) for e in run(*((str(i), count) for i in range(6)), jobs=jobs).values())
    assert least <= most <= jobs


def test_what_runs_ends_with_its_supervisor(tmp_path: Path) -> None:
    def note() -> str:
        (tmp_path / "pid").write_text(str(os.getpid()))
        return hang()

    supervisor = multiprocessing.get_context("fork").Process(target=run, args=(("long", note),))
    supervisor.start()
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
    pid = int((tmp_path / "pid").read_text())
    assert alive(pid)
    supervisor.kill()
    supervisor.join()
    assert ended(pid)


@pytest.mark.parametrize("end", [hang, leave, crash, fail])
def test_what_a_task_knows_survives_it(end: Callable[[], str]) -> None:
    def task() -> str:
        begun("é" * 5000)
        return end()

    found = run(("bad", task), ("other", end), timeout=1.0)
    assert (found["bad"].text, found["bad"].begun, found["other"].begun) == (None, "é" * 5000, "")


def test_what_was_not_written_to_its_end_is_not_known() -> None:
    def task() -> str:
        assert workers._known is not None
        os.write(workers._known.fileno(), b'{"half')
        return leave()

    assert run(("bad", task))["bad"].begun == ""


def test_closing_ends_what_runs(tmp_path: Path) -> None:
    def note() -> str:
        (tmp_path / "pid").write_text(str(os.getpid()))
        return hang()

    tasks = [Task("long", note), Task("short", lambda: "x")]
    ends = run_tasks(tasks, jobs=2, timeout=60, memory=4096)
    assert next(ends).name == "short"
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
    ends.close()
    assert not alive(int((tmp_path / "pid").read_text()))
