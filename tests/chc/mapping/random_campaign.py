"""A campaign of random claims: what provers say of them, beside what an evaluator of its own shows.

``python -m tests.chc.mapping.random_campaign --claims 500 --seed 1`` prints a table, and each claim with a wrong
verdict.
"""

from __future__ import annotations

import argparse
import itertools
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import bmc.prove
from bmc.counterexample import Counterexample
from bmc.search import search
from bmc.unroll import Cell
from chc.mapping.prove import prove
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Obligation, Status, Verdict
from smt_encodings.discharge import Discharger
from tests.chc.mapping import evaluator
from tests.chc.mapping.random_claims import Claim, random_claim

STEPS, SHORT, MOST_LONG = 40_000, 8_000, 4
"""Statements of one run; and of each after so many that were too long, as most are where an extent falls below 0."""

HORN = 10.0
"""Seconds of the clock for an invariant, which a machine that does other things may take."""

LARGER = ((9, 2), (2, 11), (9, 9))
"""Sizes beyond those that are all tried."""


@dataclass
class Campaign:
    """Counts of a campaign, and what was found wrong."""

    claims: int = 0
    mutated: int = 0
    differ: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    replayed: int = 0
    skipped: int = 0
    wrong: list[str] = field(default_factory=list)

    def table(self) -> str:
        """The counts as lines of text."""
        lines = [
            f"claims {self.claims}, mutated {self.mutated}, of these differ {self.differ}; {self.skipped} runs too long"
        ]
        for method in dict.fromkeys(m for m, _ in self.verdicts):
            words = ", ".join(f"{w} {n}" for (m, w), n in sorted(self.verdicts.items()) if m == method)
            lines.append(f"{method}: {words}")
        lines.append(f"counterexamples replayed {self.replayed}; wrong verdicts {len(self.wrong)}")
        return "\n".join([*lines, *self.wrong])


def sizes_of(mapping: TensorMapping) -> Iterator[dict[str, int]]:
    """Sizes in the domain: all from 0 to 5, and three larger ones."""
    for values in (*itertools.product(range(6), repeat=len(mapping.parameters)), *LARGER):
        sizes = dict(zip(mapping.parameters, values, strict=True))
        if mapping.holds(sizes):
            yield sizes


def campaign(claims: int, seed: int, *, clash: bool = True, every: int = 4, report: float = 60.0) -> Campaign:
    """Tries so many claims; every so many are also proved at one shape, and searched for counterexamples."""
    found, last = Campaign(), time.monotonic()
    for number in range(claims):
        claim = random_claim(Random(f"{seed} {number}"), clash=clash)
        _one(found, claim, f"seed {seed}, claim {number}", number % every == 0)
        if report and time.monotonic() - last > report:
            last = time.monotonic()
            print(found.table(), flush=True)
    return found


def _one(found: Campaign, claim: Claim, label: str, all_methods: bool) -> None:
    mapping = claim.mapping
    label = f"{label} ({', '.join(claim.parts)}; {claim.change or 'not changed'})"
    found.claims += 1
    found.mutated += bool(claim.change)
    proved = _limited(found, "chc", label, lambda: prove(mapping, discharger=_discharger(), horn_timeout=HORN)) is True
    difference = _difference(found, mapping, thorough=proved) if proved or not claim.holds else None
    found.differ += difference is not None
    if difference is not None and (proved or claim.holds):
        found.wrong.append(f"chc, {label}: {'PROVED' if proved else 'not changed'}, and differs at {difference}")
    if all_methods:
        _other_methods(found, mapping, label)


def _other_methods(found: Campaign, mapping: TensorMapping, label: str) -> None:
    shape = Random(label).choice([s for s in mapping.sample_shapes if s[0] * s[1] <= 9])
    sizes = mapping.sizes_for(shape)
    examples = {
        "bmc": _limited(
            found, "bmc", label, lambda: bmc.prove.prove(mapping, shape, discharger=_discharger(), search_seconds=0.3)
        ),
        "search": _limited(found, "search", label, lambda: search(mapping, budget_seconds=0.5)),
    }
    if examples["bmc"] is True and any(_differs(found, mapping, sizes, seed) for seed in range(3)):
        found.wrong.append(f"bmc, {label}: PROVED at {shape}, and differs")
    for method, example in examples.items():
        if isinstance(example, Counterexample):
            found.replayed += 1
            if not _replays(mapping, example):
                found.wrong.append(f"{method}, {label}: refuted at {example.sizes}, and both sides are equal")


class _Patient(Discharger):
    """Limits questions by the solver's own counter, so that a machine that does other things gives the same answers."""

    def _answers(self, obligation: Obligation, timeout: float, patience: float = 1.0) -> Obligation:
        return super()._answers(obligation, timeout, 20.0)


def _discharger() -> Discharger:
    return _Patient(timeout=3.0, second=False)


def _difference(found: Campaign, mapping: TensorMapping, thorough: bool) -> Mapping[str, int] | None:
    """Sizes at which both sides leave different words."""
    before = found.skipped
    for seed in range(2 if thorough else 1):
        for sizes in sizes_of(mapping):
            steps = STEPS if found.skipped - before < MOST_LONG else SHORT
            if _differs(found, mapping, sizes, seed, steps):
                return sizes
    return None


def _differs(found: Campaign, mapping: TensorMapping, sizes: Mapping[str, int], seed: int, steps: int = STEPS) -> bool:
    try:
        return evaluator.differs(mapping, sizes, seed, steps)
    except evaluator.TooLong:
        found.skipped += 1
        return False


def _replays(mapping: TensorMapping, example: Counterexample) -> bool:
    def draw(owner: str, name: str, address: int | None, bits: int) -> int:
        plain = Cell("host" if owner.endswith("host") else owner, name, address)
        return example.initial.get(Cell(owner, name, address), example.initial.get(plain, 0))

    mine, theirs = evaluator.outputs(mapping, example.sizes, draw)
    return mine != theirs or isinstance(mine, str)


def _limited(
    found: Campaign, method: str, label: str, run: Callable[[], Verdict | Counterexample | None]
) -> bool | Counterexample | None:
    """Whether a method says PROVED, or its counterexample, within 30 s of processor time; its word is counted."""
    try:
        with _alarm(30):
            result = run()
    except TimeoutError:
        found.verdicts[method, "too long"] += 1
        return None
    except Exception as error:  # a campaign goes on, and says so
        found.verdicts[method, "crash"] += 1
        found.wrong.append(f"{method}, {label}: {type(error).__name__}: {str(error)[:200]}")
        return None
    if not isinstance(result, Verdict):
        found.verdicts[method, "nothing found" if result is None else "found"] += 1
        return result
    found.verdicts[method, result.status.name] += 1
    if result.status is Status.ERROR:
        found.wrong.append(f"{method}, {label}: ERROR: {result.reason[:200]}")
    example = result.details.get("counterexample")
    return example if isinstance(example, Counterexample) else result.status is Status.PROVED


@contextmanager
def _alarm(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claims", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=4, help="all methods on every so many claims, only chc on others")
    parser.add_argument("--names-apart", action="store_true", help="no two things of one name")
    options = parser.parse_args()
    print(campaign(options.claims, options.seed, clash=not options.names_apart, every=options.every).table())


if __name__ == "__main__":
    main()
