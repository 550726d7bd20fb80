"""Reads at addresses that are data, such as a row whose number stands in a table: gathers, embeddings, offsets.

An address is a term over sizes, coordinates and *indices*, words of any value.  What is read there is a symbol of its
own; that two of them are equal is proved for every value of the indices (:mod:`chc.mapping.relate.gathered`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ila_lang import Expr, postorder, substitute
from smt_encodings.environment import fresh, plain

from .contexts import Context
from .samples import Point


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
    if address in data:
        parts = {address: fresh("index", address.sort)}
    else:  # the largest parts
        used = (a for n in postorder([address], data) for a in n.args if a in data)
        parts = {part: fresh("index", part.sort) for part in dict.fromkeys(used)}
    if not parts:
        return None
    key = (context, memory, substitute(address, {**here, **data}), point.place, point.counters)
    indices = tuple((index, data[part]) for part, index in parts.items())
    own = substitute(address, {**here, **parts})
    return Gather(memory, own, point, indices, fresh(f"gathered.{memory.name}", load.sort), context, key)
