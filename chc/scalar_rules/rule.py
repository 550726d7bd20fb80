"""Rewrite rules as data: what a rule on scalars says, and rows of rules that belong together.

A rule claims that its right side may replace its left side wherever the condition holds.  Nothing here decides it;
:mod:`chc.scalar_rules.prove` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

from ir_semantics.scalars.concrete import show_value
from ir_semantics.scalars.formats import BOOLEAN, NUMBER, REALS, Format, Value
from ir_semantics.scalars.terms import (
    FALSE,
    TRUE,
    Scalar,
    all_of,
    constant,
    is_finite,
    operations_in,
    postorder,
    variables,
)
from ir_semantics.scalars.terms import unsigned_zero as _unsigned_zero
from smt_encodings.claims import Equality, Interpretation

MOST_OPERATIONS = 5_000
"""Operations of a rule when it is written out, with parts that are shared as often as they are used."""


@dataclass(frozen=True, eq=False)
class ScalarRule:
    """``left -> right`` on scalars, for all values of the variables that satisfy ``condition``.

    ``number`` is the format that NUMBER stands for.  ``left_defined`` and ``right_defined`` say where the sides have a
    value at all (an operation that must not overflow has none where it does), beside where their partial functions of
    real numbers have one (:func:`has_value`); where the condition holds and the left side has a value, the right side
    must have one, and an equal one: bit by bit, with all NaNs one value and -0 different from +0, the latter unless
    ``zero_signs`` is False.

    ``interpretation`` names how data are understood in a proof; None climbs from coarse to fine.  ``lemmas`` are rules
    that hold without a condition; they are proved first and then used as laws of uninterpreted functions.  ``examples``
    are values at which a refutation is sought first.

    Raises TypeError where the sides have different formats or a condition is no Boolean, ValueError where a lemma has a
    condition.
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
        for what in ("left", "right", "condition", "left_defined", "right_defined"):
            if not isinstance(getattr(self, what), Scalar):
                raise TypeError(
                    f"{what} of the rule {self.name} must be a scalar term, not {getattr(self, what)!r}; a number is "
                    "written constant(...)"
                )
        if not isinstance(self.number, Format):
            raise TypeError(f"number of the rule {self.name} must be a format, such as BINARY32, not {self.number!r}")
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
        if (count := operations_in(*self.terms)) > MOST_OPERATIONS:
            raise ValueError(f"the rule {self.name} must have at most {MOST_OPERATIONS:,} operations, not {count:,}")
        variables(*self.terms)  # one format for each name
        for lemma in self.lemmas:
            if any(c is not TRUE for c in (lemma.condition, lemma.left_has_value, lemma.right_has_value)):
                raise ValueError(f"the lemma {lemma.name} of the rule {self.name} must hold without a condition")

    @property
    def terms(self) -> tuple[Scalar, ...]:
        """Condition, definedness of both sides, and both sides."""
        return (self.condition, self.left_defined, self.right_defined, *self.sides)

    @cached_property
    def left_has_value(self) -> Scalar:
        """Where the rule says something, if its condition holds: the condition and the left side have values."""
        return _both(self.left_defined, has_value((self.condition, self.left), self.number))

    @cached_property
    def right_has_value(self) -> Scalar:
        """Where the right side surely has a value: what a proof needs."""
        return self._right(surely=True)

    @cached_property
    def right_may_have_value(self) -> Scalar:
        """Where the right side may have a value: elsewhere it has none, which refutes."""
        return self._right(surely=False)

    def _right(self, *, surely: bool) -> Scalar:
        terms = (self.condition, self.left)
        return _both(self.right_defined, has_value((self.right,), self.number, given=terms, surely=surely))

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
        return _both(self.right_has_value, same)

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
        conditions = dict.fromkeys(str(c) for c in (self.condition, self.left_has_value) if c is not TRUE)
        text = f" if {' and '.join(conditions)}" if conditions else ""
        if self.right_has_value is not TRUE:
            text += f", and then {self.right_has_value}"
        return text + ("" if self.zero_signs else " up to the sign of zero")


def _positive(x: Scalar) -> bool:
    """Whether a term is greater than 0 by its form, wherever it has a value."""
    if x.op in ("add", "mul", "div"):
        return all(map(_positive, x.args))
    return x.op == "exp" or (x.op == "constant" and x.payload > 0)  # type: ignore[operator]  # a number, not a name


def _not_zero(x: Scalar) -> bool:
    """Whether a term is no zero by its form, wherever it has a value."""
    return _positive(x) or (x.op == "constant" and x.payload != 0) or (x.op == "div" and _not_zero(x.args[0]))


