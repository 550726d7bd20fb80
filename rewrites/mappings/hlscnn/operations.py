"""A convolution of codes as the program of HLSCNN's mapping at the tensors' sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_models.hlscnn.layout import LANES
from rewrites.mappings.programs import DeviceProgram, filled, signed_codes

from .claims import CONVOLUTIONS


def conv2d(
    x: NDArray[np.integer],
    w: NDArray[np.integer],
    *,
    bias: int = 0,
    stride: tuple[int, int] = (1, 1),
    relu: bool = False,
    weight_bits: int = 8,
) -> DeviceProgram[NDArray[np.int16]]:
    """Codes [filters, rows, columns] of the convolution without padding of x [channels, ...] and w [filters, ...].

    ``bias`` is a signed code that all filters share, ``weight_bits`` the hardware's: 8 or 16.  Raises SizeError where
    one start of HLSCNN cannot hold the tensors, and ValueError where they do not match or are no codes.
    """
    if x.ndim != 3 or w.ndim != 4 or x.shape[0] != w.shape[1]:
        raise ValueError(f"x and w must be [C, H, W] and [F, C, KH, KW], not {list(x.shape)} and {list(w.shape)}")
    x, w, claim = signed_codes("x", x, 16), signed_codes("w", w, weight_bits), CONVOLUTIONS[weight_bits]
    sizes = claim.mapping.sizes_for((w.shape[0], *x.shape, *w.shape[2:], *stride))
    sizes |= {"bias": bias & 0xFFFF, "relu": int(relu)}

    def finish(tensors: Mapping[str, NDArray[Any]]) -> NDArray[np.int16]:
        return tensors["host_y"].view(np.int16).reshape(sizes["k"], sizes["oh"], sizes["ow"])

    tensors = {"host_x": (x, x.shape), "host_w": (w, w.shape)}
    if weight_bits == 8:
        weights = packed(w)
        channels = weights.shape[1] * LANES
        tensors = {"host_x": (x, (channels, *x.shape[1:])), "host_w": (weights, weights.shape)}
    return filled(claim, sizes, tensors, finish)


def packed(w: NDArray[Any]) -> NDArray[Any]:
    """Weights [..., C, kh, kw] as [..., blocks, kh, kw, 8 channels], those of missing channels 0."""
    *others, channels, rows, columns = w.shape
    blocks = np.pad(w, [*((0, 0) for _ in others), (0, -channels % LANES), (0, 0), (0, 0)])
    return np.moveaxis(blocks.reshape(*others, -1, LANES, rows, columns), -3, -1)
