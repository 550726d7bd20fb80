"""What both sides read at addresses that are data is equal: for equal indices, whatever these are.

The indices of both sides are equal values; then, for every value that they may have, the cells which both sides read at
their addresses are, as those of any memory: an index is one more coordinate.  So words that were stored before are
found by reaching definitions, and reads through one entry of a table are one read.  That an index stays within a
tensor is assumed nowhere: where a program reads what it has not written, both sides must have that in common, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chc.mapping.contents.gathers import Gather
from chc.mapping.contents.values import Values
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Reader
from ila_lang import Expr, const, substitute
from ila_lang.language.expr import variables_of
from smt_encodings.claims import Unsupported
from smt_encodings.environment import fresh

Compare = Callable[[Context, str, Expr, Expr], None]


def same_cells(device: tuple[Values, Gather], ir: tuple[Values, Gather], name: str, values: Compare) -> Context:
    """Proves that two reads are of equal words; gives the context in which they are.

    Raises Unsupported and NotDischarged where that is not proved.
    """
    (here, one), (there, other) = device, ir
    sorts = [[index.sort for index, _ in gather.indices] for gather in (one, other)]
    if sorts[0] != sorts[1]:
        raise Unsupported(f"the addresses of {one.text} and {other.text} depend on other data")
    context = max(one.context, other.context, key=lambda c: len(c.ranges))
    for number, ((_, left), (_, right)) in enumerate(zip(one.indices, other.indices, strict=True)):
        values(context, f"{name}, index {number}", left, right)
    common = [fresh(f"{name}.index", index.sort) for index, _ in one.indices]
    limits = tuple((c, const(1 << c.width, c.width + 1)) for c in common)
    inside = context.inside(limits, context.called(name))
    cells = []
    for side, gather in ((here, one), (there, other)):
        indices = {index: c for (index, _), c in zip(gather.indices, common, strict=True)}
        reader = Reader(substitute(gather.address, indices), None, {})
        cells.append(side.before(inside, gather.memory, reader, gather.point))
    values(inside, name, *cells)
    return context


def pairs(
    sides: tuple[Values, Values], left: Expr, right: Expr, shared: Mapping[Expr, Expr], values: Compare
) -> list[tuple[Context, tuple[Expr, Expr]]]:
    """The device's reads in a value, each with one of the IR to which it is equal, and the context; none of those that
    are known to be ``shared``.

    Raises Unsupported and NotDischarged where none is found.
    """
    (device, ones), (ir, others) = ((side, _in(side, value)) for side, value in zip(sides, (left, right), strict=True))
    known = {shared[other.symbol] for _, other in others if other.symbol in shared}
    found = []
    for number, gather in ones:
        if gather.symbol in shared and shared[gather.symbol] in known:
            continue
        problem = Unsupported(f"the IR reads nothing at an address that is data, as the device does of {gather.text}")
        for k, other in others:
            try:
                context = same_cells((device, gather), (ir, other), f"read {number} as {k}", values)
            except Unsupported as error:
                problem = error
                continue
            found.append((context, (gather.symbol, other.symbol)))
            break
        else:
            raise problem
    return found


def _in(side: Values, value: Expr) -> list[tuple[int, Gather]]:
    symbols = set(variables_of(value))
    return [(k, gather) for k, gather in enumerate(side.gathers.values(), 1) if gather.symbol in symbols]
