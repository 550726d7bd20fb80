"""The least and the largest number that a term may be, as seen at corners of its operands: a guess."""

from __future__ import annotations

from itertools import islice, product

from ila_lang import Expr, compile_terms
from ila_lang.interpreter.compile import NoBodyError
from ila_lang.language.expr import variables_of

_MOST_CORNERS = 4096
"""Values of operands that are tried."""


def extremes(value: Expr, *, is_signed: bool) -> tuple[int, int] | None:
    """The least and the largest value; None where it cannot be evaluated."""
    width, operands = value.width, variables_of(value)
    if any(not hasattr(v.sort, "width") for v in operands):
        return None
    half = [1 << (v.width - 1) for v in operands]
    corners = islice(product(*((0, 1, h - 1, h, 2 * h - 1) for h in half)), _MOST_CORNERS)
    try:
        run = compile_terms(operands, [value])
    except NoBodyError:
        return None
    seen = [int(run(*corner)[0]) for corner in corners]
    if is_signed:
        seen = [x - (1 << width) if x >> (width - 1) else x for x in seen]
    return min(seen), max(seen)
