"""Equality saturation: rewrites are applied everywhere until nothing new follows, or a limit is reached.

In each iteration all rewrites are matched on one state of the e-graph, then applied, then congruence is restored. Rules
that match too often are banned for some iterations, and longer each time (the backoff scheduler of egg: Willsey et al.,
POPL 2021), so that a rule which multiplies terms does not use up the limits of all. Whenever it stops, the e-graph is
rebuilt and holds all equalities found so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from .egraph import EGraph
from .explanation import Substitution
from .pattern import Lookup, Missing
from .rewrite import Rewrite
from .terms import EGraphError, identity

Match: TypeAlias = "tuple[Rewrite, Substitution[int]]"
"""A rewrite, and the substitution under which it applies."""


class Stop(Enum):
    """Why saturation stopped."""

    SATURATED = "nothing new follows"
    NODES = "the limit on e-nodes"
    ITERATIONS = "the limit on iterations"
    SECONDS = "the limit on time"


@dataclass(frozen=True)
class Limits:
    """What saturation may use.

    ``nodes`` counts copies as well, so that it bounds memory. A rule may have ``matches`` in one iteration, and is
    banned for ``ban`` iterations if it has more; both double with each ban of the rule. Results that the limit on
    ``seconds`` cut short differ between runs; all others do not.
    """

    nodes: int = 50_000
    iterations: int = 30
    seconds: float = 60.0
    matches: int = 1000
    ban: int = 5


@dataclass
class RuleStatistics:
    """What a rule did: matches found, equalities made, matches that said nothing new, bans, and seconds spent on it."""

    matches: int = 0
    applied: int = 0
    known: int = 0
    bans: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Saturation:
    """Why saturation stopped, after how many iterations, with how many e-nodes and classes, and what each rule did."""

    stop: Stop
    iterations: int
    nodes: int
    classes: int
    rules: Mapping[str, RuleStatistics]

    def __str__(self) -> str:
        lines = [
            f"stopped after {self.iterations} iterations by {self.stop.value}"
            if self.stop is not Stop.SATURATED
            else f"saturated after {self.iterations} iterations",
            f"{self.nodes} e-nodes in {self.classes} classes",
        ]
        for name, rule in self.rules.items():
            bans = f", banned {rule.bans} times" if rule.bans else ""
            lines.append(f"{name}: {rule.matches} matches, {rule.applied} equalities{bans}")
        return "\n".join(lines)


class _Backoff:
    """How often each rule was banned, and until which iteration."""

    def __init__(self, limits: Limits, names: Sequence[str]) -> None:
        self._limits = limits
        self._until = dict.fromkeys(names, 0)
        self._times = dict.fromkeys(names, 0)

    def most(self, name: str, iteration: int) -> int | None:
        """How many matches a rule may have now; None where it is banned."""
        return None if iteration < self._until[name] else self._limits.matches << self._times[name]

    def ban(self, name: str, iteration: int) -> None:
        """Bans a rule that had more."""
        self._until[name] = iteration + 1 + (self._limits.ban << self._times[name])
        self._times[name] += 1

    def release(self, iteration: int) -> bool:
        """Brings the end of bans forward, so that one ends with the iteration; False where no rule is banned."""
        waits = [until - iteration - 1 for until in self._until.values() if until > iteration + 1]
        if not waits:
            return any(until > iteration for until in self._until.values())
        for name, until in self._until.items():
            if until > iteration + 1:
                self._until[name] = until - min(waits)
        return True


def saturate(
    egraph: EGraph,
    rewrites: Sequence[Rewrite],
    limits: Limits = Limits(),
    clock: Callable[[], float] = time.monotonic,
) -> Saturation:
    """Applies rewrites until nothing new follows or a limit is reached.

    Raises EGraphError where two rewrites have one name, and what a rewrite's ``sides`` raises for its own matches.
    """
    return _Saturating(egraph, rewrites, limits, clock).run()


class _Saturating:
    """One saturation: the e-graph, its rewrites, and what they have used of the limits."""

    def __init__(self, egraph: EGraph, rewrites: Sequence[Rewrite], limits: Limits, clock: Callable[[], float]) -> None:
        self._egraph, self._rewrites, self._limits, self._clock = egraph, rewrites, limits, clock
        self._statistics = {r.rule.name: RuleStatistics() for r in rewrites}
        if len(self._statistics) != len(rewrites):
            raise EGraphError("rewrites must have different names; give each rule once")
        self._end = clock() + limits.seconds
        self._backoff = _Backoff(limits, list(self._statistics))
        self._done: set[Hashable] = set()  # matches that were made equal, up to equality: what is equal stays equal

    def run(self) -> Saturation:
        egraph = self._egraph
        egraph.rebuild()
        iteration = 0
        while True:
            stop = Stop.ITERATIONS if iteration >= self._limits.iterations else None
            if stop is None:
                before = egraph.size, egraph.unions
                matches, stop = self._matches(iteration)
                if stop is None:
                    stop = self._apply(matches)
                egraph.rebuild()
                iteration += 1
                if stop is None and before == (egraph.size, egraph.unions) and not self._backoff.release(iteration - 1):
                    stop = Stop.SATURATED
            if stop is not None:
                return Saturation(stop, iteration, len(egraph), len(egraph.classes()), self._statistics)

    def _matches(self, iteration: int) -> tuple[list[Match], Stop | None]:
        """All matches of rules that are not banned. A rule with too many is banned, and has none."""
        classes = self._egraph.classes()
        having: dict[str, dict[int, None]] = {}
        for c in classes:
            for node in self._egraph.nodes(c):
                having.setdefault(node.symbol.operator, {})[c] = None
        matches: list[Match] = []
        for rewrite in self._rewrites:
            name = rewrite.rule.name
            counts = self._statistics[name]
            most = self._backoff.most(name, iteration)
            if most is None:
                continue
            start = self._clock()
            own: list[Match] = []
            for c in classes if rewrite.operator is None else having.get(rewrite.operator, {}):
                for substitution in rewrite.matches(self._egraph, c):
                    own.append((rewrite, substitution))
                    if len(own) > most:
                        break
                    if self._clock() > self._end:
                        return matches, Stop.SECONDS
                if len(own) > most or self._clock() > self._end:
                    break
            counts.matches += len(own)
            counts.seconds += self._clock() - start
            if self._clock() > self._end:
                return matches, Stop.SECONDS
            if len(own) > most:
                self._backoff.ban(name, iteration)
                counts.bans += 1
            else:
                matches += own
        return matches, None

    def _apply(self, matches: Sequence[Match]) -> Stop | None:
        """Makes the two sides of each match equal, until a limit is reached."""
        egraph, lookup = self._egraph, Lookup(self._egraph)
        for rewrite, substitution in matches:
            counts = self._statistics[rewrite.rule.name]
            start = self._clock()
            if start > self._end:
                return Stop.SECONDS
            if egraph.size >= self._limits.nodes:
                return Stop.NODES
            operands = tuple(egraph.find(o) for _, o in substitution.operands)
            key = (rewrite.rule.name, operands, identity(substitution.values))
            if key in self._done:
                counts.known += 1
                continue
            self._done.add(key)
            try:
                left, right = rewrite.sides(lookup, substitution)
                same = egraph.find(left) == egraph.find(right)
            except Missing:
                same = False
            if same:
                counts.known += 1
            else:
                left, right = rewrite.sides(egraph, substitution)
                if egraph.merge(left, right, rewrite.rule, substitution):
                    counts.applied += 1
                else:
                    counts.known += 1
            counts.seconds += self._clock() - start
        return None
