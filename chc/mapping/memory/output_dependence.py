"""What an iteration of a write is like that writes the same cell as a known one, where the address is a quotient.

A convolution adds input pixel ``row`` to output row ``(row - tap) div stride``.  The address does not determine the
counters, only such quotients (or ``row - tap`` itself, a multiple of the stride), and which iterations write a cell
follows from facts about them (:mod:`.quotient_facts`): a counter below a quotient is below the dividend when both are
multiplied with the divisor, equal numbers have equal quotients, and equal multiples of a divisor are of equal numbers.
Each fact is an obligation of its own, about a few symbols; what is left is linear in products of symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from chc.mapping.arithmetic.ranges import quick
from chc.mapping.arithmetic.steps import Step, require
from ila_lang import Expr

from .contexts import Context, SymbolicInstance
from .quotient_facts import compared_facts, general_facts


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
        compared = compared_facts(self.instance, parts, points, known)
        meaning = "of an iteration that writes the same cell"
        return [*facts, *self._proved(group, name, [*known, *facts], compared, meaning), *self._always]

    def _determined(self) -> list[FNode]:
        """Terms over the iteration that the address determines, with facts about any iteration, proved once."""
        if self._parts is None:
            self._parts, steps = self.instance.parts()
            self.instance.fits()
            proof, label = self.instance.proof, self.instance.write.label
            meaning = "two iterations that write the same address agree in the parts that it is made of"
            for step, hypotheses, goal, _ in steps:
                proof.follows(self.group, f"{label} {self.instance.space}, parts: {step}", hypotheses, goal, meaning)
            known = self.instance.encoding.hypotheses
            name, general = f"{label} {self.instance.space}", general_facts(self.instance)
            self._always = self._proved(self.group, name, known, general, "of every iteration", "{}, fact {}: {}")
        return self._parts

    def _proved(
        self,
        group: str,
        name: str,
        known: Sequence[FNode],
        steps: Iterable[Step],
        meaning: str,
        form: str = "{}: fact {}, {}",
    ) -> list[FNode]:
        """What steps from ``known`` facts say, of those that are found to be theorems."""
        proved: list[FNode] = []
        for number, step in enumerate(steps, 1):
            if quick([*step.premises], step.goal):
                require(known, [step], [step.goal])
                self.instance.proof.discharger.follows(
                    group, form.format(name, number, step.name), step.premises, step.goal, meaning
                )
                proved.append(step.goal)
        return proved
