"""Both sides of a mapping, run on the scalar interpreter from any initial contents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ila_lang import BvSort, CommandError, Expr, ExtentError, Fragment, Machine, MemSort, run_fragment
from ila_lang.interpreter.compile import Memory
from ila_lang.mapping import TensorMapping

from .budget import Budget
from .unroll import Cell, owners

Initial = Mapping[Cell, int]
"""Initial contents of cells; every cell that is not named holds its reset value, or 0."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Outputs of one run of both sides, in rows of ``columns`` elements, and the initial contents that the run read.

    These are all registers, and words of memories.
    """

    device: list[int]
    ir: list[int]
    columns: int
    error: str
    read: dict[Cell, int]

    @property
    def failed(self) -> bool:
        """Whether the run is a counterexample."""
        return bool(self.error) or self.device != self.ir


class _Lazy(Memory):
    """A memory whose initial words are drawn, and noted, when they are first read."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        super().__init__()
        self.draw = draw

    def __missing__(self, address: int) -> int:
        self[address] = value = self.draw(address)
        return value


class Runner:
    """Runs both sides of one mapping on the scalar interpreter, from any initial contents.

    With a ``deadline`` (of ``time.perf_counter``) runs raise BudgetExceeded where they take longer, or too much memory.
    """

    def __init__(self, mapping: TensorMapping, deadline: float | None = None) -> None:
        self.mapping = mapping
        self.deadline = deadline
        self.machines = {"device": Machine(mapping.device.ila), "ir": Machine(mapping.ir.ila)}
        self.owners = {side: owners(mapping, side) for side in self.machines}

    def run(self, sizes: Mapping[str, int], draw: Callable[[Cell, int], int]) -> Outcome:
        """One run; ``draw`` gives the initial value of a cell of a given number of bits.

        Raises NoBodyError where a function that the programs apply has no body.
        """
        read: dict[Cell, int] = {}
        rows, columns = self.mapping.output_extents(sizes)
        outputs, error = [], ""
        for side, fragment in (("device", self.mapping.device), ("ir", self.mapping.ir)):
            machine = self.machines[side]
            tensors = self._prepare(side, fragment, draw, read)
            machine.steps = self._steps([*machine.memories.values(), *tensors.values()], read)
            try:
                run_fragment(fragment, {name: sizes[name] for name in fragment.parameters}, tensors, machine)
            except (CommandError, ExtentError) as refused:
                error = error or f"{fragment.name}: {refused}"
            name = self.mapping.output[0 if side == "device" else 1]
            memory = tensors[name] if name in tensors else machine.memories[name]
            outputs.append([memory[i] for i in machine.steps(rows * columns)])
        return Outcome(outputs[0], outputs[1], columns, error, read)

    def run_from(self, sizes: Mapping[str, int], initial: Initial) -> Outcome:
        """One run from given contents."""
        return self.run(sizes, lambda cell, _: self.contents(initial, cell))

    def contents(self, initial: Initial, cell: Cell) -> int:
        """What a cell holds at the start, where ``initial`` names those that do not hold their reset value."""
        return initial[cell] if cell in initial else self.reset(cell)

    def _steps(self, memories: list[Memory], read: dict[Cell, int]) -> Callable[[int], Iterable[int]]:
        """What gives a loop its iterations."""
        if self.deadline is None:
            return range
        return Budget(self.deadline, lambda: len(read) + sum(map(len, memories))).steps

    def reset(self, cell: Cell) -> int:
        """The reset value of a cell, 0 where it has none."""
        fragment = self.mapping.ir if cell.side == "ir" else self.mapping.device
        return fragment.ila.inits.get(cell.owner, 0) if cell.side in ("ir", "device") else 0

    def _prepare(
        self, side: str, fragment: Fragment, draw: Callable[[Cell, int], int], read: dict[Cell, int]
    ) -> dict[str, Memory]:
        """Puts initial contents into the machine; returns the host tensors."""
        machine = self.machines[side]
        states, tensors = self.owners[side]

        def lazy(owner: Cell, variable: Expr) -> _Lazy:
            sort = variable.sort
            assert isinstance(sort, MemSort)

            def take(address: int) -> int:
                cell = Cell(owner.side, owner.owner, address)
                read[cell] = draw(cell, sort.data_width) & ((1 << sort.data_width) - 1)
                return read[cell]

            return _Lazy(take)

        for name, state in fragment.ila.states.items():
            if isinstance(state.sort, MemSort):
                known = fragment.idle.get(name)
                machine.memories[name] = lazy(states[name], state) if known is None else Memory(known)
            elif name in fragment.idle:
                machine.values[name] = fragment.idle[name]
            else:
                cell, width = states[name], state.sort.width if isinstance(state.sort, BvSort) else 1
                read[cell] = machine.values[name] = draw(cell, width) & ((1 << width) - 1)
        return {name: lazy(tensors[name], tensor) for name, tensor in fragment.tensors.items()}
