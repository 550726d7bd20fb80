"""Derivations as JSON: a list of terms, each once, and a list of steps that refer to terms and earlier steps.

Reading gives terms of the language and nothing else: names that a program may have, quotients by positive constants or
by expressions.  What a step says of them is the kernel's business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ir_semantics.tensors.conditions import All, AtLeastZero, Condition, IsZero, OneOf, TruthOf
from ir_semantics.tensors.elements import Apply, Choice, Element, IndexValue, Number, Read, Reduce
from ir_semantics.tensors.index import Index, Quotient, index
from ir_semantics.tensors.numbers import fraction_of

from .kernel.replay import Derivation, in_order
from .kernel.steps import Rejected, Step

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[0-9]+)?", re.ASCII)
FLOATS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan"), "-0.0": -0.0}
MOST_STEPS = 100_000
MOST_PARTS = 1_000_000
"""Parts of a term, those that it shares counted each time."""


def written_derivation(derivation: Derivation) -> dict[str, Any]:
    """A derivation as data."""
    writer = _Writer()
    steps = in_order(derivation.last)
    numbers = {id(s): j for j, s in enumerate(steps)}
    lines = [
        [
            s.law,
            writer.number(("under", *s.hypotheses)),
            writer.number(s.left),
            None if s.right is None else writer.number(s.right),
            [numbers[id(p)] for p in s.premises],
            writer.data(s.data),
        ]
        for s in steps
    ]
    at = {name: writer.number(value) for name, value in derivation.at.items()}
    return {"at": at, "steps": lines, "terms": writer.terms}


class _Writer:
    def __init__(self) -> None:
        self.terms: list[list[Any]] = []
        self._numbers: dict[object, int] = {}

    def number(self, term: Any) -> int:
        """The number of a term, which is written down if it is new."""
        key = (type(term), term)
        if key not in self._numbers:
            line = self._line(term)
            self._numbers[key] = len(self.terms)
            self.terms.append(line)
        return self._numbers[key]

    def _line(self, term: Any) -> list[Any]:
        match term:
            case Index():
                return ["index", *([c, *map(self._atom, monomial)] for monomial, c in term.terms)]
            case AtLeastZero(value):
                return ["at least 0", self.number(value)]
            case IsZero(value):
                return ["is 0", self.number(value)]
            case TruthOf(name, at, positive):
                return ["truth", name, positive, *map(self.number, at)]
            case All(parts):
                return ["all", *map(self.number, parts)]
            case OneOf(parts):
                return ["one of", *map(self.number, parts)]
            case Read(name, at):
                return ["read", name, *map(self.number, at)]
            case Number():
                return ["number", term.key]
            case IndexValue(value):
                return ["size", self.number(value)]
            case Apply(op, args):
                return ["apply", op, *map(self.number, args)]
            case Choice(condition, yes, no):
                return ["choice", *map(self.number, (condition, yes, no))]
            case Reduce(op, name, extent, body):
                return ["reduce", op, name, self.number(extent), self.number(body)]
        return ["under", *map(self.number, term[1:])]

    def _atom(self, atom: str | Quotient) -> Any:
        return atom if isinstance(atom, str) else [self.number(atom.dividend), self.number(atom.divisor)]

    def data(self, value: Any) -> Any:
        """The data of a step: terms are objects with a number, maps objects with an object."""
        if value is None or isinstance(value, str | int):
            return value
        if isinstance(value, dict):
            return {"map": {name: self.number(v) for name, v in value.items()}}
        if isinstance(value, tuple | list):
            return [self.data(v) for v in value]
        return {"term": self.number(value)}


def read_derivation(content: object) -> Derivation:
    """The derivation in data; raises Rejected where it is none."""
    try:
        return _Reader(content).derivation()
    except (TypeError, ValueError, KeyError, IndexError, ZeroDivisionError, AttributeError, RecursionError) as error:
        raise Rejected(f"the derivation must be of the published form: {error}") from error


def _refuse(what: str) -> NoReturn:
    raise ValueError(what)


class _Reader:
    def __init__(self, content: Any) -> None:
        if not isinstance(content, dict) or set(content) != {"at", "steps", "terms"}:
            _refuse("it has at, steps and terms")
        if len(content["steps"]) > MOST_STEPS or len(content["terms"]) > MOST_STEPS:
            _refuse(f"it has at most {MOST_STEPS} steps and terms")
        self._content: Mapping[str, Any] = content
        self._terms: list[Any] = []
        self._parts: list[int] = []
        self._counted = 0
        for line in content["terms"]:
            self._counted = 1
            self._terms.append(self._term(*line))
            self._parts.append(self._counted)
            if self._counted > MOST_PARTS:
                _refuse(f"a term has at most {MOST_PARTS} parts")

    def derivation(self) -> Derivation:
        """All of it."""
        steps: list[Step] = []
        for law, under, left, right, premises, data in self._content["steps"]:
            if not all(type(p) is int and 0 <= p < len(steps) for p in premises):
                _refuse("premises are earlier steps")
            hypotheses, first = self._get(under, tuple), self._element(left)
            last = None if right is None else self._element(right)
            steps.append(Step(str(law), hypotheses, first, last, tuple(steps[p] for p in premises), self._data(data)))
        return Derivation(steps[-1], self._map(self._content["at"]))

    def _get(self, number: Any, kind: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self._terms):
            _refuse(f"there is no term {number} yet")
        if not isinstance(self._terms[number], kind):
            _refuse(f"term {number} is of another kind")
        self._counted += self._parts[number]
        return self._terms[number]

    def _element(self, number: Any) -> Element:
        element: Element = self._get(number, Element)
        return element

    def _conditions(self, numbers: Sequence[Any]) -> tuple[Condition, ...]:
        return tuple(self._get(n, Condition) for n in numbers)

    def _term(self, tag: Any, *parts: Any) -> Any:
        match tag, parts:
            case "index", _:
                return sum((self._monomial(*p) for p in parts), index(0))
            case "at least 0", (value,):
                return AtLeastZero(self._get(value, Index))
            case "is 0", (value,):
                return IsZero(self._get(value, Index))
            case "truth", (name, bool() as positive, *at):
                return TruthOf(_name(name), tuple(self._get(i, Index) for i in at), positive)
            case "all", _:
                return All(self._conditions(parts))
            case "one of", _:
                return OneOf(self._conditions(parts))
            case "under", _:
                return self._conditions(parts)
            case "read", (name, *at):
                return Read(_name(name), tuple(self._get(i, Index) for i in at))
            case "number", (str() as text,):
                return Number(FLOATS[text] if text in FLOATS else fraction_of(text))
            case "size", (value,):
                return IndexValue(self._get(value, Index))
            case "apply", (str() as op, *args):
                return Apply(op, tuple(map(self._element, args)))
            case "choice", (condition, yes, no):
                return Choice(self._get(condition, Condition), self._element(yes), self._element(no))
            case "reduce", (str() as op, name, extent, body):
                return Reduce(op, _name(name), self._get(extent, Index), self._element(body))
        _refuse(f"there is no term {tag}")

    def _monomial(self, coefficient: Any, *atoms: Any) -> Index:
        product = index(coefficient)
        for atom in atoms:
            product = product * (Index({(_name(atom),): 1}) if isinstance(atom, str) else self._quotient(*atom))
        return product

    def _quotient(self, dividend: Any, divisor: Any) -> Index:
        quotient = Quotient(self._get(dividend, Index), self._get(divisor, Index))
        if quotient.divisor.constant is not None and quotient.divisor.constant <= 0:
            _refuse("divisors that are known are positive")
        return Index({(quotient,): 1})

    def _map(self, pairs: Mapping[Any, Any]) -> dict[str, Index]:
        return {_name(name): self._get(number, Index) for name, number in pairs.items()}

    def _data(self, value: Any) -> Any:
        match value:
            case {"term": number}:
                return self._get(number, object)
            case {"map": dict() as pairs}:
                return self._map(pairs)
            case list():
                return tuple(map(self._data, value))
            case None | str() | int():
                return value
        _refuse(f"{value!r:.40} is no datum")


def _name(name: Any) -> str:
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        _refuse(f"{name!r:.40} is no name")
    return name
