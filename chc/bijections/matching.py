"""Two bags of families matched: pieces are guessed, family by family or for all at once, and asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from ir_semantics.elements.bags import Family
from smt_encodings.claims import Unsupported

from .pieces import pieces
from .theorem import Goal, Piece, goals

MOST_FAMILIES = 64
"""Bags of more families are not matched."""

Follows = Callable[[Goal], bool]
"""Whether a goal follows from its own hypotheses and those of the claim."""


class TooMany(Unsupported):
    """Bags have more families than are matched."""


def matched(one: Sequence[Family], other: Sequence[Family], follows: Follows) -> bool:
    """Whether families are proved to be the same bag: pairs first, then by pieces of several.

    Raises TooMany where a bag has more than MOST_FAMILIES.
    """
    if max(len(one), len(other)) > MOST_FAMILIES:
        raise TooMany(f"at most {MOST_FAMILIES} families of summands are matched, not {len(one)} and {len(other)}")
    left, right = [], list(other)
    for a in one:
        partner = next((b for b in right if any(proved([a], [b], [p], follows) for p in pieces(a, b))), None)
        if partner is None:
            left.append(a)
        else:
            right = [b for b in right if b is not partner]
    if len(left) == len(right) <= 1:
        return not left
    guesses = (next(pieces(a, b), None) for a, b in product(left, right))
    return proved(left, right, [p for p in guesses if p is not None], follows)


def proved(one: Sequence[Family], other: Sequence[Family], guess: Sequence[Piece], follows: Follows) -> bool:
    """Whether pieces are proved to make two bags one."""
    return all(follows(goal) for goal in goals(one, other, guess))
