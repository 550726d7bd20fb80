"""Rules between accelerator operators: transfers that cancel, and chains that are one program.

Over the reals storing and loading do nothing, and that is how both sides of a rule are compared: wherever a rule is
applied, what its sides stand for is built, on any operands of those types, and must be the same graph.  What a device
does is said by the mapping that a rule names; without a live certificate of it the rule is not used.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rewrites.compiler.codegen import accelerator_operator
from rewrites.compiler.graph_rules.tensor_rewrites import Constants
from rewrites.egraph import EGraph, EGraphError, Rule, Substitution, Symbol, Term, term
from rewrites.egraph.graphs import typing
from rewrites.egraph.pattern import Maker, Operator, Pattern, build, matches
from rewrites.mappings.claim import MappingClaim
from smt_encodings.claims import Equality

from .unfolding import meant

if TYPE_CHECKING:
    from rewrites.claims.gate import Admission

T = TypeVar("T")


@dataclass(frozen=True)
class ChainRule:
    """A rule between accelerator operators: two patterns, and the mapping that says that the device does it."""

    name: str
    left: Operator
    right: Pattern
    mapping: MappingClaim


@dataclass(frozen=True)
class ChainRewrite:
    """A rule between accelerator operators as a rewrite, with the certificate of its mapping.

    Raises EGraphError from :meth:`sides` where the sides do not stand for the same.
    """

    rule: Rule
    claim: ChainRule

    equality = Equality.OVER_REALS
    """What the operators mean is said over the reals."""

    @property
    def operator(self) -> str:
        """The operator at the top of the left side."""
        return self.claim.left.operator

    def matches(self, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
        """The operands for which the class of an e-node has the left side, and the right one stands for the same."""
        for substitution in matches(self.claim.left, egraph, number):
            try:
                self._same(substitution.moved(egraph.type_of))
            except EGraphError:
                continue  # operands of other types
            yield substitution

    def sides(self, maker: Maker[T], substitution: Substitution[T]) -> tuple[T, T]:
        """Both sides on operands."""
        self._same(substitution.moved(maker.type_of))
        left = build(self.claim.left, maker, typing, substitution)
        return left, build(self.claim.right, maker, typing, substitution)

    def _same(self, types: Substitution[Hashable]) -> None:
        """Compares what both sides stand for on any operands of these types."""
        operands = {name: term(Symbol("input", (("name", name),), of), ()) for name, of in types.operands}
        any_operands = Substitution.of(operands, dict(types.values))
        left, right = (build(side, Meaning(), typing, any_operands) for side in (self.claim.left, self.claim.right))
        if left is not right:
            raise EGraphError(f"the sides of {self.rule.name} must stand for the same; they do not")


class Meaning:
    """A maker of terms without accelerator operators: each is replaced by what it stands for."""

    def add(self, symbol: Symbol, operands: Sequence[Term]) -> Term:
        """The symbol applied to terms; raises EGraphError where an accelerator operator has no such operands."""
        if accelerator_operator(symbol.operator) is None:
            return term(symbol, operands)
        return meant(symbol.operator, symbol.attributes, self, operands, Constants())

    def type_of(self, number: Term) -> Hashable:
        """The type of a term."""
        return number.symbol.type


def chain_rewrites(rules: Iterable[ChainRule], admitted: Mapping[str, Admission]) -> dict[str, ChainRewrite]:
    """Those of the rules whose mapping is admitted, by name."""
    return {
        rule.name: ChainRewrite(Rule(rule.name, admitted[rule.mapping.name].digest), rule)
        for rule in rules
        if rule.mapping.name in admitted
    }
