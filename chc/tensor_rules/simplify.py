"""Indices made simpler in a context, and index variables written in digits.

Every replacement of an index by another one is preceded by the fact that makes them equal, established by solvers for
all integers that satisfy the hypotheses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ir_semantics.tensors.conditions import TRUE, Condition, both, inside, le, rebuild_condition
from ir_semantics.tensors.elements import Element, substitute_element
from ir_semantics.tensors.index import Index, Quotient, index

from .context import Context
from .normal import Laws

__all__ = ["Indices", "split_of"]


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

    def index(self, value: Index, context: Context) -> Index:
        """An index that is equal under the context's hypotheses, with fewer quotients where possible."""
        if not value.quotients:
            return value

        def replace(atom: str | Quotient) -> Index | None:
            if isinstance(atom, str):
                return None
            return self._quotient(self.index(atom.dividend, context), self.index(atom.divisor, context), context)

        return value.rebuild(replace)

    def _quotient(self, dividend: Index, divisor: Index, context: Context) -> Index:
        plain = dividend // divisor
        if not plain.quotients:
            return plain
        if len(divisor.terms) == 1 and divisor.constant is None:  # a // (b*c) = (a // b) // c
            ((monomial, coefficient),) = divisor.terms
            factors = [Index({(a,): 1}) for a in monomial] + ([index(coefficient)] if coefficient != 1 else [])
            for factor in factors if len(factors) > 1 else ():
                inner = self._quotient(dividend, factor, context)
                if not inner.quotients:
                    return self._quotient(inner, divisor // factor, context)
        last = plain.quotients[-1]
        for shift in (0, -1):
            if context.establish(
                inside(last.dividend - shift * last.divisor, last.divisor),
                self.group,
                f"{last.key} is {shift}",
                quick=True,
            ):
                known = index(shift)
                return plain.rebuild(lambda atom, known=known: known if atom == last else None)  # type: ignore[misc]
        return plain

    def condition(self, condition: Condition, context: Context) -> Condition:
        """An equivalent condition under the context's hypotheses."""
        return rebuild_condition(condition, lambda i: self.index(i, context))

    def decided(self, condition: Condition, context: Context) -> bool:
        """Whether a condition is established to hold always."""
        if condition == TRUE:
            return True
        return context.establish(condition, self.group, f"always {condition}", quick=True)

    def splits(self, indices: Iterable[Index], variable: str, extent: Index, context: Context) -> Index | None:
        """A divisor at which the range of a variable is established to be that of two digits."""
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
        high, low = (context.proof.names.fresh("d") for _ in range(2))
        number = Index({(high,): 1}) * divisor + Index({(low,): 1})
        back = context.under(ranges=[(high, share), (low, divisor)])
        return divisor if back.establish(inside(number, extent), self.group, meaning) else None

    def digits(self, variable: str, divisor: Index, body: Element, context: Context) -> tuple[str, str, Element]:
        """The body with a variable written in two digits, and their names."""
        high, low = (context.proof.names.fresh(variable.partition(".")[0]) for _ in range(2))
        number = Index({(high,): 1}) * divisor + Index({(low,): 1})
        return high, low, substitute_element(body, {variable: number})
