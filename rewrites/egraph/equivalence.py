"""Union-find with a proof forest: which numbers are equal, and by which reasons.

The forest is that of Nieuwenhuis and Oliveras ("Proof-producing congruence closure", RTA 2005): an edge for each union
that joined two classes, between the two numbers that the reason speaks of. Between equal numbers there is one path. It
never changes, so an edge's own reasons are older than the edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from .terms import EGraphError

R = TypeVar("R")


@dataclass(frozen=True)
class Edge(Generic[R]):
    """A reason for ``left`` and ``right`` to be equal."""

    left: int
    right: int
    reason: R


class Equivalence(Generic[R]):
    """Numbers from 0 on, each at first equal to itself only."""

    def __init__(self) -> None:
        self._roots: list[int] = []
        self._sizes: list[int] = []
        # The forest: each number's neighbour towards the root of its tree, and the edge to it.
        self._above: list[int] = []
        self._edge: list[int] = []
        self.edges: list[Edge[R]] = []

    def __len__(self) -> int:
        return len(self._roots)

    def fresh(self) -> int:
        """The next number, equal to no other."""
        number = len(self._roots)
        self._roots.append(number)
        self._sizes.append(1)
        self._above.append(number)
        self._edge.append(-1)
        return number

    def find(self, number: int) -> int:
        """The number that stands for all that are equal to this one."""
        roots = self._roots
        while roots[number] != number:
            roots[number] = roots[roots[number]]
            number = roots[number]
        return number

    def union(self, left: int, right: int, reason: R) -> tuple[int, int] | None:
        """Makes two numbers equal.

        The result is what stands for both from now on and what no longer does, or None where they were equal; then the
        reason is not kept.
        """
        kept, gone = self.find(left), self.find(right)
        if kept == gone:
            return None
        inner, outer = right, left
        if (self._sizes[kept], -kept) < (self._sizes[gone], -gone):
            kept, gone, inner, outer = gone, kept, left, right
        self._turn(inner)
        self._above[inner] = outer
        self._edge[inner] = len(self.edges)
        self.edges.append(Edge(left, right, reason))
        self._roots[gone] = kept
        self._sizes[kept] += self._sizes[gone]
        return kept, gone

    def _turn(self, number: int) -> None:
        """Makes a number the root of its tree in the forest."""
        above, edge = self._above[number], self._edge[number]
        self._above[number], self._edge[number] = number, -1
        while above != number:
            following, following_edge = self._above[above], self._edge[above]
            self._above[above], self._edge[above] = number, edge
            if following == above:
                break
            number, above, edge = above, following, following_edge

    def path(self, start: int, end: int) -> list[tuple[int, bool]]:
        """The edges that lead from one number to the other, by number; True where from left to right.

        Raises EGraphError where the two are not equal.
        """
        if self.find(start) != self.find(end):
            raise EGraphError(f"only equal e-nodes have an explanation; {start} and {end} are in different classes")
        ups = {start: 0}
        at = start
        while self._above[at] != at:
            at = self._above[at]
            ups[at] = len(ups)
        down = []
        at = end
        while at not in ups:
            down.append((self._edge[at], self.edges[self._edge[at]].right == at))
            at = self._above[at]
        path = []
        now = start
        while now != at:
            path.append((self._edge[now], self.edges[self._edge[now]].left == now))
            now = self._above[now]
        return path + down[::-1]
