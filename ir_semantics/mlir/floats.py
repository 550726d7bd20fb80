"""MLIR's floating-point formats: bit patterns from decimal text and back, as ``mlir-opt`` reads and prints them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A sign bit, ``exponent`` bits with a bias, and ``significand`` bits, of which the first is not stored.

    ``specials`` says what its largest patterns are: infinities and NaNs (ieee), one NaN of each sign and no infinity
    (fn), the NaN in place of -0 and no infinity (fnuz), or neither (finite).
    """

    exponent: int
    significand: int
    specials: Literal["ieee", "fn", "fnuz", "finite"] = "ieee"
    more_bias: int = 0

    @property
    def width(self) -> int:
        """Bits of a pattern."""
        return self.exponent + self.significand

    @property
    def least_exponent(self) -> int:
        """The power of two that a subnormal significand's last bit counts."""
        bias = (1 << (self.exponent - 1)) - 1 + self.more_bias
        return 1 - bias - (self.significand - 1)


FORMATS = {
    "f16": FloatFormat(5, 11),
    "bf16": FloatFormat(8, 8),
    "tf32": FloatFormat(8, 11),
    "f32": FloatFormat(8, 24),
    "f64": FloatFormat(11, 53),
    "f128": FloatFormat(15, 113),
    "f8E5M2": FloatFormat(5, 3),
    "f8E4M3": FloatFormat(4, 4),
    "f8E3M4": FloatFormat(3, 5),
    "f8E4M3FN": FloatFormat(4, 4, "fn"),
    "f8E5M2FNUZ": FloatFormat(5, 3, "fnuz", 1),
    "f8E4M3FNUZ": FloatFormat(4, 4, "fnuz", 1),
    "f8E4M3B11FNUZ": FloatFormat(4, 4, "fnuz", 4),
    "f6E3M2FN": FloatFormat(3, 3, "finite"),
    "f6E2M3FN": FloatFormat(2, 4, "finite"),
    "f4E2M1FN": FloatFormat(2, 2, "finite"),
}
"""Formats whose constants may be written in decimal."""
WIDTHS = {name: form.width for name, form in FORMATS.items()} | {"f80": 80, "f8E8M0FNU": 8}
"""Bits of a pattern, for all floating-point types of MLIR."""
