"""HLSCNN's mappings by name."""

from __future__ import annotations

from typing import Final

from rewrites.mappings.claim import MappingClaim

from .convolution import convolution_mapping
from .convolution_8bit import narrow_mapping

CONVOLUTIONS: Final = {
    16: MappingClaim("hlscnn_conv2d", "convolution with strides, bias and relu, on HLSCNN", convolution_mapping),
    8: MappingClaim("hlscnn_conv2d_8bit", "convolution with weights of 8 bits, on HLSCNN", narrow_mapping),
}
"""Convolutions, by the width of weights."""

CLAIMS: Final = tuple(CONVOLUTIONS.values())
"""All of them."""
