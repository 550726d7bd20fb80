"""Evaluations that a PROVED rule on scalars survives: both sides at the corners of their formats, and at random."""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ir_semantics.scalars.concrete import show_value
from ir_semantics.scalars.floats import decode, encode, largest, round_to
from ir_semantics.scalars.formats import BOOLEAN, Format, Value
from ir_semantics.scalars.machine import from_code, width_of
from ir_semantics.scalars.terms import NotInterpreted, postorder
from smt_encodings.claims import Runs
from smt_encodings.runs import corners

from .enclosures import enclosed
from .rule import Counterexample, ScalarRule
from .search import holds_at, replay

MOST = 60
"""Points at which the rule says something."""
MOST_ENCLOSED = 12
"""Of these, points at which sides are computed in intervals, which takes longer."""
MOST_TRIES = 300
EXPONENTS = 70
"""Powers of two up to this are corners of integers and reals."""
SHOWN = 6


def survey(rule: ScalarRule) -> Runs:
    """Evaluates both sides wherever the condition holds among corners together, alone, and in random combination."""
    count, most, unknown = 0, MOST, ""
    at: list[str] = []
    for values in _points(rule):
        try:
            says, counterexample, exact = _evaluated(rule, values)
        except NotInterpreted as error:
            unknown = str(error)
            continue
        if not says:
            continue
        most = most if exact else MOST_ENCLOSED
        count += 1
        if len(at) < SHOWN:
            at.append(", ".join(f"{name} = {show_value(value)}" for name, value in values.items()) or "no variable")
        if counterexample is not None:
            return Runs(count, tuple(at), difference=counterexample)
        if count >= most:
            break
    note = f"at other points there is no exact value, and no interval: {unknown}" if unknown else ""
    return Runs(count, (*at, "...") if count > len(at) else tuple(at), (note,) if note else ())


def _evaluated(rule: ScalarRule, values: Mapping[str, Value]) -> tuple[bool, Counterexample | None, bool]:
    """Whether the rule says something, the counterexample, and whether both are by exact values, not in intervals."""
    try:
        return holds_at(rule, values), replay(rule, values), True
    except NotInterpreted:
        if rule.number.family != "real":
            raise
        return *enclosed(rule, values), False


def _points(rule: ScalarRule) -> Iterator[dict[str, Value]]:
    """All variables at one place in their lists of corners, each alone with the others at their first, and any."""
    draw = random.Random(zlib.crc32(rule.text.encode()))
    literals = {t.payload for t in postorder(rule.terms) if t.op == "constant" and isinstance(t.payload, Fraction)}
    choices = {name: _corners(kind, sorted(literals), draw) for name, kind in rule.variables.items()}
    for place in range(max(map(len, choices.values()), default=1)):
        yield {name: some[place % len(some)] for name, some in choices.items()}
        for name in choices if len(choices) > 1 else ():
            others = {other: some[draw.randrange(min(4, len(some)))] for other, some in choices.items()}
            yield others | {name: choices[name][place % len(choices[name])]}
    for _ in range(MOST_TRIES if choices else 0):
        yield {name: draw.choice(some) for name, some in choices.items()}


def _corners(kind: Format, literals: Sequence[Fraction], draw: random.Random) -> list[Value]:
    """Zero, one, ends, literals and their neighbours; then, in any order, those of powers of two.

    Of floats these are the codes at which the class of a number changes, with both signs.
    """
    if kind == BOOLEAN:
        return [False, True]
    powers = [Fraction(1 << k) for k in range(EXPONENTS)]
    match kind.family:
        case "int" | "real":
            first = [Fraction(0), *(n + d for n in (Fraction(1), *literals) for d in (0, -1, 1))]
            rest = [n + d for n in powers for d in (-1, 0, 1)] + [1 / p for p in powers]
            numbers = _mixed([*first, *(-n for n in first)], [*rest, *(-n for n in rest)], draw)
            return [int(n) for n in numbers if n.denominator == 1] if kind.family == "int" else list(numbers)
        case "float":
            exponent, precision = (int(p) for p in kind.parameters)
            sign, infinity = 1 << (exponent + precision - 1), encode(math.inf, kind)
            known = [Fraction(1), *(n for n in literals if abs(n) <= Fraction(largest(kind)))]
            near = [encode(abs(round_to(n, kind)), kind) for n in known]
            some = [0, infinity, infinity + 1, infinity - 1, 1, 1 << (precision - 1), *near]
            codes = _mixed([*some, *(c + sign for c in some)], corners(some, infinity + 1), draw)
            return [decode(code, kind) for code in codes]
    width = width_of(kind)
    scale = 1 << int(kind.parameters[1]) if kind.family == "fixed" else 1
    most, top = (1 << width) - 1, 1 << (width - 1)
    ends = [0, 1, most, top, top - 1, *(int(n * scale) + d & most for n in literals for d in (0, 1, -1))]
    return [from_code(code, kind) for code in _mixed(ends, corners((), most), draw)]


def _mixed(first: Sequence[Any], rest: Sequence[Any], draw: random.Random) -> list[Any]:
    """The first ones in their order, then the rest in any, each once."""
    return list(dict.fromkeys([*first, *draw.sample(rest, len(rest))]))
