"""Readings of HLSCNN, where its published models disagree, have changed, or are silent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["MASTER", "HlscnnOptions", "Rounding"]

Rounding = Literal["truncate", "toward_zero", "half_up", "half_even"]
"""How bits beyond the last fraction bit are dropped: toward minus infinity, toward zero, or to the nearest number with
ties toward plus infinity or to an even last bit (AC_TRN, AC_TRN_ZERO, AC_RND and AC_RND_CONV of ac_fixed types)."""

_Coordinates = Literal["valid", "same"]
_Outputs = Literal["blocked", "per_filter"]
_Lanes = Literal["kept", "cleared"]
_Source = Literal["soc", "spad1"]
_Bits = Literal[8, 16]
_ChannelWord = Literal["implemented", "wide", "documented"]
_End = Literal["stride", "last"]
_Start = Literal["checked", "unchecked"]
_Bounds = Literal["signed", "unsigned"]
_Overflow = Literal["wrap", "saturate"]

_CHOICES = {
    "coordinates": _Coordinates,
    "outputs": _Outputs,
    "other_lanes": _Lanes,
    "activations": _Source,
    "weight_bits": _Bits,
    "channel_word": _ChannelWord,
    "kernel_end": _End,
    "kernel_start": _Start,
    "bounds": _Bounds,
    "tap_rounding": Rounding,
    "store_rounding": Rounding,
    "overflow": _Overflow,
}


@dataclass(frozen=True)
class HlscnnOptions:
    """Readings of HLSCNN; the default is the one with which published drivers compute convolutions.

    **Where outputs go.**  ``coordinates``: input row r and kernel row k contribute to output row (r - k) / stride
    ("valid", the modified branches of the published ILA) or r - k + K/2 ("same", its main branch).  ``outputs``: filter
    f is written to lane f mod 8 of block f / 8 ("blocked", modified), or to a plane of its own, in lane (number of
    filters - 1) mod 8 ("per_filter", main).  ``other_lanes``: storing one lane of an entry keeps the other seven
    ("kept", modified) or sets them to 0 ("cleared", main).

    **Where operands come from.**  ``activations``: SoC memory ("soc") or SPAD1 ("spad1", branch uni_act_spad).
    ``weight_bits``: 16, or 8 (the original hardware), where the byte is the high half of a 16-bit weight.

    **The ChannelCfg register.**  ``channel_word``: the number of filters is in bits 26:19 ("implemented"), 30:19
    ("wide", branch wgt_16bits), or 21:19 ("documented", the comment in the hardware's header, which is wrong).

    **Corrected faults of the published ILA**, as options so that they can be refuted.  ``kernel_end``: the loop over
    kernel rows (columns) ends when the next one, k + stride, is beyond the kernel ("stride"), or after the first one
    that is not below K - 1 ("last").  ``kernel_start``: kernel rows beyond the kernel are skipped ("checked"), or
    the first one, r mod stride, is used even if there is no such row ("unchecked").  ``bounds``: output rows below 0
    are skipped ("signed"), or taken as unsigned numbers of 11 bits and divided ("unsigned").

    **Numbers.**  All are two's complement; ``*_fraction`` is the number of bits after the point.  Weights and the bias
    have 16 bits, 14 of them fraction; activations 16 and 7.  A partial sum has ``psum_bits`` = 32 and 16.  What is
    stored has 16 bits and ``output_fraction`` of them: 7, since the published conversion functions name the type of
    activations; the published configuration also defines an output format with 4.  A product of a weight and an
    activation has 14 + 7 = 21 fraction bits, a partial sum only 16: it is cut (toward minus infinity) to those bits
    before it is added, as ``+=`` on fixed-point types does.  With ``psum_fraction=21, psum_bits=37`` all is exact.

    **Conversions** to 16 bits, whose modes are not published.  ``tap_rounding``: of the sum over eight channels, after
    every tap; ``store_rounding``: of what is stored, which matters only where a bias is added.  ``overflow``: 16 bits
    are kept ("wrap") or the nearest number that fits is taken ("saturate").

    Raises ValueError on an unknown choice and on fractions that do not fit the words or each other.
    """

    coordinates: _Coordinates = "valid"
    outputs: _Outputs = "blocked"
    other_lanes: _Lanes = "kept"
    activations: _Source = "soc"
    weight_bits: _Bits = 16
    channel_word: _ChannelWord = "implemented"
    kernel_end: _End = "stride"
    kernel_start: _Start = "checked"
    bounds: _Bounds = "signed"
    weight_fraction: int = 14
    activation_fraction: int = 7
    output_fraction: int = 7
    psum_fraction: int = 16
    psum_bits: int = 32
    tap_rounding: Rounding = "truncate"
    store_rounding: Rounding = "truncate"
    overflow: _Overflow = "wrap"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value, allowed = getattr(self, name), get_args(choices)
            if value not in allowed or type(value) is not type(allowed[0]):
                raise ValueError(f"{name} must be {' or '.join(map(str, allowed))}, not {value!r}")
        least = 8 if self.weight_bits == 8 else 0
        for name, low, high in (
            ("weight_fraction", least, 15),
            ("activation_fraction", 0, 15),
            ("output_fraction", 0, 15),
            ("psum_bits", 32, 48),
            ("psum_fraction", 0, 30),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise ValueError(f"{name} must be an integer in {low} .. {high}, not {value!r}")
        if self.output_fraction > self.psum_fraction:
            raise ValueError(
                f"output_fraction must be at most psum_fraction, {self.psum_fraction}, not {self.output_fraction}: "
                "what is stored is a partial sum with fewer bits"
            )


MASTER = HlscnnOptions(coordinates="same", outputs="per_filter", other_lanes="cleared", weight_bits=8)
"""The readings of the published ILA's main branch, without the faults that were corrected later."""
