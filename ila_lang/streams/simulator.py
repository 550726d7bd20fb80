"""The fast simulator: an ILA's commands as columns, its memories as arrays, its kernels and itself as native code.

The meaning is the scalar interpreter's (:class:`~ila_lang.interpreter.machine.Machine`), from the same expressions and
kernels (:mod:`ila_lang.native`).  What is short, or has no native code, the interpreter executes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import index
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from ila_lang.errors import InputError
from ila_lang.interpreter.compile import Memory
from ila_lang.interpreter.machine import Machine, check_sizes, no_input, require_arguments, run_fragment
from ila_lang.language.expr import Expr
from ila_lang.language.fragment import Fragment
from ila_lang.language.kernel import Kernel
from ila_lang.language.model import Ila
from ila_lang.language.ops import WIDEST
from ila_lang.language.sorts import BOOL, BvSort, MemSort
from ila_lang.native.arrays import ArrayMemory, Tensor, own_words, require_separate
from ila_lang.native.kernels import stored_memories
from ila_lang.native.layout import fits
from ila_lang.native.session import LONG, DeviceCode, Session
from ila_lang.native.terms import NotNative, bits_of

Words = NDArray[Any]


def row_bytes(term: Expr) -> int:
    """The bytes of a row of a column for the term's values; 0 where a value is one number."""
    wide = isinstance(term.sort, BvSort) and term.width > WIDEST
    return (term.width + 7) // 8 if wide else 0


