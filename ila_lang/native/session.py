"""The state of one device in native code: its table of addresses, and runs of kernels, streams and fragments on it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import wraps
from threading import RLock
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from ila_lang.interpreter.kept import Kept
from ila_lang.language.fragment import Fragment
from ila_lang.language.kernel import Kernel
from ila_lang.language.model import Ila, Instruction

from .arrays import ArrayMemory
from .build import Lazy, available, compiled
from .code import Calls, KernelCode, Native
from .devices import RAN_ALREADY, Device, FragmentText, fragment_text, recorder_text
from .kernels import BLOCK, ERROR, FIRST, KERNELS, POLL, SLOW, START, STEP, Fault, stored_memories
from .terms import NotNative

Words = NDArray[Any]
P = ParamSpec("P")
T = TypeVar("T")

#: So many commands of a model are executed one by one before it is compiled.
LONG = 4_000
#: Commands that native code executes before the interpreter's turn comes.
PART = 1 << 14

_SLOW = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_START = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)
_POINTER, _LONG = ctypes.c_void_p, ctypes.c_int64


class Host(Protocol):
    """The machine that a session belongs to."""

    values: dict[str, int]
    memories: dict[str, ArrayMemory]

    def step(self, inputs: Mapping[str, int]) -> Instruction:
        """Executes a command on the interpreter."""

    def require_unchanged(self) -> None:
        """Raises ValueError where the model has changed since the machine was made."""


class DeviceCode:
    """The native code of a model, for all its machines, in all threads; raises NotNative where it has none."""

    def __init__(self, ila: Ila) -> None:
        if not available():
            raise NotNative("There is no compiler")
        self.device = Device(ila)
        self.kernels: dict[Kernel, KernelCode] = {}
        self._fragments: Kept[Kernel, tuple[FragmentText, Callable[..., int]]] = Kept()
        self._lock = RLock()
        self._code = Lazy(self.device.text, vectors=False)
        self.run: Callable[..., int] | None = None
        self._used = 0
        self.numbers = {instruction.name: k for k, instruction in enumerate(self.device.instructions)}

    def kernel(self, kernel: Kernel) -> KernelCode:
        """A kernel of the model."""
        with self._lock:
            if kernel not in self.kernels:
                self.kernels[kernel] = KernelCode(kernel, self.device.layout, list(self.device.memories.values()))
            return self.kernels[kernel]

    def ready(self, commands: int) -> bool:
        """Whether there is code for so many commands; makes it if it is known, or when there were many in all.

        There is none of a model with a decode that has none.
        """
        with self._lock:
            self._used += commands
            code = self._code.get(self._used >= LONG)
            if code is not None and self.run is None:
                self.step, self.plain = code.address("step"), code.address("plain")
                self.run = code.function(
                    "run", _POINTER, _POINTER, _LONG, _POINTER, _LONG, _POINTER, _POINTER, result=_LONG
                )
            return code is not None

    def fragment(self, fragment: Fragment) -> tuple[FragmentText, Callable[..., int]]:
        """A fragment on the model; raises NotNative where the interpreter has to serve."""
        return self._fragments.of(fragment.program, fragment_parts(fragment), lambda: self._made(fragment))

    def _made(self, fragment: Fragment) -> tuple[FragmentText, Callable[..., int]]:
        fragment.check()  # it may have changed since it was made
        text = fragment_text(fragment, self.device)
        code = compiled(text.text)
        assert code is not None
        return text, code.function("fragment", _POINTER)


def fragment_parts(fragment: Fragment) -> list[object]:
    """The objects that a fragment's program is made of."""
    return [*fragment.program.body, *fragment.parameters.values(), *fragment.tensors.values()]


def _no_command(place: int) -> Mapping[str, int]:
    """The inputs of a command where none is under way."""
    raise RuntimeError("No command is under way")


def _by_one_thread(run: Callable[Concatenate[Session, P], T]) -> Callable[Concatenate[Session, P], T]:
    """Refuses a second thread, which would change what the first one computes with."""

    @wraps(run)
    def alone(self: Session, *args: P.args, **kwargs: P.kwargs) -> T:
        if not self.busy.acquire(blocking=False):
            raise RuntimeError(f"A device of {self.device.name} must be used by one thread at a time; make another one")
        try:
            return run(self, *args, **kwargs)
        finally:
            self.busy.release()

    return alone  # type: ignore[return-value]  # of the same parameters


