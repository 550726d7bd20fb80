"""Indices made simpler in a context, and index variables written in digits.

Every replacement of an index by another one is preceded by the fact that makes them equal, established by solvers for
all integers that satisfy the hypotheses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chc.tensor_rules.context import Context
from ir_semantics.tensors.conditions import TRUE, Condition, both, inside, le, rebuild_condition
from ir_semantics.tensors.index import Index, Quotient, index

from .normal import Laws

Replaced = tuple[Index, Index, Index, Index]
"""a, b, p and c: a // (b*c) is p // c, as a // b is p."""


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

    def index(self, value: Index, context: Context, replaced: list[Replaced] | None = None) -> Index:
        """An index that is equal under the context's hypotheses, with fewer quotients where possible.

        ``replaced`` gets what quotients were established to be.
        """
        replaced = [] if replaced is None else replaced
        if not value.quotients:
            return value

        def new(atom: str | Quotient) -> Index | None:
            if isinstance(atom, str):
                return None
            dividend, divisor = (self.index(i, context, replaced) for i in (atom.dividend, atom.divisor))
            return self._replaced(dividend, divisor, context, replaced)

        return value.rebuild(new)

    def _replaced(self, dividend: Index, divisor: Index, context: Context, replaced: list[Replaced]) -> Index:
        plain = dividend // divisor
        if not plain.quotients:
            return plain
        last = plain.quotients[-1]
        for b, c in _factors(last.divisor):
            p = self._replaced(last.dividend, b, context, [])
            if not p.quotients and self._is(last.dividend, b, p, context):
                replaced.append((last.dividend, b, p, c))
                return _with(plain, last, self._replaced(p, c, context, replaced))
        shift = next((s for s in map(index, (0, -1)) if self._is(last.dividend, last.divisor, s, context)), None)
        if shift is None:
            return plain
        replaced.append((last.dividend, last.divisor, shift, index(1)))
        return _with(plain, last, shift)

    def _is(self, dividend: Index, divisor: Index, value: Index, context: Context) -> bool:
        meaning = f"({dividend}) // ({divisor}) is {value}"
        return context.establish(inside(dividend - value * divisor, divisor), self.group, meaning, quick=True)

    def condition(self, condition: Condition, context: Context, replaced: list[Replaced]) -> Condition:
        """An equivalent condition under the context's hypotheses."""
        return rebuild_condition(condition, lambda i: self.index(i, context, replaced))

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
        digits = Digits(divisor, *(context.proof.names.fresh(variable.partition(".")[0]) for _ in range(2)))
        back = context.under(ranges=[(digits.high, share), (digits.low, divisor)])
        return digits if back.establish(inside(digits.number, extent), self.group, meaning) else None


def _with(value: Index, quotient: Quotient, new: Index) -> Index:
    return value.rebuild(lambda atom: new if atom == quotient else None)


def _factors(divisor: Index) -> list[tuple[Index, Index]]:
    """The factors of a product, each with the product of the others."""
    if len(divisor.terms) != 1 or divisor.constant is not None:
        return []
    ((monomial, coefficient),) = divisor.terms
    factors = [Index({(a,): 1}) for a in monomial] + ([index(coefficient)] if coefficient != 1 else [])
    return [(f, divisor // f) for f in factors] if len(factors) > 1 else []


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

    def of(self, number: Index) -> dict[str, Index]:
        """The digits of a number."""
        return {self.high: number // self.divisor, self.low: number % self.divisor}
