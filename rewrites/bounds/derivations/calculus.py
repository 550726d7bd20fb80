"""Operators with bounds: a derivation as a list of steps, and the theorem that the kernel makes of it.

A derivation is written from a kernel (:mod:`.writer`).  It names laws, lemmas and ranges and states no formula: the
bound, its conditions and the ranges' defaults are what :func:`rewrites.bounds.kernel.replay.replay` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import isfinite

from rewrites.bounds.kernel.formula import Formula, symbols_of
from rewrites.bounds.kernel.judgements import Condition, Step, Theorem
from rewrites.bounds.kernel.replay import alone, replay

from .names import Written


@dataclass(frozen=True)
class Bound:
    """A bound at given sizes and ranges: ``value`` is None where a condition fails (``unmet``).

    ``theorem`` is the operator whose theorem says it; empty where something else does.
    """

    value: Fraction | None
    unmet: tuple[Condition, ...]
    theorem: str = ""


@dataclass(frozen=True)
class Operator:
    """An operator with a derived bound.

    ``symbols`` has each size, range and bias with its meaning; symbols with a default (:attr:`defaults`) may be left
    out.  ``example`` has an instance for documentation.  ``derivation`` gives the steps when they are first needed.
    """

    name: str
    summary: str
    symbols: Mapping[str, str]
    derivation: Callable[[], Written]
    example: Mapping[str, Fraction | int]
    note: str = ""

    @cached_property
    def written(self) -> Written:
        """The derivation, with what it was written from."""
        return self.derivation()

    @property
    def steps(self) -> tuple[Step, ...]:
        """Its steps."""
        return self.written.steps

    @cached_property
    def theorem(self) -> Theorem:
        """What the steps prove.

        Raises Rejected where the kernel does not accept them, and ValueError where a symbol has no meaning.
        """
        theorem = replay(self.steps)
        used = symbols_of(theorem.result.error).union(
            *(symbols_of(c.left) | symbols_of(c.right) for c in theorem.conditions)
        )
        used |= set().union(*(symbols_of(f) for f in theorem.defaults.values()))
        missing = sorted(used - set(self.symbols))
        if missing:
            raise ValueError(f"symbols of {self.name} must all have a meaning; {', '.join(missing)} has none")
        return theorem

    @property
    def error(self) -> Formula:
        """The bound in closed form."""
        return self.theorem.result.error

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions under which it holds."""
        return tuple(self.theorem.conditions)

    @property
    def defaults(self) -> Mapping[str, Formula]:
        """What ranges are at most, where nothing better is known."""
        return self.theorem.defaults

    @property
    def lemmas(self) -> tuple[str, ...]:
        """The lemmas that the derivation uses, in order."""
        return tuple(self.theorem.lemmas)

    @property
    def rules(self) -> tuple[str, ...]:
        """The laws on real numbers that it uses."""
        return tuple(self.theorem.rules)

    def values(self, numbers: Mapping[str, float | Fraction]) -> dict[str, Fraction]:
        """All symbols' values: given ones as exact rational numbers, others by default.

        Raises ValueError for other symbols, and for what is no value of one.
        """
        unknown = sorted(set(numbers) - set(self.symbols))
        if unknown:
            raise ValueError(f"symbols of {self.name} must be among {', '.join(self.symbols)}, not {unknown[0]}")
        values = {n: self._value(n, v) for n, v in numbers.items()}
        left = {n: f for n, f in self.defaults.items() if n not in values}
        while left:  # a default may be in terms of a later one, where its range is named twice
            name = next((n for n, f in left.items() if not symbols_of(f) & left.keys()), None)
            if name is None:
                raise ValueError(f"defaults of {self.name} must not be in terms of each other, as {min(left)} is")
            values[name] = left.pop(name).evaluate(values)
        return values

    def _value(self, name: str, value: float | Fraction) -> Fraction:
        """A symbol's value; raises ValueError where it can be none, for the theorem says nothing of it then."""
        least, most, whole = self._values_of.get(name, (Fraction(0), None, False))
        number = Fraction(value) if isfinite(value) else None
        fits = number is not None and (least is None or number >= least) and (most is None or number <= most)
        if number is None or not fits or (whole and number.denominator != 1):
            kind = "an integer" if whole else "a number"
            ends = f"{'' if least is None else f' from {least}'}{'' if most is None else f' to {most}'}"
            raise ValueError(f"{name} of {self.name} must be {kind}{ends}, not {value}")
        return number

    @cached_property
    def _values_of(self) -> Mapping[str, tuple[Fraction | None, Fraction | None, bool]]:
        """Which values symbols may have, but for magnitudes, errors and ranges: these are at least 0."""
        theorem, one = self.theorem, Fraction(1)
        lower = (n for n, terms in theorem.ranges.items() if any(t[0] == "at least" for t in terms))
        return {
            **dict.fromkeys(lower, (None, None, False)),
            **dict.fromkeys(theorem.series, (one, None, False)),
            **dict.fromkeys(theorem.counts.values(), (one, None, True)),
            **dict.fromkeys((b for j in theorem.judgements for b in j.biases), (Fraction(0), Fraction(7), True)),
        }

    def bound(self, numbers: Mapping[str, float | Fraction]) -> Bound:
        """The bound at these sizes, ranges and biases."""
        return replace(evaluate(self.error, self.conditions, self.values(numbers)), theorem=self.name)

    def derived(self) -> list[str]:
        """The derivation, one line per step."""
        lines = []
        for number, s in enumerate(self.steps, 1):
            with_ = ", ".join([*(f"lemma '{n}'" for n in s.lemmas), *(n for n in s.names if n)])
            of = f" of {', '.join(f'({n})' for n in s.of)}" if s.of else ""
            magnitude, error = self._shown(number)
            lines.append(
                f"({number}) {s.law}{of}{f' [{with_}]' if with_ else ''}: m{number} = {magnitude}, e{number} = {error}"
            )
        return lines

    def _shown(self, number: int) -> tuple[Formula, Formula]:
        """Magnitude and error of a step in terms of its operands' m1, e1 and so on; exact ones are shown as such."""
        step, theorem = self.steps[number - 1], self.theorem
        if step.law == "growth":
            return theorem.result.magnitude, theorem.result.error
        judgement, _ = alone(theorem, step)
        return judgement.magnitude, judgement.error


def evaluate(error: Formula, conditions: Sequence[Condition], values: Mapping[str, Fraction]) -> Bound:
    """An error's value, or the conditions that do not hold."""
    unmet = []
    for condition in conditions:
        try:
            holds = condition.left.evaluate(values) < condition.right.evaluate(values)
        except ZeroDivisionError:
            holds = False
        if not holds:
            unmet.append(condition)
    return Bound(None if unmet else error.evaluate(values), tuple(unmet))
