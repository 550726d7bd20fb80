"""Counterexamples: concrete inputs and initial state on which the two sides of a mapping differ.

The search runs both fragments on the scalar interpreter, smallest shapes first, with deterministic data and
*dirty* initial state: every register and every memory word that is read before it is written holds an
arbitrary value. What is found is shrunk, and counts only if :func:`replays` finds the same difference again
from the data alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice, takewhile

from ila_lang import BvSort, CommandError, Expr, ExtentError, Fragment, Machine, MemSort, run_fragment
from ila_lang.interpreter.compile import Memory, NoBodyError
from ila_lang.mapping import SizeError, TensorMapping

from .budget import Budget, BudgetExceeded
from .contents import Draw, dirty, settled
from .sizes import ends
from .unroll import Cell, owners

Initial = Mapping[Cell, int]
"""Initial contents of cells; every cell that is not named holds its reset value, or 0."""

_SMALL_ROWS, _SMALL_COLUMNS = 36, 64
_MOST_ELEMENTS = 2304
_VARIATIONS = (1, 3, 16, 1000)
_FIRST_SHAPES = 16
"""Shapes that are tried from several states before others."""
_FIRST_PART, _SHAPES_PART = 0.3, 0.6
"""Parts of the budget until which these are tried, and all shapes where sizes at the ends of ranges follow."""
_SHORT_RUN, _LONGER_RUN = 1 / 40, 1 / 8
"""Parts of the budget that such a run may take."""
_SMALL_VALUES = (1, 2, 3, 4, 8, 16, 32, 64)


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A difference between both sides, with everything needed to see it again.

    ``initial`` holds input elements (cells of side "input") and initial state.  ``row``, ``column``, ``device`` and
    ``ir`` describe the first differing output element (values as codes), ``shown`` both values for people.
    ``error`` is the interpreter's message where one side refuses a command or an extent of its program; then there are
    no values.  ``shape``, and ``where`` in words, is the one that ``sizes`` belong to, if there is one.
    """

    mapping: str
    sizes: dict[str, int]
    shape: tuple[int, ...] | None
    initial: dict[Cell, int]
    row: int
    column: int
    device: int
    ir: int
    shown: tuple[str, str]
    differing: int
    elements: int
    error: str = ""
    where: str = ""

    @property
    def inputs(self) -> dict[str, dict[int, int]]:
        """The non-zero input elements by tensor and row-major index."""
        words: dict[str, dict[int, int]] = {}
        for cell, value in self.initial.items():
            if cell.side == "input" and cell.address is not None:
                words.setdefault(cell.owner, {})[cell.address] = value
        return words

    def summary(self) -> str:
        """One line for people."""
        where = self.where or "sizes"
        values = ", ".join(f"{n} = {v}" for n, v in self.sizes.items())
        if self.error:
            return f"{where} ({values}): {self.error}"
        return (
            f"{where} ({values}): output element ({self.row}, {self.column}) is {self.shown[0]} on the device and "
            f"{self.shown[1]} in the IR; {self.differing} of {self.elements} elements differ"
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """Outputs of one run of both sides, and the initial contents that the run read (registers: all of them)."""

    device: list[int]
    ir: list[int]
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
        return Outcome(outputs[0], outputs[1], error, read)

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


def search(
    mapping: TensorMapping,
    *,
    shapes: Iterable[tuple[int, ...]] | None = None,
    budget_seconds: float = 10.0,
    seed: int = 0,
    operands: Sequence[Sequence[int]] = (),
) -> Counterexample | None:
    """The first counterexample over ``shapes`` of the input tensor (default: small ones, smallest first), shrunk.

    The first shapes are tried from several initial states in short runs, with ``operands`` (at which a lemma is false)
    among the data; where one shows a difference, smaller ones are tried with random data, too.  At each shape the other
    parameters are then varied within the domain.  Last come sizes at the ends of ranges, where no shapes are given.
    None if there is none within the budget, or if the programs apply functions without a body, which says nothing about
    the mapping.
    """
    tries = _Tries(mapping, budget_seconds, seed)
    every = (mapping.sample_shapes or _small_shapes()) if shapes is None else shapes
    placed_sizes = _sizes_of(mapping, every)
    first = list(islice(placed_sizes, _FIRST_SHAPES))
    tries.until(_FIRST_PART)
    counterexample = tries.settled(first, operands)
    if counterexample is not None:
        tries.until(_FIRST_PART)
        failing = counterexample.sizes
        smaller = takewhile(lambda at: at[1] != failing, first)
        counterexample = next(filter(None, (tries.at(sizes, shape) for shape, sizes in smaller)), counterexample)
    tries.until(_SHAPES_PART if shapes is None else 1.0)
    for shape, sizes in chain(first, placed_sizes) if counterexample is None else ():
        for varied in [dict(sizes), *_variations(mapping, sizes)]:
            counterexample = counterexample or (None if tries.over else tries.at(varied, shape))
        if counterexample is not None or tries.over:
            break
    tries.until(1.0)
    if counterexample is None and shapes is None and first and not tries.over:
        counterexample = tries.at_ends(min((sizes for _, sizes in first), key=lambda sizes: sum(sizes.values())))
    return counterexample


def _sizes_of(
    mapping: TensorMapping, shapes: Iterable[tuple[int, ...]]
) -> Iterator[tuple[tuple[int, ...], dict[str, int]]]:
    """The shapes inside the domain, with their sizes."""
    for shape in shapes:
        with suppress(SizeError):
            yield shape, dict(mapping.sizes_for(shape))


def search_at(
    mapping: TensorMapping,
    sizes: Mapping[str, int],
    *,
    shape: tuple[int, ...] | None = None,
    budget_seconds: float = 10.0,
    models: Sequence[Initial] = (),
) -> Counterexample | None:
    """A shrunk counterexample at these sizes, or None; ``models`` (of a solver) are tried first."""
    tries = _Tries(mapping, budget_seconds, 0)
    tries.until(_FIRST_PART)
    counterexample = None if models else tries.settled([(shape, dict(sizes))])
    tries.until(1.0)
    return counterexample or tries.at(dict(sizes), shape, models, rounds=8)


def replays(mapping: TensorMapping, counterexample: Counterexample) -> bool:
    """Whether a run from the counterexample's data alone shows the same difference, on new machines."""
    outcome = Runner(mapping).run_from(counterexample.sizes, counterexample.initial)
    if not outcome.failed:
        return False
    again = _describe(mapping, counterexample.sizes, counterexample.shape, counterexample.initial, outcome)
    return (again.row, again.column, again.device, again.ir, again.differing, again.error) == (
        counterexample.row,
        counterexample.column,
        counterexample.device,
        counterexample.ir,
        counterexample.differing,
        counterexample.error,
    )


def foreign(mapping: TensorMapping, cells: Iterable[Cell]) -> Cell | None:
    """The first of some cells that neither side has, such as a word of "host" where both have a tensor of the name."""
    own: set[tuple[Cell, bool]] = set()
    for side, fragment in (("device", mapping.device), ("ir", mapping.ir)):
        states, tensors = owners(mapping, side)
        own |= {(cell, isinstance(fragment.ila.states[name].sort, MemSort)) for name, cell in states.items()}
        own |= {(cell, True) for cell in tensors.values()}
    return next((c for c in cells if (replace(c, address=None), c.address is not None) not in own), None)


def placed(mapping: TensorMapping, counterexample: Counterexample) -> Counterexample:
    """The counterexample with its shape in words, and with none where its sizes are not those of the shape."""
    if counterexample.shape is not None and _of_shape(mapping, counterexample.sizes, counterexample.shape):
        return replace(counterexample, where=mapping.shape_text(counterexample.shape))
    return replace(counterexample, shape=None, where="")


def _of_shape(mapping: TensorMapping, sizes: Mapping[str, int], shape: tuple[int, ...]) -> bool:
    try:
        given = mapping.sizes_for(shape)
    except (SizeError, ArithmeticError):
        return False
    return all(sizes[name] == given[name] for name in mapping.shape_parameters or given)


# -- where to look ------------------------------------------------------------------------------------


def _small_shapes() -> list[tuple[int, ...]]:
    shapes = [(r, c) for r in range(1, _SMALL_ROWS + 1) for c in range(1, _SMALL_COLUMNS + 1)]
    return sorted((s for s in shapes if s[0] * s[1] <= _MOST_ELEMENTS), key=lambda s: (s[0] * s[1], s))


def _variations(mapping: TensorMapping, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The same output shape with one other parameter (a base address, for example) moved."""
    extents = mapping.output_extents(sizes)
    for name in mapping.parameters:
        for step in _VARIATIONS:
            varied = {**sizes, name: sizes[name] + step}
            if mapping.holds(varied) and mapping.output_extents(varied) == extents:
                yield varied


class _Tries:
    """Runs within a budget of seconds: half of it for one run, and a quarter more for shrinking a counterexample."""

    def __init__(self, mapping: TensorMapping, seconds: float, seed: int) -> None:
        self.runner, self.seconds, self.seed = Runner(mapping), seconds, seed
        self.start = time.perf_counter()
        self.deadline = self.start + seconds
        self.cannot_run = False

    def until(self, part: float) -> None:
        """Lets tries go on until this part of the budget is used up."""
        self.deadline = self.start + part * self.seconds

    @property
    def over(self) -> bool:
        """Whether the search must end."""
        return self.cannot_run or time.perf_counter() > self.deadline

    def at(
        self, sizes: dict[str, int], shape: tuple[int, ...] | None, models: Sequence[Initial] = (), rounds: int = 1
    ) -> Counterexample | None:
        """A shrunk counterexample at these sizes; ``models`` are tried before other contents."""
        draws = [lambda cell, _, model=model: self.runner.contents(model, cell) for model in models]
        for draw in (*draws, *dirty(self.seed, rounds)):
            outcome = self._run(sizes, draw)
            if outcome is not None and outcome.failed:
                return self._shrunk(sizes, shape, outcome, draw)
            if self.over:
                break
        return None

    def settled(
        self,
        shapes: Sequence[tuple[tuple[int, ...] | None, dict[str, int]]],
        operands: Sequence[Sequence[int]] = (),
    ) -> Counterexample | None:
        """As :meth:`at`, in short runs at each of some shapes, from states in which programs seldom run long."""
        tensors = [ours for ours, _ in self.runner.mapping.inputs]
        for shape, sizes in shapes:
            for draw in settled(self.seed, self.runner.reset, tensors, operands):
                if self.over:
                    return None
                outcome = self._run(sizes, draw, _SHORT_RUN)
                if outcome is not None and outcome.failed:
                    return self._shrunk(sizes, shape, outcome, draw)
        return None

    def at_ends(self, sizes: dict[str, int]) -> Counterexample | None:
        """As :meth:`settled`, with each size in turn at ends of ranges, for as long as runs stay short."""
        tensors = [ours for ours, _ in self.runner.mapping.inputs]
        *_, draw = settled(self.seed, self.runner.reset, tensors)
        larger = ends(self.runner.mapping, sizes)
        while larger and not self.over:
            for name, points in list(larger.items()):
                point = next(points, None)
                outcome = None if point is None or self.over else self._run(point, draw, _LONGER_RUN)
                if point is not None and outcome is not None and outcome.failed:
                    return self._shrunk(point, None, outcome, draw)
                if outcome is None:
                    del larger[name]
        return None

    def _run(self, sizes: Mapping[str, int], draw: Draw, part: float = 0.5) -> Outcome | None:
        """One run; None if it takes too long (a part of the budget) or too much memory, or cannot be."""
        self.runner.deadline = min(self.deadline, time.perf_counter() + self.seconds * part)
        try:
            return self.runner.run(sizes, draw)
        except BudgetExceeded:
            return None
        except NoBodyError:
            self.cannot_run = True
            return None

    def _smaller(self, sizes: dict[str, int], outcome: Outcome, draw: Draw) -> tuple[dict[str, int], Outcome]:
        """Each size in turn as small as a few runs find it, with what they show."""
        for name, value in sizes.items():
            for smaller in sorted({0, 1, 2, 3, 4, *(value >> k for k in range(1, value.bit_length()))}):
                candidate = {**sizes, name: smaller}
                inside = smaller < value and not self.over and self.runner.mapping.holds(candidate)
                runs = (self._run(candidate, d) for d in (draw, *dirty(self.seed, 2)) if inside)
                again = next((run for run in runs if run is not None and run.failed), None)
                if again is not None:
                    sizes, outcome = candidate, again
                    break
        return sizes, outcome

    def _shrunk(
        self, sizes: dict[str, int], shape: tuple[int, ...] | None, outcome: Outcome, draw: Draw
    ) -> Counterexample:
        """As many cells as possible at their reset value (state first, then inputs), small values in the rest.

        Sizes that are not those of the shape are made small before.
        """
        runner = self.runner
        self.until(1.25)
        if shape is None or not _of_shape(runner.mapping, sizes, shape):
            sizes, outcome = self._smaller(sizes, outcome, draw)

        def failing(candidate: Initial) -> bool:
            nonlocal outcome
            again = self._run(sizes, lambda cell, _: runner.contents(candidate, cell))
            if again is None or not again.failed:
                return False
            outcome = again
            return True

        current = {c: v for c, v in outcome.read.items() if v != runner.reset(c)}
        for is_input in (False, True):
            rest = [c for c in current if (c.side == "input") == is_input]
            fixed = {c: v for c, v in current.items() if (c.side == "input") != is_input}
            values = dict(current)

            def still(cells: list[Cell], fixed: Initial = fixed, values: Initial = values) -> bool:
                return failing({**fixed, **{c: values[c] for c in cells}})

            current = {**fixed, **{c: values[c] for c in _fewest(rest, still, self.deadline)}}
        for cell in list(current):
            for small in _SMALL_VALUES:
                if self.over or small >= current[cell]:
                    break
                if failing({**current, cell: small}):
                    current[cell] = small
                    break
        used = {c: v for c, v in current.items() if c.address is None or c in outcome.read}
        return _describe(runner.mapping, sizes, shape, used, outcome)


# -- making it small ------------------------------------------------------------------------------------


def _fewest(cells: list[Cell], failing: Callable[[list[Cell]], bool], deadline: float) -> list[Cell]:
    """A small sublist that still fails (delta debugging: ever smaller pieces are left out)."""
    if not cells or failing([]):
        return []
    piece = len(cells)
    while piece > 1 and time.perf_counter() < deadline:
        piece = (piece + 1) // 2
        at = 0
        while at < len(cells) and time.perf_counter() < deadline:
            without = cells[:at] + cells[at + piece :]
            if without != cells and failing(without):
                cells = without
            else:
                at += piece
    return cells


def _describe(
    mapping: TensorMapping,
    sizes: dict[str, int],
    shape: tuple[int, ...] | None,
    initial: dict[Cell, int],
    outcome: Outcome,
) -> Counterexample:
    _, columns = mapping.output_extents(sizes)
    differing = [i for i, (a, b) in enumerate(zip(outcome.device, outcome.ir, strict=True)) if a != b]
    plain = Counterexample(
        mapping.name,
        sizes,
        shape,
        initial,
        0,
        0,
        0,
        0,
        ("", ""),
        len(differing),
        len(outcome.ir),
        outcome.error,
    )
    plain = placed(mapping, plain)
    if outcome.error or not differing:
        return plain
    first = differing[0]
    device, ir = outcome.device[first], outcome.ir[first]
    shown = (mapping.show_element(device), mapping.show_element(ir))
    return replace(plain, row=first // columns, column=first % columns, device=device, ir=ir, shown=shown)
