"""Reads at addresses that are data, such as a row whose number stands in a table: gathers, embeddings, offsets.

An address is a term over sizes, coordinates and *indices*, words of any value.  What is read there is a symbol of its
own; that two of them are equal is proved for every value of the indices (:mod:`chc.mapping.relate.gathered`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from chc.mapping.memory.contexts import Context
from chc.mapping.program.writes import Point
from ila_lang import Expr, postorder, substitute
from smt_encodings.environment import fresh, plain


@dataclass(frozen=True, eq=False)
class Gather:
    """The cell of a memory at ``address`` just before a point, standing in values as ``symbol``.

    The address is over the coordinates of the context and the variables of ``indices``, which have these values.
    """

    memory: Expr
    address: Expr
    point: Point
    indices: tuple[tuple[Expr, Expr], ...]
    symbol: Expr
    context: Context
    key: tuple[object, ...]
    """What tells it from others: equal addresses, by the values of their parts, at one point of one context."""

    @property
    def text(self) -> str:
        """The memory's name."""
        return plain(self.memory.name)


def gather_of(
    context: Context, load: Expr, point: Point, here: Mapping[Expr, Expr], data: Mapping[Expr, Expr]
) -> Gather | None:
    """What a load reads whose address has parts that are data; None for another one.

    ``here`` gives counters in the context, and ``data`` the values of all parts that are read, folded or carried.
    """
    memory, address = load.args
    words = {*data, *_chosen(address, data)}
    if address in words:
        parts = {address: fresh("index", address.sort)}
    else:  # the largest parts
        used = (a for n in postorder([address], words) for a in n.args if a in words)
        parts = {part: fresh("index", part.sort) for part in dict.fromkeys(used)}
    if not parts:
        return None
    values = {**here, **data}
    key = (context, memory, substitute(address, values), point.place, point.counters)
    indices = tuple((index, substitute(part, values)) for part, index in parts.items())
    own = substitute(address, {**here, **parts})
    return Gather(memory, own, point, indices, fresh(f"gathered.{memory.name}", load.sort), context, key)


def _chosen(address: Expr, data: Collection[Expr]) -> set[Expr]:
    """The words in an address that are one of several fields of data, by a condition that is none.

    Several indices may stand in one word of a memory.
    """
    chosen: set[Expr] = set()
    for node in postorder([address], data):
        if node.op == "ite":
            condition, *fields = node.args
            words = [field.args[0] if field.op == "extract" else field for field in fields]
            if all(w in data or w in chosen for w in words) and not _depends(condition, data):
                chosen.add(node)
    return chosen


def _depends(term: Expr, data: Collection[Expr]) -> bool:
    return term in data or any(a in data for n in postorder([term], data) for a in n.args)
