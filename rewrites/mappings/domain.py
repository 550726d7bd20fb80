"""Conditions on sizes, each with its text, of which domains of mappings are made."""

from __future__ import annotations

from ila_lang import Expr, const


def between(size: Expr, least: int, most: int) -> tuple[str, Expr]:
    """That a size, a variable of 32 bits, is at least ``least`` and at most ``most``."""
    return f"{least} <= {size.name} <= {most}", (const(least, 32) <= size) & (size <= const(most, 32))
