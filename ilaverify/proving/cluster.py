"""Tasks on the workers of a Dask cluster, under the limits and with the ends that :mod:`.workers` has on one machine.

What is sent is a text: the name of a function of this package, its arguments as JSON, the limits, and the versions
that a worker must have.  What comes back is a text, too.  A worker that is lost costs nothing but time: Dask gives its
tasks to another one.  Results go to the client as they come, and nothing is kept on the cluster.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import re
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar

from ila_lang.extensions import modules_in_use

from .cluster_worker import work
from .workers import POLL_SECONDS, Ended, MachinesError, Task

CONNECT_SECONDS = 5.0
"""The time in which a scheduler must answer."""

WORKER_SECONDS = 30.0
"""The time for which a run waits while the cluster has no worker."""

_SENDING_SECONDS = 0.1
"""The time in which the scheduler is told what is not waited for any more."""

_REQUEST_SECONDS, _MOST_TASKS = 0.5, 16
"""Short tasks go together, for as long as a request should take: a request costs about 15 ms of processor time."""

T = TypeVar("T")


class Cluster:
    """A connection to the Dask scheduler at an address; raises MachinesError where none answers in CONNECT_SECONDS."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            raise MachinesError(
                f"a cluster needs Dask, which is not installed ({error}); pip install 'ilaverify[cluster]'"
            ) from error
        if not re.fullmatch(r"((tcp|tls)://)?[^/]+:[0-9]+", address):
            raise MachinesError(
                f"the address of a Dask scheduler must be HOST:PORT or tls://HOST:PORT, not '{address}'"
            )
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        self.address = address
        self._killed: type[Exception] = distributed.KilledWorker
        self._loop = asyncio.new_event_loop()  # in this thread, and at work only while results are waited for
        self._loop.set_exception_handler(lambda *_: None)  # what concerns a task is its own; Dask leaves others behind
        self._threads = 0
        self._looked = self._peopled = time.monotonic()

        async def connect() -> Any:
            client = distributed.Client(address, asynchronous=True, timeout=CONNECT_SECONDS, set_as_default=False)
            try:
                return await client
            except BaseException:
                await client.close()
                raise

        try:
            self._client = self._wait(asyncio.wait_for(connect(), 2 * CONNECT_SECONDS))
        except (OSError, ValueError, TypeError) as error:
            self._loop.close()
            raise MachinesError(
                f"no Dask scheduler answers at {address} within {CONNECT_SECONDS:g} s; start one (dask scheduler), or "
                "give the address that it prints"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the cluster, which ends what it runs for this client."""
        if not self._loop.is_closed():
            self._wait(self._client.close(timeout=1))
            self._loop.close()

    def run_tasks(
        self,
        tasks: Sequence[Task],
        *,
        timeout: float,
        memory: int,
        started: Callable[[str], None] | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Generator[Ended]:
        """As :func:`.workers.run_tasks`, with the threads of all workers as jobs.

        Each task runs a ``partial`` of a function of this package, by its name, with arguments that JSON has.  Raises
        MachinesError where the scheduler goes away, no worker comes, or one has other versions than this process.
        """
        from ilaverify.identity import environment  # which loads solvers, and takes longer than to find no scheduler

        ours = environment()
        order = {"timeout": timeout, "memory": memory, "serves": [modules_in_use(), ours]}
        waiting = deque(tasks)
        running: dict[asyncio.Task[Any], list[Task]] = {}
        together = 1
        self._peopled = time.monotonic()
        try:
            while waiting or running:
                self._look()
                # a worker need not wait for its next short tasks; long ones must not wait for one that is busy
                while waiting and len(running) < max(1, self._threads) * (2 if together > 1 else 1):
                    fair = len(waiting) // (2 * max(1, self._threads))  # the last tasks go one by one to all threads
                    sent = [waiting.popleft() for _ in range(max(1, min(together, fair)))]
                    if started is not None:
                        for task in sent:
                            started(task.name)
                    running[self._submit(json.dumps(order | {"tasks": [_call(task) for task in sent]}))] = sent
                first = asyncio.wait(running, timeout=POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                done, _ = self._wait(first)
                if stopped():
                    raise KeyboardInterrupt
                for one in done:
                    sent = running.pop(one)
                    if len(sent) > 1 and isinstance(self._error(one), self._killed):
                        for task in sent:  # one of them may end its workers: it should not take others with it
                            running[self._submit(json.dumps(order | {"tasks": [_call(task)]}))] = [task]
                        continue
                    ends = self._ends(one, sent, ours)
                    mean = sum(end.seconds for end in ends) / len(ends)
                    together = max(1, min(_MOST_TASKS, int(_REQUEST_SECONDS / max(mean, 0.001))))
                    yield from ends
        finally:
            for one in running:
                one.cancel()
            if running:
                self._wait(asyncio.wait(running, timeout=1))
                self._wait(asyncio.sleep(_SENDING_SECONDS))

    def _submit(self, request: str) -> asyncio.Task[Any]:
        async def text() -> Any:
            future = self._client.submit(work, request, pure=False)
            try:
                return await future
            finally:
                future.release()  # a task that runs is cancelled, a result is forgotten

        return self._loop.create_task(text())

    def _look(self) -> None:
        """Counts the workers' threads, once a second."""
        now = time.monotonic()
        if self._threads and now < self._looked + 1:
            return
        try:
            self._threads = sum(self._wait(asyncio.wait_for(self._client.nthreads(), CONNECT_SECONDS)).values())
        except (OSError, TypeError, AttributeError) as error:
            raise self._gone() from error
        self._looked = now
        if self._threads:
            self._peopled = now
        elif now > self._peopled + WORKER_SECONDS:
            raise MachinesError(
                f"the cluster at {self.address} has had no worker for {WORKER_SECONDS:g} s; start some (dask worker "
                f"{self.address}), and run the command again"
            )

    def _error(self, one: asyncio.Task[Any]) -> BaseException | None:
        error = asyncio.CancelledError() if one.cancelled() else one.exception()
        if isinstance(error, (asyncio.CancelledError, concurrent.futures.CancelledError)):
            raise self._gone()
        return error

    def _ends(self, one: asyncio.Task[Any], sent: Sequence[Task], ours: Mapping[str, str]) -> list[Ended]:
        """The ends of the tasks that were sent together."""
        error = self._error(one)
        failure = ""
        if isinstance(error, self._killed):
            failure = "its workers ended while it ran, again and again"
        elif error is not None:
            raise MachinesError(f"the cluster at {self.address} cannot run tasks: {type(error).__name__}: {error}")
        else:
            try:
                answer = json.loads(one.result())
                failure = answer["failure"]
                ends = [Ended(**end) for end in answer["ended"]]
            except (TypeError, ValueError, KeyError) as wrong:
                failure = f"the answer of its worker cannot be read: {wrong}"
            else:
                if answer["refused"] is not None:
                    raise MachinesError(f"a worker of the cluster at {self.address} {_difference(answer, ours)}")
                if sorted(end.name for end in ends) == sorted(task.name for task in sent):
                    return ends
                failure = failure or "its worker answered something else"
        return [Ended(task.name, None, failure, 0.0) for task in sent]

    def _gone(self) -> MachinesError:
        return MachinesError(
            f"the scheduler at {self.address} has gone away; start it again with its workers, and run the command again"
        )

    def _wait(self, what: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(what)


def _call(task: Task) -> dict[str, Any]:
    """A task as JSON."""
    return {"name": task.name, "call": _named(task.run), "prepare": task.prepare and _named(task.prepare)}


def _named(run: Callable[[], object]) -> list[Any]:
    if not isinstance(run, partial) or run.keywords:
        raise TypeError(f"{run} must be a partial of a function, with arguments in their order, to run on a cluster")
    return [run.func.__module__, run.func.__name__, run.args]


def _difference(answer: Any, ours: Mapping[str, str]) -> str:
    """Why a worker refused a task: what it has, and what this process has."""
    if answer["refused"]:
        return f"cannot work for this run: {answer['refused']}"
    theirs = answer["environment"]
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    both = "; ".join(f"{name}: {theirs.get(name, 'none')} there, {ours.get(name, 'none')} here" for name in names)
    return f"must have the versions that this process has, and has others: {both}"
