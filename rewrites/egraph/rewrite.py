"""Rewrites: rules as saturation needs them, and as the checker does.

A rewrite is the proved rule of a name and a certificate. It says where it matches, and what its two sides are under a
substitution, in the e-graph and as terms by one text. What is proved holds under the rule's side condition only, so
``sides`` must refuse substitutions outside of it: the checker relies on that, and on nothing else of a rewrite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from .checker import Sides
from .egraph import EGraph
from .explanation import Rule, Substitution
from .pattern import Bindings, Maker, Operator, Pattern, TermMaker, Typing, build, matches, variables
from .terms import EGraphError, Term

T = TypeVar("T")


class Rewrite(Protocol):
    """A rule that saturation can apply."""

    @property
    def rule(self) -> Rule:
        """Its name and the digest of its certificate."""
        ...

    @property
    def operator(self) -> str | None:
        """The operator at the top of the left side, or None if there can be several."""
        ...

    def matches(self, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
        """The substitutions under which the class of an e-node has the rule's left side, and the condition holds."""
        ...

    def sides(self, maker: Maker[T], substitution: Substitution[T]) -> tuple[T, T]:
        """The left and the right side; raises EGraphError where the side condition does not hold."""
        ...


@dataclass(frozen=True)
class PatternRewrite:
    """A rewrite that is data: two patterns, and a condition on attributes and types.

    ``typing`` gives the types of what the sides build. Raises EGraphError where the right side has a variable that the
    left side does not have, or the left side computes something.
    """

    rule: Rule
    left: Operator
    right: Pattern
    typing: Typing
    condition: Callable[[Bindings], bool] | None = None

    def __post_init__(self) -> None:
        operands, values, computed = variables(self.left)
        if computed:
            raise EGraphError(f"{self.rule.name}: a left side must not compute attributes; use a condition")
        more_operands, more_values, _ = variables(self.right)
        free = sorted((more_operands - operands) | (more_values - values))
        if free:
            raise EGraphError(
                f"{self.rule.name}: the left side must have all variables of the right, also {', '.join(free)}"
            )

    @property
    def operator(self) -> str | None:
        """The operator at the top of the left side."""
        return self.left.operator

    def matches(self, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
        """The substitutions under which the class of an e-node has the left side, and the condition holds."""
        for substitution in matches(self.left, egraph, number):
            if self._holds(egraph, substitution):
                yield substitution

    def sides(self, maker: Maker[T], substitution: Substitution[T]) -> tuple[T, T]:
        """The two sides; raises EGraphError where the condition does not hold or the substitution lacks a variable."""
        left = build(self.left, maker, self.typing, substitution)
        if not self._holds(maker, substitution):
            raise EGraphError(f"{self.rule.name}: the side condition must hold, and it does not")
        return left, build(self.right, maker, self.typing, substitution)

    def _holds(self, maker: Maker[T], substitution: Substitution[T]) -> bool:
        if self.condition is None:
            return True
        types = {name: maker.type_of(o) for name, o in substitution.operands}
        return self.condition(Bindings(dict(substitution.values), types))


def sides_of(rewrites: Iterable[Rewrite]) -> Sides:
    """What the checker asks: the sides of these rules as terms. Other rules, and other certificates, are refused.

    Raises EGraphError where two rewrites have one name.
    """
    known: dict[str, Rewrite] = {}
    for rewrite in rewrites:
        if known.setdefault(rewrite.rule.name, rewrite) is not rewrite:
            raise EGraphError(f"rules must have different names; {rewrite.rule.name} occurs twice")
    maker = TermMaker()

    def sides(rule: Rule, substitution: Substitution[Term]) -> tuple[Term, Term]:
        rewrite = known.get(rule.name)
        if rewrite is None or rewrite.rule != rule:
            raise EGraphError(f"there is no rule {rule.name} with the certificate {rule.certificate}")
        return rewrite.sides(maker, substitution)

    return sides
