"""Both sides of a rule over the reals in intervals, where exponentials, logarithms and powers have no exact value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from ir_semantics.scalars.formats import BOOLEAN, Format, Literal, Value
from ir_semantics.scalars.intervals import OPERATORS, Interval, Undecided, point
from ir_semantics.scalars.terms import NotInterpreted, interpret

from .rule import Counterexample, ScalarRule
from .search import replay

Enclosed: TypeAlias = Interval | bool


def replay_enclosed(rule: ScalarRule, values: Mapping[str, Value]) -> Counterexample | None:
    """As :func:`.search.replay`; where an operator has no exact value, in intervals (:func:`enclosed`)."""
    try:
        return replay(rule, values)
    except NotInterpreted:
        return enclosed(rule, values)[1]


def enclosed(rule: ScalarRule, values: Mapping[str, Value]) -> tuple[bool, Counterexample | None]:
    """Whether a rule over the reals says something at given values, and the counterexample, if they are one.

    Sides are counted as equal where their intervals, some 2^-250 wide, have a number in common: a difference is one,
    and none is no proof.  Raises NotInterpreted where the rule is about other numbers, or intervals do not decide.
    """
    if rule.number.family != "real":
        raise NotInterpreted(f"{rule.number} has no intervals")
    terms = [rule.condition, rule.left_has_value, rule.right_may_have_value]
    try:
        condition, defined, possible = interpret(terms, _Intervals(values), rule.number)
        if not (condition and defined):
            return False, None
        left, *rights = interpret(rule.sides if possible else rule.sides[:1], _Intervals(values), rule.number)
    except (ZeroDivisionError, OverflowError) as error:
        raise NotInterpreted(f"no interval encloses a value: {error}") from error
    assert isinstance(left, Interval)
    if not rights:
        return True, Counterexample(dict(values), left.low, None)
    (right,) = rights
    assert isinstance(right, Interval)
    return True, Counterexample(dict(values), left.low, right.low) if left.apart(right) else None


@dataclass(frozen=True)
class _Intervals:
    """The interpretation of real terms as intervals."""

    values: Mapping[str, Value]

    def variable(self, name: str, kind: Format) -> Enclosed:
        """The given value."""
        value = self.values[name]
        return value if isinstance(value, bool) else point(Fraction(value))

    def constant(self, value: Literal, kind: Format) -> Enclosed:
        """A number."""
        return bool(value) if kind == BOOLEAN else point(Fraction(value))

    def apply(self, op: str, kind: Format, kinds: Sequence[Format], args: Sequence[Enclosed]) -> Enclosed:
        """The operator's interval, or truth value."""
        match op, *args:
            case "and", bool(a), bool(b):
                return a and b
            case "or", bool(a), bool(b):
                return a or b
            case "not", bool(a):
                return not a
        if op not in OPERATORS or not all(isinstance(a, Interval) for a in args):
            raise NotInterpreted(f"{op} has no value in intervals")
        try:
            return OPERATORS[op](*args)
        except Undecided as error:
            raise NotInterpreted(str(error)) from error
