"""Equal addresses as equal digits: what an iteration that hits a cell is like, in equations that are linear.

Where ``(x + p)*m + j = i*m + c``, as of a scattered iteration and the cell that it writes, the digits are the same:
``x + p = i`` and ``j = c``.  What becomes of the counters is guessed; that equal addresses have equal digits is proved
in steps (:mod:`chc.mapping.arithmetic.injectivity`), and that equal digits are equal addresses is an obligation, too.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from chc.mapping.arithmetic.injectivity import part_steps
from chc.mapping.memory.contexts import Context
from smt_encodings.discharge import conjuncts
from smt_encodings.expressions.integers import is_linear
from smt_encodings.expressions.polynomials import Polynomial, expand, polynomial_term, without

_GROUP = "any order"


def by_digits(context: Context, name: str, condition: FNode, counters: Set[FNode]) -> FNode:
    """A condition that holds in a context, with equalities of sums of products as those of their digits.

    That both say the same where the other parts of the condition hold is proved.  ``counters`` are those of the
    iteration that the condition is about.
    """
    parts: list[FNode] = []
    for part in conjuncts([condition]):
        digits = _digits(context, f"{name}, {len(parts)}", part, counters) if part.is_equals() else []
        parts += digits or [part]
    return smt.And(parts)


def _digits(context: Context, name: str, equality: FNode, counters: Set[FNode]) -> Sequence[FNode]:
    """Equalities of digits, proved; none where the addresses have none, or are not found to have the same."""
    if is_linear(equality):
        return []
    here, there = equality.args() if equality.arg(0).get_free_variables() & counters else equality.args()[::-1]
    renamed = _renamed(expand(here), expand(there), counters)
    if not renamed or expand(here.substitute(renamed)) != expand(there):
        return []
    steps, _, terms = part_steps(context.encoding.hypotheses, here, renamed)
    digits = [smt.Equals(term, term.substitute(renamed)) for term in terms]
    if len(digits) < 2:
        return []
    discharger = context.proof.discharger
    for step, premises, goal in steps:
        discharger.follows(_GROUP, f"{name}: {step}", premises, goal, "equal addresses have equal digits")
    discharger.follows(_GROUP, f"{name}: address", digits, equality, "equal digits are equal addresses")
    return digits


def _renamed(here: Polynomial, there: Polynomial, counters: Set[FNode]) -> dict[FNode, FNode]:
    """By what to replace counters in a sum, so that it becomes another without them; nothing where that is not found.

    Of the counters with one factor one becomes all that has this factor in the other sum, and the rest become 0.
    """
    groups: dict[tuple[tuple[FNode, ...], int], list[FNode]] = {}
    rest = dict(there)
    for monomial, coefficient in here.items():
        own = [a for a in monomial if a in counters]
        if not own:
            rest[monomial] = rest.get(monomial, 0) - coefficient
        elif len(own) == 1:
            groups.setdefault((tuple(a for a in monomial if a is not own[0]), coefficient), []).append(own[0])
        else:
            return {}
    renamed: dict[FNode, FNode] = {}
    for (factor, coefficient), own in sorted(groups.items(), key=lambda g: -len(g[0][0])):
        digit: Polynomial = {}
        for monomial in [m for m, c in rest.items() if c == coefficient]:
            if (left := without(monomial, factor)) is not None:
                digit[left] = 1
                del rest[monomial]
        first, *others = own
        renamed |= {first: polynomial_term(digit), **dict.fromkeys(others, smt.Int(0))}
    return {} if any(rest.values()) else renamed
