"""Counterexamples to rules on scalars by evaluation: at special values, at boundaries, at random, or everywhere.

A counterexample counts only when :func:`replay` finds that the sides differ.  Rules over the reals with exp, log, sqrt
or pow have no exact evaluation; nothing is refuted for them here.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product

import numpy as np

from ila_lang import BvSort, compile_terms, inline
from ila_lang import postorder as expressions
from ir_semantics.scalars.concrete import Concrete, same_value, values_of
from ir_semantics.scalars.floats import decode, largest, round_to, smallest
from ir_semantics.scalars.formats import BINARY64, BOOLEAN, NUMBER, REALS, Format, Value
from ir_semantics.scalars.machine import MACHINE_FAMILIES, MachineExpressions, from_code, width_of
from ir_semantics.scalars.terms import NotInterpreted, interpret, postorder

from .formats import CODES
from .rule import Counterexample, ScalarRule

_EVERYWHERE = 12
"""Rules of at most this many bits of variables are evaluated at all values."""
_ALL, _WIDEST = 16, 62
_COMBINED = 1500
_RANDOM = 400
_AGREE, _DIFFER = 2.0**-30, 2.0**-10


def replay(rule: ScalarRule, values: Mapping[str, Value]) -> Counterexample | None:
    """The counterexample at given values, or None where the rule holds there or says nothing.

    Raises NotInterpreted where an operator has no exact value, and ValueError where a format lacks a given value.
    """
    domain = Concrete(values, CODES)
    if not holds_at(rule, values):
        return None
    left_term, right_term = rule.sides
    (possible,) = interpret([rule.right_may_have_value], domain, rule.number)
    if not possible:
        return Counterexample(dict(values), interpret([left_term], domain, rule.number)[0], None)
    left, right = interpret([left_term, right_term], domain, rule.number)
    return None if same_value(left, right) else Counterexample(dict(values), left, right)


def holds_at(rule: ScalarRule, values: Mapping[str, Value]) -> bool:
    """Whether the rule says something at given values: its condition holds and its left side is defined."""
    condition, defined = interpret([rule.condition, rule.left_has_value], Concrete(values, CODES), rule.number)
    return bool(condition) and bool(defined)


def find_counterexample(rule: ScalarRule, at: Iterable[Mapping[str, Value]]) -> Counterexample | None:
    """The first counterexample among given values."""
    for values in at:
        try:
            counterexample = replay(rule, values)
        except NotInterpreted:  # no exact value here: neither for nor against the rule
            continue
        if counterexample is not None:
            return counterexample
    return None


def points(rule: ScalarRule) -> Iterator[dict[str, Value]]:
    """Values at which to try a rule, the same ones every time: its examples, then all values of a small format, or
    special ones in combination and random ones."""
    formats = rule.variables
    yield from (dict(e) for e in rule.examples)
    bits = sum(_bits(k) for k in formats.values())
    if bits <= _EVERYWHERE:
        yield from _combinations(formats, [values_of(k) for k in formats.values()])
        return
    source = random.Random(zlib.crc32(rule.name.encode()))
    literals = {t.payload for t in postorder(rule.terms) if t.op == "constant" and isinstance(t.payload, Fraction)}
    special = [special_values(k, literals) for k in formats.values()]
    if math.prod(len(s) for s in special) <= _COMBINED:
        yield from _combinations(formats, special)
    else:
        few = [s[:7] for s in special]
        yield from islice(_combinations(formats, few), _COMBINED // 2)
        for _ in range(_COMBINED):
            yield {n: source.choice(s) for n, s in zip(formats, special, strict=True)}
    for _ in range(_RANDOM):
        yield {n: random_value(k, source) for n, k in formats.items()}


def find_among_all(rule: ScalarRule) -> Counterexample | None:
    """A counterexample among all values of a rule on machine numbers with at most 16 bits of variables.

    None too for other rules, and where an expression is too wide for arrays.
    """
    formats = rule.variables
    terms = list(postorder(rule.terms))
    kinds = {rule.number if t.format == NUMBER else t.format for t in terms}
    if not {k.family for k in kinds} <= MACHINE_FAMILIES or sum(_bits(k) for k in formats.values()) > _ALL:
        return None
    domain = MachineExpressions(CODES)
    try:
        condition, defined, goal = interpret([rule.condition, rule.left_has_value, rule.goal], domain, rule.number)
    except NotInterpreted:
        return None
    fails = inline(condition & defined & ~goal)
    if any(isinstance(n.sort, BvSort) and n.sort.width > _WIDEST for n in expressions([fails])):
        return None
    parameters = [domain.variable(n, k) for n, k in formats.items()]
    grid = np.meshgrid(*(np.arange(1 << _bits(k)) for k in formats.values()), indexing="ij")
    codes = [g.ravel().astype(bool) if k == BOOLEAN else g.ravel() for g, k in zip(grid, formats.values(), strict=True)]
    (failing,) = compile_terms(parameters, [fails], vector=True)(*codes)
    (places,) = np.nonzero(np.broadcast_to(failing, (grid[0].size if grid else 1,)))
    if not len(places):
        return None
    chosen = [int(c[places[0]]) for c in codes]
    values = {
        n: bool(c) if k == BOOLEAN else from_code(c, k) for (n, k), c in zip(formats.items(), chosen, strict=True)
    }
    return replay(rule, values)


def _combinations(formats: Mapping[str, Format], choices: Sequence[Sequence[Value]]) -> Iterator[dict[str, Value]]:
    return (dict(zip(formats, chosen, strict=True)) for chosen in product(*choices))


def _bits(kind: Format) -> int:
    if kind == BOOLEAN:
        return 1
    if kind.family == "float":
        return sum(int(p) for p in kind.parameters)
    return width_of(kind) if kind.family in MACHINE_FAMILIES else 1000


def special_values(kind: Format, literals: Iterable[Fraction]) -> list[Value]:
    """Ends of a format, neighbours of zero, and constants of a claim with theirs."""
    numbers = sorted(literals)
    match kind.family:
        case "boolean":
            return [False, True]
        case "float":
            big, small = largest(kind), smallest(kind)
            over, under = math.log(big) + 1, math.log(small) - 1  # where exp becomes infinite, and zero
            values = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, big, -big, small, -small]
            values += [0.5, -0.25, 2.0, 3.0, -2.5, math.sqrt(big), -math.sqrt(big), math.sqrt(small)]
            values += [over, -over, under, -under]
            values += [float(n + d) for n in numbers if abs(n) < big for d in (0, 1, -1)]
            rounded = [x if not math.isfinite(x) or x == 0 else round_to(Fraction(x), kind) for x in values]
            return _once(rounded)
        case "real":
            some = [Fraction(n, d) for n, d in ((0, 1), (1, 1), (2, 1), (1, 2), (3, 1), (10, 1), (7, 1))] + numbers
            return _once([*some, *(-n for n in some)])
        case "int":
            whole = [int(n) for n in numbers if n.denominator == 1]
            return _once([0, 1, -1, 2, -2, 3, -3, 7, -8, *whole, *(-n for n in whole)])
    width = width_of(kind)
    codes = {c & ((1 << width) - 1) for e in (0, 1 << (width - 1), (1 << width) >> 2) for c in (e, e + 1, e - 1, e + 2)}
    scale = 1 << int(kind.parameters[1]) if kind.family == "fixed" else 1
    codes |= {int(n * scale + d) & ((1 << width) - 1) for n in numbers for d in (0, 1, -1)}
    return [from_code(c, kind) for c in sorted(codes, key=lambda c: min(c, (1 << width) - c))]


def _once(values: Sequence[Value]) -> list[Value]:
    return list({repr(v): v for v in values}.values())


def random_value(kind: Format, source: random.Random) -> Value:
    """A random value of a format; small integers as often as any."""
    match kind.family:
        case "boolean":
            return source.random() < 0.5
        case "real":
            return Fraction(source.randint(-1000, 1000), source.choice((1, 1, 2, 3, 10, 16)))
        case "int":
            return source.randint(-1000, 1000)
        case "float":
            return decode(source.getrandbits(_bits(kind)), kind)
    bits = width_of(kind) if source.random() < 0.5 else min(width_of(kind), 9)  # small numbers as often as any
    sign = -1 if source.random() < 0.5 else 1
    return from_code(sign * source.getrandbits(bits) & ((1 << width_of(kind)) - 1), kind)


# -- changed rules -----------------------------------------------------------------------------------------


def refutes_change(rule: ScalarRule, changed: ScalarRule, at: Sequence[Mapping[str, Value]]) -> str | None:
    """Where a changed form of a rule fails, in words; None where no given value shows it.

    Rules over the reals whose functions have no exact value are evaluated in binary64: the rule's own sides must agree
    there within 2^-30 of their size, and those of the changed rule differ by more than 2^-10.
    """
    for values in at:
        try:
            counterexample = replay(changed, values)
        except NotInterpreted:
            if rule.number != REALS:
                continue
            counterexample = _by_floats(rule, changed, values)
        except ValueError:  # the change has made a constant that the format does not have
            return None
        if counterexample is not None:
            return str(counterexample)
    return None


def _by_floats(rule: ScalarRule, changed: ScalarRule, values: Mapping[str, Value]) -> Counterexample | None:
    rounded = {n: float(v) if not isinstance(v, bool) else v for n, v in values.items()}
    terms = [changed.condition, *rule.sides, *changed.sides]
    try:
        condition, *sides = interpret(terms, Concrete(rounded), BINARY64)
    except NotInterpreted:  # a term that is of reals by its own format, not by that of the rule
        return None
    if not condition or any(not isinstance(s, float) or not math.isfinite(s) for s in sides):
        return None
    left, right, _, other = (float(s) for s in sides)
    size = max(abs(left), abs(right), abs(other), 1.0)
    if abs(left - right) <= _AGREE * size and abs(left - other) > _DIFFER * size:
        return Counterexample(dict(values), left, other)
    return None
