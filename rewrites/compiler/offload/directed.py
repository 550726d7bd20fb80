"""Proved rules applied at chosen places, in either direction.

Read from right to left most rules apply everywhere (any matrix is its transpose transposed), and some apply again to
what they make.  So a *place* says where, and with which sizes, a rule is worth applying.  Nothing rests on that: what a
place suggests is an instance of the rule only if the rule's premise holds, which is checked wherever its sides are
built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias, TypeVar

from rewrites.compiler.graph_rules.tensor_rewrites import TensorRewrite, Types
from rewrites.egraph import EGraph, EGraphError, ENode, Rule, Substitution
from rewrites.egraph.pattern import Maker
from smt_encodings.claims import Equality

T = TypeVar("T")

Suggestion: TypeAlias = "tuple[Mapping[str, int], Mapping[str, int]]"
"""What stands for a rule's inputs, and its sizes."""


@dataclass(frozen=True)
class Place:
    """Where a rule is applied: at e-nodes of some operators, with the inputs and sizes that ``suggest`` finds there.

    ``backwards`` says that the rule is read from right to left.
    """

    operators: frozenset[str]
    suggest: Callable[[EGraph, ENode], Iterator[Suggestion]]
    backwards: bool = False


@dataclass(frozen=True)
class Directed:
    """A proved rule at places, in the direction that they say; all of them say one."""

    inner: TensorRewrite
    places: tuple[Place, ...]

    @property
    def rule(self) -> Rule:
        """The rule's name with its direction, and the digest of its certificate."""
        direction = ", from right to left" if self.backwards else ""
        return Rule(f"{self.inner.rule.name}{direction}", self.inner.rule.certificate)

    @property
    def operator(self) -> str | None:
        """The operator at whose nodes instances are looked for, which need not be that of a side; None for several."""
        operators = frozenset().union(*(place.operators for place in self.places))
        return next(iter(operators)) if len(operators) == 1 else None

    @property
    def backwards(self) -> bool:
        """Whether the rule is read from right to left."""
        return self.places[0].backwards

    @property
    def equality(self) -> Equality:
        """The sense in which both sides are equal."""
        return self.inner.equality

    def matches(self, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
        """The instances that the places suggest in the class of an e-node."""
        for node, place in product(egraph.nodes(number), self.places):
            for inputs, sizes in place.suggest(egraph, node) if node.symbol.operator in place.operators else ():
                substitution = Substitution.of(inputs, sizes)
                try:
                    self.sides(Types(), substitution.moved(egraph.type_of))
                except EGraphError:
                    continue  # no instance of the rule
                yield substitution

    def sides(self, maker: Maker[T], substitution: Substitution[T]) -> tuple[T, T]:
        """Both sides at an instance, in the direction of reading."""
        left, right = self.inner.sides(maker, substitution)
        return (right, left) if self.backwards else (left, right)
