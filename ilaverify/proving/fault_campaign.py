"""Fault campaigns: how many mutants of a claim, of those that are really wrong, its own method does not prove.

Each mutant is first run on both sides, to find whether it differs at all.  Those that do are then put to the prover
alone, in a process of their own with a short limit; that no mutant is PROVED is evidence about the prover, not a proof.
Mutants are drawn by a seed: the same claim, seed and number make the same mutant.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from random import Random

from reports.subjects import Mutant, Subject
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger

from .workers import Limits, Task, run_tasks

SEARCH_SECONDS = 2.0
"""How long both sides of a mutant are run in search of a difference."""

PROOF_SECONDS = 20.0
"""The most that the proof of a mutant may take."""

LIMITS = Limits(timeout=PROOF_SECONDS)
"""Limits of proofs by default."""

_STARTING = 60.0  # for a process to come up on a busy machine; no part of what is measured


@dataclass(frozen=True)
class Tried:
    """A mutant by its number, and its results: where both sides differ, and what the method answered."""

    number: int
    what: str
    difference: str = ""
    status: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Campaign:
    """The mutants of a claim, in the order of their numbers."""

    name: str
    method: str
    seed: int
    tried: list[Tried] = field(default_factory=list)

    @property
    def different(self) -> list[Tried]:
        """Those of which runs show that they are wrong."""
        return [t for t in self.tried if t.difference]

    @property
    def not_run(self) -> list[Tried]:
        """Those whose runs ended in a failure."""
        return [t for t in self.tried if not t.difference and t.reason]

    @property
    def wrongly_proved(self) -> list[Tried]:
        """Wrong ones that the method calls PROVED: there must be none."""
        return [t for t in self.different if t.status == Status.PROVED.value]

    @property
    def not_proved(self) -> Counter[str]:
        """The other wrong ones, by what the method says."""
        return Counter(t.status for t in self.different if t.status != Status.PROVED.value)

    def to_json(self) -> dict[str, object]:
        """The counts, and every mutant."""
        return {
            "name": self.name,
            "method": self.method,
            "seed": self.seed,
            "made": len(self.tried),
            "different": len(self.different),
            "not_proved": dict(sorted(self.not_proved.items())),
            "wrongly_proved": [t.number for t in self.wrongly_proved],
            "no_difference_found": len(self.tried) - len(self.different) - len(self.not_run),
            "not_run": len(self.not_run),
            "mutants": [asdict(t) for t in self.tried],
        }


def run_campaign(
    subject: Subject,
    count: int,
    *,
    seed: int = 0,
    limits: Limits = LIMITS,
    stopped: Callable[[], bool] = lambda: False,
) -> Campaign:
    """Tries ``count`` mutants of a subject, or as many as there are; ``limits`` are those of their proofs.

    A proof that ends by its limit of time or memory, or dies, is no proof: UNKNOWN, with how it ended.
    """
    drawn = dict(enumerate(islice(subject.mutants(Random(f"{subject.name} {seed}")), count)))
    tried = {number: Tried(number, mutant.what) for number, mutant in drawn.items()}
    searches = [Task(str(n), partial(_difference, mutant)) for n, mutant in drawn.items()]
    run = partial(run_tasks, jobs=limits.jobs, memory=limits.memory, stopped=stopped)
    with closing(run(searches, timeout=SEARCH_SECONDS + _STARTING)) as ends:
        for end in ends:
            number = int(end.name)
            failure = f"not run: {end.failure}" if end.text is None else ""
            tried[number] = replace(tried[number], difference=end.text or "", reason=failure)
    proofs = [Task(str(n), partial(_proof, drawn[n], limits.timeout)) for n, t in tried.items() if t.difference]
    with closing(run(proofs, timeout=limits.timeout)) as ends:
        for end in ends:
            number = int(end.name)
            status, reason = (Status.UNKNOWN.value, end.failure) if end.text is None else json.loads(end.text)
            tried[number] = replace(tried[number], status=status, reason=reason)
    return Campaign(subject.name, subject.method, seed, [tried[number] for number in sorted(tried)])


def _difference(mutant: Mutant) -> str:
    return mutant.differs(SEARCH_SECONDS) or ""


def _proof(mutant: Mutant, seconds: float) -> str:
    """JSON of the method's status and reason; where it cannot work with the mutant at all, that is an ERROR."""
    try:
        status, reason = mutant.prove(Discharger(timeout=seconds))
    except Exception as error:  # a mutant may be anything; what matters here is that it is not PROVED
        return json.dumps([Status.ERROR.value, f"{type(error).__name__}: {error}"])
    return json.dumps([status.value, reason])
