"""Which iteration writes which cell: layouts, witnesses and cells that nothing writes, as theorems."""

from __future__ import annotations

from collections.abc import Sequence

import pysmt.shortcuts as smt

from ila_lang import Expr, Store, all_of, resize, true

from .boxes import Box, less
from .context import Proof, Side
from .nests import Nest, Unsupported
from .trace import Read

__all__ = ["address_theorems"]


def address_theorems(proof: Proof, side: Side) -> None:
    """Layouts, witnesses and untouched cells of one side."""
    for extent in (resize(e, 40) for nest in side.nests for _, e in nest.loops):
        proof.base.term(extent)  # once, before the boxes copy what is known
    proof.fits(proof.base, f"{side.prefix}: loop extents")
    for index in sorted({*_traced(side), *(n for n, _, _ in side.trace.untouched)}):
        _counters_hold(proof, side.nests[index])
    boxes = {n: Box(proof.base, side.prefix, n, side.nests[n], _bounds(proof, side, n)) for n in _traced(side)}
    side.boxes = boxes
    side.readers = {
        n: b if b.within_loops else Box(proof.base, side.prefix, n, b.nest, None, "reader") for n, b in boxes.items()
    }
    for box in boxes.values():
        if not box.within_loops:
            covered = [resize(e, 40) <= resize(b, 40) for b, (_, e) in zip(box.bounds, box.nest.loops, strict=True)]
            what = f"{box.nest.label}: all iterations are within the bounds"
            proof.theorem(f"{side.prefix}: layout", what, all_of(covered), "the layout theorem covers every iteration")
        for store in box.nest.stores:
            steps = box.injectivity(store)
            proof.fits(box.encoding, f"{box.nest.label}: addresses")
            for name, hypotheses, goal in steps:
                what = f"{box.nest.label} writes {store.memory.name} injectively: {name}"
                meaning = "two iterations that write the same address are the same iteration"
                proof.discharger.follows(f"{side.prefix}: layout", what, hypotheses, goal, meaning)
    group = f"{side.prefix}: cells"
    for number, demand in enumerate(side.trace.demands):
        what = f"{side.nests[demand.nest].label}, cell {number}"
        box, inside = boxes[demand.nest], side.nests[demand.nest].loops
        _within(proof, group, what, demand.witness, [e for _, e in inside], box.bounds)
        _same_address(proof, side, group, what, box, demand.store, demand.witness, demand.read, demand.address)
    for number, clobber in enumerate(side.trace.clobbers):
        what = f"{side.nests[clobber.nest].label}, overwriting operand {number}"
        box = boxes[clobber.nest]
        _within(proof, group, what, clobber.writer, box.bounds, box.bounds)
        _same_address(proof, side, group, what, box, clobber.store, clobber.writer, clobber.read, None)
    for index, store, address in side.trace.untouched:
        box = boxes.get(index) or Box(proof.base, side.prefix, index, side.nests[index])
        goal = smt.Not(smt.Equals(box.term(store.address), box.encoding.term(address)))
        proof.fits(box.encoding, f"{box.nest.label}: untouched")
        proof.discharger.follows(
            group,
            f"{box.nest.label}: untouched, for no iteration was found that writes the cell",
            box.encoding.hypotheses,
            goal,
            "no iteration writes this cell",
        )


def _counters_hold(proof: Proof, nest: Nest) -> None:
    """Every iteration of a nest has a number that fits its counter; without this a counter could start over."""
    for counter, extent in nest.loops:
        if extent.width > counter.width or extent.is_const:
            wide = max(extent.width, counter.width) + 1
            goal = resize(extent, wide) <= (1 << counter.width)
            if goal is not true:
                what = f"{nest.label}: counter {counter.name} is wide enough"
                proof.theorem("loop facts", what, goal, "the loop's extent fits its counter")


def _traced(side: Side) -> list[int]:
    found = {d.nest for d in side.trace.demands} | {c.nest for c in side.trace.clobbers}
    return sorted(found)


def _bounds(proof: Proof, side: Side, index: int) -> list[Expr]:
    """Per level, the smallest known extent that bounds every witness of the nest.

    That is the loop's own extent, unless a witness is an iteration beyond it (an overwrite that never happens).
    """
    extents = [e for _, e in side.nests[index].loops]
    others = [e for n in side.nests for _, e in n.loops]
    witnesses = [d.witness for d in side.trace.demands if d.nest == index]
    witnesses += [c.writer for c in side.trace.clobbers if c.nest == index]
    bounds = []
    for level, own in enumerate(extents):
        terms = list(dict.fromkeys(w[level] for w in witnesses))
        fitting = (e for e in [own, *others] if all(proof.proves(less(t, e)) for t in terms))
        bound = next(fitting, None)
        if bound is None:
            raise Unsupported(f"no known extent bounds the iterations of {side.nests[index].label} that matter")
        bounds.append(bound)
    return bounds


def _within(
    proof: Proof,
    group: str,
    what: str,
    witness: Sequence[Expr],
    extents: Sequence[Expr],
    bounds: Sequence[Expr],
) -> None:
    limits = [less(w, e) for w, e in zip(witness, extents, strict=True)]
    limits += [less(w, b) for w, b, e in zip(witness, bounds, extents, strict=True) if b is not e]
    proof.theorem(group, f"{what}: in range", all_of(limits), "the witness iteration lies within the loops")


def _same_address(
    proof: Proof,
    side: Side,
    group: str,
    what: str,
    box: Box,
    store: Store,
    witness: Sequence[Expr],
    read: Read | None,
    address: Expr | None,
) -> None:
    """The witness iteration writes the cell that ``read`` loads (or, for the output, the cell ``address``)."""
    left = box.term_at(store.address, witness)
    if read is not None:
        reader = side.readers[read.nest]
        right = reader.term_at(read.address, read.witness)
        proof.fits(reader.encoding, what)
    else:
        assert address is not None
        right = proof.base.term(address)
    proof.fits(proof.base, what)
    meaning = "the witness iteration writes exactly the cell that is needed"
    proof.discharger.follows(group, f"{what}: same address", proof.base.hypotheses, smt.Equals(left, right), meaning)
