"""Terms that FlexASR's numerics and units share: shifts by variable amounts and choices from tables."""

from __future__ import annotations

from collections.abc import Sequence

from ila_lang import Expr, ite


def shift_left(value: Expr, amount: Expr) -> Expr:
    """``value << amount`` as one conditional shift per bit of ``amount``; bits shifted out are lost."""
    for i in range(amount.width):
        value = ite(amount[i] == 1, value << (1 << i), value)
    return value


def shift_right(value: Expr, amount: Expr) -> Expr:
    """The arithmetic shift right, one conditional shift per bit of ``amount``: division rounded down."""
    for i in range(amount.width):
        value = ite(amount[i] == 1, value.ashr(1 << i), value)
    return value


def select(index: Expr, entries: Sequence[Expr]) -> Expr:
    """The entry that ``index`` names, as a tree of choices; the last one where there are fewer entries than indices.

    >>> from ila_lang import bv, const, var
    >>> select(var("i", bv(1)), [const(5, 4), const(6, 4)])
    (0x6 if (i == 0x1) else 0x5)
    """
    level = [*entries, *[entries[-1]] * ((1 << index.width) - len(entries))]
    for i in range(index.width):
        level = [ite(index[i] == 1, high, low) for low, high in zip(level[::2], level[1::2], strict=True)]
    return level[0]
