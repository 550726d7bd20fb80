"""What may be the first of the iterations of a loop that count: guesses for :mod:`.idle`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chc.mapping.contents.folds import FoldUse
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import narrow
from ila_lang import BvSort, Expr, const, ite, postorder, resize, substitute

_MOST_BEGINNINGS = 40
"""Terms that are tried as the first iteration that counts."""


def beginnings(use: FoldUse, lengths: Sequence[Expr], context: Context) -> Iterator[Expr]:
    """What may be the first iteration that counts: 0, that before the last so many, where a comparison turns, parts."""
    yield const(0, 32)
    yield from (resize(e, 32) - resize(n, 32) for (_, e), n in zip(use.loops, lengths, strict=True))
    conditions = postorder([n.args[0] for n in postorder(use.fold.step) if n.op == "ite"])
    start = narrow(use.iteration({c: const(0, c.width) for c, _ in use.fold.loops}))
    turns = []
    for left, right in (n.args for n in conditions if n.op in ("bvult", "bvule")):
        one, other = (resize(substitute(t, start), 32) for t in (left, right))
        turns += [ite(a < b, b - a, const(0, 32)) for a, b in ((one, other), (other, one))]
    parts = [resize(n, 32) for n in postorder(lengths) if isinstance(n.sort, BvSort) and n.width <= 32]
    terms = [term for t in (*turns, *parts) for term in (t, t + 1)]
    yield from [t for t in dict.fromkeys(terms) if context.samples.determine(t)][:_MOST_BEGINNINGS]
