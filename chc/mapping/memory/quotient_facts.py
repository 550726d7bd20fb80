"""Facts about quotients in which an address is built, each with what it follows from: guesses, to be proved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from chc.mapping.arithmetic.steps import Step
from smt_encodings.discharge import conjuncts
from smt_encodings.expressions.polynomials import difference_of, expand, polynomial_term

from .contexts import SymbolicInstance


def general_facts(instance: SymbolicInstance) -> Iterator[Step]:
    """Facts that hold at every iteration, each with what it follows from."""
    known = instance.encoding.hypotheses
    quotients = instance.quotients()
    for value, divisor, quotient in quotients:
        whole = expand(value)
        if all(divisor in monomial for monomial in whole):  # an exact quotient
            goal = smt.Equals(smt.Times(quotient, divisor), polynomial_term(whole))
            yield Step("an exact quotient times its divisor", _about(known, goal), goal)
        else:
            goal = smt.LE(polynomial_term(expand(smt.Times(divisor, quotient))), polynomial_term(whole))
            yield Step("a quotient times its divisor", _about(known, goal), goal)
        for counter, limit in instance.limits():
            rest = difference_of(expand(limit), {(quotient,): 1})
            if any(quotient in monomial for monomial in rest):
                continue
            multiple = smt.Times(divisor, smt.Plus(smt.Minus(counter, polynomial_term(rest)), smt.Int(1)))
            goal = smt.LE(polynomial_term(expand(multiple)), polynomial_term(whole))
            yield Step("a counter below a quotient", _about(known, goal, quotient), goal)
            goal = smt.LE(smt.Int(0), smt.Times(divisor, counter))
            yield Step("a counter times a divisor", _about(known, goal), goal)


def compared_facts(
    instance: SymbolicInstance,
    parts: Sequence[FNode],
    points: Sequence[Mapping[FNode, FNode]],
    known: Sequence[FNode],
) -> Iterator[Step]:
    """Facts about the iteration and the known ones."""
    agree = [smt.Equals(part, part.substitute(points[0])) for part in parts]
    divisors = dict.fromkeys(divisor for _, divisor, _ in instance.quotients())
    for equal in list(agree):
        rest = difference_of(expand(equal.arg(0)), expand(equal.arg(1)))
        for divisor in (d for d in divisors if rest and all(d in monomial for monomial in rest)):
            factor = {}
            for monomial, coefficient in rest.items():
                others = list(monomial)
                others.remove(divisor)
                factor[tuple(others)] = coefficient
            goal = smt.Equals(polynomial_term(factor), smt.Int(0))
            positive = smt.LE(smt.Int(1), divisor)
            yield Step("equal multiples of a divisor", [equal, *_about(known, positive)], goal)
    for value, divisor, quotient in instance.quotients():
        if quotient in parts:
            there = polynomial_term(expand(smt.Times(quotient.substitute(points[0]), divisor)))
            same = smt.Equals(smt.Times(quotient, divisor), there)
            yield Step("equal parts times a divisor", agree, same)
            continue
        for point in points:
            same = smt.Equals(value, polynomial_term(expand(value.substitute(point))))
            goal = smt.Implies(same, smt.Equals(quotient, quotient.substitute(point)))
            yield Step("equal numbers have equal quotients", _about(known, goal), goal)


def _about(known: Sequence[FNode], goal: FNode, *more: FNode) -> list[FNode]:
    """What is known of the symbols of a goal, and of ``more``."""
    symbols = {*goal.get_free_variables(), *more}
    return [h for h in conjuncts(known) if h.get_free_variables() <= symbols]
