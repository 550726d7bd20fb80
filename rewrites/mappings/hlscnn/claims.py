"""HLSCNN's mappings by name."""

from __future__ import annotations

from typing import Final

from accel_models.fixed_point import exponents, fixed_to_float, float_to_fixed
from accel_models.hlscnn.layout import LANES
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.conversions import reading, rounding
from rewrites.mappings.packing import PackingClaim

from .convolution import convolution_mapping
from .convolution_8bit import narrow_mapping
from .packing import ROUND as TO_BYTES
from .packing import packing_mapping

CONVOLUTIONS: Final = {
    16: MappingClaim("hlscnn_conv2d", "convolution with strides, bias and relu, on HLSCNN", convolution_mapping),
    8: MappingClaim("hlscnn_conv2d_8bit", "convolution with weights of 8 bits, on HLSCNN", narrow_mapping),
}
"""Convolutions, by the width of weights."""

ROUND: Final = rounding("hlscnn", "words of 16 bits", float_to_fixed(16), exponents(16))
PACK: Final = PackingClaim(
    "hlscnn_pack",
    "filters of a float32 tensor as bytes, eight channels of a tap beside each other, by the host",
    packing_mapping,
    formats=("exponent",),
    function=TO_BYTES,
    lanes=LANES,
)
READ: Final = reading("hlscnn", "words of 16 bits", fixed_to_float(16), exponents(16))

CLAIMS: Final = (*CONVOLUTIONS.values(), ROUND, PACK, READ)
"""All of them."""
