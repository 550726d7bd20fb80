"""Tasks in processes of their own, with limits of time and memory: a task that fails takes no other with it.

A task's process is the leader of a session, so that it can be ended together with the solvers that it started; it ends
when this process does, however that ends.
"""

from __future__ import annotations

import ctypes
import gc
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from typing import IO, Protocol

_FORK = multiprocessing.get_context("fork")
_MEGABYTE = 1 << 20
_WITHOUT_MEMORY = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)
"""How libraries end a process that gets no more memory; crashes for other reasons look the same from outside."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class MachinesError(Exception):
    """Other machines that cannot be used, or not any more; the message names them and the next step."""


class Machines(Protocol):
    """What runs tasks on other machines (:class:`.cluster.Cluster`)."""

    def run_tasks(
        self,
        tasks: Sequence[Task],
        *,
        timeout: float,
        memory: int,
        started: Callable[[str], None] | None = None,
        stopped: Callable[[], bool] = ...,
    ) -> Generator[Ended]:
        """As the function of that name; raises MachinesError."""


@dataclass(frozen=True)
class Limits:
    """What a run may use: processes at once, or a cluster; seconds and megabytes of address space for each task.

    With 0 megabytes there is no limit of them.
    """

    jobs: int = 1
    timeout: float = 300.0
    memory: int = 4096
    cluster: Machines | None = None


@dataclass(frozen=True)
class Task:
    """A name, and what to run for its text; on a cluster, ``prepare`` is run before, where processes are forked."""

    name: str
    run: Callable[[], str]
    prepare: partial[None] | None = None


@dataclass(frozen=True)
class Ended:
    """How a task ended: with a ``text``, or with None and the ``failure`` in words.

    ``begun`` is what the task gave to :func:`begun`, however it ended.
    """

    name: str
    text: str | None
    failure: str
    seconds: float
    begun: str = ""


@dataclass
class _Running:
    task: Task
    process: ForkProcess
    answer: IO[bytes]
    errors: IO[bytes]
    notes: IO[bytes]
    known: IO[bytes]
    start: float
    last: bool
    """Whether the task was the last of those that waited."""


_NOTE_BYTES = 200
_notes: IO[bytes] | None = None
"""In a task's process: where it writes which question it works on."""
_known: IO[bytes] | None = None
"""In a task's process: where it writes what is known before it ends."""


def begun(text: str) -> None:
    """Keeps what a task knows already, for the case that its process dies.  Elsewhere, does nothing."""
    if _known is not None:
        _known.write(f"{text}\n".encode())
        _known.flush()


def note(text: str) -> None:
    """Notes which question a task works on; if its process dies, the failure says so.  Elsewhere, does nothing."""
    if _notes is not None:
        # at a place, for both processes have the file open and share its position
        os.pwrite(_notes.fileno(), text.encode(errors="replace")[:_NOTE_BYTES].ljust(_NOTE_BYTES), 0)


POLL_SECONDS = 0.2
"""The interval at which ``stopped`` is asked."""

_NEW_OBJECTS = 500_000
"""A task collects garbage each time that this number of objects is new.

It makes many terms and hardly any cyclic garbage: collecting as often as Python does takes a fifth of its time.
"""


