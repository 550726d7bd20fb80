"""Layouts are injective: the one nonlinear theorem of the method, in steps that solvers find easy.

"``address(i) = address(j)`` implies ``i = j``" mixes remainders, quotients and a product with a symbolic stride; asked
at once, solvers answer in milliseconds or never.  The steps are always the same:

1. *Linear stones.*  Every product of two variables is replaced by a fresh variable (which only makes the claim
   stronger).  What follows about corresponding parts of the two addresses by linear arithmetic is collected:
   equal lanes, equal remainders, equal tile offsets.
2. *Digits.*  A stone such as ``q*n + v = q'*n + v'`` gives ``q = q'`` and ``v = v'`` from the ranges of its own
   variables and nothing else.
3. The counters follow from their digits, again linearly.

Each step is an obligation of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import INT
from smt_encodings.discharge import conjuncts, decide

from .nests import Unsupported

__all__ = ["Step", "injectivity_steps"]

Step = tuple[str, list[FNode], FNode]
"""Name, hypotheses and goal of one step."""


def injectivity_steps(
    hypotheses: Sequence[FNode],
    addresses: tuple[FNode, FNode],
    counters: Sequence[tuple[FNode, FNode]],
) -> list[Step]:
    """The steps that prove "equal addresses have equal counters" under ``hypotheses``.

    ``addresses`` must be one expression over two sets of counters.  Raises Unsupported where a step is not found.
    """
    known = conjuncts(hypotheses)
    equation = smt.Equals(*addresses)
    abstract = _Abstraction()
    linear = [h for h in _about(known, equation.get_free_variables()) if _is_linear(h)]
    steps: list[Step] = []
    stones: list[FNode] = []
    pairs = [
        (a, b)
        for a, b in dict.fromkeys(_corresponding(*addresses))
        if a.is_symbol() or (a.is_plus() and not _is_linear(a))
    ]
    for left, right in pairs:
        goal = smt.Equals(left, right)
        given = [*linear, abstract(equation)]
        if decide(given, abstract(goal), 2.0):
            steps.append((f"linear: {_label(left)}", given, abstract(goal)))
            stones.append(goal)
    for left, right in pairs:
        goal = smt.Equals(left, right)
        if goal in stones or not left.is_symbol():
            continue
        for stone in list(stones):
            if goal.get_free_variables() <= stone.get_free_variables():
                given = [*_about(known, stone.get_free_variables()), stone]
                if decide(given, goal, 2.0):
                    steps.append((f"digit: {_label(left)}", given, goal))
                    stones.append(goal)
                    break
    goal = smt.And([smt.Equals(a, b) for a, b in counters])
    reach = _about(known, _reach(known, goal.get_free_variables()))
    given = [*(h for h in reach if _is_linear(h)), *(s for s in stones if _is_linear(s))]
    if not decide(given, goal, 2.0):
        raise Unsupported("an address map is not shown to be injective: two iterations may write one cell")
    steps.append(("counters", given, goal))
    return steps


def _about(terms: Iterable[FNode], symbols: Iterable[FNode]) -> list[FNode]:
    """The terms that speak of nothing but ``symbols``."""
    allowed = set(symbols)
    return [t for t in terms if t.get_free_variables() <= allowed]


def _reach(terms: Sequence[FNode], symbols: Iterable[FNode]) -> set[FNode]:
    """``symbols`` and those that equations define them by, or define by them."""
    reached = set(symbols)
    for term in terms:
        if term.is_equals() and term.get_free_variables() & reached and _is_linear(term):
            reached |= term.get_free_variables()
    return reached


def _corresponding(left: FNode, right: FNode) -> list[tuple[FNode, FNode]]:
    """Pairs of different subterms at the same place of two terms of one shape, parts before wholes."""
    if left is right:
        return []
    if len(left.args()) != len(right.args()) or left.node_type() != right.node_type():
        raise Unsupported("the two addresses of a layout must have one shape")
    inner = [p for a, b in zip(left.args(), right.args(), strict=True) for p in _corresponding(a, b)]
    return [*inner, (left, right)]


def _is_linear(term: FNode) -> bool:
    """Whether no product of two non-constants occurs."""
    if term.is_times() and len(_factors(term)[1]) > 1:
        return False
    return all(_is_linear(a) for a in term.args())


def _label(term: FNode) -> str:
    return str(term.symbol_name()) if term.is_symbol() else str(term)


def _factors(term: FNode) -> tuple[int, tuple[FNode, ...]]:
    """A product as its constant factor and its other factors, in a fixed order."""
    if term.is_int_constant():
        return int(term.constant_value()), ()
    if not term.is_times():
        return 1, (term,)
    constant, factors = 1, []
    for argument in term.args():
        inner, others = _factors(argument)
        constant *= inner
        factors += others
    return constant, tuple(sorted(factors, key=str))


class _Abstraction:
    """Replaces products of non-constants by fresh integer variables, the same product by the same variable."""

    def __init__(self) -> None:
        self._products: dict[tuple[FNode, ...], FNode] = {}

    def __call__(self, term: FNode) -> FNode:
        if _is_linear(term):
            return term
        if term.is_times():
            constant, factors = _factors(term)
            if len(factors) == 1:
                return smt.Times(smt.Int(constant), self(factors[0]))
            if factors not in self._products:
                self._products[factors] = smt.Symbol(f"product.{len(self._products)}", INT)
            product = self._products[factors]
            return product if constant == 1 else smt.Times(smt.Int(constant), product)
        rebuild: Callable[..., FNode] = {
            "plus": smt.Plus, "minus": smt.Minus, "times": smt.Times, "equals": smt.Equals, "le": smt.LE,
            "lt": smt.LT, "not": smt.Not, "ite": smt.Ite, "implies": smt.Implies, "or": smt.Or,
        }[_kind(term)]  # fmt: skip
        return rebuild(*(self(a) for a in term.args()))


def _kind(term: FNode) -> str:
    for kind in ("plus", "minus", "times", "equals", "le", "lt", "not", "ite", "implies", "or"):
        if getattr(term, f"is_{kind}")():
            return kind
    raise Unsupported(f"a term of kind {term.node_type()} in an address")
