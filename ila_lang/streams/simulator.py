"""The fast simulator: an ILA's commands in bulk, its memories as NumPy arrays, its kernels on whole arrays.

The meaning is the scalar interpreter's (:class:`~ila_lang.interpreter.machine.Machine`), from the same expressions and
kernels: runs of commands of one instruction that only move data are evaluated as columns, and kernels run with
:mod:`ila_lang.arrays.vectorise`.  What cannot be done so is done one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.arrays.vectorise import VERSIONS, Plan, plan_of
from ila_lang.interpreter.compile import Memory
from ila_lang.interpreter.machine import CommandError, Machine
from ila_lang.language.build import any_of, concat, true
from ila_lang.language.expr import Expr, free_variables, substitute, var
from ila_lang.language.kernel import Kernel
from ila_lang.language.model import Ila, Instruction
from ila_lang.language.sorts import BOOL, MemSort, bv

from .bulk import Bulk, bulk_of, compiled, row_bytes, too_wide
from .decoding import DecodeTable, selection

Words = NDArray[Any]
Select = Callable[[Mapping[str, Words], int], Words]

#: Runs of fewer commands are executed one by one, unless they move whole rows.
SHORT_RUN = 4


class ArrayMemory(MutableMapping[int, int]):
    """A whole memory as an array; ``version`` is another one whenever its contents change, in every memory.

    Whoever writes to :attr:`words` directly must call :meth:`touch`.
    """

    def __init__(self, sort: MemSort, default: int) -> None:
        for bits in (8, 16, 32):
            if sort.data_width <= bits:
                self.words: Words = np.full(1 << sort.addr_width, default, f"uint{bits}")
                break
        else:
            wide: Any = np.int64 if sort.data_width < 64 else np.uint64 if sort.data_width == 64 else object
            self.words = np.full(1 << sort.addr_width, default, wide)
        self.default = default
        self.version = next(VERSIONS)

    def touch(self) -> None:
        """Tells that the contents have changed."""
        self.version = next(VERSIONS)

    def __getitem__(self, address: Any) -> Any:
        found = self.words[address]
        return found.astype(np.int64) if isinstance(found, np.ndarray) else int(found)

    def __setitem__(self, address: Any, word: Any) -> None:
        self.words[address] = word
        self.touch()

    def __delitem__(self, address: int) -> None:
        self[address] = self.default

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.words != self.default).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.words != self.default))


@dataclass(frozen=True)
class CommandStream:
    """Commands as columns: for each input one number per command, or one row of bytes if it has more than 62 bits.

    Bytes are ``uint8``, the least significant first; inputs without a column are 0.  Raises ValueError if the
    columns have different lengths.
    """

    columns: Mapping[str, Words]

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"Columns of a command stream must have one length, not {lengths}")

    @staticmethod
    def of(ila: Ila, commands: Sequence[Mapping[str, int]]) -> CommandStream:
        """Commands given one by one as columns; inputs that a command does not give are 0 there."""
        columns: dict[str, Words] = {}
        for name, variable in ila.inputs.items():
            try:
                values = [*map(itemgetter(name), commands)]
            except KeyError:
                values = [command.get(name, 0) for command in commands]
            size = row_bytes(variable)
            if size:
                blob = b"".join([value.to_bytes(size, "little") for value in values])
                columns[name] = np.frombuffer(blob, np.uint8).reshape(-1, size)
            else:
                columns[name] = np.array(values, np.int64)
        return CommandStream(columns)

    def __len__(self) -> int:
        return next((len(column) for column in self.columns.values()), 0)

    def command(self, number: int) -> dict[str, int]:
        """The inputs of one command."""
        return {
            name: int(column[number]) if column.ndim == 1 else int.from_bytes(column[number].tobytes(), "little")
            for name, column in self.columns.items()
        }


class _Columns:
    """What is compiled of a model to execute commands as columns."""

    def __init__(self, ila: Ila) -> None:
        self.bytes = {
            name: [var(f"{name}.{i}", bv(min(8, v.width - 8 * i))) for i in range(row_bytes(v))]
            for name, v in ila.inputs.items()
            if row_bytes(v)
        }
        self.narrow = {ila.inputs[name]: concat(*reversed(parts)) for name, parts in self.bytes.items()}
        inputs = {*ila.inputs, *(p.name for parts in self.bytes.values() for p in parts)}

        def of_inputs(term: Expr) -> bool:
            return free_variables(term).keys() <= inputs and not too_wide([term])

        self.instructions = list(ila.instructions.values())
        valid = substitute(ila.valid, self.narrow)
        decodes = [substitute(i.decode, self.narrow) for i in self.instructions]
        self.quick = [k for k, d in enumerate(decodes) if of_inputs(d)]

        def possible(term: Expr) -> Expr:
            """What the inputs must satisfy for ``term`` to hold in some state, or less."""
            if of_inputs(term):
                return term
            if term.op in ("and", "or"):
                left, right = map(possible, term.args)
                return left & right if term.op == "and" else left | right
            return true

        others = any_of([possible(d) for k, d in enumerate(decodes) if k not in self.quick])
        self.select: tuple[list[str], Select] | None = None
        if of_inputs(valid):
            self.select = _selection([valid, others, *(decodes[k] for k in self.quick)], self.quick)
        self._bulk: dict[str, Bulk | None] = {}
        self._plans: dict[Kernel, Plan | None] = {}

    def plan(self, kernel: Kernel, check: Callable[[], None]) -> Plan | None:
        """The kernel compiled for arrays, after a ``check``; None where a term does not fit 62 bits."""
        if kernel not in self._plans:
            check()
            try:
                self._plans[kernel] = plan_of(kernel)
            except ValueError:
                self._plans[kernel] = None
        return self._plans[kernel]

    def bulk(self, instruction: Instruction, check: Callable[[], None]) -> Bulk | None:
        """The instruction on columns, compiled after a ``check``; None where what it does to one command depends on
        another of its commands."""
        if instruction.name not in self._bulk:
            check()
            self._bulk[instruction.name] = bulk_of(instruction, self.narrow, self.bytes)
        return self._bulk[instruction.name]


def _selection(roots: Sequence[Expr], quick: Sequence[int]) -> tuple[list[str], Select] | None:
    """What tells which of the instructions ``quick`` decodes each command, and the inputs that it uses."""
    numbers = np.array(quick, np.int64)
    try:
        table = DecodeTable(roots, numbers)
    except ValueError:
        found = compiled(roots)
        if found is None:
            return None
        evaluate, names = found
        return names, lambda columns, size: selection(evaluate(*(columns[n] for n in names)), size, numbers)
    return table.names, table.select


class Simulator(Machine):
    """A device like :class:`~ila_lang.interpreter.machine.Machine`, fast on long programs and large kernels."""

    memories: dict[str, ArrayMemory]  # type: ignore[assignment]

    def __init__(self, ila: Ila) -> None:
        super().__init__(ila)
        columns = self._shared.more.get("columns")
        if columns is None:
            columns = self._shared.more["columns"] = _Columns(ila)
        self._of_columns: _Columns = columns

    def _memory(self, sort: MemSort, default: int) -> Any:
        return ArrayMemory(sort, default)

    def _replace(self, name: str, contents: Memory) -> None:
        memory = self.memories[name]
        memory.words.fill(contents.default)
        memory.default = contents.default
        memory.update(contents)
        memory.touch()

    def run_kernel(self, kernel: Kernel) -> None:
        """Runs a kernel of the model on the present state; values that it sets when it ends are not set."""
        plan = self._of_columns.plan(kernel, self._require_unchanged)
        if plan is None:
            super().run_kernel(kernel)
            return
        arrays = {name: self.memories[name].words for name in plan.memories}
        plan.run(self.values, arrays, {name: self.memories[name].version for name in plan.memories})
        for name in plan.flow.stored:
            self.memories[name].touch()

    def execute(self, stream: CommandStream, watch: Sequence[str] = ()) -> dict[str, list[tuple[int, Any]]]:
        """Executes the commands of ``stream`` in order.

        For each state in ``watch`` the result has (number of the command, value) of each command that updates it;
        values of states above 62 bits are rows of bytes, the least significant first.  Raises :class:`CommandError` at
        the first command that is not accepted, when the ones before have been executed; ValueError, with nothing done,
        if a column does not have the form of its input.
        """
        seen: dict[str, list[tuple[int, Any]]] = {name: [] for name in watch}
        for name, first, values in self._executed(stream, watch):
            seen[name] += zip(range(first, first + len(values)), values, strict=True)
        return seen

    def watch(self, stream: CommandStream, state: str) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """As :meth:`execute`: the numbers of the commands that update a state, and its values as rows of bytes."""
        size = -(-self.ila.states[state].width // 8)
        numbers, rows = [np.zeros(0, np.int64)], [np.zeros((0, size), np.uint8)]
        for _, first, values in self._executed(stream, [state]):
            numbers.append(np.arange(first, first + len(values)))
            found = np.asarray(values)
            rows.append(found if found.ndim > 1 else found.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :size])
        return np.concatenate(numbers), np.concatenate(rows)

    def _executed(self, stream: CommandStream, watch: Sequence[str]) -> Iterator[tuple[str, int, Any]]:
        """Executes; for watched states the first of some commands that follow each other, and the value after each."""
        self._check(stream)
        for first, last, instruction in self._runs(stream):
            bulk = self._of_columns.bulk(instruction, self._require_unchanged) if instruction is not None else None
            if bulk is not None and (last - first >= SHORT_RUN or bulk.short):
                columns = self._columns(stream, first, last, bulk.parameters)
                wide = {row.wide: self._rows(stream, row.wide, first, last) for row in bulk.stored_rows}
                rows = bulk.execute(self.memories, self.values, columns, wide, last - first)
                if rows is not None:
                    yield from ((name, first, rows[name]) for name in watch if name in rows)
                    continue
            for number in range(first, last):
                inputs = stream.command(number)
                chosen = instruction or self.decode(inputs)
                self.execute_one(chosen, inputs)
                yield from ((name, number, [self._watched(name)]) for name in watch if name in chosen.updates)

    def plain_runs(self, stream: CommandStream) -> list[tuple[int, int]]:
        """Ranges of commands of which it is known beforehand that they are accepted and start nothing.

        Each range is (first, last + 1); :meth:`execute` does not fail on it, whatever the state.
        """
        self._check(stream)
        found: list[tuple[int, int]] = []
        for first, last, instruction in self._runs(stream):
            if instruction is None or instruction.reserved or instruction.kernel is not None:
                continue
            if found and found[-1][1] == first:
                first = found.pop()[0]
            found.append((first, last))
        return found

    def _check(self, stream: CommandStream) -> None:
        """Refuses columns for what is no input, and columns of another form than their input's."""
        for name, column in stream.columns.items():
            variable = self.ila.inputs.get(name)
            if variable is None:
                raise CommandError(f"{self.ila.name} has no input {name}; it has {', '.join(self.ila.inputs)}")
            size = row_bytes(variable)
            if size and (column.dtype != np.uint8 or column.shape[1:] != (size,)):
                raise ValueError(
                    f"Column {name} must have rows of {size} bytes (uint8), not {column.dtype} of shape {column.shape}"
                )
            if not size and column.ndim != 1:
                raise ValueError(f"Column {name} must have one number per command, not shape {column.shape}")

    def _watched(self, name: str) -> Any:
        size, value = row_bytes(self.ila.states[name]), self.values[name]
        return np.frombuffer(value.to_bytes(size, "little"), np.uint8) if size else value

    def _runs(self, stream: CommandStream) -> Iterator[tuple[int, int, Instruction | None]]:
        """Maximal runs of commands of one instruction; None where the state has a part in decoding."""
        size = len(stream)
        select = self._of_columns.select
        if select is None:
            yield from ((i, i + 1, None) for i in range(size))
            return
        names, choose = select
        which = choose(self._columns(stream, 0, size, names), size)  # one by one, decoding says what is wrong
        edges = [0, *(np.flatnonzero(np.diff(which)) + 1).tolist(), size]
        for first, last in pairwise(edges):
            if first < last:
                index = int(which[first])
                yield first, last, self._of_columns.instructions[index] if index >= 0 else None

    def _columns(self, stream: CommandStream, first: int, last: int, names: Iterable[str]) -> dict[str, Any]:
        """The columns of inputs, and of bytes of wide ones, among ``names``; those not given are 0."""
        found: dict[str, Any] = {}
        for name in names:
            whole, _, byte = name.rpartition(".")
            if whole in self._of_columns.bytes:
                found[name] = self._rows(stream, whole, first, last)[:, int(byte)].astype(np.int64)
            elif name in stream.columns:
                part = stream.columns[name][first:last]
                is_flag = self.ila.inputs[name].sort == BOOL
                found[name] = part.astype(bool) if is_flag else part.astype(np.int64, copy=False)
            elif name in self.ila.inputs:
                found[name] = np.zeros(last - first, np.int64)
        return found

    def _rows(self, stream: CommandStream, name: str, first: int, last: int) -> Words:
        """The rows of a wide input; 0 where it is not given."""
        rows = stream.columns.get(name)
        return (
            np.zeros((last - first, row_bytes(self.ila.inputs[name])), np.uint8) if rows is None else rows[first:last]
        )
