"""What native code needs beside its arguments: what it asks for during a run, and what its errors mean.

Native code calls back now and then.  An exception in such a call, which may be the user's interrupt, ends the run, and
is raised when the run has ended.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.interpreter.compile import compile_kernel
from ila_lang.language.expr import Expr
from ila_lang.language.kernel import ExtentError, Kernel

from .build import available, compiled
from .kernels import AddressFault, Fault, KernelText, divisors, kernel_text
from .layout import Layout
from .terms import WIDEST, NotNative

Words = NDArray[Any]

#: Iterations of a kernel that the interpreter is tried on before a kernel is compiled.
TRIED = 20_000

#: Seconds of runs with the same divisors after which a kernel is compiled for these, and for how many of them at most.
SPECIAL_AFTER, MOST_SPECIAL = 0.05, 32

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


class KernelCode:
    """A kernel in native code, made when it is first needed; threads may share it.

    Where there is no code for it in the cache, the interpreter is tried first: short kernels are not compiled.
    """

    def __init__(self, kernel: Kernel, layout: Layout, memories: Sequence[Expr], checked: Sequence[str] = ()) -> None:
        self.kernel = kernel = body_of(kernel)
        self.text: KernelText | None = None
        self.run: Callable[..., int] | None = None
        self.address = 0
        self._used = 0
        self._is_long = bool(checked)
        self._lock = RLock()
        self._scalar: Callable[..., None] | None = None
        self._missed = False
        self._arguments = kernel, layout, memories, checked
        self.divisors: tuple[Expr, ...] = ()
        self._special: dict[tuple[int, ...], Any] = {}
        self._seconds: dict[tuple[int, ...], float] = {}
        if available():
            with suppress(NotNative):
                self.text = kernel_text(kernel, layout, memories, checked)
                self.divisors = divisors(kernel)

    @property
    def _long(self) -> bool:
        """Whether it is compiled; the interpreter does not know which loads outside of an array do not matter."""
        return self._is_long or self._used >= TRIED

    def ready(self) -> bool:
        """Whether there is native code; makes it if it is known, or if the kernel was found to be long."""
        with self._lock:
            if self.run is None and self.text is not None and (not self._missed or self._long):
                code = compiled(self.text.text, known_only=not self._long)
                self._missed = code is None
                if code is not None:
                    self.run, self.address = code.function("run", ctypes.c_void_p), code.address("run")
            return self.run is not None

    def values(self, block: Words) -> tuple[int, ...]:
        """The values of the divisors' scalars in a block."""
        scalars: dict[str, int] = {}
        self._arguments[1].unpack(block, scalars)
        return tuple(scalars[v.name] for v in self.divisors)

    def special(self, values: tuple[int, ...]) -> Any:
        """The code for these values of the divisors' scalars, which LLVM makes much more of; None where there is none.

        It is made where it is known, or runs with these values have taken long enough.
        """
        with self._lock:
            seconds = self._seconds.get(values)
            is_new = seconds is None and len(self._seconds) < MOST_SPECIAL
            is_long = seconds is not None and seconds >= SPECIAL_AFTER
            if self._special.get(values) is None and (is_new or is_long):
                self._seconds[values] = float("-inf") if seconds else 0.0
                self._special[values] = self._specialised(values, known_only=is_new)
            return self._special.get(values)

    def _specialised(self, values: tuple[int, ...], known_only: bool) -> Callable[..., int] | None:
        assert self.text is not None
        try:
            text = kernel_text(*self._arguments, dict(zip(self.divisors, values, strict=True)))
        except NotNative:
            return None
        code = compiled(text.text, known_only) if text.errors == self.text.errors else None
        return None if code is None else code.function("run", ctypes.c_void_p)

    def run_any(self, table: int, values: tuple[int, ...]) -> int:
        """Runs the code for all values, and counts how long it takes with these."""
        assert self.run is not None
        started = time.perf_counter()
        result = self.run(table)
        with self._lock:
            if values in self._seconds:
                self._seconds[values] += time.perf_counter() - started
        return result

    def interpret(self, values: Mapping[str, int], memories: Mapping[str, Any], stored: Mapping[str, Words]) -> bool:
        """Runs the kernel on the interpreter; false, with nothing done, where it is long and can be compiled."""
        if self._scalar is None:
            self._scalar = compile_kernel(self.kernel)
        if self.text is None:
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
