"""What an accelerator's units compute element by element, and so what it lacks for an operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ir_semantics.graph.build import nodes_within
from ir_semantics.graph.ir import Named
from ir_semantics.graph.operator import OPERATORS
from ir_semantics.graph.types import TensorType
from ir_semantics.scalars.terms import Scalar

WORDS: Final[Mapping[str, str]] = {
    "exp": "exponential",
    "log": "logarithm",
    "tanh": "hyperbolic tangent",
    "erf": "error function",
    "sqrt": "square root",
    "pow": "power",
    "div": "division",
}
"""Scalar operators in words that sums, products and maxima do not make.  Where one is lacking, others are not told."""
SIMPLE: Final[Mapping[str, str]] = {
    "mul": "product of two tensors",
    "add": "sum of two tensors",
    "sub": "difference of two tensors",
    "maximum": "maximum",
    "minimum": "minimum",
}
"""Others in words; the rest (signs, choices) are told by their names, and only where they are all that is lacking."""
_REDUCTIONS: Final = {
    **dict.fromkeys(("reduce_sum", "mean", "avg_pool", "cumsum"), "add"),
    **dict.fromkeys(("reduce_max", "max_pool"), "maximum"),
    "reduce_min": "minimum",
}


@dataclass(frozen=True)
class Hardware:
    """An accelerator's name, and what its units compute element by element: scalar operators, or operators of graphs.

    ``alone`` says why none of them is worth a program of its own.  ``elsewhere`` says of others in which unit, or on
    which implementation, the accelerator has them after all.
    """

    name: str
    functions: frozenset[str]
    alone: str
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def reason(self, operator: str, types: Sequence[TensorType], attributes: Named) -> str:
        """Why an operator that none of the accelerator could take stays on the host."""
        functions = set(functions_of(operator, tuple(types), attributes))
        lacking = set() if operator in self.functions else functions - self.functions
        if not functions:
            return f"no unit of {self.name} computes it"
        if not lacking:
            return f"{self.name} {self.alone}"
        told = [f for f in WORDS if f in lacking] or [f for f in SIMPLE if f in lacking] or sorted(lacking)
        shown = (f"no {WORDS.get(f) or SIMPLE.get(f, f)}{self.elsewhere.get(f, '')}" for f in told)
        return f"{self.name} has {', '.join(shown)}"


def functions_of(operator: str, types: tuple[TensorType, ...], attributes: Named) -> Iterator[str]:
    """The scalar operators that an operator applies to elements, or reduces them by."""
    of = OPERATORS[operator]
    if of.scalar is not None:
        yield from _operators(of.scalar(dict(attributes)))
    elif operator in _REDUCTIONS:
        yield _REDUCTIONS[operator]
    elif of.expand is not None:
        for node, inner in nodes_within(operator, types, attributes):
            yield from functions_of(node.operator, inner, node.attributes)


def _operators(term: Scalar) -> Iterator[str]:
    if term.args:
        yield term.op
    for each in term.args:
        yield from _operators(each)
