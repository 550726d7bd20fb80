"""The search for counterexamples.

Both fragments are run on the scalar interpreter, smallest shapes first, with deterministic data and *dirty* initial
state: every register and every memory word that is read before it is written holds an arbitrary value.  What is found
is shrunk, and counts only if :func:`~bmc.counterexample.replays` finds the same difference again from the data alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice, takewhile

from ila_lang.interpreter.compile import NoBodyError
from ila_lang.mapping import SizeError, TensorMapping

from .budget import BudgetExceeded
from .contents import Draw, dirty, settled
from .counterexample import Counterexample, described, of_shape
from .runner import Initial, Outcome, Runner
from .sizes import ends
from .unroll import Cell

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
    parameters are then varied within the domain.  Last come sizes at the ends of ranges, where no shapes are given, and
    what the budget left out of the mapping's own sample shapes: what they show does not depend on the machine's speed.
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
    samples = first if shapes is None and mapping.sample_shapes else ()
    return counterexample or tries.rest(samples, operands)


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
        self._finished: set[tuple[int, ...] | None] = set()
        """Shapes at which all short runs came to an end."""

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
        part: float = _SHORT_RUN,
    ) -> Counterexample | None:
        """As :meth:`at`, in short runs at each of some shapes, from states in which programs seldom run long."""
        tensors = [ours for ours, _ in self.runner.mapping.inputs]
        for shape, sizes in shapes:
            ended = True
            for draw in settled(self.seed, self.runner.reset, tensors, operands):
                if self.over:
                    return None
                outcome = self._run(sizes, draw, part)
                if outcome is not None and outcome.failed:
                    return self._shrunk(sizes, shape, outcome, draw)
                ended = ended and outcome is not None
            if ended:
                self._finished.add(shape)
        return None

    def rest(
        self, shapes: Sequence[tuple[tuple[int, ...], dict[str, int]]], operands: Sequence[Sequence[int]]
    ) -> Counterexample | None:
        """As :meth:`settled`, at shapes where it did not finish, each with the whole budget anew."""
        for shape, sizes in shapes:
            self.start = time.perf_counter()
            self.until(1.0)
            again = shape not in self._finished and not self.cannot_run
            counterexample = self.settled([(shape, sizes)], operands, 0.5) if again else None
            if counterexample is not None:
                return counterexample
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
        if shape is None or not of_shape(runner.mapping, sizes, shape):
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
        return described(runner.mapping, sizes, shape, used, outcome)


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