_EXACTLY: Mapping[str, Callable[..., Scalar]] = {
    "div": lambda x, y: TRUE if _not_zero(y) else ~y.equals(0),
    "remainder": lambda x, y: TRUE if _not_zero(y) else ~y.equals(0),
    "log": lambda x: TRUE if _positive(x) else x > 0,
    "sqrt": lambda x: TRUE if _positive(x) else x >= 0,
    "acosh": lambda x: x >= 1,
    "atanh": lambda x: (x > -1) & (x < 1),
    "asin": lambda x: (x >= -1) & (x <= 1),
    "acos": lambda x: (x >= -1) & (x <= 1),
}
"""Where partial functions of real numbers have a value, and nowhere else."""
_AT_LEAST: Mapping[str, Callable[..., Scalar]] = {
    "pow": lambda x, y: TRUE if _positive(x) else x > 0,
    "tan": lambda x: FALSE,
}
"""Where others surely have one.  They have it elsewhere, too, which the language cannot say: this proves, and does not
refute."""
_AT_MOST: Mapping[str, Callable[..., Scalar]] = {
    "pow": lambda x, y: TRUE if _not_zero(x) or (y.op == "constant" and y.payload >= 0) else ~x.equals(0) | (y >= 0),
}
"""Where these may have one; elsewhere they surely have none.  A tangent may have one anywhere."""


def has_value(roots: Sequence[Scalar], number: Format, *, given: Sequence[Scalar] = (), surely: bool = False) -> Scalar:
    """The condition that partial functions of real numbers in terms are applied within their domains.

    ``number`` takes the place of NUMBER; ``given`` are terms that have values.  The condition is necessary: it may be
    assumed of terms that have values, and where it does not hold, one of ``roots`` has none.  With ``surely`` it is
    sufficient for ``roots`` to have values, and says nothing where it does not hold.  A choice needs the value of its
    condition and of the operand that it takes.  Functions of floats and machine numbers are total; a float that becomes
    an exact number must be finite.
    """

    def kind_of(term: Scalar) -> Format:
        return number if term.format == NUMBER else term.format

    domains = {**_EXACTLY, **(_AT_LEAST if surely else _AT_MOST)}
    computed = _always_computed(given)
    known: dict[Scalar, Scalar] = {}
    for term in postorder(roots):
        inner = [known[a] for a in term.args]
        if term in computed:
            known[term] = TRUE
            continue
        if term.op == "select":
            condition, (_, yes, no) = term.args[0], inner
            taken = (
                [yes]
                if yes is no
                else [TRUE if yes is TRUE else ~condition | yes, TRUE if no is TRUE else condition | no]
            )
            known[term] = _both(inner[0], *taken)
            continue
        own = TRUE
        if term.args and kind_of(term.args[0]) == REALS and term.op in domains:
            own = domains[term.op](*term.args)
        elif term.op == "cast" and kind_of(term).family in ("real", "int") and kind_of(term.args[0]).family == "float":
            own = is_finite(term.args[0])
        known[term] = _both(*inner, own)
    return _both(*(known[r] for r in roots))


def _always_computed(roots: Sequence[Scalar]) -> set[Scalar]:
    """The subterms whose values terms need, whatever choices they make."""
    computed: set[Scalar] = set()
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term not in computed:
            computed.add(term)
            stack += term.args[:1] if term.op == "select" else term.args
    return computed


def _both(*conditions: Scalar) -> Scalar:
    """The conjunction of different conditions, without what is always true."""
    return all_of(c for c in dict.fromkeys(conditions) if c is not TRUE)


@dataclass(frozen=True)
class Counterexample:
    """Values at which the sides of a rule were evaluated and differ; a side without a value is None."""

    values: Mapping[str, Value]
    left: Value | None
    right: Value | None

    def __str__(self) -> str:
        at = ", ".join(f"{n} = {show_value(v)}" for n, v in self.values.items())
        left, right = map(_side, (self.left, self.right))
        return f"{at}{': ' if at else ''}{left} vs {right}"


def _side(value: Value | None) -> str:
    """The value of a side; of a long fraction, such as the end of an interval, six digits."""
    if isinstance(value, Fraction) and value.denominator > 10**9 and abs(value) < 10**300:
        return f"about {float(value):.6g}"
    return "undefined" if value is None else show_value(value)


@dataclass(frozen=True)
class RuleRow:
    """A wrong rule with its repairs, or a control: a valid rule among the wrong ones (``wrong`` is None).

    ``still_wrong`` are repairs that look sufficient and are not.
    """

    row: str
    wrong: ScalarRule | None
    repaired: tuple[ScalarRule, ...] = ()
    still_wrong: tuple[ScalarRule, ...] = ()
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


def row(name: str, wrong: ScalarRule, *repaired: ScalarRule, note: str = "", **more: Any) -> RuleRow:
    """A wrong rule with its repairs."""
    return RuleRow(name, wrong, repaired, note=note, **more)


def control(name: str, *rules: ScalarRule) -> RuleRow:
    """Valid rules among the wrong ones."""
    return RuleRow(name, None, rules)
