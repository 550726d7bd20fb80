"""Runs that a PROVED mapping survives: both sides on the scalar interpreter, on sampled sizes and extreme data.

Sizes are the domain's (:mod:`bmc.sizes`): the smallest, each size alone and all together a little larger, each alone as
large as it can be afforded, then corners at random.  Where the smallest sizes use up the work, all together come next.
Work is counted in iterations of loops and cells that are drawn, so that every machine makes the same runs.
Uninitialised state is random in all of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count, cycle
from random import Random

from ila_lang.interpreter.compile import Memory, NoBodyError
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Runs, Status
from smt_encodings.discharge import Discharger

from . import prove
from .budget import BudgetExceeded
from .counterexample import Counterexample, replays
from .runner import Outcome, Runner
from .search import search_at
from .sizes import SizeSampler
from .unroll import Cell

WORK = 120_000
"""Iterations and cells in all."""
ONE_RUN = 40_000
"""Iterations and cells of one run, where sizes can be chosen."""
ENLARGED = 600_000
"""Iterations and cells on top, for a run with all sizes enlarged and others, where all runs are at the smallest."""
FIXED = 200_000
"""Iterations and cells in all, where the sizes are given."""
MOST_RUNS = 32
SHRINKING = 2.0
"""Seconds for making a difference small."""
QUESTION = 3.0
"""Seconds for each question of the second opinion."""
OPINION = 3_000
"""Iterations and cells of a run at whose sizes the second opinion is asked, where one takes as few."""

EXTREMES: tuple[Callable[[int], int], ...] = (
    lambda width: 0,
    lambda width: (1 << width) - 1,
    lambda width: 1,
    lambda width: 1 << (width - 1),
    lambda width: (1 << (width - 1)) - 1,
)
"""All bits clear and set, one, the sign bit alone, and the largest positive number, of a given number of bits."""

Draw = Callable[[Cell, int], int]


def draws(seed: int) -> Iterable[Draw]:
    """Contents of cells, for one run after the other: random, mixed extremes, and one extreme everywhere."""

    def random(number: int, cell: Cell, width: int) -> int:
        text = f"{seed}.{number}.{cell.side}.{cell.owner}.{cell.address}".encode()
        words = (zlib.crc32(text, k) for k in range(-(-width // 32)))
        return int.from_bytes(b"".join(w.to_bytes(4, "little") for w in words), "little")

    def extreme(number: int, cell: Cell, width: int, of: Callable[[int], int] | None = None) -> int:
        if cell.side != "input":
            return random(number, cell, width)
        return (of or EXTREMES[random(number, cell, 32) % len(EXTREMES)])(width)

    for number, constant in zip(count(0, 3), cycle(EXTREMES), strict=False):
        yield lambda cell, width, n=number: random(n, cell, width)  # type: ignore[misc]
        yield lambda cell, width, n=number + 1: extreme(n, cell, width)  # type: ignore[misc]
        yield lambda cell, width, n=number + 2, of=constant: extreme(n, cell, width, of)  # type: ignore[misc]


class _Work:
    """Iterations that a run may still make; counts loops that are not entered, and those that do not come again."""

    def __init__(self, most: int) -> None:
        self.left, self.empty, self.single = most, 0, 0

    def steps(self, iterations: int) -> range:
        """The iterations of a loop; raises BudgetExceeded where they are too many."""
        self.left -= iterations + 1
        self.empty += not iterations
        self.single += iterations == 1
        if self.left < 0:
            raise BudgetExceeded("the run makes more iterations than it may")
        return range(iterations)


class _CountingRunner(Runner):
    """Runs with a limit of work instead of time."""

    work = _Work(0)

    def _steps(self, memories: list[Memory], read: dict[Cell, int]) -> Callable[[int], Iterable[int]]:
        return self.work.steps


@dataclass
class Survey:
    """Runs of both sides of one mapping until the work is used up or a difference shows."""

    mapping: TensorMapping
    left: int
    one_run: int
    seed: int = 0
    runs: int = 0
    at: dict[str, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failed: tuple[dict[str, int], Outcome] | None = None
    not_run: str = ""
    """Why the sides cannot be run."""
    telling: tuple[tuple[bool, int, int, int], dict[str, int]] | None = None
    """The sizes that show the most at a bearable cost: most loops entered, most of them more than once, least work."""

    def __post_init__(self) -> None:
        self._runner = _CountingRunner(self.mapping)
        self._draws = iter(draws(self.seed))

    @property
    def over(self) -> bool:
        """Whether the survey must end."""
        return self.failed is not None or self.left <= 0 or self.runs >= MOST_RUNS

    def run(self, sizes: Mapping[str, int] | None) -> int | None:
        """The work of one run at these sizes; None where it was too much, or is not made."""
        if sizes is None or self.over:
            return None
        most = min(self.one_run, self.left)
        self._runner.work = work = _Work(most)
        try:
            outcome = self._runner.run(sizes, next(self._draws))
        except BudgetExceeded:
            self.left -= most - max(0, work.left)
            return None
        done = most - work.left + len(outcome.read)
        self.left -= done
        self.runs += 1
        self.at[", ".join(f"{name} = {sizes[name]}" for name in self.mapping.parameters)] = None
        if outcome.failed:
            self.failed = dict(sizes), outcome
        rank = done > OPINION, work.empty, work.single, done
        if self.telling is None or rank < self.telling[0]:
            self.telling = rank, dict(sizes)
        return done

    def difference(self) -> Counterexample | None:
        """The difference as a counterexample, shrunk and replayed."""
        if self.failed is None:
            return None
        sizes, outcome = self.failed
        counterexample = search_at(self.mapping, sizes, budget_seconds=SHRINKING, models=[outcome.read])
        return counterexample if counterexample is not None and replays(self.mapping, counterexample) else None

    def result(self, *, opinion: bool = False) -> Runs:
        """The runs and what they showed; with ``opinion`` BMC is asked where they showed nothing."""
        if self.not_run:
            return Runs(0, (), (self.not_run,))
        if opinion and self.failed is None:
            _second_opinion(self)
        if not self.runs:
            self.notes.append(f"no run takes as few as {self.one_run} iterations")
        counterexample = self.difference()
        shown = "" if self.failed is None else f"{_text(self.failed[0])}: {self.failed[1].error or 'outputs differ'}"
        return Runs(
            self.runs,
            tuple(self.at),
            tuple(self.notes),
            counterexample if counterexample is not None else self.failed,
            shown if counterexample is None else counterexample.summary(),
        )


def _text(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())


def survey(mapping: TensorMapping, sizes: Mapping[str, int] | None = None, *, opinion: bool = False) -> Runs:
    """Runs both sides at sampled sizes of the domain, or at the given ones only.

    With ``opinion`` BMC, which shares no code with CHC, is asked at sizes of these at which every loop is entered.
    """
    return surveyed(mapping, sizes).result(opinion=opinion)


def surveyed(mapping: TensorMapping, sizes: Mapping[str, int] | None = None) -> Survey:
    """The runs of both sides, made."""
    runs = Survey(mapping, WORK if sizes is None else FIXED, ONE_RUN if sizes is None else FIXED)
    try:
        if sizes is None:
            _sampled(runs)
        while sizes is not None and not runs.over and runs.run(sizes) is not None:
            pass
    except NoBodyError as error:
        runs.not_run = f"not run: {error}"
    return runs


def _sampled(runs: Survey) -> None:
    """Runs at the smallest sizes, at each size alone made larger, at all together, and at random corners."""
    sampler = SizeSampler(runs.mapping)
    least = sampler.smallest()
    if least is None:
        runs.notes.append("the solver knew no sizes inside the domain")
        return
    first = runs.run(least)
    runs.run(least)
    if first is None:
        return
    together, most, visited = dict(least), dict[str, float](), [least]
    for name in least:
        above = sampler.above(least, name)
        if above is None:
            most[name] = least[name]
            continue
        more = runs.run(above)
        visited.append(above)
        slope = 0.0 if more is None else max(0, more - first) / (above[name] - least[name])
        room = runs.one_run / 2 - first
        most[name] = float("inf") if slope == 0 and more is not None else least[name] + max(0.0, room / (slope or room))
        runs.run(sampler.points.largest(least, name, most[name]))
        enlarged = {other: max(value, above[other]) for other, value in together.items()}
        if sampler.points.inside(enlarged):
            together = enlarged
    if len(runs.at) == 1 and together != least:
        runs.one_run, runs.left = ENLARGED, ENLARGED
    runs.run(together)
    for point in sampler.points.drawn(visited, most, Random(runs.seed)):
        if runs.over:
            break
        runs.run(point)


def _second_opinion(runs: Survey) -> None:
    """Asks BMC at the sizes of these runs that show the most; a difference that it shows is a failed run."""
    if runs.telling is None:
        return
    _, sizes = runs.telling
    verdict = prove.prove(runs.mapping, sizes, discharger=Discharger(timeout=QUESTION), search_seconds=SHRINKING)
    said = "not decided within its limits" if verdict.status is Status.UNKNOWN else verdict.status.value
    runs.notes.append(f"bmc at {_text(sizes)}: {said}")
    counterexample = verdict.details.get("counterexample")
    if verdict.status is Status.REFUTED and isinstance(counterexample, Counterexample):
        runner = Runner(runs.mapping)
        runs.failed = sizes, runner.run_from(sizes, counterexample.initial)
