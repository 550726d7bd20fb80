"""Rules on convolutions in groups: pairs of groups as one with zeros, and groups in two parts."""

from __future__ import annotations

from typing import Final

from chc.tensor_rules.rule import TensorRule
from ir_semantics.tensors.operators import concat, pad, reshape, slice_
from ir_semantics.tensors.reductions import conv
from ir_semantics.tensors.terms import Tensor, input_

from .inputs import first, rest
from .matching import PADDED, C, H, K, L, N, O, W
from .words import at_least, over_reals, sizes, wrong, wrong_over_reals

G, U = sizes("g u")
IMAGE, KERNELS = input_("x", N, (G + U) * C, H, W), input_("w", (G + U) * O, C, K, L)
TWICE, PAIRS = input_("x", N, 2 * G * C, H, W), input_("w", 2 * G * O, C, K, L)


def _image(channels: int) -> Tensor:
    """Images of 2 g groups of so many channels."""
    return input_("x", N, 2 * channels * G, H, W)


def _kernels(channels: int) -> Tensor:
    return input_("w", 2 * G * O, channels, K, L)


def _joined(channels: int, zeros_first: int) -> Tensor:
    """Kernels of 2 g groups as kernels of g: zeros stand before those of one group of a pair, and after the other's."""
    pairs = reshape(_kernels(channels), G, 2, O, channels, K, L)
    wide = []
    for j in range(2):
        part = slice_(pairs, [0, j, 0, 0, 0, 0], [G, j + 1, O, channels, K, L])
        before = channels if j == zeros_first else 0
        wide.append(pad(part, [0, 0, 0, before, 0, 0], [0, 0, 0, channels - before, 0, 0]))
    return reshape(concat(1, *wide), 2 * G * O, 2 * channels, K, L)


def _pairs(channels: int) -> TensorRule:
    return over_reals(
        f"pairs of groups of {channels} channels as one with zeros",
        conv(_image(channels), _kernels(channels), groups=2 * G, **PADDED),
        conv(_image(channels), _joined(channels, 1), groups=G, **PADDED),
        at_least(1, G, O, K, L),
    )


GROUP_PAIRS: Final = {channels: _pairs(channels) for channels in (1, 2, 4, 8)}
"""By the channels of a group."""
GROUPS_IN_PARTS: Final = TensorRule(
    "groups of a convolution in two parts",
    conv(IMAGE, KERNELS, groups=G + U, **PADDED),
    concat(
        1,
        conv(first(IMAGE, U * C, 1), first(KERNELS, U * O), groups=U, **PADDED),
        conv(rest(IMAGE, U * C, 1), rest(KERNELS, U * O), groups=G, **PADDED),
    ),
    at_least(1, G, U, O),
)

_WRONG = [
    wrong_over_reals(
        "pairs of groups as one, zeros on the other side",
        conv(_image(4), _kernels(4), groups=2 * G, **PADDED),
        conv(_image(4), _joined(4, 0), groups=G, **PADDED),
        at_least(1, G, O, K, L),
    ),
    wrong(
        "groups of a convolution in two parts, of one part of the channels",
        conv(TWICE, PAIRS, groups=2 * G, **PADDED),
        concat(
            1,
            conv(first(TWICE, G * C, 1), first(PAIRS, G * O), groups=G, **PADDED),
            conv(first(TWICE, G * C, 1), rest(PAIRS, G * O), groups=G, **PADDED),
        ),
        at_least(1, G, O, C),
    ),
]

RULES = (*_WRONG, *GROUP_PAIRS.values(), GROUPS_IN_PARTS)
"""All rules of this module."""
