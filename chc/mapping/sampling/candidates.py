"""Terms over coordinates and counters that have given values at samples: proposals, which are to be proved.

They are tried from the simple ones to others, no further than up to the first one that agrees.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from chc.mapping.program.writes import Loops, Write
from ila_lang import BvSort, Expr, concat, const, free_variables, postorder, resize

from .samples import Samples

_FEW = 8
"""Literals tried as values, and as radices of digits (such as the gates of a cell)."""

MOST_CANDIDATES = 4000
"""Terms among which a component of a witness is looked up."""

_LARGEST_BLOCK = 1 << 10
"""Largest literal extent that is tried as a radix."""

_AT_ONCE = 100
"""Terms that are evaluated together."""


@dataclass
class Candidates:
    """Terms by their values at samples; the first one of those with the same values."""

    samples: Samples
    terms: Iterator[Expr]
    _table: dict[tuple[int, ...], Expr] = field(default_factory=dict)

    def get(self, values: tuple[int, ...]) -> Expr | None:
        """The first term that has these values; None where no term has."""
        while values not in self._table and self._grow():
            pass
        return self._table.get(values)

    def _grow(self) -> bool:
        terms = list(itertools.islice(self.terms, _AT_ONCE))
        for term, values in zip(terms, zip(*self.samples.evaluate(terms), strict=True), strict=True):
            self._table.setdefault(tuple(values), term)
        return bool(terms)


def candidates(samples: Samples, ranges: Loops, hints: Sequence[Expr], write: Write | None = None) -> Candidates:
    """Terms over coordinates and counters, the simplest ones first.

    ``ranges`` are the coordinates and counters with their extents; ``hints`` are terms whose parts are tried, too, and
    ``write`` is one by whose extents, and by what it divides by, numbers are taken apart.
    """
    seen: set[Expr] = set()
    new = (t for t in _terms(samples, ranges, hints, write) if t not in seen and not seen.add(t))  # type: ignore[func-returns-value]
    return Candidates(samples, itertools.islice(new, MOST_CANDIDATES))


def _terms(samples: Samples, ranges: Loops, hints: Sequence[Expr], write: Write | None) -> Iterator[Expr]:
    atoms = [resize(c, 32) for c, _ in ranges]
    extents = [resize(e, 32) for _, e in ranges]
    sizes = [resize(p, 32) for p in samples.parameters]
    yield from (*atoms, *(const(k, 32) for k in range(_FEW)))
    yield from (a - 1 for a in (*atoms, *extents))
    # loops that begin at a size or at a literal
    yield from (a - begin for a in atoms for begin in (*sizes, *range(2, _FEW)))
    for node in (n for hint in hints for n in postorder([hint])):
        if isinstance(node.sort, BvSort) and node.args and node.width <= 32 and node.op not in ("load", "apply"):
            yield resize(node, 32)
    literals = {e.value for e in extents if e.is_const and e.value > 1} | {2, 16}
    limits: list[Expr] = []
    if write is not None:
        literals |= _literals([e for _, e in write.loops])
        known = {p.name for p in samples.parameters}
        limits = [resize(e, 32) - 1 for _, e in write.loops if set(free_variables(e)) <= known]
        ends = [*atoms, *(a - 1 for a in atoms), *(e - 1 for e in (*extents, *sizes)), *limits]
        yield from (*limits, *(resize(h, 32) - 1 for h in hints if isinstance(h.sort, BvSort) and h.width <= 32))
        for size in _divisors(write, samples):
            yield from (t for a in ends for t in (a // size, a % size))
            yield from (a * size + b for a in atoms for b in ends if a is not b)
    for k in sorted(literals):
        for atom in atoms:
            yield from (atom // const(k, 32), atom % const(k, 32), atom * k)
    yield from (a * k + r for a in atoms for k in range(2, _FEW + 1) for r in range(k))
    pairs = [(a * e + b, f) for a in atoms for b, e, f in zip(atoms, extents, extents, strict=True) if a is not b]
    yield from (p for p, _ in pairs)
    yield from (p * e + c for p, _ in pairs for c, e in zip(atoms, extents, strict=True))
    yield from (a + 1 for a in atoms)  # a peeled loop, which begins at 1
    yield from (a - b for a in atoms for b in atoms if a is not b)  # a loop that begins at a counter
    yield from (last - a for last in limits for a in atoms)  # a loop from the last to the first
    yield from (last - a // const(k, 32) for last in limits for a in atoms for k in sorted(literals))  # tiles likewise


def digits(samples: Samples, address: Expr, write: Write) -> dict[tuple[int, ...], Expr]:
    """The digits of an address where a write's inner loops have literal extents, by their values at the samples.

    They are what its counters must be if the write goes through words in order, and others address them in other
    units.
    """
    terms: list[Expr] = []
    rest = address
    for _, extent in reversed(write.loops):
        if not extent.is_const or extent.value < 2:
            break
        rest, digit = _divided(rest, extent.value)
        terms += [digit, rest]
    return {tuple(v): t for t, v in zip(terms, zip(*samples.evaluate(terms), strict=True), strict=True)}


def _divided(number: Expr, by: int) -> tuple[Expr, Expr]:
    """Quotient and remainder (32 bits); lower parts of a concatenation stay as they are."""
    if number.op == "concat" and by & (by - 1) == 0 and 1 << number.args[-1].width <= by:
        low = number.args[-1]
        high, digit = _divided(concat(*number.args[:-1]), by >> low.width)
        return high, (digit << low.width) + resize(low, 32)
    wide = resize(number, 32)
    return (wide // const(by, 32), wide % const(by, 32)) if by > 1 else (wide, const(0, 32))


def _literals(extents: Sequence[Expr]) -> set[int]:
    """The literals in some extents, by which blocks of iterations are as long."""
    nodes = postorder(extents)
    shifts = (1 << n.args[1].value for n in nodes if n.op in ("bvshl", "bvlshr") and n.args[1].is_const)
    found = {*(n.value for n in nodes if n.is_const and isinstance(n.sort, BvSort)), *shifts}
    return {v for v in found if 1 < v <= _LARGEST_BLOCK}


def _divisors(write: Write, samples: Samples) -> list[Expr]:
    """The sizes that a write divides by."""
    known = {p.name for p in samples.parameters}
    terms = postorder([write.address, write.guard, *(e for _, e in write.loops)])
    divisors = [n.args[1] for n in terms if n.op in ("bvudiv", "bvurem") and set(free_variables(n.args[1])) <= known]
    return list(dict.fromkeys(resize(d, 32) for d in divisors if not d.is_const))
