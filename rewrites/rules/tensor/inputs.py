"""Inputs and composed operators that rules on convolution and products of matrices share."""

from __future__ import annotations

from functools import partial
from typing import Any

from ir_semantics.tensors.conditions import TruthOf, both, le, lt
from ir_semantics.tensors.index import IndexLike, product
from ir_semantics.tensors.operators import broadcast, fill, reshape, reverse, slice_, transpose, where
from ir_semantics.tensors.reductions import avg_pool, conv, matmul, max_pool, patches
from ir_semantics.tensors.terms import Tensor, input_

from .words import add, at_least, div, mul, sizes, sub

SIZES = N, C, H, W, K, S, P, Q, T, OUT, M = sizes("n c h w k s p q t o m")
IMAGE, OTHER = input_("x", N, C, H, W), input_("y", N, C, H, W)
SIGNAL = input_("x", N, C, W)
KERNEL, POINT = input_("w", OUT, C, K, K), input_("w", OUT, C, 1, 1)
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
MASK = ("m", (N, M))


def masked(x: Tensor, outside: float | int) -> Tensor:
    """x where the mask holds, else a literal."""
    return where(lambda i, j: TruthOf("m", (i, j)), x, fill(outside, *x.shape))


def composed(first: Tensor, second: Tensor) -> Tensor:
    """The kernel whose convolution is that of ``first`` and then ``second`` (1-D)."""
    k = second.shape[2]
    swapped = transpose(first, [1, 0, 2])
    full = conv(swapped, second, pads=[(k - 1, k - 1)], correlate=False)
    return transpose(full, [1, 0, 2])


FIRST, SECOND = input_("v", Q, C, K), input_("w", OUT, Q, T)
SYMMETRIC = where(lambda o, c, k: le(2 * k, K - 1), TAPS, reverse(TAPS, 2))
"""Every kernel with w[k] = w[K-1-k] is of this form."""

GAIN = div(input_("g", OUT), input_("d", OUT))
"""Of a batch normalisation: its factor over the root of the variance."""


def along(v: Tensor, x: Tensor, axis: int) -> Tensor:
    """A vector along ``axis``, repeated to the shape of ``x``."""
    return broadcast(v, x.shape, [axis])


def normalised(x: Tensor, shift: Tensor, axis: int = 1) -> Tensor:
    """(x - mu) g / d + shift."""
    centred = sub(x, along(input_("mu", OUT), x, axis))
    return add(mul(centred, along(GAIN, x, axis)), along(shift, x, axis))


def im2col_2d(image: Tensor, kernel: Tensor, windows: dict[str, Any]) -> Tensor:
    """The convolution of images with kernels as a product of matrices, before its result is reshaped."""
    columns = patches(image, kernel.shape[2:], **windows)
    batch, taps, places = image.shape[0], product(kernel.shape[1:]), columns.shape[4:]
    flat = reshape(columns, batch, taps, product(places))
    weights = broadcast(reshape(kernel, kernel.shape[0], taps), [batch, kernel.shape[0], taps], [1, 2])
    return reshape(matmul(weights, flat), batch, kernel.shape[0], *places)


def im2col(exchanged: bool = False) -> Tensor:
    """The convolution of SIGNAL with TAPS as a product of matrices."""
    columns = patches(SIGNAL, [K], strides=[S], pads=[(P, P)])
    windows = columns.shape[3]
    order = [0, 2, 1, 3] if exchanged else [0, 1, 2, 3]
    flat = reshape(transpose(columns, order), N, C * K, windows)
    weights = broadcast(reshape(TAPS, OUT, C * K), [N, OUT, C * K], [1, 2])
    return matmul(weights, flat)


def first(x: Tensor, count: IndexLike, axis: int = 0) -> Tensor:
    """The first ``count`` parts of a matrix or vector along an axis."""
    return slice_(x, [0] * x.rank, [count if j == axis else d for j, d in enumerate(x.shape)])


def rest(x: Tensor, count: IndexLike, axis: int = 0) -> Tensor:
    """The rest after :func:`first`."""
    return slice_(x, [count if j == axis else 0 for j in range(x.rank)], list(x.shape))
