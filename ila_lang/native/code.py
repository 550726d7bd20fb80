"""What native code needs beside its arguments: what it asks for during a run, and what its errors mean.

Native code calls back now and then.  An exception in such a call, which may be the user's interrupt, ends the run, and
is raised when the run has ended.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ila_lang.interpreter.compile import compile_kernel
from ila_lang.language.expr import Expr
from ila_lang.language.kernel import ExtentError, Kernel

from .build import Code, Lazy
from .kernels import AddressFault, Fault, divisors, faults_of, kernel_text
from .layout import Layout
from .terms import WIDEST

Words = NDArray[Any]

#: Iterations of a kernel that the interpreter is tried on before a kernel is compiled.
TRIED = 20_000

#: Seconds of runs with the same divisors after which code for these is looked for, and after which it is made; and for
#: how many of them at most.
KNOWN_AFTER, SPECIAL_AFTER, MOST_SPECIAL = 0.01, 0.05, 32

VALUE_BYTES = WIDEST // 8
_POLL = ctypes.CFUNCTYPE(ctypes.c_int32)


class TooLong(Exception):
    """A trial on the interpreter has taken its iterations."""


class Calls:
    """The record of errors of runs, and the exceptions of calls during them."""

    def __init__(self) -> None:
        self.record = np.zeros(16 + VALUE_BYTES, np.uint8)
        self.raised: list[BaseException] = []
        self._kept: list[Any] = []
        self.stopped = False
        self.poll = self.function(_POLL, self._poll, -1)

    def function(self, kind: Any, answer: Callable[[Any], int], failed: int) -> int:
        """The address of a function that answers a call, or says ``failed`` where it raises."""
        answers = _answers(answer, failed, self.raised)
        next(answers)
        function = kind(answers.send if kind._argtypes_ else answers.__next__)
        self._kept.append(function)
        return int(ctypes.cast(function, ctypes.c_void_p).value or 0)

    def _poll(self, _: object) -> int:
        if self.stopped:
            raise InterruptedError("The run was ended")
        return 0

    def check(self, errors: Callable[[int], tuple[str, Sequence[Fault]]], lengths: Mapping[str, int]) -> None:
        """Raises what a run that failed has met; ``errors`` gives the name and the errors of a kernel by number."""
        if self.raised:
            error = self.raised[0]
            self.raised.clear()
            self.record[:] = 0
            raise error
        number = int(self.record[:8].view(np.uint64)[0])
        value = int.from_bytes(self.record[8 : 8 + VALUE_BYTES].tobytes(), "little")
        name, faults = errors(int(self.record[-8:].view(np.uint64)[0]))
        self.record[:] = 0
        fault = faults[number - 1]
        if isinstance(fault, AddressFault):
            raise address_error(value, fault.memory, lengths[fault.memory])
        raise ExtentError(value, fault.counter, name)


def _answers(answer: Callable[[Any], int], failed: int, raised: list[BaseException]) -> Generator[int, Any, None]:
    """Answers calls, by ``failed`` where an answer raises.

    A function would not do: an interrupt can come before its first line.  Here it comes after the ``yield``.
    """
    value = failed
    while True:
        try:
            while True:
                sent = yield value
                value = answer(sent)
        except GeneratorExit:
            return
        except BaseException as error:  # an interrupt, too
            value = failed
            raised.append(error)


def address_error(address: int, memory: str, words: int) -> ValueError:
    """The error of an address outside of an array."""
    return ValueError(f"Address {address:#x} must lie in the array of {memory}, which has {words} words")


def body_of(kernel: Kernel) -> Kernel:
    """A copy of the body, which does not change when the kernel does, and does not keep the kernel in memory."""
    return Kernel(kernel.name, kernel.doc, list(kernel.body))


class Native(NamedTuple):
    """The code of a kernel: a function of a table, and its address, or 0 where each run goes by the function."""

    run: Callable[[int], int]
    address: int


class KernelCode:
    """A kernel in native code, made when it is first needed; threads may share it.

    Where there is no code for it in the cache, the interpreter is tried first: short kernels are not compiled.
    """

    def __init__(self, kernel: Kernel, layout: Layout, memories: Sequence[Expr], checked: Sequence[str] = ()) -> None:
        self.kernel = body_of(kernel)
        self.layout, self.memories, self.checked = layout, memories, checked
        self.faults = faults_of(self.kernel.body, checked)
        self.divisors = divisors(self.kernel)
        self._any = self._lazy({})
        self._special: dict[tuple[int, ...], Lazy] = {}
        self._seconds: dict[tuple[int, ...], float] = {}
        self._used = 0
        self._is_long = bool(checked)  # the interpreter does not know which loads outside of an array do not matter
        self._lock = RLock()
        self._scalar: Callable[..., None] | None = None

    @property
    def is_native(self) -> bool:
        """Whether it may have native code."""
        return self._any.is_native

    def native(self, scalars: Mapping[str, int]) -> Native | None:
        """The code for a run with these scalars, if it is known, or if the kernel was found to be long."""
        with self._lock:
            code = self._any.get(self._is_long or self._used >= TRIED)
            if code is None:
                return None
            run = code.function("run", ctypes.c_void_p)
            if not self.divisors:
                return Native(run, code.address("run"))
            values = tuple(int(scalars[v.name]) for v in self.divisors)
            special = self._for(values)
            if special is None:
                return Native(partial(self._counted, run, values), 0)
            return Native(special.function("run", ctypes.c_void_p), special.address("run"))

    def _for(self, values: tuple[int, ...]) -> Code | None:
        """The code for these values of the divisors' scalars, which LLVM makes much more of.

        It is looked for, and made, where runs with these values have taken long enough.
        """
        if values not in self._seconds:
            if len(self._seconds) < MOST_SPECIAL:
                self._seconds[values] = 0.0
            return None
        seconds = self._seconds[values]
        if seconds < KNOWN_AFTER:
            return None
        if values not in self._special:
            self._special[values] = self._lazy(dict(zip(self.divisors, values, strict=True)))
        return self._special[values].get(seconds >= SPECIAL_AFTER)

    def _lazy(self, known: Mapping[Expr, int]) -> Lazy:
        return Lazy(partial(kernel_text, self.kernel, self.layout, self.memories, self.checked, known))

    def _counted(self, run: Callable[[int], int], values: tuple[int, ...], table: int) -> int:
        """Runs the code for all values, and counts how long it takes with these."""
        started = time.perf_counter()
        result = run(table)
        with self._lock:
            if values in self._seconds:
                self._seconds[values] += time.perf_counter() - started
        return result

    def interpret(self, values: Mapping[str, int], memories: Mapping[str, Any], stored: Mapping[str, Words]) -> bool:
        """Runs the kernel on the interpreter; false, with nothing done, where it is long and can be compiled."""
        if self._scalar is None:
            self._scalar = compile_kernel(self.kernel)
        if not self.is_native:
            self._scalar(values, memories, None)
            return True
        kept = {name: words.copy() for name, words in stored.items()}
        try:
            self._scalar(values, memories, None, steps=self._steps)
        except TooLong:
            for name, words in kept.items():
                stored[name][:] = words
            return False
        return True

    def _steps(self, extent: int) -> range:
        self._used += extent
        if self._used >= TRIED:
            self._is_long = True  # the count may lose what two threads add at once
            raise TooLong
        return range(extent)
