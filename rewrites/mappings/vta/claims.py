"""VTA's mappings by name."""

from __future__ import annotations

from functools import partial
from typing import Final

from accel_models.fixed_point import exponents, fixed_to_float, float_to_fixed
from ir_semantics.layers.dense import Order
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.conversions import TARGET, conversion_claim, reading, rounding

from .dense import dense_mapping
from .elementwise import elementwise_mapping
from .gemm import gemm_mapping
from .padded import padded_mapping

DENSE: Final = MappingClaim(
    "vta_dense", "a dense layer of bytes with bias and requantisation, on VTA's GEMM and ALU", dense_mapping
)
GEMMS: Final = {
    "none": MappingClaim("vta_gemm", "a dense layer of any size, in blocks, on VTA's GEMM and ALU", gemm_mapping),
    "relu": MappingClaim(
        "vta_gemm_relu",
        "relu of a dense layer of any size, in blocks, on VTA's GEMM and ALU",
        partial(gemm_mapping, activation="relu"),
    ),
}
"""Dense layers in blocks, by activation."""
GEMM: Final = GEMMS["none"]

ELEMENTWISE: Final = {
    name: MappingClaim(f"vta_{name}", f"{text}, on VTA's ALU", partial(elementwise_mapping, name))
    for name, text in (
        ("relu", "relu of int32, to bytes"),
        ("min", "the smaller elements of two int32 matrices, to bytes"),
        ("max", "the larger elements of two int32 matrices, to bytes"),
        ("add", "the sum of two int32 matrices, to bytes"),
        ("bias_add", "the sum of an int32 matrix and a row, to bytes"),
        ("min_imm", "an upper bound on int32, to bytes"),
        ("max_imm", "a lower bound on int32, to bytes"),
        ("add_imm", "the sum of int32 and a number, to bytes"),
        ("shift", "arithmetic shift right of int32, to bytes"),
        ("requantise", "shift right and saturation of int32 to bytes"),
    )
}
"""Element-wise operators, by name."""

ROUND: Final = rounding("vta", "bytes from -127 on", float_to_fixed(8, symmetric=True), exponents(8))
ROUND_BIAS: Final = conversion_claim(
    "vta_round_bias",
    "a box of a float32 tensor as numbers of 24 bits in accumulators, padded with zeros, by the host",
    float_to_fixed(24, symmetric=True, width=32),
    {"exponent": exponents(24)},
    codes=TARGET,
)
READ: Final = reading("vta", "bytes", fixed_to_float(8), exponents(8))

CLAIMS: Final = (
    *ELEMENTWISE.values(),
    DENSE,
    MappingClaim("vta_padded", "a dense layer on rows between rows of zeros, by a padded LOAD of VTA", padded_mapping),
    *GEMMS.values(),
    ROUND,
    ROUND_BIAS,
    READ,
    MappingClaim(
        "vta_dense_backward",
        "a dense layer of bytes on VTA that the IR sums from the last feature to the first",
        partial(dense_mapping, order=Order.BACKWARD),
    ),
)
"""All of them."""
