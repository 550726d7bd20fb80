"""Memories as arrays of words, and kernels that run on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Set
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.interpreter.compile import Memory, compile_kernel
from ila_lang.interpreter.kept import Kept
from ila_lang.interpreter.machine import check_numbers
from ila_lang.language.expr import Expr
from ila_lang.language.kernel import Command, Kernel, walk
from ila_lang.language.sorts import BvSort, MemSort

from .code import Calls, KernelCode, address_error, body_of
from .kernels import BLOCK, ERROR, FIRST, POLL, stored_memories
from .layout import Layout
from .terms import NotNative, bytes_of, scalars_and_memories

Words = NDArray[Any]


def new_words(sort: MemSort, size: int, default: int = 0) -> Words:
    """An array of words: numbers of 8, 16, 32 or 64 bits, or rows of bytes, the least significant first."""
    count = bytes_of(sort.data_width)
    if count in (1, 2, 4, 8):
        return np.full(size, default, f"uint{8 * count}") if default else np.zeros(size, f"uint{8 * count}")
    words = np.zeros((size, count), np.uint8)
    if default:
        words[:] = np.frombuffer(default.to_bytes(count, "little"), np.uint8)
    return words


def _word(words: Words, address: int) -> int:
    """A word of an array as a number."""
    return int(words[address]) if words.ndim == 1 else int.from_bytes(words[address].tobytes(), "little")


def _row(words: Words, word: int) -> Any:
    """A number as a word of an array."""
    return word if words.ndim == 1 else np.frombuffer(int(word).to_bytes(words.shape[1], "little"), np.uint8)


class ArrayMemory(MutableMapping[int, int]):
    """A whole memory as an array of words (:func:`new_words`)."""

    def __init__(self, sort: MemSort, default: int) -> None:
        self.sort, self.default = sort, default
        self._words = new_words(sort, 1 << sort.addr_width, default)

    @property
    def words(self) -> Words:
        """The words, which may be written to."""
        return self._words

    def __getitem__(self, address: int) -> int:
        return _word(self._words, address)

    def __setitem__(self, address: int, word: int) -> None:
        self._words[address] = _row(self._words, word)

    def __delitem__(self, address: int) -> None:
        self[address] = self.default

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(~self.are(self.default)).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(~self.are(self.default)))

    def are(self, word: int) -> Words:
        """Of each word whether it is this one."""
        same = self._words == _row(self._words, word)
        return np.asarray(same if self._words.ndim == 1 else same.all(axis=1))

    def fill(self, contents: Mapping[int, int], default: int) -> None:
        """Gives the memory other contents."""
        self.default = default
        self._words[:] = new_words(self.sort, 1, default)
        self.update(contents)


class Tensor(Memory):
    """A host's array as a memory for the interpreter.

    Addresses outside of it are errors, or, of loads, 0 where the array is ``padded``.
    """

    def __init__(self, name: str, words: Words, *, padded: bool = False) -> None:
        super().__init__()
        self.name, self.words, self.padded = name, words, padded

    def _has(self, address: int) -> bool:
        return 0 <= address < len(self.words)

    def __getitem__(self, address: int) -> int:
        if not self._has(address):
            if self.padded:
                return 0
            raise address_error(address, self.name, len(self.words))
        return _word(self.words, address)

    def __setitem__(self, address: int, word: int) -> None:
        if not self._has(address):
            raise address_error(address, self.name, len(self.words))
        self.words[address] = _row(self.words, word)


def own_words(name: str, sort: MemSort, words: object, written: bool) -> Words:
    """A copy of a host's array in the form of :func:`new_words`; ValueError where it does not fit its memory."""
    rows = sort.data_width > 64
    kinds = ("u1",) if rows else ("i", "u")
    if not isinstance(words, np.ndarray) or words.ndim != 1 + rows or not words.dtype.str[1:].startswith(kinds):
        kind = f"rows of {bytes_of(sort.data_width)} bytes" if rows else "a one-dimensional array of integers"
        raise ValueError(f"Memory {name} must be {kind}")
    if hasattr(words, "mask") or (written and not words.flags.writeable):
        raise ValueError(f"Memory {name} must be an array without a mask{', that can be written' if written else ''}")
    if len(words) > 1 << sort.addr_width:
        raise ValueError(f"Memory {name} must have at most {1 << sort.addr_width} words, not {len(words)}")
    largest = (1 << sort.data_width) - 1
    if not rows:
        if written and np.iinfo(words.dtype).max < largest:
            raise ValueError(f"Array {name} must have a type for {sort.data_width} bits, not {words.dtype}")
        if words.size and (int(words.min()) < 0 or int(words.max()) > largest):
            raise ValueError(f"Words of {name} must lie in 0 .. {largest}")
    elif words.shape[1] != bytes_of(sort.data_width) or (
        words.size and sort.data_width % 8 and int(words[:, -1].max()) >> sort.data_width % 8
    ):
        raise ValueError(f"Words of {name} must be rows of {bytes_of(sort.data_width)} bytes in 0 .. {largest}")
    own = new_words(sort, len(words))
    own[:] = words
    return own


