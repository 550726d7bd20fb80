"""A cluster's tasks on the machine that runs them: each in a process of its own, with the limits of :mod:`.workers`.

A Dask worker runs :func:`work` in a thread.  Processes must not be forked beside threads, so each thread passes its
tasks as texts to a *server*, a process with one thread that has everything loaded, and forks for each task.
A server ends what it runs and itself when its worker ends, however that ends.

This module loads nothing large: Dask's scheduler imports it, too.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from .workers import POLL_SECONDS, Ended, Task, run_tasks


def work(request: str) -> str:
    """The answer to a request of :mod:`.cluster`; nothing where its client does not wait for it any more."""
    from distributed import get_worker
    from distributed.core import Status

    worker = get_worker()
    key = worker.get_current_task()

    def stopped() -> bool:
        task = worker.state.tasks.get(key)
        running = worker.status in (Status.running, Status.paused, Status.closing_gracefully)
        return not running or task is None or task.state not in ("executing", "long-running")

    server = _server_for(json.dumps(json.loads(request)["serves"]))
    answer = server.answer(request, stopped)
    if answer:
        _idle.append(server)
        return answer
    server.end()
    return _text(failure=f"the process on worker {worker.address} that should run it has ended")


def _text(
    ended: Sequence[Ended] = (),
    failure: str = "",
    refused: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """An answer: the ends of tasks; or why there are none; or that they are refused, and what the worker has."""
    answer = {"ended": list(map(asdict, ended)), "failure": failure, "refused": refused, "environment": environment}
    return json.dumps(answer, sort_keys=True)


class _Server:
    """A process that is ready for tasks; ``serves`` has the modules and the versions that they are for."""

    def __init__(self, serves: str) -> None:
        self.serves = serves
        self._connection, theirs = Pipe()
        command = [sys.executable, "-m", __name__, str(theirs.fileno()), *json.loads(serves)[0]]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()

    def answer(self, request: str, stopped: Callable[[], bool]) -> str:
        """The answer; empty where the process has ended."""
        try:
            self._connection.send(request)
            while not self._connection.poll(POLL_SECONDS):
                if stopped():
                    self._connection.send(_STOP)
                    break
            return str(self._connection.recv())
        except (OSError, EOFError):
            return ""

    def runs(self) -> bool:
        """Whether the process is still there."""
        return self._process.poll() is None

    def end(self) -> None:
        """Ends the process, which ends what it runs."""
        self._connection.close()
        self._process.wait()


_STOP = ""
"""What a server gets instead of a request where nobody waits for the answer to the last one."""

_idle: list[_Server] = []
"""Servers that wait, as many as there were tasks at a time."""


def _server_for(serves: str) -> _Server:
    try:
        server = _idle.pop()
    except IndexError:
        return _Server(serves)
    if server.serves == serves and server.runs():
        return server
    server.end()  # of another run, with other modules, or of before an update
    return _Server(serves)


# -- in a server --------------------------------------------------------------------------------------


def _serve(connection: Connection, modules: Sequence[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, ConnectionError):  # the worker has ended
        for answer in _answers(connection, modules):
            connection.send(answer)


def _answers(connection: Connection, modules: Sequence[str]) -> Iterator[str]:
    from ilaverify.catalogue import all_entries
    from ilaverify.identity import environment, is_unchanged, read_provers, sources_stamp
    from ilaverify.modules import use_module

    stamp = sources_stamp()
    problem, ready = "", False
    installed: Mapping[str, str] = {}
    try:
        for module in modules:
            use_module(module)
        installed = environment()
    except Exception as error:  # any error is what the client is told
        problem = f"{type(error).__name__}: {error}"
    while True:
        text = connection.recv()
        if text == _STOP:  # for a task that has ended meanwhile
            continue
        request = json.loads(text)
        if problem or installed != request["serves"][1]:
            yield _text(refused=problem, environment=installed)
            continue
        if not ready:
            all_entries()
            for name in read_provers():
                import_module(name)  # here, and not for each task
            ready = True
        try:
            for task in request["tasks"]:
                if task["prepare"]:
                    _call(*task["prepare"])()
        except Exception as error:  # likewise
            yield _text(refused=f"{type(error).__name__}: {error}", environment=installed)
            continue
        tasks = [Task(task["name"], _call(*task["call"])) for task in request["tasks"]]
        limits = {"jobs": 1, "timeout": request["timeout"], "memory": request["memory"]}
        try:
            # the worker sends nothing while it waits, except to stop; its end looks alike
            ended = list(run_tasks(tasks, **limits, stopped=connection.poll))
        except KeyboardInterrupt:
            yield _text(failure="it was stopped")
            continue
        if not is_unchanged(stamp):
            yield _text(failure="files of ilaverify have changed on its worker")
            return
        yield _text(ended)


def _call(module: str, name: str, arguments: Sequence[Any]) -> Callable[[], Any]:
    return partial(getattr(import_module(module), name), *arguments)


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])), sys.argv[2:])
