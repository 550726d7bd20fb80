"""Running a campaign: Hypothesis draws examples, finds a violation and shrinks its sizes.

Hypothesis draws few small numbers: the sizes, the distribution's name, and the seed of the data; NumPy draws the arrays
from the seed.  Drawn through Hypothesis itself, a matrix would take seconds, and its elements would cluster at zero and
at special values, which would distort the statistics.  Violations then need two shrinking steps: Hypothesis's, for the
sizes, and :mod:`.shrink`'s, for the data.

A run has up to three passes: saved violations of earlier runs first (where there is an example database); then all
examples, for the statistics; then, if one of them violated the property, the same examples again up to that one, to
shrink it.  The middle pass depends only on the definition, the seed and the number of examples, so its samples
are always the same.  Examples may therefore be measured ahead, elsewhere and in any order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ila_lang.errors import InputError

from .definition import Campaign, Example, Skip, Violation
from .shrink import Shrunk, shrink_arrays
from .statistics import Margins, Sample, Statistics, margins_of, sample_of, skipped_reasons, statistics_of

SEED_DIGITS = 11
"""Digits of base 64 in a data seed.

Each is a draw of its own.  Hypothesis takes one draw in twenty of a larger integer from constants that it finds in the
modules loaded by then, so that samples would depend on what else was imported; integers below 100 it draws uniformly.
"""
SHRINKING_RUNS = 300
"""Examples that Hypothesis may run to shrink a violation; it is asked to stop then."""

Phase = Literal["saved examples", "examples", "shrinking"]
Progress = Callable[[Phase, int, list[Sample]], None]
"""Called after each run of an example: the pass, how many were run in it, the samples so far."""


Drawn = tuple[Mapping[str, int], str, int]
"""What determines an example: its sizes, its distribution, the seed of its data."""
Ahead = Callable[[list[Drawn]], Iterable[Sample]]
"""Measures examples, and gives those samples that it has, in any order; the other examples are measured here."""


class CampaignError(Exception):
    """A campaign that broke: one of its sides raised an error; the message says at which example."""


class _Stop(KeyboardInterrupt):
    """Leaves Hypothesis at once: it treats any exception but an interrupt as a failing example, and shrinks it."""


@dataclass(frozen=True)
class Finding:
    """A violation, its example, and the steps that led to it.

    ``drawn`` is the example as Hypothesis found it, ``smallest`` the one it shrank that to (the same where it was
    interrupted), ``example`` the final one, after ``shrunk`` changed the data.  ``saved`` says that it was found in the
    example database.
    """

    violation: Violation
    example: Example
    smallest: Example
    drawn: Example
    shrunk: Shrunk
    saved: bool


@dataclass(frozen=True)
class CampaignResult:
    """The result of a run: a sample for each example, in the order in which they were drawn.

    ``examples`` is how many were asked for; there are fewer samples where the run was interrupted or where the
    definition has fewer examples in all.  ``finding`` is None where no example violated the property.
    """

    campaign: Campaign
    seed: int
    examples: int
    samples: list[Sample]
    finding: Finding | None
    interrupted: bool

    @property
    def errors(self) -> Statistics | None:
        """Statistics of the whole error."""
        return self.statistics("error")

    def statistics(self, of: Literal["error", "input_error", "arithmetic_error"]) -> Statistics | None:
        """Statistics of one of the errors that samples have."""
        return statistics_of(e for s in self.samples if (e := getattr(s, of)) is not None)

    @property
    def worst(self) -> Sample | None:
        """The first sample of the largest error."""
        return max((s for s in self.samples if s.error is not None), key=lambda s: s.error or 0.0, default=None)

    @property
    def violating(self) -> int:
        """How many samples violate the property."""
        return sum(s.violation is not None for s in self.samples)

    @property
    def checked(self) -> int:
        """How many samples had their property checked, at least on a part of the result."""
        return sum(s.covered > 0 for s in self.samples)

    @property
    def covered(self) -> float:
        """The mean part of the result on which the property was checked, 0 .. 1 (0 without samples)."""
        return sum(s.covered for s in self.samples) / len(self.samples) if self.samples else 0.0

    @property
    def margins(self) -> Margins | None:
        """How near the errors came to their bounds, over all samples; None where the campaign has no bound."""
        return margins_of(s.margin for s in self.samples)

    @property
    def skipped(self) -> dict[str, int]:
        """How many samples have no error, by reason."""
        return skipped_reasons(self.samples)


@dataclass
class _Search:
    """The state shared by the passes."""

    campaign: Campaign
    seed: int
    count: int
    progress: Progress | None
    database: Path | None
    known: dict[tuple[Any, ...], tuple[Sample, Violation | None]] = field(default_factory=dict)
    ahead: dict[tuple[Any, ...], Sample] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    drawn: Drawn | None = None
    smallest: tuple[Drawn, Violation] | None = None
    broken: tuple[Example, Exception] | None = None
    runs: int = 0

    def evaluate(self, drawn: Drawn) -> tuple[Sample, Violation | None]:
        """The sample of an example and the violation; each example runs once, and again where one was found ahead."""
        key = self._key(drawn)
        if key not in self.known:
            sample = self.ahead.get(key)
            self.known[key] = self._run(drawn) if sample is None or sample.violation else (sample, None)
        return self.known[key]

    def sample(self, drawn: Drawn) -> Sample:
        """The sample alone."""
        return self.ahead.get(self._key(drawn)) or self.evaluate(drawn)[0]

    def _key(self, drawn: Drawn) -> tuple[Any, ...]:
        sizes, distribution, seed = drawn
        return (*(sizes[n] for n in self.campaign.parameters), distribution, seed)

    def _run(self, drawn: Drawn) -> tuple[Sample, Violation | None]:
        example = self.campaign.example(*drawn)
        try:
            return measured(self.campaign, example)
        except Exception as error:
            self.broken = example, error
            raise _Stop from error

    def tell(self, phase: Phase) -> None:
        self.runs += 1
        if self.progress is not None:
            self.progress(phase, self.runs, self.samples)

    # -- the passes ---------------------------------------------------------------------------------

    def measure(self, ahead: Ahead | None) -> None:
        """Runs every example; a violation is recorded and does not end the pass."""
        self.runs = 0
        drawn: list[Drawn] = []
        if ahead is not None:
            self._drive(drawn.append, ("generate",), saved=False)
            try:
                for sample in ahead(drawn):
                    self.ahead[self._key((sample.parameters, sample.distribution, sample.seed))] = sample
                    self.tell("examples")
            except KeyboardInterrupt:
                self.samples = [self.ahead[key] for key in map(self._key, drawn) if key in self.ahead]
                self.drawn = next(((s.parameters, s.distribution, s.seed) for s in self.samples if s.violation), None)
                raise
            self.runs = 0

        def visit(drawn: Drawn) -> None:
            sample = self.sample(drawn)
            if self.drawn is None and sample.violation is not None:
                self.drawn = drawn
            self.samples.append(sample)
            if ahead is None:
                self.tell("examples")

        self._drive(visit, ("generate",), saved=False)

    def find(self, phase: Phase) -> None:
        """Finds a violation and shrinks it: among saved examples, or in the order of :meth:`measure`."""
        self.runs, budget = 0, SHRINKING_RUNS

        def visit(drawn: Drawn) -> None:
            nonlocal budget
            if self.smallest is not None and self._key(drawn) not in self.known:
                if budget == 0:
                    return
                budget -= 1
            _, violation = self.evaluate(drawn)
            self.tell(phase)
            if violation is not None:
                if self.drawn is None:
                    self.drawn = drawn
                self.smallest = drawn, violation
                raise _Violated

        phases = ("reuse", "shrink") if phase == "saved examples" else ("generate", "shrink")
        with suppress(_Violated):  # the last example that raised is the smallest: Hypothesis ends with it
            self._drive(visit, phases, saved=True)

    def _drive(self, visit: Callable[[Drawn], None], phases: tuple[str, ...], *, saved: bool) -> None:
        import hypothesis
        from hypothesis import Verbosity, given, settings
        from hypothesis import strategies as st
        from hypothesis.database import DirectoryBasedExampleDatabase

        campaign = self.campaign
        drawn = st.tuples(
            st.tuples(*map(st.sampled_from, campaign.parameters.values())),
            st.sampled_from(list(campaign.distributions)),
            st.tuples(*[st.integers(0, 63)] * SEED_DIGITS),
        )

        @settings(
            max_examples=self.count,
            phases=[hypothesis.Phase[name] for name in phases],
            database=DirectoryBasedExampleDatabase(self.database) if saved and self.database else None,
            derandomize=False,
            deadline=None,  # the time of a simulation depends on the sizes
            report_multiple_bugs=False,
            print_blob=False,
            verbosity=Verbosity.quiet,
        )
        @hypothesis.seed(self.seed)  # below the settings, because a seed removes the database from those it finds
        @given(drawn)
        def property_holds(draw: tuple[tuple[int, ...], str, tuple[int, ...]]) -> None:
            values, distribution, digits = draw
            sizes = dict(zip(campaign.parameters, values, strict=True))
            value = 0
            for digit in digits:
                value = value << 6 | digit
            visit((sizes, distribution, value))

        with home_of_hypothesis():
            property_holds()


class _Violated(Exception):
    """Tells Hypothesis that an example violates the property."""


def measured(campaign: Campaign, example: Example) -> tuple[Sample, Violation | None]:
    """The sample of an example that was drawn, and its violation; raises what a side of the campaign raises."""
    assert example.seed is not None
    try:
        outcome = campaign.evaluate(example)
    except Skip as reason:
        bare = (example.parameters, example.distribution, example.seed)
        return Sample(*bare, None, None, None, str(reason), 0.0, None), None
    return sample_of(example, outcome), outcome.violation


def run_campaign(
    campaign: Campaign,
    *,
    examples: int = 100,
    seed: int = 0,
    database: Path | None = None,
    progress: Progress | None = None,
    ahead: Ahead | None = None,
) -> CampaignResult:
    """Runs a campaign; an interrupt (Ctrl-C) ends it early, and the result up to then is returned.

    ``database`` is a directory for Hypothesis's example database: violations are saved there, and tried first in later
    runs.  They do not enter the statistics.  ``ahead`` measures examples elsewhere, before this process does.

    Raises CampaignError where a side of an example raises anything but :class:`~.definition.Skip`, and ValueError
    where there is not at least one example or the seed is negative.
    """
    if examples < 1:
        raise InputError(f"examples must be at least 1, not {examples}")
    if seed < 0:
        raise InputError(f"seed must be 0 or more, not {seed}")
    search = _Search(campaign, seed, examples, progress, database)
    interrupted = saved = False
    try:
        if database is not None and database.is_dir():
            search.find("saved examples")
            saved = search.smallest is not None
        search.measure(ahead)
        if search.drawn is not None and search.smallest is None:
            search.find("shrinking")
    except _Stop:
        assert search.broken is not None
        example, error = search.broken
        raise CampaignError(
            f"Campaign {campaign.name} broke at {show_example(example)}: {type(error).__name__}: {error}"
        ) from error
    except KeyboardInterrupt:
        interrupted = True
    finding = None
    if search.drawn is not None:
        small, violation = search.smallest or (search.drawn, search.evaluate(search.drawn)[1])
        assert violation is not None
        smallest = campaign.example(*small)
        shrunk = Shrunk(smallest, violation, 0, {}, interrupted)
        if not interrupted:
            shrunk = shrink_arrays(campaign, smallest, violation)
        interrupted, drawn = shrunk.interrupted, campaign.example(*search.drawn)
        finding = Finding(shrunk.violation, shrunk.example, smallest, drawn, shrunk, saved)
    return CampaignResult(campaign, seed, examples, search.samples, finding, interrupted)


def show_example(example: Example) -> str:
    """Sizes, distribution and seed of an example, as people write them."""
    sizes = ", ".join(f"{name} {value}" for name, value in example.parameters.items())
    seed = "data given" if example.seed is None else f"data seed {example.seed}"
    return ", ".join(part for part in (sizes, example.distribution, seed) if part)


@contextmanager
def home_of_hypothesis() -> Iterator[None]:
    """Hypothesis's files (it caches the constants of loaded modules) go to a temporary directory, not the user's."""
    from hypothesis.configuration import set_hypothesis_home_dir

    with tempfile.TemporaryDirectory(prefix="ilaverify-") as directory:
        set_hypothesis_home_dir(directory)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)
