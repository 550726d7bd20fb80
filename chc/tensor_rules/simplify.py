"""Indices made simpler in a context, and index variables written in digits.

Every replacement of an index by another one is preceded by the fact that makes them equal, established by solvers for
all integers that satisfy the hypotheses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ir_semantics.tensors.conditions import TRUE, Condition, both, inside, le, rebuild_condition
from ir_semantics.tensors.index import Index, Quotient, index

from .context import Context
from .kernel.indices import simplified
from .normal import Laws

__all__ = ["Digits", "Indices", "split_of"]


def split_of(values: Iterable[Index], variable: str, extent: Index) -> Index | None:
    """A divisor D of the extent by which some quotient divides the variable: it then has digits v = a * D + b."""
    alone = Index({(variable,): 1})
    for value in values:
        for quotient in value.quotients:
            divisor = quotient.divisor
            if quotient.dividend == alone and variable not in divisor.variables:
                share = extent // divisor
                if not share.quotients and share * divisor == extent and share != index(1):
                    return divisor
    return None


@dataclass
class Indices:
    """Simplifies indices; ``group`` names the obligations that this records."""

    laws: Laws
    group: str = "indices"

    def index(self, value: Index, context: Context, tape: list[int | None] | None = None) -> Index:
        """An index that is equal under the context's hypotheses, with fewer quotients where possible.

        What was established of its quotients is written on ``tape``.
        """

        def known(quotient: Quotient) -> int | None:
            shift = next((s for s in (0, -1) if self._is(quotient, s, context)), None)
            if tape is not None:
                tape.append(shift)
            return shift

        return simplified(value, known)

    def _is(self, quotient: Quotient, shift: int, context: Context) -> bool:
        rest = quotient.dividend - shift * quotient.divisor
        return context.establish(inside(rest, quotient.divisor), self.group, f"{quotient.key} is {shift}", quick=True)

    def condition(self, condition: Condition, context: Context, tape: list[int | None]) -> Condition:
        """An equivalent condition under the context's hypotheses."""
        return rebuild_condition(condition, lambda i: self.index(i, context, tape))

    def decided(self, condition: Condition, context: Context) -> bool:
        """Whether a condition is established to hold always."""
        if condition == TRUE:
            return True
        return context.establish(condition, self.group, f"always {condition}", quick=True)

    def splits(self, indices: Iterable[Index], variable: str, extent: Index, context: Context) -> Digits | None:
        """A divisor at which the range of a variable is established to be that of two digits, and their names."""
        divisor = split_of(indices, variable, extent)
        if divisor is None:
            return None
        v, share = Index({(variable,): 1}), extent // divisor
        within = context.under(ranges=[(variable, extent)])
        meaning = f"{variable} < {extent} are the numbers of two digits below {share} and {divisor}"
        digit = Index({(Quotient(v, divisor),): 1})
        there = both(inside(digit, share), inside(v - divisor * digit, divisor))
        if not (
            context.establish(le(1, divisor), self.group, meaning) and within.establish(there, self.group, meaning)
        ):
            return None
        found = Digits(divisor, *(context.proof.names.fresh(variable.partition(".")[0]) for _ in range(2)))
        back = context.under(ranges=[(found.high, share), (found.low, divisor)])
        return found if back.establish(inside(found.number, extent), self.group, meaning) else None


@dataclass(frozen=True)
class Digits:
    """A variable in two digits, ``high * divisor + low``."""

    divisor: Index
    high: str
    low: str

    @property
    def number(self) -> Index:
        """What the variable is."""
        return Index({(self.high,): 1}) * self.divisor + Index({(self.low,): 1})
