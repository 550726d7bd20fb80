"""The calculus: from an operator's steps to a closed form for its error, with the derivation.

A :class:`Quantity` is a real value of the operator and what the device has in its place: a formula for the magnitude of
the real value, and one for the distance between both.  Each step names the lemmas and rules that it rests on, and adds
the conditions under which its primitive does not leave its format.  Ranges of real values (the magnitude of a sum, say)
are symbols with a default: the caller may know better than the product of all maxima.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from .formula import Formula, FormulaLike, constant, half_step, maximum, minimum, power_of_two, symbol, symbols_of

__all__ = ["Bound", "Condition", "Derivation", "Operator", "Quantity", "Step", "convert", "evaluate", "exactly"]

_LARGEST_AT_0 = Fraction(31, 128)  # 31/16 2^(0 - 3)
_TINY_AT_0 = Fraction(33, 32 << 10)  # 33/32 2^(0 - 10)


@dataclass(frozen=True)
class Quantity:
    """A value: the number of the step that made it, magnitude of the real value, and the device's error."""

    step: int
    magnitude: Formula
    error: Formula


@dataclass(frozen=True)
class Condition:
    """``left`` must be below ``right``; ``reason`` says what goes wrong otherwise."""

    left: Formula
    right: Formula
    reason: str

    def __str__(self) -> str:
        return f"{self.left} < {self.right}"


@dataclass(frozen=True)
class Step:
    """One line of a derivation: lemmas and rules, operands' steps, and the error in terms of the operands' errors."""

    number: int
    text: str
    lemmas: tuple[str, ...]
    rules: tuple[str, ...]
    operands: tuple[int, ...]
    magnitude: str
    error: str


@dataclass
class Derivation:
    """Collects the steps and conditions of one operator."""

    steps: list[Step] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    defaults: dict[str, Formula] = field(default_factory=dict)

    def given(self, text: str, magnitude: FormulaLike, error: FormulaLike = 0) -> Quantity:
        """An operand: exact, unless it has an error."""
        return self.step(text, (), lambda: constant(magnitude), lambda: constant(error))

    def step(
        self,
        text: str,
        operands: Sequence[Quantity],
        magnitude: Callable[..., FormulaLike],
        error: Callable[..., FormulaLike],
        *,
        lemmas: Sequence[str] = (),
        rules: Sequence[str] = (),
        limit: FormulaLike | None = None,
        otherwise: str = "",
    ) -> Quantity:
        """A step; ``magnitude`` and ``error`` are functions of the operands.

        With ``limit`` the device's value, before it is rounded, must stay below it in magnitude.
        """
        number = len(self.steps) + 1
        shown = [Quantity(q.step, symbol(f"m{q.step}"), symbol(f"e{q.step}")) for q in operands]
        own = Quantity(number, constant(magnitude(*operands)), constant(error(*operands)))
        self.steps.append(
            Step(
                number,
                text,
                tuple(lemmas),
                tuple(rules),
                tuple(q.step for q in operands),
                str(constant(magnitude(*shown))),
                str(constant(error(*shown))),
            )
        )
        if limit is not None:
            self.require(own.magnitude + own.error, limit, otherwise)
        return own

    def require(self, left: FormulaLike, right: FormulaLike, reason: str) -> None:
        """Adds a condition."""
        condition = Condition(constant(left), constant(right), reason)
        if condition not in self.conditions:
            self.conditions.append(condition)

    def at_most(self, quantity: Quantity, name: str) -> Quantity:
        """The same quantity, whose real value's magnitude has a name; by default it is what was derived."""
        self.defaults[name] = quantity.magnitude
        return Quantity(quantity.step, symbol(name), quantity.error)


def exactly(*_: Quantity) -> FormulaLike:
    """The error of an exact step on exact operands."""
    return 0


def convert(d: Derivation, q: Quantity, bias: FormulaLike, lemma: str, text: str = "as a code") -> Quantity:
    """A conversion to an AdaptivFloat code.

    With L the largest number: cutting at L costs max(m - L, 0); what is left lies within L, and is moved by half a step
    of its binade, or up to 33/32 2^(b-10) by itself.
    """
    scale = power_of_two(bias)
    largest, tiny = _LARGEST_AT_0 * scale, _TINY_AT_0 * scale

    def error(a: Quantity) -> Formula:
        reached = a.magnitude + a.error
        moved = maximum(half_step(minimum(reached, largest)), minimum(reached, tiny))
        return a.error + maximum(a.magnitude - largest, 0) + moved

    return d.step(text, [q], lambda a: a.magnitude, error, lemmas=[lemma], rules=["cut", "sum"])


@dataclass(frozen=True)
class Bound:
    """A bound at given sizes and ranges: ``value`` is None where a condition fails (``unmet``)."""

    value: Fraction | None
    unmet: tuple[Condition, ...]


@dataclass(frozen=True)
class Operator:
    """An operator with a derived bound.

    ``symbols`` has each size, range and bias with its meaning; symbols with a default (:attr:`defaults`) may be left
    out.  ``example`` has an instance for documentation.
    """

    name: str
    summary: str
    symbols: Mapping[str, str]
    derivation: Derivation
    result: Quantity
    example: Mapping[str, Fraction | int]
    note: str = ""

    @property
    def error(self) -> Formula:
        """The bound in closed form."""
        return self.result.error

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions under which it holds."""
        return tuple(self.derivation.conditions)

    @property
    def defaults(self) -> Mapping[str, Formula]:
        """What ranges are at most, where nothing better is known."""
        return self.derivation.defaults

    @property
    def lemmas(self) -> tuple[str, ...]:
        """The lemmas that the derivation uses, in order."""
        return tuple(dict.fromkeys(n for s in self.derivation.steps for n in s.lemmas))

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules on real numbers that it uses."""
        return tuple(dict.fromkeys(n for s in self.derivation.steps for n in s.rules))

    def values(self, given: Mapping[str, float | Fraction]) -> dict[str, Fraction]:
        """All symbols' values: given ones as exact rational numbers, others by default."""
        unknown = sorted(set(given) - set(self.symbols))
        if unknown:
            raise ValueError(f"symbols of {self.name} must be among {', '.join(self.symbols)}, not {unknown[0]}")
        values = {n: Fraction(v) for n, v in given.items()}
        for name, formula in self.defaults.items():  # in the order of their steps
            if name not in values:
                values[name] = formula.evaluate(values)
        return values

    def bound(self, given: Mapping[str, float | Fraction]) -> Bound:
        """The bound at these sizes, ranges and biases."""
        return evaluate(self.result.error, self.conditions, self.values(given))

    def derived(self) -> list[str]:
        """The derivation, one line per step."""
        lines = []
        for s in self.derivation.steps:
            why = ", ".join([*(f"lemma '{n}'" for n in s.lemmas), *(f"rule '{n}'" for n in s.rules)])
            of = f" of {', '.join(f'({n})' for n in s.operands)}" if s.operands else ""
            lines.append(
                f"({s.number}) {s.text}{of}: |.| <= {s.magnitude}, e{s.number} = {s.error}  [{why or 'given'}]"
            )
        return lines

    def __post_init__(self) -> None:
        used = symbols_of(self.error).union(*(symbols_of(c.left) | symbols_of(c.right) for c in self.conditions))
        used |= set().union(*(symbols_of(f) for f in self.defaults.values()))
        missing = sorted(used - set(self.symbols))
        if missing:
            raise ValueError(f"symbols of {self.name} must all have a meaning; {', '.join(missing)} has none")


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
