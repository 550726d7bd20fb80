"""Conditions on index arithmetic: comparisons, truth values read from Boolean tensors, and their combinations.

A condition is a Boolean combination of ``e >= 0``, ``e == 0`` and elements of Boolean tensors.  Constructors evaluate
constants and nothing else; :func:`cleared` also removes quotients, where divisors are positive:

    a // b + r >= 0  iff  a + r*b >= 0,        r - a // b >= 0  iff  r*b + b - 1 - a >= 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from .index import Index, IndexLike, Quotient, index


@dataclass(frozen=True)
class AtLeastZero:
    """``value >= 0``."""

    value: Index

    def __str__(self) -> str:
        positive = Index({m: c for m, c in self.value.terms if c > 0})
        return f"{positive - self.value} <= {positive}"


@dataclass(frozen=True)
class IsZero:
    """``value == 0``."""

    value: Index

    def __str__(self) -> str:
        positive = Index({m: c for m, c in self.value.terms if c > 0})
        return f"{positive} = {positive - self.value}"


@dataclass(frozen=True)
class TruthOf:
    """The element of a Boolean tensor, or (``positive`` False) its negation."""

    name: str
    at: tuple[Index, ...]
    positive: bool = True

    def __str__(self) -> str:
        return f"{'' if self.positive else 'not '}{self.name}[{', '.join(map(str, self.at))}]"


@dataclass(frozen=True)
class All:
    """All of the parts hold."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(f"({p})" if isinstance(p, OneOf) else str(p) for p in self.parts) or "true"


@dataclass(frozen=True)
class OneOf:
    """At least one of the parts holds."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(f"({p})" if isinstance(p, All) else str(p) for p in self.parts) or "false"


Condition: TypeAlias = AtLeastZero | IsZero | TruthOf | All | OneOf

TRUE: Final = All(())
FALSE: Final = OneOf(())


def _at_least_zero(value: Index) -> Condition:
    if value.constant is not None:
        return TRUE if value.constant >= 0 else FALSE
    return AtLeastZero(value)


def cleared(condition: Condition) -> Condition:
    """The condition without quotients by which an inequality is linear; divisors must be positive."""
    match condition:
        case AtLeastZero(value):
            for monomial, coefficient in value.terms:
                if len(monomial) == 1 and isinstance(monomial[0], Quotient) and abs(coefficient) == 1:
                    quotient = monomial[0]
                    rest = value - Index({monomial: coefficient})
                    if coefficient == 1:
                        return cleared(_at_least_zero(quotient.dividend + rest * quotient.divisor))
                    return cleared(_at_least_zero((rest + 1) * quotient.divisor - 1 - quotient.dividend))
            return condition
        case All(parts):
            return both(*map(cleared, parts))
        case OneOf(parts):
            return either(*map(cleared, parts))
    return condition


def le(left: IndexLike, right: IndexLike) -> Condition:
    """``left <= right``."""
    if isinstance(left, int) and left == 0:
        return _at_least_zero(index(right))
    return _at_least_zero(index(right) - index(left))


def lt(left: IndexLike, right: IndexLike) -> Condition:
    """``left < right``."""
    return _at_least_zero(index(right) - index(left) - 1)


def equal(left: IndexLike, right: IndexLike) -> Condition:
    """``left == right``."""
    value = index(left) - index(right)
    if value.constant is not None:
        return TRUE if value.constant == 0 else FALSE
    return IsZero(value)


def inside(value: IndexLike, extent: IndexLike) -> Condition:
    """``0 <= value < extent``."""
    return both(le(0, value), lt(value, extent))


def both(*parts: Condition) -> Condition:
    """The conjunction."""
    flat: dict[Condition, None] = {}
    for part in parts:
        flat |= dict.fromkeys(part.parts if isinstance(part, All) else (part,))
    if FALSE in flat:
        return FALSE
    return next(iter(flat)) if len(flat) == 1 else All(tuple(flat))


def either(*parts: Condition) -> Condition:
    """The disjunction."""
    flat: dict[Condition, None] = {}
    for part in parts:
        flat |= dict.fromkeys(part.parts if isinstance(part, OneOf) else (part,))
    if TRUE in flat:
        return TRUE
    return next(iter(flat)) if len(flat) == 1 else OneOf(tuple(flat))


def negation(condition: Condition) -> Condition:
    """The negation, pushed inwards."""
    match condition:
        case AtLeastZero(value):
            return _at_least_zero(-value - 1)
        case IsZero(value):
            return either(_at_least_zero(value - 1), _at_least_zero(-value - 1))
        case TruthOf(name, at, positive):
            return TruthOf(name, at, not positive)
        case All(parts):
            return either(*map(negation, parts))
        case OneOf(parts):
            return both(*map(negation, parts))


def rebuild_condition(condition: Condition, rebuild: Callable[[Index], Index]) -> Condition:
    """The condition with every index replaced."""
    match condition:
        case AtLeastZero(value):
            return _at_least_zero(rebuild(value))
        case IsZero(value):
            return equal(rebuild(value), 0)
        case TruthOf(name, at, positive):
            return TruthOf(name, tuple(map(rebuild, at)), positive)
        case All(parts):
            return both(*(rebuild_condition(p, rebuild) for p in parts))
        case OneOf(parts):
            return either(*(rebuild_condition(p, rebuild) for p in parts))


def substitute_condition(condition: Condition, values: Mapping[str, Index]) -> Condition:
    """The condition with variables replaced, all at once."""
    return rebuild_condition(condition, lambda i: i.substitute(values))


def indices_of(condition: Condition) -> list[Index]:
    """The index expressions that a condition compares or reads at."""
    match condition:
        case AtLeastZero(value) | IsZero(value):
            return [value]
        case TruthOf(_, at, _):
            return list(at)
        case All(parts) | OneOf(parts):
            return [i for p in parts for i in indices_of(p)]


def truths_of(condition: Condition) -> list[TruthOf]:
    """The elements of Boolean tensors that a condition reads."""
    match condition:
        case TruthOf():
            return [condition]
        case All(parts) | OneOf(parts):
            return [t for p in parts for t in truths_of(p)]
    return []


def variables_of(condition: Condition) -> frozenset[str]:
    """The integer variables of a condition."""
    return frozenset().union(*(i.variables for i in indices_of(condition)))


def holds(
    condition: Condition, values: Mapping[str, int], truth: Callable[[str, Sequence[int]], bool] | None = None
) -> bool:
    """The truth value at given values of all variables; ``truth`` reads Boolean tensors."""
    match condition:
        case AtLeastZero(value):
            return value.value(values) >= 0
        case IsZero(value):
            return value.value(values) == 0
        case TruthOf(name, at, positive):
            if truth is None:
                raise ValueError(f"the Boolean tensor {name} must be given where {condition} is evaluated")
            return truth(name, [i.value(values) for i in at]) is positive
        case All(parts):
            return all(holds(p, values, truth) for p in parts)
        case OneOf(parts):
            return any(holds(p, values, truth) for p in parts)
