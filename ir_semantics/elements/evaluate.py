"""Terms on concrete values: real IEEE floats, machine words and integers, one element at a time.

Operators are those of :class:`ir_semantics.scalars.concrete.Concrete`.  What does not matter by a term's meaning (reads
outside of a tensor, quotients by 0) has some value here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from typing import TypeAlias

from ir_semantics.scalars.concrete import Concrete
from ir_semantics.scalars.floats import float_value, largest, round_to
from ir_semantics.scalars.formats import INTEGERS, REALS, Format, Value
from ir_semantics.scalars.operators import OPERATORS
from ir_semantics.scalars.terms import NotInterpreted
from ir_semantics.tensors.index import Index, Quotient

from .terms import Input, Symbol, Table, Term

Contents: TypeAlias = Callable[[Input, Sequence[int]], Value]
"""The element of a tensor at subscripts."""


Functions: TypeAlias = Callable[[str, Format, Sequence[object]], Value]
"""Some function for each name: its value of a format for operands, of which tensors are tuples of elements."""


class TooLong(NotInterpreted):
    """An evaluation that takes more steps than it may."""


@dataclass
class Budget:
    """Steps that evaluations may still take together."""

    steps: int

    def spend(self, steps: int = 1) -> None:
        """Takes steps; raises :class:`TooLong` where there are not as many left."""
        self.steps -= steps
        if self.steps < 0:
            raise TooLong("the evaluation takes too many steps")


@dataclass
class Evaluation:
    """Values of symbols and tensors, and what terms are then.

    Raises :class:`TooLong` beyond the budget, and NotInterpreted where an operator has no exact value.
    """

    symbols: Mapping[Symbol, Value]
    contents: Contents
    budget: Budget
    functions: Functions | None = None
    over_reals: bool = False
    """Whether floats are real numbers here, which are added in any order with one result."""
    uniform: Callable[[Input], Value | None] = lambda _: None
    """The value that all elements of a tensor have, where it is known."""
    known: dict[Term, Value] = field(default_factory=dict)
    """Values of terms, given or found."""
    of_64_bits: bool = False
    """Whether integers that may leave 64 bits on the way have no value."""

    def value(self, term: Term) -> Value:
        """The value of a term of which all symbols have values."""
        return self._value(term, self.symbols, self.known)

    def truth(self, term: Term) -> bool:
        """The truth value of a condition."""
        value = self.value(term)
        assert isinstance(value, bool)
        return value

    def integer(self, term: Term) -> int:
        """The value of an integer."""
        return int(self.value(term))

    def _value(self, root: Term, symbols: Mapping[Symbol, Value], memo: dict[Term, Value]) -> Value:
        stack = [root]
        while stack:
            term = stack[-1]
            if term in memo:
                stack.pop()
                continue
            left = [a for a in _needed(term, memo) if a not in memo]
            if left:
                stack.extend(left)
                continue
            self.budget.spend()
            memo[term] = self._apply(term, symbols, memo)
            stack.pop()
        return memo[root]

    def _apply(self, term: Term, symbols: Mapping[Symbol, Value], memo: dict[Term, Value]) -> Value:
        match term.op:
            case "symbol":
                return self._number(symbols[term.payload])  # type: ignore[index]
            case "constant":
                return self._number(_constant(term))
            case "select":
                return memo[term.args[1] if memo[term.args[0]] else term.args[2]]
            case "and":
                return bool(memo[term.args[0]]) and bool(memo[term.args[1]])
            case "polynomial":
                assert isinstance(term.payload, Index)
                if self.of_64_bits:
                    return _in_64_bits(term.payload, [int(memo[a]) for a in term.args])
                return _compiled(term.payload)(*(memo[a] for a in term.args))
            case "read":
                at = [int(memo[a]) for a in term.args]
                array = term.payload
                if isinstance(array, Table):
                    return self._number(Concrete({}).constant(array.at(at), array.kind))
                assert isinstance(array, Input)
                return self._number(self.contents(array, at))
            case "fold" | "every" | "array":
                return self._loop(term, symbols, memo)
            case "pair":
                return tuple(memo[a] for a in term.args)  # type: ignore[return-value]
            case "call" if self.functions is not None:
                return self.functions(str(term.payload), term.kind, [memo[a] for a in term.args])
            case "function" | "call":
                raise NotInterpreted(f"{term.payload} has no exact value")
        if self.of_64_bits and (whole := _whole(term, memo)) is not None and abs(whole) >= 1 << 63:
            raise NotInterpreted("an integer may leave 64 bits")
        return self._operator(term)([memo[a] for a in term.args])

    def _operator(self, term: Term) -> Callable[[list[Value]], Value]:
        """What an application of an operator does."""
        kinds = (term.kind, *(a.kind for a in term.args))
        if self.over_reals and term.op == "cast" and term.kind.family == "float":
            return lambda args: _unrounded(args[0], *kinds)
        if self.over_reals:
            kinds = tuple(REALS if k.family == "float" else k for k in kinds)
        return _operator(term.op, kinds[0], kinds[1:])

    def _step(self, term: Term) -> Callable[[Mapping[Symbol, Value], dict[Term, Value]], Value]:
        """As :meth:`_apply`, of a term that is evaluated many times."""
        if term.op in _SPECIAL or self.of_64_bits:
            return lambda symbols, memo: self._apply(term, symbols, memo)
        args = term.args
        if term.op == "polynomial":
            assert isinstance(term.payload, Index)
            run = _compiled(term.payload)
            return lambda _, memo: run(*[memo[a] for a in args])
        apply = self._operator(term)
        return lambda _, memo: apply([memo[a] for a in args])

    def _number(self, value: Value) -> Value:
        """A value as it is here."""
        if not self.over_reals or not isinstance(value, float):
            return value
        if not math.isfinite(value):
            raise NotInterpreted(f"{value} is no real number")
        return Fraction(value)

    def _loop(self, term: Term, symbols: Mapping[Symbol, Value], memo: dict[Term, Value]) -> Value:
        """A fold, or a condition of every tuple: what depends on the variables is evaluated anew each time."""
        assert isinstance(term.payload, tuple)
        is_fold, body = term.op == "fold", term.args[-1]
        bound = frozenset(term.payload)
        extents = [max(0, int(memo[e])) for e in term.args[is_fold:-1]]
        if term.op == "every" and isinstance(body.payload, Input):
            everywhere = self.uniform(body.payload)
            if everywhere is not None:
                return bool(everywhere) or not prod(extents)
        inner = list(_depending(body, bound))
        self.budget.spend(prod(extents) * max(1, len(inner)))
        own = set(inner)
        around = {a for t in inner for a in _needed(t, None) if a not in own} | ({body} - own)
        known = {a: self._value(a, symbols, memo) for a in sorted(around, key=lambda t: t.number)}
        steps = [(each, self._step(each)) for each in inner]
        here = dict(symbols)
        value: Value = memo[term.args[0]] if is_fold else True
        elements: list[object] = [tuple(extents)]
        for at in product(*map(range, extents)):
            here.update(zip(term.payload, (value, *at) if is_fold else at, strict=True))
            local = dict(known)
            for each, step in steps:
                local[each] = step(here, local)
            value = local[body]
            elements.append(value)
            if term.op == "every" and not value:
                return False
        return tuple(elements) if term.op == "array" else value  # type: ignore[return-value]


_SPECIAL = frozenset(
    ("symbol", "constant", "select", "and", "read", "fold", "every", "array", "pair", "call", "function")
)
"""Terms that are no operator's application to values."""


