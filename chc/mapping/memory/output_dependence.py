"""What an iteration of a write is like that writes the same cell as a known one, where the address is a quotient.

A convolution adds input pixel ``row`` to output row ``(row - tap) div stride``.  The address does not determine the
counters, only such quotients (or ``row - tap`` itself, a multiple of the stride), and which iterations write a cell
follows from facts about them: a counter below a quotient is below the dividend when both are multiplied with the
divisor, equal numbers have equal quotients, and equal multiples of a divisor are of equal numbers.  Each fact is an
obligation of its own, about a few symbols; what is left is linear in products of symbols.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from chc.mapping.arithmetic.ranges import quick
from ila_lang import Expr
from smt_encodings.discharge import conjuncts
from smt_encodings.expressions.polynomials import difference_of, expand, polynomial_term

from .contexts import Context, SymbolicInstance


@dataclass
class OutputDependence:
    """An arbitrary iteration of a write, ``instance``, that writes a cell which a known iteration of it writes."""

    group: str
    instance: SymbolicInstance
    _parts: list[FNode] | None = None
    _always: list[FNode] = field(default_factory=list)

    def facts(self, context: Context, group: str, name: str, ends: Sequence[Mapping[Expr, Expr]]) -> list[FNode]:
        """Facts about the iteration, proved: it writes the cell of the first iteration of ``ends``.

        Quotients are compared with those at all ``ends``.
        """
        parts = self._determined()
        points = [self.instance.point(context, at) for at in ends]
        context.proof.fits(context.encoding, name)
        facts = [smt.Equals(part, part.substitute(points[0])) for part in parts]
        known = [*context.encoding.hypotheses, *self.instance.encoding.hypotheses]
        for number, (what, goal, premises) in enumerate(self._compared(list(facts), points, known), 1):
            if quick(premises, goal):
                context.proof.discharger.follows(
                    group, f"{name}: fact {number}, {what}", premises, goal, "of an iteration that writes the same cell"
                )
                facts.append(goal)
        return [*facts, *self._always]

    def _determined(self) -> list[FNode]:
        """Terms over the iteration that the address determines, with facts about any iteration, proved once."""
        if self._parts is None:
            self._parts, steps = self.instance.parts()
            self.instance.fits()
            proof, label = self.instance.proof, self.instance.write.label
            meaning = "two iterations that write the same address agree in the parts that it is made of"
            for step, hypotheses, goal, _ in steps:
                proof.follows(self.group, f"{label} {self.instance.space}, parts: {step}", hypotheses, goal, meaning)
            for number, (what, goal, premises) in enumerate(self._general(), 1):
                if quick(premises, goal):
                    meaning = "of every iteration"
                    proof.discharger.follows(
                        self.group, f"{label} {self.instance.space}, fact {number}: {what}", premises, goal, meaning
                    )
                    self._always.append(goal)
        return self._parts

    def _general(self) -> Iterator[tuple[str, FNode, list[FNode]]]:
        """Facts that hold at every iteration, each with what it follows from."""
        known = self.instance.encoding.hypotheses
        quotients = self.instance.quotients()
        for value, divisor, quotient in quotients:
            whole = expand(value)
            if all(divisor in monomial for monomial in whole):  # an exact quotient
                goal = smt.Equals(smt.Times(quotient, divisor), polynomial_term(whole))
                yield "an exact quotient times its divisor", goal, _about(known, goal)
            else:
                goal = smt.LE(polynomial_term(expand(smt.Times(divisor, quotient))), polynomial_term(whole))
                yield "a quotient times its divisor", goal, _about(known, goal)
            for counter, limit in self.instance.limits():
                rest = difference_of(expand(limit), {(quotient,): 1})
                if any(quotient in monomial for monomial in rest):
                    continue
                multiple = smt.Times(divisor, smt.Plus(smt.Minus(counter, polynomial_term(rest)), smt.Int(1)))
                goal = smt.LE(polynomial_term(expand(multiple)), polynomial_term(whole))
                yield "a counter below a quotient", goal, _about(known, goal, quotient)
                goal = smt.LE(smt.Int(0), smt.Times(divisor, counter))
                yield "a counter times a divisor", goal, _about(known, goal)

    def _compared(
        self, agree: list[FNode], points: Sequence[Mapping[FNode, FNode]], known: list[FNode]
    ) -> Iterator[tuple[str, FNode, list[FNode]]]:
        """Facts about the iteration and the known ones."""
        assert self._parts is not None
        divisors = dict.fromkeys(divisor for _, divisor, _ in self.instance.quotients())
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
                yield "equal multiples of a divisor", goal, [equal, *_about(known, positive)]
        for value, divisor, quotient in self.instance.quotients():
            if quotient in self._parts:
                there = polynomial_term(expand(smt.Times(quotient.substitute(points[0]), divisor)))
                yield "equal parts times a divisor", smt.Equals(smt.Times(quotient, divisor), there), agree
                continue
            for point in points:
                same = smt.Equals(value, polynomial_term(expand(value.substitute(point))))
                goal = smt.Implies(same, smt.Equals(quotient, quotient.substitute(point)))
                yield "equal numbers have equal quotients", goal, _about(known, goal)


def _about(known: Sequence[FNode], goal: FNode, *more: FNode) -> list[FNode]:
    """What is known of the symbols of a goal, and of ``more``."""
    symbols = {*goal.get_free_variables(), *more}
    return [h for h in conjuncts(known) if h.get_free_variables() <= symbols]
