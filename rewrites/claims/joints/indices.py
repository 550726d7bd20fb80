"""Words that are indices, as integers: sizes, addresses, extents, and conditions on these.

Sums, differences, products and shifts to the left of words are those of integers modulo 2^width, so that a word of
these is *congruent* to an integer expression, whatever wraps.  That it *is* that integer, which quotients, extents and
comparisons need, is an obligation: that the integer has so many bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ila_lang import Expr
from ir_semantics.tensors.conditions import (
    FALSE,
    TRUE,
    Condition,
    both,
    either,
    equal,
    inside,
    le,
    lt,
    negation,
    variables_of,
)
from ir_semantics.tensors.index import Index, index, product
from ir_semantics.tensors.terms import Shape

from .instruction import Unread

MOST_STEPS = 5_000
MOST_TERMS = 200


@dataclass(frozen=True)
class Obligation:
    """What must hold for all integers that satisfy the hypotheses, at a place of a kernel."""

    hypotheses: tuple[Condition, ...]
    goal: Condition
    meaning: str


class Indices:
    """Reads indices over words that are known; ``premise`` is what sizes must satisfy so that they are as read."""

    def __init__(self) -> None:
        self.indices: dict[Expr, Index] = {}
        self.premise: Condition = TRUE
        self.path: tuple[Condition, ...] = ()
        self.obligations: list[Obligation] = []
        self.steps, self.most = 0, MOST_STEPS
        self._congruent: dict[tuple[Expr, tuple[Condition, ...]], Index] = {}

    @contextmanager
    def under(self, *conditions: Condition) -> Iterator[None]:
        """What is read here is reached only where these hold."""
        before, self.path = self.path, (*self.path, *conditions)
        try:
            yield
        finally:
            self.path = before

    def step(self) -> None:
        """Something more is read."""
        self.steps += 1
        if self.steps > self.most:
            raise Unread(f"a kernel that takes more than {self.most} steps to read is too large")

    def require(self, goal: Condition, meaning: str) -> None:
        """The reading is one only if this holds here."""
        if goal == FALSE:
            raise Unread(f"not so: {meaning}")
        if goal != TRUE:
            self.obligations.append(Obligation(self.path, goal, meaning))

    def index(self, of: Expr) -> Index:
        """An integer that a word is congruent to, modulo 2 to the number of its bits."""
        if of in self.indices:
            return self.indices[of]
        if (of, self.path) not in self._congruent:
            self.step()
            value = self._index(of)
            if len(value.terms) > MOST_TERMS:
                raise Unread(f"an index of more than {MOST_TERMS} terms is too large to be read")
            self._congruent[of, self.path] = value
        return self._congruent[of, self.path]

    def _index(self, of: Expr) -> Index:
        match of.op:
            case "const":
                return index(of.value - (1 << of.width if of.width > 1 and of.value >> (of.width - 1) else 0))
            case "bvadd":
                return self.index(of.args[0]) + self.index(of.args[1])
            case "bvsub":
                return self.index(of.args[0]) - self.index(of.args[1])
            case "bvmul":
                return self.index(of.args[0]) * self.index(of.args[1])
            case "bvshl" if of.args[1].is_const:
                return self.index(of.args[0]) * (1 << of.args[1].value if of.args[1].value < of.width else 0)
            case "extract" if of.params[1] == 0:
                return self.index(of.args[0])
            case "extract":
                return self.exact(of.args[0]) // (1 << int(of.params[1]))
            case "zext":
                return self.exact(of.args[0])
            case "bvudiv":
                dividend, divisor = map(self.exact, of.args)
                if divisor == index(0):
                    raise Unread(f"{of!r:.60} must not divide by 0")
                self.require(le(1, divisor), f"{of.args[1]!r:.60} is not 0, by which {of.args[0]!r:.60} is divided")
                return dividend // divisor
            case "bvlshr" if of.args[1].is_const:
                shift = of.args[1].value
                return self.exact(of.args[0]) // (1 << shift) if shift < of.width else index(0)
            case "ite":
                other = negation(self.condition(of.args[0]))
                if not any("." in name for name in variables_of(other)):  # of sizes alone, not of counters
                    self.premise = both(self.premise, other)
                    return self.index(of.args[2])
        raise Unread(f"{of.describe()} is no index")

    def exact(self, of: Expr) -> Index:
        """The integer that a word is: a size, an extent, a side of a comparison."""
        if of in self.indices:
            return self.indices[of]
        if of.is_const:
            return index(of.value)
        value = self.index(of)
        if of.op not in ("zext", "bvudiv", "bvlshr"):
            self.require(inside(value, 1 << of.width), f"{of!r:.60} does not wrap, so that it is {value}")
        return value

    def condition(self, of: Expr) -> Condition:
        """A truth value as a condition on indices."""
        self.step()
        match of.op:
            case "const":
                return TRUE if of.value else negation(TRUE)
            case "eq":
                return equal(*map(self.exact, of.args))
            case "bvult":
                return lt(*map(self.exact, of.args))
            case "bvule":
                return le(*map(self.exact, of.args))
            case "not":
                return negation(self.condition(of.args[0]))
            case "and":
                return both(*map(self.condition, of.args))
            case "or":
                return either(*map(self.condition, of.args))
        raise Unread(f"{of.describe()} is no condition on indices")


def digits(memory: str, at: Index, shape: Shape) -> list[Index]:
    """Subscripts of the row-major tensor in a memory that are this address; they need not lie inside its extents."""
    subscripts, rest, total = list[Index](), at, index(0)
    for axis in range(len(shape)):
        below = product(shape[axis + 1 :])
        if len(below.terms) != 1:
            raise Unread(f"the extents of {memory} must be products, not {below}")
        ((factor, coefficient),) = below.terms
        digit: dict[Any, int] = {}
        for monomial, c in rest.terms:
            left = list(monomial)
            for atom in factor:
                if atom in left:
                    left.remove(atom)
            if len(left) == len(monomial) - len(factor) and c % coefficient == 0:
                digit[tuple(left)] = c // coefficient
        subscripts.append(Index(digit))
        total, rest = total + subscripts[-1] * below, rest - subscripts[-1] * below
    if total != at:
        raise Unread(f"{at} must be the place of an element of {memory}, of the shape {[str(d) for d in shape]}")
    return subscripts