def _needed(term: Term, memo: Mapping[Term, Value] | None) -> tuple[Term, ...]:
    """The operands that a value needs; of choices, with what is known, one."""
    if term.op in ("fold", "every", "array"):
        return term.args[:-1]
    if memo is not None and term.op == "select":
        condition, yes, no = term.args
        return (condition,) if condition not in memo else (yes,) if memo[condition] else (no,)
    if memo is not None and term.op == "and":
        first = term.args[0]
        return term.args if memo.get(first) else (first,)
    return term.args


def _depending(body: Term, bound: frozenset[Symbol]) -> Iterator[Term]:
    """The subterms that depend on variables and are not below another binder, operands first."""
    seen: set[Term] = set()
    stack = [(body, False)]
    while stack:
        term, ready = stack.pop()
        if ready:
            yield term
        elif term not in seen and not bound.isdisjoint(term.symbols):
            seen.add(term)
            stack.append((term, True))
            stack.extend((a, False) for a in _needed(term, None))


@cache
def _compiled(value: Index) -> Callable[..., int]:
    """A polynomial as a Python function of its variables in the order of their names; quotients by 0 are 0."""
    places = {name: f"a{i}" for i, name in enumerate(sorted(value.variables))}

    def text(index: Index) -> str:
        return " + ".join("*".join([str(c), *map(of, monomial)]) for monomial, c in index.terms) or "0"

    def of(atom: str | Quotient) -> str:
        if isinstance(atom, str):
            return places[atom]
        return f"quotient({text(atom.dividend)}, {text(atom.divisor)})"

    run: Callable[..., int] = eval(f"lambda {', '.join(places.values())}: {text(value)}", {"quotient": _quotient})
    return run


