"""Examples of a campaign on passes: drawn by Hypothesis, always the same ones for a seed, and made smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from rewrites.campaigns.campaign import home_of_hypothesis

from .drafts import Program
from .programs import programs

SHRINKING_RUNS = 120
"""Examples that are run to make one smaller."""
MOST_PIPELINES = 4


@dataclass(frozen=True)
class Example:
    """A program, and the numbers of the pipelines that it is put to."""

    program: Program
    pipelines: tuple[int, ...]


def drawn(count: int, number: int, pipelines: int) -> list[Example]:
    """Examples for a seed, which must not be negative; ``pipelines`` is how many there are to choose from."""
    examples: list[Example] = []
    _drive(examples.append, (count, number, pipelines), shrink=False)
    return examples


def smallest(of: Example, setting: tuple[int, int, int], fails: Callable[[Example], bool]) -> Example:
    """An example that fails and that Hypothesis finds nothing smaller for; at first ``of``, which must fail.

    ``setting`` are the arguments of :func:`drawn` that it came from.
    """
    best, started, left = of, False, SHRINKING_RUNS
    known: dict[Example, bool] = {}

    def visit(example: Example) -> None:
        nonlocal best, started, left
        started = started or example == of
        if not started:
            return
        if example not in known:
            if left == 0:
                return
            left -= 1
            known[example] = fails(example)
        if known[example]:
            best = example
            raise _Fails

    with suppress(_Fails):
        _drive(visit, setting, shrink=True)
    return best


class _Fails(Exception):
    """Tells Hypothesis that an example fails."""


def _drive(visit: Callable[[Example], None], setting: tuple[int, int, int], *, shrink: bool) -> None:
    count, number, pipelines = setting
    chosen = st.lists(st.integers(0, pipelines - 1), min_size=1, max_size=MOST_PIPELINES, unique=True)
    phases: Sequence[Phase] = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)

    @settings(
        max_examples=count,
        phases=phases,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @seed(number)
    @given(programs(), chosen)
    def holds(program: Program, numbers: list[int]) -> None:
        visit(Example(program, tuple(numbers)))

    with home_of_hypothesis():
        holds()
