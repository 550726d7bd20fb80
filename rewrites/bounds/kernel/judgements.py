"""Judgements, steps and theorems: what the kernel of error bounds speaks of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ir_semantics.tensors.numbers import fraction_of

from .formula import Formula, constant, identifier, maximum, symbol, symbols_of
from .readings import ANY, Term

_LEAF = re.compile(r"[A-Za-z_]\w*(\[[A-Za-z_]\w*(,[A-Za-z_]\w*)*\])?", re.ASCII)


class Rejected(Exception):
    """A step that is no instance of its law."""


@dataclass(frozen=True)
class Step:
    """One application of a law, to steps by their numbers (from 1), with lemmas and names."""

    law: str
    of: tuple[int, ...] = ()
    lemmas: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Condition:
    """``left`` must be below ``right``; ``reason`` says what goes wrong otherwise."""

    left: Formula
    right: Formula
    reason: str

    def __str__(self) -> str:
        return f"{self.left} < {self.right}"


@dataclass(frozen=True)
class Judgement:
    """|real| <= magnitude and |device - real| <= error.

    ``forms`` are those of the device's word, or of the words that its operation is of, and ``biases`` those of codes
    among them; ``limits`` must hold of magnitude and error where the device's word is used: below, it does not wrap.
    """

    real: Term
    device: Term
    magnitude: Formula
    error: Formula
    forms: tuple[str, ...] = ()
    biases: tuple[str, ...] = ()
    limits: tuple[tuple[Formula, str], ...] = ()


@dataclass
class Theorem:
    """What a derivation proves: its last judgement, under the conditions.

    ``roles`` say of each symbol what it is, which is one thing.  ``leaves`` have form, bias, error and magnitude; of
    ``indices``, ``counts`` has how many values they have: a number, or the name of one.  ``ranges`` bound magnitudes of
    real terms by name; ``defaults`` are formulas that they never exceed (lower bounds are never below them).
    ``series`` are sums 1 + q + q^2 + .., with a term for each step, by name with the name of q.  ``rules``, ``lemmas``
    and ``axioms`` are what it rests on.
    """

    judgements: list[Judgement] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, list[Term]] = field(default_factory=dict)
    defaults: dict[str, Formula] = field(default_factory=dict)
    series: dict[str, str] = field(default_factory=dict)
    leaves: dict[str, tuple[str, ...]] = field(default_factory=dict)
    indices: dict[str, None] = field(default_factory=dict)
    counts: dict[str, str] = field(default_factory=dict)
    rules: dict[str, None] = field(default_factory=dict)
    lemmas: dict[str, None] = field(default_factory=dict)
    axioms: dict[str, None] = field(default_factory=dict)

    @property
    def result(self) -> Judgement:
        """The last judgement."""
        return self.judgements[-1]

    def need(self, left: Formula, right: Formula | Fraction | int, reason: str) -> None:
        """Adds a condition; raises Rejected where it never holds."""
        condition = Condition(left, constant(right), reason)
        if left.op == condition.right.op == "constant":
            need(left.value < condition.right.value, f"{condition} must hold, for otherwise {reason}")
        elif condition not in self.conditions:
            self.conditions.append(condition)

    def rest(self, *rules: str, lemmas: Sequence[str] = (), axioms: Sequence[str] = ()) -> None:
        """Notes what a step rests on."""
        self.rules |= dict.fromkeys(rules)
        self.lemmas |= dict.fromkeys(lemmas)
        self.axioms |= dict.fromkeys(axioms)

    def role(self, role: str, *formulas: Formula) -> None:
        """What the symbols of formulas are; raises Rejected where one is something else, too."""
        for name in sorted(set[str]().union(*map(symbols_of, formulas))):
            known = self.roles.setdefault(name, role)
            need(known == role, f"{name} must be the name of one thing, not of {known} and {role}")

    def named(self, name: str, real: Term, default: Formula) -> Formula:
        """A symbol for the magnitude of a real term; its default is at least every one that it is given."""
        self.role("a range", symbol(name))
        self.ranges.setdefault(name, []).append(real)
        before = self.defaults.get(name)  # which holds of what it was derived for, so that it may stand for the name
        self.defaults[name] = default if before is None else maximum(before, put(default, name, before))
        return symbol(name)

    def least(self, name: str, real: Term, default: Formula | None = None) -> None:
        """A symbol that is at most a real term."""
        self.role("a lower bound", symbol(name))
        need(name not in self.ranges, f"{name} must be a lower bound of one thing")
        self.ranges[name] = [("at least", real)]
        if default is not None:
            self.defaults[name] = default

    def leaf(self, name: str, form: str, bias: str, error: str, magnitude: str) -> None:
        """A leaf, with all that is known of it, which must be the same wherever it is."""
        known = form, bias, error, magnitude
        self.role("an error of words", amount(error))
        self.role("a magnitude of words", amount(magnitude))
        if bias:
            self.role("a bias", symbol(bias))
        need(bool(_LEAF.fullmatch(name)), f"a leaf must be a name, or one with indices, not {name!r:.60}")
        for each in indices_of(name):
            self.index(each)
        need(name not in self.indices, f"{name} must be a leaf or an index, not both")
        need(self.leaves.setdefault(name, known) == known, f"{name} must be one thing, not two")

    def index(self, name: str) -> str:
        """An index, which is no leaf."""
        need(identifier(name) not in self.leaves, f"{name} must be a leaf or an index, not both")
        self.indices[name] = None
        return name

    def count(self, index: str, count: str) -> Formula:
        """How many values an index has, which must be one number."""
        known = self.counts.setdefault(self.index(index), count)
        need(known == count, f"{index} must have one number of values, not {known} and {count}")
        formula = amount(count)
        self.role("a number of values", formula)
        whole = formula.op == "constant" and formula.value.denominator == 1 and formula.value > 0
        need(whole or formula.op == "symbol", f"{index} must have a number of values, not {count}")
        return formula


def need(met: bool, reason: str) -> None:
    """Raises Rejected unless a condition is met."""
    if not met:
        raise Rejected(reason)


def amount(text: str) -> Formula:
    """A number, a name, or a product of such: the number first, then names in their order, so that it has one text."""
    parts = text.split("*")
    factors = [fraction_of(p) for p in parts if p[:1].isdigit()]
    names = [p for p in parts if not p[:1].isdigit()]
    ordered = [*map(str, factors), *sorted(names)] == parts
    if not ordered or len(factors) > 1 or (names and factors in ([0], [1])):
        raise Rejected(f"an amount must be a number, or names in their order after one, not {text!r:.60}")
    product = constant(factors[0]) if factors else symbol(names.pop(0))
    for each in names:
        product = product * symbol(each)
    return product


def indices_of(leaf: str) -> tuple[str, ...]:
    """The indices of a leaf.

    >>> indices_of("k[t,f]")
    ('t', 'f')
    """
    return tuple(leaf[leaf.index("[") + 1 : -1].split(",")) if "[" in leaf else ()


def operands_of(term: Term, operation: Term) -> tuple[Term, ...] | None:
    """What stands for ANY in an operation, if a term is such."""
    if operation == ANY:
        return (term,)
    if isinstance(operation, str) or isinstance(term, str):
        return () if operation == term else None
    if len(term) != len(operation) or term[0] != operation[0]:
        return None
    parts = [operands_of(p, o) for p, o in zip(term[1:], operation[1:], strict=True)]
    return None if None in parts else tuple(x for p in parts if p is not None for x in p)


def put(f: Formula, name: str, value: Formula) -> Formula:
    """The formula with a value in the place of a symbol."""
    if f.op == "symbol" and f.name == name:
        return value
    return Formula(f.op, tuple(put(a, name, value) for a in f.args), f.name, f.value)


def size_of(term: Term) -> int:
    """How many operations and leaves a term has."""
    return 1 if isinstance(term, str) else sum(map(size_of, term))


def text_of(term: Term) -> str:
    """A term as text."""
    return term if isinstance(term, str) else f"{term[0]}({', '.join(map(text_of, term[1:]))})"