class Session:
    """One device."""

    def __init__(self, code: DeviceCode, host: Callable[[], Host]) -> None:
        self.code, self.device = code, code.device
        self._host = host
        self.block = self.device.layout.block()
        self.calls = Calls()
        self.busy = RLock()
        self._pointers = np.zeros(max(len(self.device.kernels), 1), np.uint64)
        # weakly, for a session is in a circle with what it answers by, and memories are large
        self._arrays: list[Callable[[], ArrayMemory | None]] = [lambda: None] * len(self.device.names)
        self._inputs: Callable[[int], Mapping[str, int]] = _no_command
        self._sizes = np.zeros(0, np.uint8)
        self.table = np.zeros(FIRST + len(self.device.names), np.uint64)
        self.table[BLOCK], self.table[ERROR] = self.block.ctypes.data, self.calls.record.ctypes.data
        self.table[POLL], self.table[KERNELS] = self.calls.poll, self._pointers.ctypes.data
        self.table[SLOW] = self.calls.function(_SLOW, self._slow, -1)
        self.table[START] = self.calls.function(_START, self._start, 1)

    # -- what native code asks for ------------------------------------------------------------

    def _slow(self, place: int) -> int:
        """Executes a command on the interpreter, which may refuse it."""
        host = self._host()
        self.device.layout.unpack(self.block, host.values)
        try:
            return self.code.numbers[host.step(self._inputs(place)).name]
        finally:
            self.device.layout.pack(host.values, self.block)

    def _start(self, number: int) -> int:
        """Makes a kernel's native code, or runs it on the interpreter."""
        kernel, host = self.device.kernels[number], self._host()
        if kernel not in self.code.kernels:
            host.require_unchanged()
        self.device.layout.unpack(self.block, host.values)
        native = self._native(self.code.kernel(kernel))
        if native is None:
            return RAN_ALREADY
        if native.address:
            self._pointers[number] = native.address
            return 0
        return RAN_ALREADY if native.run(self.table.ctypes.data) == 0 else 1

    def _native(self, code: KernelCode) -> Native | None:
        """The code of a kernel for the present state; None where the interpreter has run it."""
        host = self._host()
        native = code.native(host.values)
        if native is not None:
            return native
        words = {name: host.memories[name].words for name in stored_memories(code.kernel.body)}
        return None if code.interpret(host.values, host.memories, words) else code.native(host.values)

    # -- runs ---------------------------------------------------------------------------------

    @_by_one_thread
    def run_kernel(self, kernel: Kernel) -> None:
        """Runs a kernel on the present state; values that it sets when it ends are not set."""
        native = self._native(self.code.kernel(kernel))
        if native is not None:
            self.device.layout.pack(self._host().values, self.block)
            self._refresh()
            if native.run(self.table.ctypes.data):
                self._failed(self.device.kernels.index(kernel) + 1)

    @_by_one_thread
    def execute(
        self, columns: Mapping[str, Words], size: int, command: Callable[[int], Mapping[str, int]], seen: Sequence[str]
    ) -> tuple[Words, Words]:
        """Executes commands; the numbers of their instructions, and the ``seen`` states after each, side by side.

        ``command`` gives the inputs of a command by its number.
        """
        host, layout = self._host(), self.device.layout
        places = np.array(
            [at for n in seen for at in range(layout.offsets[n], layout.offsets[n] + 8 * -(-layout.bits[n] // 64), 8)],
            np.int64,
        )
        self._enter(host)
        try:
            return self._stream(columns, size, places, command)
        finally:
            layout.unpack(self.block, host.values)

    @_by_one_thread
    def plain(self, columns: Mapping[str, Words], size: int) -> Words:
        """The number of the instruction of each command, or that of instructions where the state has a part in it."""
        self.table[STEP] = self.code.plain
        return self._stream(columns, size, np.zeros(0, np.int64), _no_command)[0]

    def _stream(
        self, columns: Mapping[str, Words], size: int, places: Words, command: Callable[[int], Mapping[str, int]]
    ) -> tuple[Words, Words]:
        """What STEP of the table makes of each command, and the words at ``places`` of the state after it."""
        which, out = np.empty(size, np.int32), np.empty((size, len(places)), np.uint64)
        try:
            for first in range(0, size, PART):
                last = min(first + PART, size)
                rows = self.device.inputs.rows(columns, first, last)
                base, length = rows.ctypes.data, rows.shape[1]
                self._inputs = lambda place: command(first + (place - base) // length)  # noqa: B023
                assert self.code.run is not None
                done = self.code.run(
                    self.table.ctypes.data, base, last - first, which[first:].ctypes.data,
                    len(places), places.ctypes.data, out[first:].ctypes.data,
                )  # fmt: skip
                if done < last - first:
                    self._failed(0)
        finally:
            self._inputs = _no_command
        return which, out

    @_by_one_thread
    def run_fragment(self, fragment: Fragment, sizes: Mapping[str, int], tensors: Mapping[str, Words]) -> None:
        """Runs a fragment on sample after sample of host tensors in the form of words of memories.

        Samples are the first axis, of extent 1 where all have the same.
        """
        host, layout = self._host(), self.device.layout
        text, run = self.code.fragment(fragment)
        self._enter(host)
        arrays = [tensors[name] for name in text.tensors]
        table = self._with_tensors(text, sizes, [array[0] for array in arrays])
        steps = np.zeros_like(table)
        steps[len(self.table) + 1 :][: len(arrays)] = [a.strides[0] if len(a) > 1 else 0 for a in arrays]
        inputs = self.device.inputs

        def command(place: int) -> Mapping[str, int]:
            scalars: MutableMapping[str, int] = {}
            size = inputs.size + 8
            content = np.ctypeslib.as_array(ctypes.cast(place, ctypes.POINTER(ctypes.c_uint8)), (size,))
            inputs.unpack(content, scalars)
            names = text.commands[int(content[inputs.size :].view(np.uint64)[0])]
            return {name: scalars[name] for name in names}

        self._inputs = command
        try:
            address = table.ctypes.data
            for _ in range(max(map(len, arrays), default=1)):
                if run(address):
                    lengths = {name: tensors[name].shape[1] for name in text.tensors}
                    self._failed(0, fragment.program.name, text.faults, lengths)
                table += steps
        finally:
            self._inputs = _no_command
            layout.unpack(self.block, host.values)

    def _with_tensors(self, text: FragmentText, sizes: Mapping[str, int], arrays: Sequence[Words]) -> Words:
        """The table of a fragment; it holds the addresses of its sizes and arrays, which must live as long."""
        self._sizes = text.sizes.block()
        text.sizes.pack(sizes, self._sizes)
        more = [self._sizes.ctypes.data, *(a.ctypes.data for a in arrays), *map(len, arrays)]
        return np.concatenate([self.table, np.array(more, np.uint64)])

    @_by_one_thread
    def record(
        self, fragment: Fragment, sizes: Mapping[str, int], tensors: Mapping[str, Words], commands: int
    ) -> Words:
        """The inputs of a fragment's commands, of which there are so many, as blocks; the device executes none.

        Raises NotNative where the fragment has no native code.
        """
        text, run = self.code.fragment(fragment)
        self._refresh()
        size = max(self.device.inputs.size, 8)
        rows = np.zeros((commands, size), np.uint8)
        ends = np.array([rows.ctypes.data, rows.ctypes.data + rows.size], np.uint64)
        code = compiled(recorder_text(size))
        assert code is not None
        table = self._with_tensors(text, sizes, [tensors[name] for name in text.tensors])
        table[STEP], table[START] = code.address("record"), ends.ctypes.data
        if run(table.ctypes.data):
            if ends[0] == ends[1] and not self.calls.raised:
                raise RuntimeError(f"Fragment {fragment.name} must send {commands} commands, not more")
            self._failed(0, fragment.program.name, text.faults, {n: len(tensors[n]) for n in text.tensors})
        if ends[0] != ends[1]:
            raise RuntimeError(f"Fragment {fragment.name} must send {commands} commands, not less")
        return rows

    def _enter(self, host: Host) -> None:
        """Makes the table ready for commands."""
        self.device.layout.pack(host.values, self.block)
        self.table[STEP] = self.code.step
        self._refresh()

    def _refresh(self) -> None:
        """Memories that have been exchanged for others lie elsewhere."""
        memories = self._host().memories
        for number, name in enumerate(self.device.names):
            memory = memories[name]
            if self._arrays[number]() is not memory:
                # native code takes it for granted that memories do not overlap
                is_shared = any(other is memory and n != name for n, other in memories.items())
                if not isinstance(memory, ArrayMemory) or memory.sort != self.device.memories[name].sort or is_shared:
                    raise TypeError(
                        f"Memory {name} of {self.device.name} must be an ArrayMemory of its sort, of its own"
                    )
                self._arrays[number] = ref(memory)
                self.table[FIRST + number] = memory.words.ctypes.data

    def _failed(
        self, known: int, name: str = "", faults: Sequence[Fault] = (), lengths: Mapping[str, int] | None = None
    ) -> None:
        """Raises what a run has met, in the kernel with a number from 1 on; 0 where the record has it."""

        def errors(recorded: int) -> tuple[str, Sequence[Fault]]:
            number = known or recorded
            if not number:
                return name, faults
            kernel = self.device.kernels[number - 1]
            return kernel.name, self.code.kernels[kernel].faults

        self.calls.check(errors, lengths or {})
