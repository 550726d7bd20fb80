"""Rewrite rules as data: what a rule on scalars says, and rows of rules that belong together.

A rule claims that its right side may replace its left side wherever the condition holds.  Nothing here decides it;
:mod:`rewrites.rule_prover` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from ir_semantics.scalars import BOOLEAN, NUMBER, REALS, TRUE, Format, Scalar, Value, constant, variables
from ir_semantics.scalars import unsigned_zero as _unsigned_zero
from ir_semantics.scalars_concrete import show_value
from smt_encodings.claims import Equality, Interpretation, Verdict
from smt_encodings.discharge import Discharger

__all__ = [
    "Counterexample",
    "RuleRow",
    "ScalarRule",
    "Statement",
    "TableEntry",
    "Unstated",
    "control",
    "row",
    "rules_on",
]


@dataclass(frozen=True, eq=False)
class ScalarRule:
    """``left -> right`` on scalars, for all values of the variables that satisfy ``condition``.

    ``number`` is the format that NUMBER stands for.  ``left_defined`` and ``right_defined`` say where the sides have a
    value at all (an operation that must not overflow has none where it does); where the condition holds and the left
    side is defined, the right side must be defined, and equal: bit by bit, with all NaNs one value and -0 different
    from +0, the latter unless ``zero_signs`` is False.

    ``interpretation`` names how data are understood in a proof; None climbs from coarse to fine.  ``lemmas`` are rules
    that hold without a condition; they are proved first and then used as laws of uninterpreted functions.  ``examples``
    are values at which a refutation is sought first.

    Raises TypeError where the sides have different formats or a condition is no Boolean.
    """

    name: str
    left: Scalar
    right: Scalar
    number: Format
    condition: Scalar = TRUE
    left_defined: Scalar = TRUE
    right_defined: Scalar = TRUE
    zero_signs: bool = True
    interpretation: Interpretation | None = None
    source: str = ""
    row: str | None = None
    examples: tuple[Mapping[str, Value], ...] = ()
    lemmas: tuple[ScalarRule, ...] = ()

    def __post_init__(self) -> None:
        if self.left.format != self.right.format:
            raise TypeError(
                f"the sides of the rule {self.name} must have one format, not {self.left.format} and "
                f"{self.right.format}; cast one of them"
            )
        for what in ("condition", "left_defined", "right_defined"):
            if getattr(self, what).format != BOOLEAN:
                raise TypeError(f"{what} of the rule {self.name} must be a Boolean, not {getattr(self, what).format}")
        if self.number == NUMBER:
            raise TypeError(f"the rule {self.name} must say which format its numbers have, such as BINARY32 or REALS")
        variables(*self.terms)  # one format for each name

    @property
    def terms(self) -> tuple[Scalar, ...]:
        """Condition, definedness of both sides, and both sides."""
        return (self.condition, self.left_defined, self.right_defined, *self.sides)

    @property
    def sides(self) -> tuple[Scalar, Scalar]:
        """Both sides as they are compared."""
        if self.zero_signs or self.left.format == BOOLEAN:
            return self.left, self.right
        return _unsigned_zero(self.left), _unsigned_zero(self.right)

    @property
    def goal(self) -> Scalar:
        """What must hold where the condition does and the left side is defined."""
        left, right = self.sides
        same = left.same(right)
        return same if self.right_defined is TRUE else self.right_defined & same

    @property
    def equality(self) -> Equality:
        """The sense of equality: over the reals, or of values."""
        return Equality.OVER_REALS if self.number == REALS else Equality.BIT_EXACT

    @property
    def variables(self) -> dict[str, Format]:
        """The formats of the variables, by name."""
        return {n: self.number if k == NUMBER else k for n, k in sorted(variables(*self.terms).items())}

    @property
    def text(self) -> str:
        """The rule and its condition, for people."""
        return f"{self.left} -> {self.right}{self._suffix}"

    @property
    def _suffix(self) -> str:
        conditions = [str(c) for c in (self.condition, self.left_defined) if c is not TRUE]
        text = f" if {' and '.join(conditions)}" if conditions else ""
        if self.right_defined is not TRUE:
            text += f", and then {self.right_defined}"
        return text + ("" if self.zero_signs else " up to the sign of zero")


@dataclass(frozen=True)
class Counterexample:
    """Values at which the sides of a rule were evaluated and differ; a side without a value is None."""

    values: Mapping[str, Value]
    left: Value | None
    right: Value | None

    def __str__(self) -> str:
        at = ", ".join(f"{n} = {show_value(v)}" for n, v in self.values.items())
        left, right = ("undefined" if v is None else show_value(v) for v in (self.left, self.right))
        return f"{at}{': ' if at else ''}{left} vs {right}"


class Statement(Protocol):
    """What a row needs of a rule."""

    @property
    def name(self) -> str:
        """A short name."""

    @property
    def text(self) -> str:
        """The rule for people."""


R_co = TypeVar("R_co", bound=Statement, covariant=True)


@dataclass(frozen=True)
class RuleRow(Generic[R_co]):
    """A wrong rule with its repairs, or a control: a valid rule beside the wrong ones (``wrong`` is None).

    ``still_wrong`` are repairs that look sufficient and are not.
    """

    row: str
    wrong: R_co | None
    repaired: tuple[R_co, ...] = ()
    still_wrong: tuple[R_co, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Unstated:
    """A row that the language cannot state, and why."""

    row: str
    reason: str


@dataclass(frozen=True)
class TableEntry:
    """One line of the table of rules: what is claimed, over which numbers or sizes, and how to decide it.

    ``wrong`` rules must be REFUTED, all others PROVED.
    """

    row: str
    wrong: bool
    rule: str
    domain: str
    prove: Callable[[Discharger], Verdict]
    note: str = ""


class RuleMaker(Protocol):
    """What :func:`rules_on` gives."""

    def __call__(
        self,
        row: str,
        left: Scalar,
        right: Scalar | int,
        number: Format = ...,
        *examples: Mapping[str, Value],
        **more: Any,
    ) -> ScalarRule:
        """A rule of a row, named by its text; ``more`` are further parts of a ScalarRule."""


def rules_on(usual: Format) -> RuleMaker:
    """Makes rules on numbers of the ``usual`` format, or of another one that is given."""

    def rule(
        row: str, left: Scalar, right: Scalar | int, number: Format = usual, *examples: Mapping[str, Value], **more: Any
    ) -> ScalarRule:
        target = right if isinstance(right, Scalar) else constant(right, left.format)
        return ScalarRule(f"{row} {left} -> {target}", left, target, number, row=row, examples=examples, **more)

    return rule


def row(name: str, wrong: ScalarRule, *repaired: ScalarRule, note: str = "", **more: Any) -> RuleRow[ScalarRule]:
    """A wrong rule with its repairs."""
    return RuleRow(name, wrong, repaired, note=note, **more)


def control(name: str, *rules: ScalarRule) -> RuleRow[ScalarRule]:
    """Valid rules beside the wrong ones."""
    return RuleRow(name, None, rules)
