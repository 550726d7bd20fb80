"""The e-graph: terms up to equality, closed under congruence, with a proof for every equality.

An *e-node* is a symbol applied to e-classes, an *e-class* a set of e-nodes with equal results. Each e-node has a number
and, next to the classes of its operands, the numbers of the operands that it was made with. So each number stands for
one term exactly, and rules and congruence are reasons between terms (as in egg: Willsey et al., POPL 2021, and Flatt et
al., FMCAD 2022). Congruence is restored by ``rebuild``, once after many unions.

Where a node is made whose class exists under other operands, its number is new and its class is not; such a node is a
*copy*. Copies are for proofs, and are neither counted nor matched nor extracted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from .equivalence import Equivalence
from .explanation import Chain, Congruence, Explanation, Line, Rule, RuleApplication, Substitution
from .terms import EGraphError, Symbol, Term, term


class Analysis(Protocol):
    """Facts about e-classes, kept up to date while classes grow and merge.

    ``merge`` must be commutative, associative and idempotent, and facts must not grow without end. It raises an
    EGraphError where two classes must not be equal; an e-graph in which ``rebuild`` raised must not be used any more.
    """

    def make(self, symbol: Symbol, operands: Sequence[Hashable]) -> Hashable:
        """The fact about an e-node, from those about its operands."""
        ...

    def merge(self, left: Hashable, right: Hashable) -> Hashable:
        """The fact about the union of two classes."""
        ...


@dataclass(frozen=True)
class ENode:
    """A symbol applied to classes. ``number`` stands for its term; ``operands`` are those of that term."""

    number: int
    symbol: Symbol
    operands: tuple[int, ...]
    classes: tuple[int, ...]


@dataclass(frozen=True)
class _Applied:
    rule: Rule
    substitution: Substitution[int]


class EGraph:
    """E-nodes by number. A class is named by the number of any of its nodes; ``find`` gives the one that stands for it.

    The order of classes and nodes depends on the order of calls only.
    """

    def __init__(self, analysis: Analysis | None = None) -> None:
        self._analysis = analysis
        self._facts: dict[int, Hashable] = {}
        # None as a reason is congruence.
        self._equal: Equivalence[_Applied | None] = Equivalence()
        self._symbols: list[Symbol] = []
        self._operands: list[tuple[int, ...]] = []
        self._exact: dict[tuple[Symbol, tuple[int, ...]], int] = {}
        self._canonical: dict[tuple[Symbol, tuple[int, ...]], int] = {}
        self._keys: list[tuple[int, ...]] = []
        self._copies: set[int] = set()
        self._nodes: dict[int, list[int]] = {}
        self._parents: dict[int, list[int]] = {}
        self._pending: list[int] = []
        self._stale: list[int] = []

    # What is there ----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of e-nodes, without copies."""
        return len(self._symbols) - len(self._copies)

    @property
    def size(self) -> int:
        """The number of e-nodes with copies, which is what bounds memory."""
        return len(self._symbols)

    @property
    def unions(self) -> int:
        """How many times two classes became one; it never decreases."""
        return len(self._equal.edges)

    def find(self, number: int) -> int:
        """The number that stands for the class of an e-node."""
        return self._equal.find(number)

    def symbol(self, number: int) -> Symbol:
        """The symbol of an e-node."""
        return self._symbols[number]

    def type_of(self, number: int) -> Hashable:
        """The type of an e-node; it is that of its class."""
        return self._symbols[number].type

    def fact(self, number: int) -> Hashable:
        """What the analysis says of the class of an e-node."""
        return self._facts[self.find(number)]

    def classes(self) -> list[int]:
        """The numbers that stand for the classes."""
        return list(self._nodes)

    def nodes(self, number: int) -> Iterator[ENode]:
        """The e-nodes in the class of an e-node, without copies."""
        return self._of(self._nodes[self.find(number)])

    def users(self, number: int) -> Iterator[ENode]:
        """The e-nodes that have the class of an e-node among their operands, without copies."""
        return self._of(self._parents[self.find(number)])

    def _of(self, numbers: Iterable[int]) -> Iterator[ENode]:
        find = self._equal.find
        for i in numbers:
            if i not in self._copies:
                yield ENode(i, self._symbols[i], self._operands[i], tuple(map(find, self._operands[i])))

    def term(self, number: int) -> Term:
        """The term that an e-node's number stands for."""
        return self._terms([number])[number]

    def _terms(self, numbers: Iterable[int]) -> dict[int, Term]:
        terms: dict[int, Term] = {}
        for number in self.below(numbers):
            terms[number] = term(self._symbols[number], [terms[o] for o in self._operands[number]])
        return terms

    def below(self, numbers: Iterable[int]) -> list[int]:
        """The numbers of all e-nodes in the terms of these numbers, in increasing order, which puts operands first."""
        needed: set[int] = set()
        stack = list(numbers)
        while stack:
            number = stack.pop()
            if number not in needed:
                needed.add(number)
                stack += self._operands[number]
        return sorted(needed)

    def original(self, number: int) -> int:
        """The e-node that this one is a copy of; itself if it is none. The e-graph must be rebuilt."""
        if number not in self._copies:
            return number
        return self._canonical[self._symbols[number], tuple(map(self.find, self._operands[number]))]

    # Growing ----------------------------------------------------------------------------------------------------------

    def add(self, symbol: Symbol, operands: Sequence[int] = ()) -> int:
        """The number of the term with this symbol and the terms of these numbers.

        Raises EGraphError where there is no e-node of such a number.
        """
        exact = (symbol, tuple(operands))
        known = self._exact.get(exact)
        if known is not None:
            return known
        if any(not 0 <= o < len(self._symbols) for o in exact[1]):
            raise EGraphError(f"the operands of {symbol} must be numbers of e-nodes, not {list(operands)}")
        classes = tuple(map(self.find, exact[1]))
        number = self._equal.fresh()
        self._symbols.append(symbol)
        self._operands.append(exact[1])
        self._keys.append(classes)
        self._exact[exact] = number
        same = self._canonical.get((symbol, classes))
        if same is not None:
            self._copies.add(number)
            joined = self._equal.union(same, number, None)
            assert joined is not None and joined[1] == number, "a class of one node joins the other"
            return number
        self._canonical[symbol, classes] = number
        self._nodes[number] = [number]
        self._parents[number] = []
        for c in dict.fromkeys(classes):
            self._parents[c].append(number)
        if self._analysis is not None:
            self._facts[number] = self._analysis.make(symbol, [self._facts[c] for c in classes])
        return number

    def lookup(self, symbol: Symbol, operands: Sequence[int] = ()) -> int | None:
        """The class of a symbol applied to classes, or None where there is none yet. Adds nothing."""
        number = self._canonical.get((symbol, tuple(map(self.find, operands))))
        return None if number is None else self.find(number)

    def merge(self, left: int, right: int, rule: Rule, substitution: Substitution[int]) -> bool:
        """Makes two terms equal, being the sides of a rule under a substitution; False where they were equal already.

        Raises EGraphError where their types differ. ``rebuild`` must be called before classes are looked at again.
        """
        return self._union(left, right, _Applied(rule, substitution))

    def _union(self, left: int, right: int, reason: _Applied | None) -> bool:
        if self.type_of(left) != self.type_of(right):
            name = "congruence" if reason is None else f"the rule {reason.rule.name}"
            raise EGraphError(
                f"equal terms must have one type; {name} equates {self.type_of(left)} ({self._symbols[left]}) "
                f"and {self.type_of(right)} ({self._symbols[right]})"
            )
        a, b = self.find(left), self.find(right)
        if a == b:
            return False
        fact: Hashable = None
        if self._analysis is not None:
            fact = self._analysis.merge(self._facts[a], self._facts[b])
        joined = self._equal.union(left, right, reason)
        assert joined is not None
        kept, gone = joined
        self._nodes[kept] += self._nodes.pop(gone)
        moved = self._parents.pop(gone)
        self._pending += moved
        self._parents[kept] += moved
        if self._analysis is not None:
            if fact != self._facts[kept]:
                self._stale += self._parents[kept]
            elif fact != self._facts[gone]:
                self._stale += moved
            self._facts[kept] = fact
            del self._facts[gone]
        return True

    def rebuild(self) -> int:
        """Restores congruence and the analysis after unions; the number of unions that this took."""
        unions = 0
        changed = bool(self._pending)
        while self._pending or self._stale:
            while self._pending:
                unions += self._repair(self._pending.pop())
            if self._stale:
                self._update(self._stale.pop())
        if changed:
            self._tidy()
        return unions

    def _repair(self, number: int) -> bool:
        """Gives a node whose operands' classes changed its place; True where that united two classes."""
        if number in self._copies:
            return False
        symbol, old = self._symbols[number], self._keys[number]
        if self._canonical.get((symbol, old)) == number:
            del self._canonical[symbol, old]
        classes = self._keys[number] = tuple(map(self.find, self._operands[number]))
        same = self._canonical.setdefault((symbol, classes), number)
        if same == number:
            return False
        self._copies.add(number)
        return self._union(same, number, None)

    def _update(self, number: int) -> None:
        """Brings the fact about a node's class up to date."""
        assert self._analysis is not None
        at = self.find(number)
        own = self._analysis.make(self._symbols[number], [self.fact(o) for o in self._operands[number]])
        fact = self._analysis.merge(self._facts[at], own)
        if fact != self._facts[at]:
            self._facts[at] = fact
            self._stale += self._parents[at]

    def _tidy(self) -> None:
        """Forgets copies among nodes and parents of classes."""
        for lists in (self._nodes, self._parents):
            for number, members in lists.items():
                lists[number] = [i for i in dict.fromkeys(members) if i not in self._copies]

    # Explaining -------------------------------------------------------------------------------------------------------

    def explain(self, start: int, end: int) -> Explanation:
        """Why the terms of two numbers are equal; raises EGraphError where they are not known to be."""
        paths: dict[int, list[Chain]] = {}
        whole = tuple(self._equal.path(start, end))
        needed = [number for number, _ in whole]
        while needed:
            edge = needed.pop()
            if edge in paths:
                continue
            joined = self._equal.edges[edge]
            paths[edge] = []
            if joined.reason is None:
                pairs = zip(self._operands[joined.left], self._operands[joined.right], strict=True)
                paths[edge] = [tuple(self._equal.path(a, b)) for a, b in pairs]
                needed += [number for path in paths[edge] for number, _ in path]
        # An edge's reasons are older than the edge, so that lines in the order of edges rest on earlier ones.
        order = {edge: line for line, edge in enumerate(sorted(paths))}
        terms = self._terms_of(start, end, list(order))
        lines = []
        for edge in order:
            joined = self._equal.edges[edge]
            reason: RuleApplication | Congruence
            if joined.reason is None:
                reason = Congruence(tuple(tuple((order[n], f) for n, f in path) for path in paths[edge]))
            else:
                reason = RuleApplication(joined.reason.rule, joined.reason.substitution.moved(terms.__getitem__))
            lines.append(Line(terms[joined.left], terms[joined.right], reason))
        return Explanation(terms[start], terms[end], tuple(lines), tuple((order[n], f) for n, f in whole))

    def _terms_of(self, start: int, end: int, edges: Sequence[int]) -> dict[int, Term]:
        numbers = [start, end]
        for edge in edges:
            joined = self._equal.edges[edge]
            numbers += (joined.left, joined.right)
            if joined.reason is not None:
                numbers += [number for _, number in joined.reason.substitution.operands]
        return self._terms(numbers)
