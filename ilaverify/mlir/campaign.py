"""The campaign on compiler passes: random MLIR programs, several releases of ``mlir-opt``, each step validated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ilaverify.errors import UsageError
from ilaverify.proving.workers import Limits, Task, run_within
from ir_semantics.mlir.convert import Converter, ConverterError

from .translation import converter_for, passes_of

if TYPE_CHECKING:
    from rewrites.campaigns.mlir.drawing import Example
    from rewrites.campaigns.mlir.passes import Outcome

NAME = "mlir_passes"
SUMMARY = "passes of mlir-opt on random programs: is what a pass gives a refinement of what it gets?"
FAILURES = ("REFUTED", "crashed")


@dataclass(frozen=True)
class Request:
    """How many programs, which seed, which programs ``mlir-opt``, the passes of each pipeline, and limits.

    ``seconds`` is the time for each question to a solver; the limits' timeout is that of a program with one release.
    """

    examples: int
    seed: int
    converters: tuple[Converter, ...]
    pipelines: tuple[tuple[tuple[str, str], ...], ...]
    limits: Limits
    seconds: float = 5.0


@dataclass(frozen=True)
class Failure:
    """A pass that is refuted, or crashed, on the smallest program that was found; ``again`` counts others alike."""

    outcome: Outcome
    again: int = 0

    def is_like(self, other: Outcome) -> bool:
        """Whether another outcome may be the same failure: of the pass, where its operators stand."""
        mine = self.outcome
        same = (mine.pass_name, mine.verdict) == (other.pass_name, other.verdict)
        return same and mine.operators <= other.operators


@dataclass
class Result:
    """Outcomes by release, pass and verdict, why some are UNKNOWN, and failures."""

    programs: int = 0
    interrupted: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def counts(self) -> dict[tuple[str, str], Counter[str]]:
        """How often each verdict came, by release and pass."""
        found: dict[tuple[str, str], Counter[str]] = {}
        for each in self.outcomes:
            found.setdefault((each.release, each.pass_name), Counter())[each.verdict] += 1
        return dict(sorted(found.items()))

    def as_json(self) -> dict[str, Any]:
        """The result, without the programs of steps that did not fail."""
        rows = [{"release": r, "pass": p, **dict(sorted(c.items()))} for (r, p), c in self.counts().items()]
        failures = [{**asdict(f.outcome), "again": f.again} for f in self.failures]
        unknown = Counter(o.reason for o in self.outcomes if o.verdict in ("UNKNOWN", "ERROR"))
        return {
            "campaign": NAME,
            "programs": self.programs,
            "interrupted": self.interrupted,
            "steps": rows,
            "unknown": dict(unknown.most_common()),
            "failures": failures,
        }


def converters_for(names: Sequence[str]) -> tuple[Converter, ...]:
    """The programs ``mlir-opt`` of these names, or the one that is found; raises UsageError where there is none."""
    found = tuple(converter_for(name, NAME) for name in names or (None,))
    try:
        releases = [converter.release for converter in found]
    except ConverterError as error:
        raise UsageError(str(error)) from error
    twice = next((r for r in releases if releases.count(r) > 1), None)
    if twice is not None:
        raise UsageError(f"--mlir-opt must name programs of different releases, and {twice} is named twice")
    return found


def pipelines_for(passes: str | None) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The passes that are named, as one pipeline, or all pipelines of the campaign."""
    from rewrites.campaigns.mlir.passes import PIPELINES

    return tuple(tuple(passes_of(text)) for text in (PIPELINES if passes is None else (passes,)))


def run(request: Request, progress: Callable[[int], None] = lambda done: None) -> Result:
    """Runs the campaign; an interrupt (Ctrl-C) ends it early, and the result up to then is returned."""
    from rewrites.campaigns.mlir.drawing import drawn

    examples = drawn(request.examples, request.seed, len(request.pipelines))
    result, explained = Result(), 0
    failed: list[tuple[Example, Converter, Outcome]] = []
    try:
        for example, converter, found in _measured(request, examples):
            result.outcomes += found
            failed += [(example, converter, o) for o in found if o.verdict in FAILURES]
            result.programs += converter is request.converters[-1]
            progress(result.programs)
        for each in failed:
            _explain(request, result, each)
            explained += 1
    except KeyboardInterrupt:
        result.interrupted = True
        for outcome in sorted((o for _, _, o in failed[explained:]), key=lambda o: len(o.source)):
            if not any(failure.is_like(outcome) for failure in result.failures):
                result.failures.append(Failure(outcome))
    return result


def _measured(request: Request, examples: Sequence[Example]) -> Iterator[tuple[Example, Converter, list[Outcome]]]:
    """Outcomes of each example with each release, in processes of their own."""
    from rewrites.campaigns.mlir.passes import Outcome

    work = [(example, converter) for example in examples for converter in request.converters]
    tasks = [Task(str(k), partial(measure, request, *each)) for k, each in enumerate(work)]
    with closing(run_within(request.limits, tasks)) as ends:
        for end in ends:
            example, converter = work[int(end.name)]
            if end.text is None:
                yield example, converter, [Outcome(converter.release, "", "", "ERROR", end.failure)]
            else:
                yield example, converter, [Outcome(**row) for row in json.loads(end.text)]


def measure(request: Request, example: Example, converter: Converter) -> str:
    """The outcomes of an example with one release, as JSON."""
    return json.dumps([asdict(outcome) for outcome in _outcomes(request, example, converter)])


def _outcomes(request: Request, example: Example, converter: Converter, only: str | None = None) -> Iterator[Outcome]:
    from rewrites.campaigns.mlir.passes import is_new, outcomes

    text = example.program.text(new=is_new(converter.release))
    return outcomes(text, converter, [request.pipelines[k] for k in example.pipelines], request.seconds, only)


def _explain(request: Request, result: Result, failed: tuple[Example, Converter, Outcome]) -> None:
    """Adds a failure, made smaller; or counts it with one that it may be, of this release or another."""
    from rewrites.campaigns.mlir.drawing import smallest

    example, converter, outcome = failed
    for k, failure in enumerate(result.failures):
        if failure.is_like(outcome):
            result.failures[k] = replace(failure, again=failure.again + 1)
            return

    def same(one: Example) -> Iterator[Outcome]:
        found = _outcomes(request, one, converter, outcome.pass_name)
        return (o for o in found if (o.pass_name, o.verdict) == (outcome.pass_name, outcome.verdict))

    setting = (request.examples, request.seed, len(request.pipelines))
    least = smallest(example, setting, lambda one: next(same(one), None) is not None)
    result.failures.append(Failure(min(same(least), key=lambda each: len(each.source), default=outcome)))
