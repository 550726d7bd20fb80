"""The printer of obligations: statements on integers under hypotheses, as SMT-LIB.

pySMT has no integer division.  ``a // b`` becomes a variable ``q`` with ``b*q <= a < b*q + b`` wherever ``b >= 1``; for
other ``b`` nothing is known of it.  The text depends on the set of hypotheses and the goal only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import BOOL, INT, FunctionType

from ir_semantics.tensors.conditions import (
    All,
    AtLeastZero,
    Condition,
    IsZero,
    OneOf,
    TruthOf,
    both,
    cleared,
    either,
    indices_of,
    negation,
)
from ir_semantics.tensors.index import Index, Quotient, product
from smt_encodings.environment import declarable

Hypotheses = tuple[Condition, ...]
"""Conditions that hold together: none is a conjunction, and quotients are cleared where that is possible."""
MOST_LEMMAS = 40


def parts_of(condition: Condition) -> tuple[Condition, ...]:
    """The conjuncts of a condition."""
    return condition.parts if isinstance(condition, All) else (condition,)


def extended(hypotheses: Hypotheses, *conditions: Condition) -> Hypotheses:
    """More hypotheses."""
    flat = dict.fromkeys(hypotheses)
    for condition in conditions:
        flat |= dict.fromkeys(parts_of(cleared(condition)))
    return tuple(flat)


def remaining(hypotheses: Hypotheses, goal: Condition) -> Condition:
    """What of a goal is no hypothesis."""
    return both(*(p for p in parts_of(cleared(goal)) if p not in hypotheses))


def assertions(hypotheses: Iterable[Condition], goal: Condition) -> tuple[list[FNode], list[FNode]]:
    """The negated goal, the hypotheses and the definitions of quotients; and instances of a lemma that may help.

    They contradict each other exactly where the goal follows from the hypotheses.
    """
    known = sorted(hypotheses, key=str)
    terms = _Terms([*known, goal])
    facts = [smt.Not(terms.condition(goal)), *map(terms.condition, known), *terms.definitions()]
    return facts, [terms.condition(c) for c in product_lemmas(known, goal)]


class _Terms:
    """Index expressions and conditions as pySMT terms; quotients are variables.  No variable of an index has a "!"."""

    def __init__(self, conditions: Sequence[Condition]) -> None:
        quotients = {q for c in conditions for value in indices_of(c) for q in value.quotients}
        ordered = sorted(quotients, key=lambda q: q.key)
        self._quotients = {q: smt.Symbol(f"q!{j}", INT) for j, q in enumerate(ordered, start=1)}

    def index(self, value: Index) -> FNode:
        """An integer term."""
        terms = []
        for monomial, coefficient in value.terms:
            factors = [smt.Symbol(declarable(a), INT) if isinstance(a, str) else self._quotients[a] for a in monomial]
            if coefficient != 1 or not factors:
                factors.insert(0, smt.Int(coefficient))
            terms.append(smt.Times(factors) if len(factors) > 1 else factors[0])
        return smt.Plus(terms) if len(terms) > 1 else terms[0] if terms else smt.Int(0)

    def condition(self, condition: Condition) -> FNode:
        """A Boolean term."""
        match condition:
            case AtLeastZero(value):
                return smt.GE(self.index(value), smt.Int(0))
            case IsZero(value):
                return smt.Equals(self.index(value), smt.Int(0))
            case TruthOf(name, at, positive):
                symbol = smt.Symbol(f"truth!{name}", FunctionType(BOOL, [INT] * len(at)) if at else BOOL)
                term = smt.Function(symbol, [self.index(i) for i in at]) if at else symbol
                return term if positive else smt.Not(term)
            case All(parts):
                return smt.And([self.condition(p) for p in parts])
            case OneOf(parts):
                return smt.Or([self.condition(p) for p in parts])

    def definitions(self) -> list[FNode]:
        """What is known of the quotients."""
        return [self._definition(q, v) for q, v in self._quotients.items()]

    def _definition(self, quotient: Quotient, q: FNode) -> FNode:
        a, b = self.index(quotient.dividend), self.index(quotient.divisor)
        inside = smt.And(smt.LE(smt.Times(b, q), a), smt.LT(a, smt.Plus(smt.Times(b, q), b)))
        if quotient.divisor.constant is not None:  # constants that are not positive do not become quotients
            return inside
        return smt.Implies(smt.GE(b, smt.Int(1)), inside)


def product_lemmas(hypotheses: Sequence[Condition], goal: Condition) -> list[Condition]:
    """Instances of "a product of numbers that are at least 0 is at least 0", for products in hypotheses or goal.

    These hold for all integers, whatever the hypotheses; solvers have to guess them otherwise.
    """
    values = [i for c in (*hypotheses, goal) for i in indices_of(c)]
    monomials = {m for value in values for m, _ in value.terms if len(m) >= 2}
    bounds = [h.value for h in hypotheses if isinstance(h, AtLeastZero)]
    lemmas: dict[Condition, None] = {}
    for monomial in sorted(monomials, key=lambda m: (len(m), tuple(map(str, m)))):
        for bound in bounds:
            for inner, _ in bound.terms:
                rest = list(monomial)
                if not inner or any(inner.count(atom) > rest.count(atom) for atom in inner):
                    continue
                for atom in inner:
                    rest.remove(atom)
                factors = [Index({(atom,): 1}) for atom in rest]
                if factors and bound not in factors:
                    negative = [negation(AtLeastZero(f)) for f in (*factors, bound)]
                    lemmas[either(*negative, AtLeastZero(product((*factors, bound))))] = None
    return list(lemmas)[:MOST_LEMMAS]
