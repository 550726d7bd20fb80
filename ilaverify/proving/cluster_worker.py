"""A cluster's tasks on the machine that runs them: each in a process of its own, with the limits of :mod:`.workers`.

A Dask worker runs :func:`work` in a thread.  Processes must not be forked beside threads, so each thread passes its
tasks as lines of JSON to a *server*, a process with one thread that has everything loaded, and forks for each task.
A server ends what it runs and itself when its worker ends, however that ends.

This module loads nothing large: Dask's scheduler imports it, too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib import import_module
from select import select
from typing import IO

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
    *, ended: Sequence[Ended] = (), failure: str = "", refused: str = "", environment: Mapping[str, str] | None = None
) -> str:
    """An answer: the ends of tasks, or why there are none, and what the worker has where it refused them."""
    answer = {"ended": list(map(asdict, ended)), "failure": failure, "refused": refused, "environment": environment}
    return json.dumps(answer, sort_keys=True)


class _Server:
    """A process that is ready for tasks; ``serves`` has the modules and the versions that they are for."""

    def __init__(self, serves: str) -> None:
        self.serves = serves
        command = [sys.executable, "-m", __name__, *json.loads(serves)[0]]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answer(self, request: str, stopped: Callable[[], bool]) -> str:
        """The answer; empty where the process ended, or is to be ended because the task is ``stopped``."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(f"{request}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            return ""
        while not select([self._process.stdout], [], [], POLL_SECONDS)[0]:
            if stopped():
                return ""
        return self._process.stdout.readline().decode()

    def runs(self) -> bool:
        """Whether the process is still there."""
        return self._process.poll() is None

    def end(self) -> None:
        """Ends the process, which ends what it runs."""
        with suppress(BrokenPipeError):
            self._process.communicate()


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


def _serve(modules: Sequence[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what modules print is no answer
    for answer in _answers(requests, modules):
        print(answer, file=answers, flush=True)


def _answers(requests: IO[bytes], modules: Sequence[str]) -> Iterator[str]:
    from ila_lang.extensions import use_module
    from ilaverify.catalogue import all_entries
    from ilaverify.identity import environment, is_unchanged, read_provers, sources_stamp

    stamp = sources_stamp()
    problem, found = "", {}
    try:
        for module in modules:
            use_module(module)
        all_entries()
        for name in read_provers():
            import_module(name)  # here, and not for each task
        found = environment()
    except Exception as error:  # any error is what the client is told
        problem = f"{type(error).__name__}: {error}"
    while line := requests.readline():
        request = json.loads(line)
        if problem or found != request["serves"][1]:
            yield _text(refused=problem or "other versions", environment=found)
            continue
        tasks = [
            Task(
                task["name"],
                partial(getattr(import_module(task["function"][0]), task["function"][1]), *task["arguments"]),
            )
            for task in request["tasks"]
        ]
        limits = {"jobs": 1, "timeout": request["timeout"], "memory": request["memory"]}
        try:
            ended = list(run_tasks(tasks, **limits, stopped=partial(_gone, requests)))
        except KeyboardInterrupt:
            return
        if not is_unchanged(stamp):
            yield _text(failure="files of ilaverify have changed on its worker")
            return
        yield _text(ended=ended)


def _gone(requests: IO[bytes]) -> bool:
    """Whether the worker has gone: it sends nothing while a task runs."""
    return bool(select([requests], [], [], 0)[0])


if __name__ == "__main__":
    _serve(sys.argv[1:])
