"""Unknown elements in terms replaced by what they are, with what is known at the place where they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ir_semantics.elements.binders import (
    array,
    every,
    fold,
    opened_array,
    opened_every,
    opened_fold,
    postorder,
    with_args,
)
from ir_semantics.elements.operators import both, choose, conjuncts, equal, negation
from ir_semantics.elements.terms import Input, Term, is_true

Known: TypeAlias = frozenset[Term]


def same_places(a: Sequence[Term], b: Sequence[Term], known: Iterable[Term] = ()) -> bool:
    """Whether it is seen that two tuples of integers are one, by conditions that are known."""
    return len(a) == len(b) and all(is_true(c) or c in known for c in map(equal, a, b))


@dataclass
class Replacement:
    """Reads of unknown tensors: ``own`` gives a term for those of one element; ``others`` gives all else."""

    unknown: Callable[[Input], bool]
    others: Callable[[Input, tuple[Term, ...]], Term]
    own: Callable[[Input, tuple[Term, ...], Known], Term | None] = lambda *_: None
    _reads: dict[Term, bool] = field(default_factory=dict)
    _done: dict[tuple[Term, Known], Term] = field(default_factory=dict)

    def of(self, term: Term, known: Known = frozenset()) -> Term:
        """The term with its reads replaced, where conditions are known to hold."""
        if not self._has_reads(term):
            return term
        key = term, known
        if key not in self._done:
            self._done[key] = self._replaced(term, known)
        return self._done[key]

    def _has_reads(self, root: Term) -> bool:
        for term in postorder([root], lambda t: t not in self._reads):
            mine = isinstance(term.payload, Input) and self.unknown(term.payload)
            self._reads[term] = mine or any(self._reads[a] for a in term.args)
        return self._reads[root]

    def _replaced(self, term: Term, known: Known) -> Term:
        match term.op:
            case "select":
                condition = self.of(term.args[0], known)
                yes = self.of(term.args[1], known.union(conjuncts([condition])))
                return choose(condition, yes, self.of(term.args[2], known.union(conjuncts([negation(condition)]))))
            case "and":  # a part matters only where the parts without reads hold
                parts = list(conjuncts([term]))
                plain = [p for p in parts if not self._has_reads(p)]
                here = known.union(plain)
                return both(*plain, *(self.of(p, here) for p in parts if self._has_reads(p)))
            case "not":
                return negation(self.of(term.args[0], known))
            case "fold":
                old = opened_fold(term)
                ranges = [(v, self.of(e, known)) for v, e in zip(old.variables, old.extents, strict=True)]
                return fold(self.of(old.start, known), old.accumulator, ranges, self.of(old.step, known))
            case "every":
                variables, extents, condition = opened_every(term)
                return every(variables, [self.of(e, known) for e in extents], self.of(condition, known))
            case "array":
                variables, extents, value, is_defined = opened_array(term)
                sizes = [self.of(e, known) for e in extents]
                return array(variables, sizes, self.of(value, known), self.of(is_defined, known))
        at = tuple(self.of(a, known) for a in term.args)
        array_ = term.payload
        if not isinstance(array_, Input) or not self.unknown(array_):
            return with_args(term, at)
        own = self.own(array_, at, known)
        return self.others(array_, at) if own is None else own