def _in_64_bits(value: Index, args: Sequence[int]) -> int:
    """The value of a polynomial; raises NotInterpreted where what is added, or what is subtracted, leaves 64 bits.

    That is what two sides of a comparison are, which stand in one polynomial.  Multiples of 2^64 only change the sign.
    """
    names = dict(zip(sorted(value.variables), args, strict=True))

    def of(index: Index) -> int:
        summands = [(c, c * prod(map(of_atom, monomial))) for monomial, c in index.terms]
        signed = [v for c, v in summands if c % (1 << 64)]
        if max(sum(v for v in signed if v > 0), -sum(v for v in signed if v < 0)) >= 1 << 63:
            raise NotInterpreted("an integer may leave 64 bits")
        return sum(v for _, v in summands)

    def of_atom(atom: str | Quotient) -> int:
        return names[atom] if isinstance(atom, str) else _quotient(of(atom.dividend), of(atom.divisor))

    return of(value)


def _whole(term: Term, memo: Mapping[Term, Value]) -> int | None:
    """The integer that a word of integers has the lower bits of: conversions of sums and products are taken apart."""
    if term.op == "constant" and term.kind.family == "integer":
        return int(_constant(term))
    if term.op == "cast" and term.args[0].kind == INTEGERS:
        return int(memo[term.args[0]])
    if term.op not in ("add", "sub", "mul") or term.kind.family != "integer":
        return None
    a, b = (_whole(x, memo) for x in term.args)
    if a is None or b is None:
        return None
    return a + b if term.op == "add" else a - b if term.op == "sub" else a * b


def _quotient(a: int, b: int) -> int:
    return a // b if b > 0 else 0


_OF_REALS = ("add", "sub", "mul", "neg", "lt", "le", "eq")
"""Operators that have an exact value for all real numbers."""


@cache
def _operator(op: str, kind: Format, kinds: tuple[Format, ...]) -> Callable[[list[Value]], Value]:
    """An operator on values of given formats."""
    if kinds[0] == INTEGERS and op in ("le", "eq"):
        return lambda args: args[0] <= args[1] if op == "le" else args[0] == args[1]
    if all(k.family == "float" for k in kinds) and op not in ("cast", "select"):
        return lambda args: float_value(op, kinds[0], [float(a) for a in args])
    exact = OPERATORS[op].exact
    if exact is not None and op in _OF_REALS and set(kinds) == {REALS}:
        return lambda args: exact(*args)
    return lambda args: Concrete({}).apply(op, kind, kinds, args)


def _unrounded(value: Value, kind: Format, source: Format) -> Value:
    """A real number as one of a format, which must have it, unless it was one of a format within that."""
    number = Fraction(value)
    is_wider = source.family == "float" and all(
        int(a) <= int(b) for a, b in zip(source.parameters, kind.parameters, strict=True)
    )
    if not is_wider and (abs(number) > Fraction(largest(kind)) or Fraction(round_to(number, kind)) != number):
        raise NotInterpreted(f"{number} is no number of the format {kind}")
    return number


def _constant(term: Term) -> Value:
    assert isinstance(term.payload, Fraction | float)
    return Concrete({}).constant(term.payload, term.kind)
