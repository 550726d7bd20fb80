"""Equal addresses as equal digits: what an iteration that hits a cell is like, in equations that are linear.

Where ``(x + p)*m + j = i*m + c``, as of a scattered iteration and the cell that it writes, the digits are the same:
``x + p = i`` and ``j = c``.  What becomes of the counters is guessed; that equal addresses have equal digits is proved
in steps (:mod:`chc.mapping.arithmetic.injectivity`), and that equal digits are equal addresses is an obligation, too.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from chc.mapping.arithmetic.correspondence import without_counters
from chc.mapping.arithmetic.injectivity import part_steps
from chc.mapping.arithmetic.steps import require
from chc.mapping.memory.contexts import Context
from smt_encodings.discharge import conjuncts
from smt_encodings.expressions.integers import is_linear

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
    renamed = without_counters(here, there, counters)
    if not renamed:
        return []
    steps, _, terms = part_steps(context.encoding.hypotheses, here, renamed)
    digits = [smt.Equals(term, term.substitute(renamed)) for term in terms]
    if len(digits) < 2:
        return []
    require([*context.encoding.hypotheses, equality], steps, digits)
    discharger = context.proof.discharger
    for step, premises, goal, _ in steps:
        discharger.follows(_GROUP, f"{name}: {step}", premises, goal, "equal addresses have equal digits")
    discharger.follows(_GROUP, f"{name}: address", digits, equality, "equal digits are equal addresses")
    return digits
