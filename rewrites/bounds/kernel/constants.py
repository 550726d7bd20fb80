"""Numbers that lemmas state and bounds use; the proofs are in :mod:`rewrites.bounds.lemmas.activations`."""

from __future__ import annotations

from fractions import Fraction


def _bound(units: int) -> Fraction:
    """``units`` times 2^-24."""
    return Fraction(units, 1 << 24)


SIGMOID_ERROR = _bound(112_288)
"""The largest error of FlexASR's ``sigmoid``, rounded up to a multiple of 2^-24: about 0.0066929."""
SIGMOID_B_ERROR = _bound(112_288)
"""Likewise of ``sigmoid_b``."""
TANH_ERROR = _bound(82_968)
"""Likewise of ``tanh``: about 0.0049453."""
EXP_ERROR = _bound(35_361)
"""Likewise of ``exp`` on x <= 0: about 0.0021077."""
INV_SQRT_ERROR = _bound(16_274)
"""The largest *relative* error of ``inv_sqrt`` from :data:`LEAST_RADICAND` on: about 0.00097001."""
LEAST_RADICAND = Fraction(17, 1 << 14)
"""From here on 1 / sqrt fits Q6.14."""
EXP_VANISHES = 16
"""exp(x) is 0 for x <= -16."""
