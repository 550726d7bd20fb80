"""The simulators on which programs of proved mappings run, and which mapping a certificate is about."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import NDArray

from ila_lang import Ila, Simulator, digest
from ila_lang.native.build import available
from reports.certificate import semantics_of
from rewrites.mappings.claim import MappingClaim

if TYPE_CHECKING:
    from rewrites.claims.gate import Admission

Item = TypeVar("Item")
Result = TypeVar("Result")
Columns = Mapping[str, NDArray[Any]]
"""Commands as columns, for :class:`~ila_lang.streams.simulator.CommandStream`."""


class Devices:
    """Simulators of each device, made when they are first used, and the threads that run programs on them.

    Programs may share simulators, and each may run on any: every mapping claims its result from arbitrary contents of
    the device.  By default there is a thread for each processor of this process; processes that are forked have one.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = _processors() if threads is None else threads
        self._simulators: dict[tuple[int, Ila], Simulator] = {}
        self._of_thread = threading.local()
        self._process = os.getpid()
        self._lock = threading.Lock()

    def of(self, ila: Ila) -> Simulator:
        """The simulator of a device for the present thread."""
        key = getattr(self._of_thread, "number", 0), ila
        with self._lock:
            if key not in self._simulators:
                self._simulators[key] = Simulator(ila)
            return self._simulators[key]

    def each(self, run: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results of all items, in their order; the first exception is raised when no thread runs any more."""
        several = min(self.threads, len(items))
        if several < 2 or os.getpid() != self._process or not available():
            return [run(item) for item in items]
        results: dict[int, Result] = {}
        raised: list[BaseException] = []
        numbers = iter(range(len(items)))

        def work(thread: int) -> None:
            self._of_thread.number = thread
            for number in numbers:  # next() of a range's iterator is one step for all threads
                if raised:
                    return
                try:
                    results[number] = run(items[number])
                except BaseException as error:  # an interrupt, too, which comes to the first thread alone
                    raised.append(error)
                    return

        helpers = [threading.Thread(target=work, args=[k]) for k in range(1, several)]
        try:
            for helper in helpers:
                helper.start()
            work(0)
            while any(helper.is_alive() for helper in helpers) and not raised:
                next(helper for helper in helpers if helper.is_alive()).join(0.05)
        except BaseException as error:  # an interrupt between programs
            raised.append(error)
        if raised:
            self._stop()
            for helper in helpers:
                if helper.ident is not None:
                    helper.join()
            raise raised[0]
        return [results[number] for number in range(len(items))]

    def _stop(self) -> None:
        """Ends the runs of the other threads, and takes new simulators from now on."""
        with self._lock:
            for (thread, _), simulator in self._simulators.items():
                if thread:
                    simulator.stop()
            self._simulators = {key: simulator for key, simulator in self._simulators.items() if not key[0]}


def _processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def fragment_digest(claim: MappingClaim) -> str:
    """The digest of a mapping's device program with its model, as certificates have it."""
    return digest(claim.mapping.device)


@cache
def _semantics(claim: MappingClaim) -> Mapping[str, str]:
    return semantics_of(claim.mapping)


def is_program_of(claim: MappingClaim, admission: Admission) -> bool:
    """Whether a mapping is the one that a certificate is about, at the shape that the certificate is about.

    A certificate is of a claim, and code is generated from a mapping; that they have one name is not enough.
    """
    shape = None if claim.shape is None else list(claim.shape)
    return shape == admission.parameters.get("shape") and _semantics(claim) == admission.subject.semantics()