def require_separate(stored: Set[str], arrays: Mapping[str, Words]) -> None:
    """Raises ValueError where a host's array that is written to overlaps another one."""
    for name in sorted(stored):
        for other in arrays:
            if other != name and np.may_share_memory(arrays[name], arrays[other]):
                raise ValueError(f"Memories {name} and {other} must be separate arrays")


class _OnArrays:
    """A kernel's body as it is now, with what it uses, and its code for arrays that stop short of their memories."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = body_of(kernel)
        self.scalars, self.memories = scalars_and_memories(self.kernel.external_variables())
        self.stored = stored_memories(self.kernel.body)
        self._codes: dict[frozenset[str], KernelCode | None] = {}
        self._lock = RLock()

    def code(self, short: frozenset[str]) -> KernelCode | None:
        """The code for arrays of which these are short; None where a scalar is too wide."""
        with self._lock:
            if short not in self._codes:
                try:
                    layout = Layout(self.scalars.values())
                except NotNative:
                    self._codes[short] = None
                else:
                    self._codes[short] = KernelCode(self.kernel, layout, list(self.memories.values()), sorted(short))
            return self._codes[short]


_KNOWN: Kept[Kernel, _OnArrays] = Kept()


def run_on_arrays(kernel: Kernel, values: Mapping[str, int], memories: Mapping[str, Words]) -> None:
    """Runs a kernel on arrays of words, in place.

    ``values`` gives the external scalars of the body and ``memories`` an array of integers for each of its memories
    (rows of bytes for words above 64 bits), which may stop short of the memory's last address.  Final values of states
    (:attr:`Kernel.on_done`) are not applied.  Raises ValueError if the kernel issues commands; if an argument is
    missing, or does not fit its width or memory (TypeError for a value that is no integer); if an extent does not fit
    its counter; or if the run leaves an array.  Stored memories are unchanged then.

    A load that no condition selects may leave an array in native code only: without llvmlite, and where the kernel has
    a term above 1,024 bits, it raises ValueError, too.
    """
    if any(isinstance(s, Command) for s in walk(kernel.body)):
        raise ValueError(f"Kernel {kernel.name} must issue no commands to run on arrays")
    known = _KNOWN.of(kernel, list(kernel.body), lambda: _OnArrays(kernel))
    own: dict[str, Words] = {}
    for name, variable in known.memories.items():
        assert isinstance(variable.sort, MemSort)
        if name not in memories:
            raise ValueError(f"Kernel {kernel.name} must be given the memory {name}")
        own[name] = own_words(name, variable.sort, memories[name], name in known.stored)
    numbers = {}
    for name, variable in known.scalars.items():
        if name not in values:
            raise ValueError(f"Kernel {kernel.name} must be given the value {name}")
        width = variable.sort.width if isinstance(variable.sort, BvSort) else 1
        check_numbers(f"Value {name} of kernel {kernel.name}", [values[name]], width)
        numbers[name] = int(values[name])
    require_separate(known.stored, {name: memories[name] for name in own})
    _run(known, numbers, own)
    for name in known.stored:
        memories[name][:] = own[name]


def _run(known: _OnArrays, values: Mapping[str, int], own: Mapping[str, Words]) -> None:
    arrays = {name: Tensor(name, words) for name, words in own.items()}
    code = known.code(frozenset(n for n, v in known.memories.items() if len(own[n]) < _size(v)))
    if code is None:
        compile_kernel(known.kernel)(values, arrays, None)
        return
    native = code.native(values)
    if native is None and code.interpret(values, arrays, own):
        return
    native = native or code.native(values)
    if native is None:
        raise AssertionError(f"Kernel {known.kernel.name} must have native code")
    call(native.run, code, values, own)


def _size(memory: Expr) -> int:
    assert isinstance(memory.sort, MemSort)
    return 1 << memory.sort.addr_width


def call(run: Callable[..., int], code: KernelCode, values: Mapping[str, int], own: Mapping[str, Words]) -> None:
    """Runs a kernel's code on arrays in the form of :func:`new_words`; those that it does not check must be whole."""
    name = code.kernel.name
    for memory in code.memories:
        assert isinstance(memory.sort, MemSort)
        words, form = own[memory.name], new_words(memory.sort, 0)
        if (
            (words.dtype, words.shape[1:]) != (form.dtype, form.shape[1:])
            or not words.flags.c_contiguous
            or (memory.name not in code.checked and len(words) != _size(memory))
        ):
            raise AssertionError(f"Array {memory.name} of kernel {name} must be what its code was made for")
    calls, block = Calls(), code.layout.block()
    code.layout.pack(values, block)
    pointers = [own[memory.name].ctypes.data for memory in code.memories]
    lengths = [len(own[name]) for name in code.checked]
    table = np.zeros(FIRST + len(pointers) + len(lengths), np.uint64)
    table[BLOCK], table[ERROR], table[POLL] = block.ctypes.data, calls.record.ctypes.data, calls.poll
    table[FIRST:] = [*pointers, *lengths]
    if run(table.ctypes.data):
        calls.check(lambda _: (name, code.faults), {n: len(w) for n, w in own.items()})
