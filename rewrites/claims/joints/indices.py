"""Words that are indices, as integers: sizes, addresses, extents, and conditions on these."""

from __future__ import annotations

from typing import Any

from ila_lang import Expr, postorder
from ir_semantics.tensors.conditions import TRUE, Condition, both, either, equal, le, lt, negation, variables_of
from ir_semantics.tensors.index import Index, index, product
from ir_semantics.tensors.terms import Shape

from .instruction import Unread


class Indices:
    """Reads indices over variables that are known; ``premise`` is what sizes must satisfy so that they are as read."""

    def __init__(self) -> None:
        self.indices: dict[Expr, Index] = {}
        self.premise: Condition = TRUE
        self.exact: set[Expr] = set()
        self.open: set[Expr] = set()

    def index(self, of: Expr) -> Index:
        """A word as an integer: a size, an address, an extent."""
        if of in self.indices:
            return self.indices[of]
        match of.op:
            case "const" if of.value < 1 << max(of.width - 1, 1):
                return index(of.value)
            case "bvadd":
                return self.index(of.args[0]) + self.index(of.args[1])
            case "bvsub":
                return self.index(of.args[0]) - self.index(of.args[1])
            case "bvmul":
                return self.index(of.args[0]) * self.index(of.args[1])
            case "bvudiv" if of.args[1].is_const and of.args[1].value:  # what is divided by 0 has a value of its own
                return self.index(of.args[0]) // of.args[1].value
            case "bvlshr" if of.args[1].is_const:
                return self.index(of.args[0]) // (1 << of.args[1].value)
            case "bvshl" if of.args[1].is_const:
                return self.index(of.args[0]) * (1 << of.args[1].value)
            case "extract" if of.params[0] == of.args[0].width - 1:  # the quotient by a power of two
                return self.index(of.args[0]) // (1 << int(of.params[1]))
            case "zext":
                return self.index(of.args[0])
            case "ite":
                other = negation(self.condition(of.args[0]))
                if not any("." in name for name in variables_of(other)):  # of sizes alone, not of counters
                    self.premise = both(self.premise, other)
                    return self.index(of.args[2])
        raise Unread(f"{of.describe()} is no index")

    def condition(self, of: Expr) -> Condition:
        """A truth value as a condition on indices."""
        match of.op:
            case "const":
                return TRUE if of.value else negation(TRUE)
            case "eq":
                return equal(*self.compared(of))
            case "bvult":
                return lt(*self.compared(of))
            case "bvule":
                return le(*self.compared(of))
            case "not":
                return negation(self.condition(of.args[0]))
            case "and":
                return both(*map(self.condition, of.args))
            case "or":
                return either(*map(self.condition, of.args))
        raise Unread(f"{of.describe()} is no condition on indices")

    def addressed(self, of: Expr) -> Index:
        """An address or an extent: that nothing in it wraps is an obligation of the mapping's proof."""
        self.exact |= set(postorder([of]))
        return self.index(of)

    def compared(self, of: Expr) -> tuple[Index, Index]:
        """Two words that are compared: of conditions the mapping's proof does not ask whether they wrap."""
        self.open |= {n for n in postorder(of.args) if n.op in ("bvadd", "bvsub", "bvmul", "bvshl")}
        first, second = of.args
        return self.index(first), self.index(second)

    def require_exact(self) -> None:
        """Raises Unread where a condition is about a word that may wrap, as it is a part of no address or extent."""
        for word in self.open - self.exact:
            raise Unread(f"a condition must not depend on {word!r:.60}, of which nothing proves that it does not wrap")


def digits(memory: str, at: Index, shape: Shape) -> list[Index]:
    """Subscripts of the row-major tensor in a memory that are this address.

    They need not lie inside its extents: what an element at others is, is the word at that address.
    """
    found, rest, total = list[Index](), at, index(0)
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
        found.append(Index(digit))
        total, rest = total + found[-1] * below, rest - found[-1] * below
    if total != at:
        raise Unread(f"{at} must be the place of an element of {memory}, of the shape {[str(d) for d in shape]}")
    return found
