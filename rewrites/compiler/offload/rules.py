"""Rules from the tensor IR to accelerator operators, as data.

A rule's left side is a pattern, its right side an accelerator operator on the pattern's variables.  Both are equal
because the operator *stands for* the left side: wherever the rule is applied, the graph that the operator stands for is
built and must be the left side, node by node.  A rule whose left side is something else is refused there, by the
e-graph and by the checker of explanations alike.  So nothing is left to prove about the two sides; the certificate
that such a rule carries is that of the mapping which executes the operator.  Without it the operator cannot be used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from ir_semantics.graph.ir import Attribute
from rewrites.compiler.graph_rules.tensor_rewrites import Constants, Types
from rewrites.egraph import EGraph, EGraphError, Rule, Substitution
from rewrites.egraph.graphs import typing
from rewrites.egraph.pattern import (
    Bindings,
    Bound,
    Computed,
    Lookup,
    Maker,
    Operator,
    Variable,
    build,
    matches,
    operator,
    variables,
)
from smt_encodings.claims import Equality

from .unfolding import meant

T = TypeVar("T")


@dataclass(frozen=True)
class AcceleratorRule:
    """A rule to an accelerator operator: two patterns, the right one an operator on variables of the left one."""

    name: str
    left: Operator
    right: Operator

    def __post_init__(self) -> None:
        if not all(isinstance(o, Variable) for o in self.right.operands):
            raise EGraphError(f"{self.name}: the right side must be one accelerator operator on variables")
        (operands, values, _), (more_operands, more_values, _) = variables(self.left), variables(self.right)
        if not (more_operands <= operands and more_values <= values):
            raise EGraphError(f"{self.name}: the left side must have all variables of the right one")

    @property
    def target(self) -> str:
        """The name of the accelerator operator."""
        return self.right.operator

    @property
    def attributes(self) -> tuple[tuple[str, object], ...]:
        """The attributes of the accelerator operator: values, or what stands for them."""
        assert not isinstance(self.right.attributes, Bound), "rules name the attributes of operators"
        return self.right.attributes


@dataclass(frozen=True)
class AcceleratorRewrite:
    """A rule to an accelerator operator as a rewrite, with the certificate of a mapping that executes the operator.

    Raises EGraphError from :meth:`sides` where the operator does not stand for the left side.
    """

    rule: Rule
    claim: AcceleratorRule
    constants: Constants = field(repr=False)

    equality = Equality.OVER_REALS
    """What the operator means is said over the reals; how far an accelerator's numbers are from it, by its theorem."""

    @property
    def operator(self) -> str:
        """The operator at the top of the left side."""
        return self.claim.left.operator

    def matches(self, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
        """The operands for which the class of an e-node has the left side, and the operator stands for it."""
        for substitution in matches(self.claim.left, egraph, number):
            try:
                build(self.claim.right, Types(), typing, substitution.moved(egraph.type_of))
                self._left(Lookup(egraph), substitution)
            except EGraphError:
                continue  # an instance of the pattern that the operator does not stand for, or has no such operands
            yield substitution

    def sides(self, maker: Maker[T], substitution: Substitution[T]) -> tuple[T, T]:
        """The left side and the accelerator operator."""
        left = self._left(maker, substitution)
        return left, build(self.claim.right, maker, typing, substitution)

    def _left(self, maker: Maker[T], substitution: Substitution[T]) -> T:
        left = build(self.claim.left, maker, typing, substitution)
        operands = dict(substitution.operands)
        bindings = Bindings(dict(substitution.values), {n: maker.type_of(o) for n, o in operands.items()})
        attributes = tuple((name, _valued(value, bindings)) for name, value in self.claim.attributes)
        inputs = [operands[o.name] for o in self.claim.right.operands if isinstance(o, Variable)]
        stands_for = meant(self.claim.target, attributes, maker, inputs, self.constants)
        if left != stands_for:
            raise EGraphError(
                f"the left side must be what {self.claim.target} stands for; {self.rule.name} has another"
            )
        return left


def _valued(value: object, bindings: Bindings) -> Attribute:
    attribute = value
    if isinstance(value, Bound):
        attribute = bindings.values[value.name]
    elif isinstance(value, Computed):
        attribute = value.value(bindings)
    if not isinstance(attribute, bool | int | float | str):
        raise EGraphError(f"an attribute of an accelerator operator must be a number or a word, not {attribute!r}")
    return attribute


PRODUCT: Final = operator("matmul", "x", operator("transpose", "w", attributes={"permutation": (1, 0)}))
"""x w^T."""


def dense_layer_rule(target: str, activation: str, accelerator: str) -> AcceleratorRule:
    """The rule to an accelerator operator on x, w and b that is ``activation`` of x w^T + b ("none": no activation)."""
    left = operator("add", PRODUCT, operator("broadcast", "b", attributes={"axes": (1,), "shape": Bound("shape")}))
    after = "" if activation == "none" else f" and {activation}"
    return AcceleratorRule(
        f"dense layer with bias{after} on {accelerator}",
        operator(activation, left) if after else left,
        operator(target, "x", "w", "b", attributes={"activation": activation}),
    )
