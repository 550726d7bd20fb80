"""Iterations that change nothing: folds and sums over more elements than there are.

Hardware adds up whole vectors, so programs pad what they give it, mostly with zeros.  Iterations of a fold that leave
its registers as they are can be left out, whatever the operation is and wherever they stand: the fold over all
iterations is that over the others, in their order.  So a fold of the other side is taken for one that runs as often,
and does nothing in iterations that it has not.

Nothing is assumed of the operation: that registers stay as they are follows from lemmas, or holds on all bits.

:mod:`.idle` leaves out iterations that a step's own choices make idle, whatever is read; that is known of the fold
alone, and loops become shorter.  Here it is what the program stored that makes them idle: the writes must be found
first, in the iteration that the other side has not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, pairwise

import pysmt.shortcuts as smt

from chc.mapping.arithmetic.exact import equal, less, product
from chc.mapping.contents.folds import FoldUse
from chc.mapping.memory.cases import Split
from chc.mapping.memory.contexts import Context
from chc.mapping.proof import Proof
from ila_lang import Expr, all_of, const, resize
from smt_encodings.claims import Unsupported
from smt_encodings.discharge import decide
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.values import differ, lemma_instances


def unchanged(proof: Proof, name: str, value: Expr, what: Expr) -> bool:
    """Whether a value is ``what``, whatever the program reads: proved by lemmas alone, or on all bits, and recorded."""
    mapping = proof.mapping
    for abstract in dict.fromkeys((mapping.abstract, frozenset[str]())):
        encoding = BitEncoding(abstract)
        lemmas = lemma_instances(mapping.lemmas, [value, what], encoding) if abstract else []
        different = differ(encoding, value, what)
        if decide(lemmas, smt.Not(different)):
            how = "for every choice of the data functions that satisfies the lemmas" if abstract else "on all bits"
            proof.discharger.ask("padding", name, [*lemmas, different], f"an iteration changes nothing, {how}")
            return True
    return False


def padded(context: Context, label: str, device: FoldUse, ir: FoldUse) -> Iterator[FoldUse]:
    """The IR's fold with as many iterations as the device's, of which those that it has not do nothing.

    Consecutive loops of the device stand against each of the IR's, which has the first ones of the device's iterations
    or the last ones.  Nothing where they are not found to run as often at least.
    """
    extents = [e for _, e in device.loops]
    if ir.blocks is not None or len(extents) < len(ir.loops):
        return
    for groups in _groups(extents, len(ir.loops)):
        pairs = [(product(group), own) for group, (_, own) in zip(groups, ir.loops, strict=True)]
        enough = all_of([~less(limit, own) for limit, own in pairs])
        if not all(v for (v,) in context.samples.evaluate([enough])) or not context.proves(enough):
            continue
        context.theorem("padding", f"{label}: enough", enough, "each loop runs as often as its partner, or more")
        longer = [own if context.proves(equal(limit, own)) else limit for limit, own in pairs]
        yield replace(ir, longer=tuple((const(0, 32), resize(e, 32)) for e in longer))
        begins = [resize(e, 32) - resize(own, 32) for e, (_, own) in zip(longer, pairs, strict=True)]
        yield replace(ir, longer=tuple((b, resize(e, 32)) for b, e in zip(begins, longer, strict=True)))
        return


def without_padding(
    proof: Proof,
    inside: Context,
    name: str,
    kept: Callable[[Context], Sequence[tuple[Expr, Expr]]],
    forms: Sequence[tuple[FoldUse, Expr]],
) -> FoldUse:
    """The first form of the IR's fold such that the device's changes nothing in iterations that the IR's has not.

    ``kept`` gives what registers of the device are after a step and before it, and each form has the condition of its
    own iterations.  Raises Unsupported where none is found.
    """
    for form, has in forms:
        padding = inside.where(~has, f"{name}, padding")
        with suppress(Split):  # what it adds up there is no padding, or of several kinds
            values = kept(padding)
            names = (f"{padding.name}, register {number}" for number in range(len(values)))
            if all(unchanged(proof, n, *pair) for n, pair in zip(names, values, strict=True)):
                return form
    raise Unsupported(f"{name} of the device runs more often than that of the IR, and is not shown to do nothing then")


def _groups(extents: Sequence[Expr], count: int) -> Iterator[list[Sequence[Expr]]]:
    """Ways to cut a list into so many parts in a row."""
    for cuts in combinations(range(1, len(extents)), count - 1):
        ends = [0, *cuts, len(extents)]
        yield [extents[a:b] for a, b in pairwise(ends)]