@dataclass(frozen=True)
class CommandStream:
    """Commands as columns: for each input one number per command, or one row of bytes if it has more than 62 bits.

    Bytes are ``uint8``, the least significant first; inputs without a column are 0.  Raises InputError if a column is
    no array, or columns have different lengths.
    """

    columns: Mapping[str, Words]

    def __post_init__(self) -> None:
        for name, column in self.columns.items():
            if not isinstance(column, np.ndarray) or not column.ndim:
                raise InputError(
                    f"Column {name} must be an array of NumPy with a number, or a row of bytes, for each command, not "
                    f"{column!r:.60}"
                )
        lengths = {name: len(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"Columns of a command stream must have one length, not {lengths}")

    @staticmethod
    def of(ila: Ila, commands: Sequence[Mapping[str, int]]) -> CommandStream:
        """Commands given one by one as columns; inputs that a command does not give are 0 there.

        Raises CommandError where a command gives what is no input, and InputError where it gives no number that the
        input can have.
        """
        for number, command in enumerate(commands):
            if not isinstance(command, Mapping):
                raise InputError(f"Command {number} must have numbers by input, not be {command!r:.60}")
        for name in sorted(set().union(*commands) - ila.inputs.keys()):
            raise no_input(ila, name)
        columns: dict[str, Words] = {}
        for name, variable in ila.inputs.items():
            values = [command.get(name, 0) for command in commands]
            size = row_bytes(variable)
            try:
                numbers = list(map(_whole, values))
                if size:
                    blob = b"".join([number.to_bytes(size, "little") for number in numbers])
                    columns[name] = np.frombuffer(blob, np.uint8).reshape(-1, size)
                else:
                    columns[name] = np.array(numbers, np.int64)
                wrong = not fits(bits_of(variable.sort), columns[name])
            except (TypeError, OverflowError):
                wrong = True
            if wrong:
                raise _misfit(name, bits_of(variable.sort), values)
        return CommandStream(columns)

    def __len__(self) -> int:
        return next((len(column) for column in self.columns.values()), 0)

    def command(self, number: int) -> dict[str, int]:
        """The inputs of one command."""
        return {
            name: int(column[number]) if column.ndim == 1 else int.from_bytes(column[number].tobytes(), "little")
            for name, column in self.columns.items()
        }


def _misfit(name: str, bits: int, values: Sequence[Any]) -> InputError:
    """The error of the first value that is no number of so many bits."""
    number, value = next((n, v) for n, v in enumerate(values) if not _is_number(v, bits))
    return InputError(f"{name} of command {number} must be an integer of {bits} bits without sign, not {value!r:.60}")


def _whole(value: Any) -> int:
    """An integer or a Boolean, of Python or of NumPy; raises TypeError where it is none."""
    return int(value) if isinstance(value, np.bool_) else index(value)


def _is_number(value: Any, bits: int) -> bool:
    try:
        return 0 <= _whole(value) < 1 << bits
    except TypeError:
        return False


class Simulator(Machine):
    """A device like :class:`~ila_lang.interpreter.machine.Machine`, fast on long programs and large kernels."""

    memories: dict[str, ArrayMemory]  # type: ignore[assignment]

    def __init__(self, ila: Ila) -> None:
        super().__init__(ila)
        with self._shared.lock:
            if "native" not in self._shared.more:
                try:
                    self._shared.more["native"] = DeviceCode(ila)
                except NotNative:
                    self._shared.more["native"] = None
            code = self._shared.more["native"]
        # a device that refers to itself would keep its memories until the collector comes
        me = ref(self)
        self._session = Session(code, lambda: me()) if code is not None else None  # type: ignore[arg-type,return-value]

    def __copy__(self) -> Simulator:
        raise TypeError(f"A Simulator of {self.ila.name} cannot be copied; make another one")

    def __deepcopy__(self, _: object) -> Simulator:
        return self.__copy__()

    def _memory(self, sort: MemSort, default: int) -> Any:
        return ArrayMemory(sort, default)

    def _replace(self, name: str, contents: Memory) -> None:
        self.memories[name].fill(contents, contents.default)

    def run_kernel(self, kernel: Kernel) -> None:
        """Runs a kernel of the model on the present state; values that it sets when it ends are not set."""
        if self._session is None or self.steps is not range:
            super().run_kernel(kernel)
            return
        if kernel not in self._session.code.kernels:
            self.require_unchanged()
        self._session.run_kernel(kernel)

    def stop(self) -> None:
        """Ends what another thread runs on the device as native code, which raises InterruptedError there."""
        if self._session is not None:
            self._session.calls.stopped = True

    def execute(self, stream: CommandStream, watch: Sequence[str] = ()) -> dict[str, list[tuple[int, Any]]]:
        """Executes the commands of ``stream`` in order.

        For each state in ``watch`` the result has (number of the command, value) of each command that updates it;
        values of states above 62 bits are rows of bytes, the least significant first.  Raises :class:`CommandError` at
        the first command that is not accepted, when the ones before have been executed; InputError, with nothing done,
        if a column does not have the form of its input, or what is watched is no state but memories.
        """
        self._check(stream)
        known = [name for name, state in self.ila.states.items() if not isinstance(state.sort, MemSort)]
        for name in watch:
            if name not in known:
                raise InputError(f"watch must name states of {self.ila.name} that are no memories, not {name!r:.60}")
        session, size = self._native(stream), len(stream)
        if session is None:
            return self._one_by_one(stream, watch)
        which, states = session.execute(stream.columns, size, stream.command, watch)
        watched, at = dict[str, list[tuple[int, Any]]](), 0
        for name in watch:
            updates = np.array([name in i.updates for i in self.ila.instructions.values()])
            numbers = np.flatnonzero(updates[which]) if size else np.zeros(0, np.int64)
            count = -(-session.device.layout.bits[name] // 64)
            words = np.ascontiguousarray(states[numbers, at : at + count])
            row = row_bytes(self.ila.states[name])
            values = words.view(np.uint8)[:, :row] if row else words[:, 0].tolist()
            watched[name] = list(zip(numbers.tolist(), values, strict=True))
            at += count
        return watched

    def _one_by_one(self, stream: CommandStream, watch: Sequence[str]) -> dict[str, list[tuple[int, Any]]]:
        watched = {name: list[tuple[int, Any]]() for name in watch}
        for number in range(len(stream)):
            updates = self.step(stream.command(number)).updates
            for name in watch:
                if name in updates:
                    value, row = int(self.values[name]), row_bytes(self.ila.states[name])
                    word = np.frombuffer(value.to_bytes(row, "little"), np.uint8) if row else value
                    watched[name].append((number, word))
        return watched

    def plain_runs(self, stream: CommandStream) -> list[tuple[int, int]]:
        """Ranges of commands of which it is known beforehand that they are accepted and start nothing.

        Each range is (first, last + 1); :meth:`execute` does not fail on it, whatever the state.
        """
        self._check(stream)
        session = self._native(stream)
        if session is None or not len(stream):
            return []
        which = session.plain(stream.columns, len(stream))
        starts = [not i.reserved and i.kernel is None for i in self.ila.instructions.values()]
        plain = np.append(starts, False)[which]
        edges = np.flatnonzero(np.diff(plain, prepend=False, append=False)).tolist()
        return list(zip(edges[::2], edges[1::2], strict=True))

    def run_fragment(self, fragment: Fragment, sizes: Mapping[str, int], tensors: Mapping[str, Words]) -> None:
        """Runs a fragment of this model at concrete sizes on arrays, which are read and written in place.

        Arrays are as for :func:`~ila_lang.native.arrays.run_on_arrays`.  Raises ValueError or TypeError where a size or
        an array is missing or does not fit, where an array that is written to overlaps another one, where a tensor is a
        memory of the device, and where the program leaves an array; CommandError where a command is not accepted.
        Arrays are unchanged then, but the device is as the program has left it.
        """
        if fragment.ila is not self.ila:
            raise ValueError(f"Fragment {fragment.name} must be of this model of {self.ila.name}")
        require_arguments(fragment, sizes, tensors)
        check_sizes(fragment, sizes)
        external = fragment.program.external_variables()
        used = {n: t for n, t in fragment.tensors.items() if external.get(n) is t}
        own, stored = {}, stored_memories(fragment.program.body) & used.keys()
        for name, variable in used.items():
            assert isinstance(variable.sort, MemSort)
            own[name] = own_words(name, variable.sort, tensors[name], name in stored)
        require_separate(stored, {name: tensors[name] for name in own})
        for memory, name in product(self.memories.values(), own):
            if np.may_share_memory(memory.words, tensors[name]):
                raise ValueError(f"Tensor {name} of fragment {fragment.name} must be no memory of the device")
        if not self._run_natively(fragment, sizes, {n: words[None] for n, words in own.items()}, LONG):
            run_fragment(fragment, sizes, {n: Tensor(n, words) for n, words in own.items()}, self)
        for name in stored:
            tensors[name][:] = own[name]

    def run_words(
        self, fragment: Fragment, sizes: Mapping[str, int], words: Mapping[str, Words], commands: int
    ) -> None:
        """As :meth:`run_fragment`, of so many commands, on sample after sample in the form of words of memories.

        Samples are the first axis, of extent 1 where all have the same.  The caller knows that sizes fit, and that
        arrays have all elements that are used, and are apart.
        """
        if not self._run_natively(fragment, sizes, words, commands):
            for number in range(max(map(len, words.values()), default=1)):
                own = {n: w[number if len(w) > 1 else 0] for n, w in words.items()}
                run_fragment(fragment, sizes, {n: Tensor(n, w, padded=True) for n, w in own.items()}, self)

    def _run_natively(
        self, fragment: Fragment, sizes: Mapping[str, int], words: Mapping[str, Words], commands: int
    ) -> bool:
        """Runs a fragment as native code, on words with samples; false where the interpreter has to."""
        if self._session is None or self.steps is not range:
            return False
        self.require_unchanged()
        if not self._session.code.ready(commands * max(map(len, words.values()), default=1)):
            return False
        try:
            self._session.code.fragment(fragment)
        except NotNative:
            return False
        self._session.run_fragment(fragment, sizes, words)
        return True

    def sent_natively(
        self, fragment: Fragment, sizes: Mapping[str, int], words: Mapping[str, Words], commands: int
    ) -> CommandStream | None:
        """The commands of a fragment, of which there are so many, on arrays; none is executed.

        None where there is no native code.
        """
        if self._session is None:
            return None
        try:
            rows = self._session.record(fragment, sizes, words, commands)
        except NotNative:
            return None
        inputs, columns = self._session.device.inputs, {}
        for name, variable in self.ila.inputs.items():
            at, size = inputs.offsets[name], row_bytes(variable)
            part = np.ascontiguousarray(rows[:, at : at + (size or 8)])
            numbers = part if size else part.view(np.int64)[:, 0]
            columns[name] = numbers.astype(bool) if variable.sort == BOOL else numbers
        return CommandStream(columns)

    def _native(self, stream: CommandStream) -> Session | None:
        """The session if it executes this stream, and not the interpreter."""
        session = self._session
        if session is None or self.steps is not range:
            return None
        if session.code.run is None:
            self.require_unchanged()
        return session if session.code.ready(len(stream)) else None

    def _check(self, stream: CommandStream) -> None:
        """Refuses columns for what is no input, and columns of another form than their input's."""
        if not isinstance(stream, CommandStream):
            raise InputError(f"Commands must be a CommandStream, as CommandStream.of makes, not {stream!r:.60}")
        for name, column in stream.columns.items():
            variable = self.ila.inputs.get(name)
            if variable is None:
                raise no_input(self.ila, name)
            size = row_bytes(variable)
            if size and (column.dtype != np.uint8 or column.shape[1:] != (size,)):
                raise InputError(
                    f"Column {name} must have rows of {size} bytes (uint8), not {column.dtype} of shape {column.shape}"
                )
            if not size and column.ndim != 1:
                raise InputError(f"Column {name} must have one number per command, not shape {column.shape}")
            width = bits_of(variable.sort)
            if hasattr(column, "mask") or not fits(width, column):
                given = " ".join(repr(column).split())
                raise InputError(
                    f"Column {name} must have integers that fit in {width} bits unsigned, all of them, not {given:.60}"
                )