def run_tasks(
    tasks: Sequence[Task],
    *,
    jobs: int,
    timeout: float,
    memory: int,
    started: Callable[[str], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[Ended]:
    """Runs tasks, ``jobs`` at a time, each for ``timeout`` seconds at most with ``memory`` MB of address space.

    Tasks should begin with the longest.  One of the processes at a time takes from the end, so that short tasks are
    done while long ones run, and a run that is stopped early has done something; a single process takes turns.

    Yields each task's end when it comes.  Ends all processes when the iterator is closed or Ctrl-C interrupts it, and
    raises KeyboardInterrupt soon after ``stopped`` becomes true.
    """
    waiting = deque(tasks)
    last = False  # whether the task that was started last is one from the end
    running: dict[int, _Running] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                last = not any(one.last for one in running.values()) and not (jobs == 1 and last)
                task = waiting.pop() if last else waiting.popleft()
                if started is not None:
                    started(task.name)
                one = _start(task, timeout, memory, last)
                running[one.process.sentinel] = one
            now = time.monotonic()
            nearest = min(one.start + timeout for one in running.values())
            ready = wait(list(running), min(POLL_SECONDS, max(0.0, nearest - now)))
            if stopped():
                raise KeyboardInterrupt
            for sentinel in [s for s in running if s in ready]:
                yield _finished(running.pop(sentinel), memory)
            now = time.monotonic()
            for sentinel in [s for s, one in running.items() if now >= one.start + timeout]:
                late = running.pop(sentinel)
                failure = f"no answer within {timeout:g} s; give more time with --timeout" + _noted(late)
                known = _said_before(late)
                _end(late)
                yield Ended(late.task.name, None, failure, now - late.start, known)
    finally:
        for one in running.values():
            _end(one)


def run_within(
    limits: Limits,
    tasks: Sequence[Task],
    *,
    started: Callable[[str], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[Ended]:
    """Runs tasks in processes of this machine or, where the limits have a cluster, on that.

    On a cluster each task must run a ``partial`` of a function of this package, with arguments that JSON has.
    """
    run = partial(run_tasks, jobs=limits.jobs) if limits.cluster is None else limits.cluster.run_tasks
    return run(tasks, timeout=limits.timeout, memory=limits.memory, started=started, stopped=stopped)


def _start(task: Task, timeout: float, memory: int, last: bool) -> _Running:
    answer, errors, notes, known = (tempfile.TemporaryFile() for _ in range(4))  # noqa: SIM115  closed by _end
    sys.stdout.flush()  # what is buffered would be written by the child again
    sys.stderr.flush()
    process = _FORK.Process(target=_child, args=(task, (answer, errors, notes, known), timeout, memory))
    process.start()
    return _Running(task, process, answer, errors, notes, known, time.monotonic(), last)


def _noted(one: _Running) -> str:
    """The question that a task noted last."""
    note = os.pread(one.notes.fileno(), _NOTE_BYTES, 0).decode(errors="replace").strip()
    return f"; the last question was {note}" if note else ""


def _said_before(one: _Running) -> str:
    """What a task kept; empty where it was ended while it wrote that."""
    text = os.pread(one.known.fileno(), os.fstat(one.known.fileno()).st_size, 0).decode(errors="replace")
    return text[:-1] if text.endswith("\n") else ""


def _end(one: _Running) -> None:
    """Ends a task's process and all that it started."""
    pid = one.process.pid
    assert pid is not None
    for kill in (os.killpg, os.kill):  # the group exists only once the child has made it
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    one.process.join()
    for file in (one.answer, one.errors, one.notes, one.known):
        file.close()


def _finished(one: _Running, memory: int) -> Ended:
    seconds = time.monotonic() - one.start
    one.process.join()
    one.answer.seek(0)
    one.errors.seek(0)
    written, messages = one.answer.read(), one.errors.read().decode(errors="replace").split("\n")
    code, noted, known = one.process.exitcode, _noted(one), _said_before(one)
    _end(one)
    last = next((line.strip()[:200] for line in reversed(messages) if line.strip()), "")
    if code == 0:
        try:
            kind, text = json.loads(written)
        except ValueError:
            return Ended(one.task.name, None, "its process ended without an answer" + noted, seconds, known)
        if kind == "done":
            return Ended(one.task.name, text, "", seconds)
        return Ended(one.task.name, None, text + noted, seconds, known)
    if code is not None and code < 0:
        failure = f"its process was ended by {_signal_name(-code)}"
        if "bad_alloc" in last or "memory" in last.lower() or -code == signal.SIGKILL:
            failure += f"; probably out of memory{_memory(memory)}"
        elif -code in _WITHOUT_MEMORY:
            failure += f", as where memory ends{_memory(memory)}, or by a crash"
        elif -code == signal.SIGXCPU:
            failure += "; it used more processor time than --timeout allows"
    else:
        failure = f"its process ended with exit code {code}"
    return Ended(one.task.name, None, failure + noted + (f": {last}" if last else ""), seconds, known)


def _memory(limit: int) -> str:
    return f" (limit {limit} MB, --memory)" if limit else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _child(task: Task, files: tuple[IO[bytes], IO[bytes], IO[bytes], IO[bytes]], timeout: float, memory: int) -> None:
    """The other process: limits, the task, its answer in a file, and out, whatever happens."""
    global _notes, _known
    answer, errors, _notes, _known = files
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(errors.fileno(), 2)
    _limit(resource.RLIMIT_CORE, 0)
    if memory:
        _limit(resource.RLIMIT_AS, memory * _MEGABYTE)
    _limit(resource.RLIMIT_CPU, int(2 * timeout) + 10, 5)  # a process that outlives its supervisor ends all the same
    gc.freeze()  # memory from before the fork stays shared while it is not touched
    gc.set_threshold(_NEW_OBJECTS)
    try:
        report = ["done", task.run()]
    except MemoryError:
        report = ["failed", f"out of memory{_memory(memory)}"]
    except BaseException as error:  # whatever it was, it is what the report says
        report = ["failed", f"{type(error).__name__}: {error}"]
    answer.write(json.dumps(report).encode())
    answer.flush()
    os._exit(0)


def _limit(what: int, value: int, grace: int = 0) -> None:
    """Sets a limit, ``grace`` less than the hard one, and never above what the process may have."""
    hard = resource.getrlimit(what)[1]
    most = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    resource.setrlimit(what, (min(value, most), most))
