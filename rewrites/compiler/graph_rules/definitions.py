"""Scalar operators of graphs by their definitions, as rewrites: relu(x) is maximum(x, 0), in both directions.

These need no proof: what an operator of the graph IR means *is* the term that it is registered with.  The digest in
place of a certificate's is that of the term.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

import numpy as np

from ir_semantics.graph.operator import NAMES, OPERATORS
from ir_semantics.graph.types import TensorType
from ir_semantics.scalars.formats import BOOLEAN
from ir_semantics.scalars.terms import Scalar, variables
from rewrites.claims.sources import text_digest
from rewrites.egraph import EGraph, EGraphError, Rule, Substitution, Symbol
from rewrites.egraph.graphs import typing
from rewrites.egraph.pattern import Maker

from .patterns import is_number, scalar_operators
from .tensor_rewrites import Classes, Constants, Types

T = TypeVar("T")


@dataclass(frozen=True)
class Definition:
    """An operator without attributes, and its term; with ``folding`` from the term to the operator, else from it."""

    rule: Rule
    name: str
    term: Scalar
    folding: bool
    constants: Constants = field(repr=False)

    @property
    def operator(self) -> str:
        """The operator at the top of the left side."""
        return scalar_operators()[self.term.op] if self.folding else self.name

    def matches(self, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
        """The operands for which the class of an e-node has the left side."""
        for operands in self._operands(egraph, number):
            substitution = Substitution.of(operands, {})
            try:
                self.sides(Types(), substitution.moved(egraph.type_of))
            except EGraphError:
                continue  # of another type of elements, or one that does not have the term's numbers
            yield substitution

    def _operands(self, egraph: EGraph, number: int) -> Iterator[dict[str, int]]:
        if self.folding:
            yield from self._matched(self.term, number, Classes(egraph, self.constants), {})
        else:
            for node in egraph.nodes(number):
                if node.symbol.operator == self.name:
                    yield dict(zip(NAMES, node.classes, strict=False))

    def _matched(self, term: Scalar, number: int, view: Classes, known: Mapping[str, int]) -> Iterator[dict[str, int]]:
        if term.op == "variable":
            name = str(term.payload)
            if name not in known or view.same(known[name], number):
                yield {**known, name: known.get(name, number)}
            return
        for node in view.nodes(number):
            if term.op == "constant":
                inner = node.operands if node.operator == "broadcast" else ()
                scalars = [node.scalar, *(n.scalar for o in inner for n in view.nodes(o))]
                value = term.payload
                assert isinstance(value, Fraction | float)
                if any(s is not None and is_number(s, value) for s in scalars):
                    yield dict(known)
                    return
            elif node.operator == scalar_operators()[term.op] and len(node.operands) == len(term.args):
                yield from self._all(term.args, node.operands, view, known)

    def _all(
        self, terms: Sequence[Scalar], numbers: Sequence[int], view: Classes, known: Mapping[str, int]
    ) -> Iterator[dict[str, int]]:
        if not terms:
            yield dict(known)
            return
        for extended in self._matched(terms[0], numbers[0], view, known):
            yield from self._all(terms[1:], numbers[1:], view, extended)

    def sides(self, maker: Maker[T], substitution: Substitution[T]) -> tuple[T, T]:
        """Both sides for given operands; raises EGraphError where these are not of one type of floats."""
        operands = dict(substitution.operands)
        if set(operands) != set(variables(self.term)) or substitution.values:
            raise EGraphError(f"{self.rule.name} must be given the operands {', '.join(variables(self.term))}")
        types = [maker.type_of(o) for o in operands.values()]
        first = types[0]
        if not isinstance(first, TensorType) or any(t != first for t in types):
            raise EGraphError(f"the operands of {self.rule.name} must be of one type, not {types}")
        if np.dtype(first.dtype).kind != "f":
            raise EGraphError(f"{self.rule.name} is about floats, and not about {first}")
        of: TensorType = first

        def add(operator: str, inner: Sequence[T], **attributes: tuple[int, ...]) -> T:
            frozen = tuple(sorted(attributes.items()))
            result = typing(operator, [maker.type_of(o) for o in inner], frozen)
            return maker.add(Symbol(operator, frozen, result), inner)

        def built(term: Scalar) -> T:
            if term.op == "variable":
                return operands[str(term.payload)]
            if term.op == "constant":
                assert isinstance(term.payload, Fraction | float)
                scalar = maker.add(self.constants.scalar(term.payload, of.dtype), ())
                return scalar if not of.shape else add("broadcast", [scalar], axes=(), shape=of.shape)
            return add(scalar_operators()[term.op], [built(a) for a in term.args])

        arity = len(variables(self.term))
        sides = add(self.name, [operands[n] for n in NAMES[:arity]]), built(self.term)
        return (sides[1], sides[0]) if self.folding else sides


def definitions(constants: Constants) -> dict[str, Definition]:
    """Both directions for every operator without attributes whose term is of several operators that graphs have."""
    result: dict[str, Definition] = {}
    for name, operator in OPERATORS.items():
        if operator.scalar is None:
            continue
        try:
            term = operator.scalar({})
        except KeyError:  # a term with attributes
            continue
        if not _expressible(term) or scalar_operators().get(term.op) == name:
            continue
        for folding in (False, True):
            title = f"definition of {name}, {'folded' if folding else 'unfolded'}"
            rule = Rule(title, text_digest(name, str(term)))
            result[title] = Definition(rule, name, term, folding, constants)
    return result


def _expressible(term: Scalar) -> bool:
    if term.format == BOOLEAN:
        return False
    if term.op == "variable":
        return True
    if term.op == "constant":
        return True
    return term.op in scalar_operators() and all(map(_expressible, term.args))
