"""Which values of normal forms are finite, positive or not 0, as far as that is established in a context."""

from __future__ import annotations

import math
from dataclasses import dataclass

from chc.tensor_rules.context import Context
from ir_semantics.tensors.conditions import TRUE, le
from ir_semantics.tensors.elements import Read

from .normal import Atom, Extremum, Group, IntegerAtom, Literal, Member, Opaque, Value
from .simplify import Indices

TOTAL = frozenset(
    {"abs", "maximum", "minimum", "exp", "floor", "ceil", "trunc", "round", "erf", "tanh", "sinh", "cosh", "asinh"}
) | {"sin", "cos", "atan", "lt", "le", "eq", "same", "select", "not", "and", "or", "is_nan", "is_finite"}
"""Functions that have a finite value wherever their operands do, besides those that become sums of products."""


@dataclass
class Signs(Indices):
    """What is known of values over the reals; ``group`` names the obligations that this records."""

    def positive(self, atom: Atom, context: Context) -> bool:
        """Whether a factor is established to be positive (and finite)."""
        match atom:
            case Read(name, _):
                return name in context.positive
            case Opaque("exp", (argument,)):
                return self.finite(argument, context)
            case IntegerAtom(value):
                return context.establish(le(1, value), self.group, f"{value} is positive")
        return False

    def finite(self, value: Value, context: Context) -> bool:
        """Whether a sum is established to have a finite value, apart from divisions by 0."""
        return all(self._finite_atom(a, context.under(f.guard, ranges=f.bound)) for f in value for a, _ in f.powers)

    def _finite_atom(self, atom: Atom, context: Context) -> bool:
        match atom:
            case Literal(value):
                return math.isfinite(value)
            case Opaque(op, args):
                return op in TOTAL and all(self.finite(a, context) for a in args)
            case Extremum(_, members):
                within = (self.finite(m.value, context.under(m.guard, ranges=m.bound)) for m in members)
                return all(within) and self.inhabited(list(members), context)
            case Group(value):
                return self.finite(value, context)
        return True

    def inhabited(self, members: list[Member], context: Context) -> bool:
        """Whether a set is established to have an element."""
        if any(not m.bound and m.guard == TRUE for m in members):
            return True
        return any(
            m.guard == TRUE and all(context.establish(le(1, e), self.group, f"{e} is positive") for _, e in m.bound)
            for m in members
        )
