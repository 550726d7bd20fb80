"""Theorems about index terms in steps, and whether steps are a proof.

What looks for steps (:mod:`.ranges`, :mod:`.equalities`, :mod:`.injectivity`) is not trusted.  Each step is an
obligation: its goal follows from its premises, whatever numbers the symbols are.  So instances of it hold, too.
:func:`require` looks whether premises are known, or goals of other steps, and whether what is claimed then is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import NamedTuple

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import INT

from smt_encodings.claims import Unsupported
from smt_encodings.discharge import conjuncts
from smt_encodings.expressions.polynomials import difference_of, expand


class Step(NamedTuple):
    """One step of a proof, used as it stands, or at instances: by what its symbols are replaced."""

    name: str
    premises: Sequence[FNode]
    goal: FNode
    at: Sequence[Mapping[FNode, FNode]] = ({},)


def require(hypotheses: Iterable[FNode], steps: Iterable[Step], claims: Iterable[FNode]) -> None:
    """Raises Unsupported unless ``claims`` follow from ``hypotheses`` if every step is a theorem.

    Nothing is computed but what sums of products are equal.
    """
    known: dict[FNode, None] = dict.fromkeys(conjuncts(hypotheses))
    forms = set(map(_form, known))

    def is_known(formula: FNode) -> bool:
        return all(part in known or part.is_true() or _form(part) in forms for part in conjuncts([formula]))

    pending = [tuple(_instance(p, i) for p in (s.goal, *s.premises)) for s in steps for i in s.at]
    while ready := [k for k, (_, *premises) in enumerate(pending) if all(map(is_known, premises))]:
        said = conjuncts(pending[k][0] for k in ready)
        known.update(dict.fromkeys(said))
        forms.update(map(_form, said))
        pending = [instance for k, instance in enumerate(pending) if k not in set(ready)]
    for claim in claims:
        if not is_known(claim):
            raise Unsupported(f"steps that were found do not prove {claim.serialize()}")


def _instance(formula: FNode, at: Mapping[FNode, FNode]) -> FNode:
    if not all(key.is_symbol(INT) for key in at):  # of other terms, the rest of the formula would have other values
        raise Unsupported(f"a step must be used at numbers for symbols, not for {', '.join(map(str, at))}")
    return formula.substitute(dict(at)) if at else formula


def _form(formula: FNode) -> object:
    """A formula with comparisons of integers by the sums of products that they compare with 0."""
    inner = formula.arg(0) if formula.is_not() else formula
    if inner.is_equals():
        terms = difference_of(expand(inner.arg(0)), expand(inner.arg(1)))
        unit = gcd(*terms.values()) or 1
        signs = (frozenset((m, sign * c // unit) for m, c in terms.items()) for sign in (1, -1))
        return formula.is_not(), frozenset(signs)
    if inner.is_le() or inner.is_lt():  # a < b is a + 1 <= b, and not a <= b is b < a
        smaller, larger = inner.args()[::-1] if formula.is_not() else inner.args()
        strict = inner.is_lt() != formula.is_not()
        terms = difference_of(expand(larger), expand(smt.Plus(smaller, smt.Int(int(strict)))))
        return "at least 0", frozenset(terms.items())
    if formula.is_bool_op():
        return formula.node_type(), *map(_form, formula.args())
    return formula
