"""Inputs and composed operators that rules on convolution and products of matrices share."""

from __future__ import annotations

from functools import partial

from ir_semantics.tensors.conditions import both, lt
from ir_semantics.tensors.index import IndexLike
from ir_semantics.tensors.operators import broadcast, slice_
from ir_semantics.tensors.reductions import avg_pool, conv, max_pool
from ir_semantics.tensors.terms import Tensor, input_

from .words import add, at_least, div, mul, sizes, sub

SIZES = N, C, H, W, K, S, P, Q, T, OUT, M = sizes("n c h w k s p q t o m")
IMAGE, OTHER = input_("x", N, C, H, W), input_("y", N, C, H, W)
SIGNAL = input_("x", N, C, W)
TAPS = input_("w", OUT, C, K)

# Of signals and images with windows of k, or k x k, and equal strides and pads along all axes (poolings of signals: no
# pads unless they say so).
conv_1d, conv_2d = (partial(conv, strides=[S] * n, pads=[(P, P)] * n) for n in (1, 2))
max_1d, avg_1d = (partial(pool, kernel=[K], strides=[S]) for pool in (max_pool, avg_pool))
max_2d, avg_2d = (partial(pool, kernel=[K, K], strides=[S, S], pads=[(P, P)] * 2) for pool in (max_pool, avg_pool))

MET = both(lt(P, K), at_least(1, H, W))
"""Every window meets the image: pads below the kernel's size, and an image that is not empty."""
A, B, MATRIX = input_("a", N, K), input_("b", K, M), input_("x", N, M)
VECTOR = input_("x", N)


GAIN = div(input_("g", OUT), input_("d", OUT))
"""Of a batch normalisation: its factor over the root of the variance."""


def along(v: Tensor, x: Tensor, axis: int) -> Tensor:
    """A vector along ``axis``, repeated to the shape of ``x``."""
    return broadcast(v, x.shape, [axis])


def normalised(x: Tensor, shift: Tensor, axis: int = 1) -> Tensor:
    """(x - mu) g / d + shift."""
    centred = sub(x, along(input_("mu", OUT), x, axis))
    return add(mul(centred, along(GAIN, x, axis)), along(shift, x, axis))


def first(x: Tensor, count: IndexLike, axis: int = 0) -> Tensor:
    """The first ``count`` parts of a matrix or vector along an axis."""
    return slice_(x, [0] * x.rank, [count if j == axis else d for j, d in enumerate(x.shape)])


def rest(x: Tensor, count: IndexLike, axis: int = 0) -> Tensor:
    """The rest after :func:`first`."""
    return slice_(x, [count if j == axis else 0 for j in range(x.rank)], list(x.shape))
