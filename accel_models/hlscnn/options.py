"""Readings of HLSCNN, where its published models disagree, have changed, or are silent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from accel_models.choices import require_choices

Rounding = Literal["truncate", "toward_zero", "half_up", "half_even"]
"""How bits beyond the last fraction bit are dropped: toward minus infinity, toward zero, or to the nearest number with
ties toward plus infinity or to an even last bit (AC_TRN, AC_TRN_ZERO, AC_RND and AC_RND_CONV of ac_fixed types)."""


_ROUNDED = {
    "truncate": "cut (toward minus infinity)",
    "toward_zero": "cut toward zero",
    "half_up": "rounded half up",
    "half_even": "rounded half to even",
}


@dataclass(frozen=True)
class HlscnnOptions:
    """Readings of HLSCNN; the default is the one that a public recording of the hardware's own model decides.

    That recording (``hlscnn/sim_info`` of the repository 3la_sim_testbench) is a run of the hardware's SystemC model:
    one filter of 3 x 3 at stride 1 over 36 x 36 pixels of 16 channels; 1,264 of the words that it left in SPAD1 are not
    0.  The default gives all of them.  With one option changed, this number of words differs: ``coordinates="valid"``
    1,262, ``weight_bits=16`` and ``output_fraction=4`` 1,264, ``tap_rounding`` "truncate" or "toward_zero" 1,264 and
    "half_even" 150, ``store_rounding`` "half_up" or "half_even" 1,225.  All its numbers are positive or 0.  It decides
    nothing else: it cannot tell rounding half up from half away from zero, nor cutting from rounding toward zero of
    what is stored, and says nothing of negative numbers, ``outputs``, ``other_lanes``, ``activations``,
    ``channel_word``, ``kernel_end``, ``kernel_start``, ``bounds``, ``psum_fraction`` and ``overflow``.

    **Where outputs go.**  ``coordinates``: input row r and kernel row k contribute to output row r - k + K/2 ("same",
    the main branch of the published ILA) or (r - k) / stride ("valid", its modified branches).  ``outputs``: filter
    f is written to lane f mod 8 of block f / 8 ("blocked", modified), or to a plane of its own, in lane (number of
    filters - 1) mod 8 ("per_filter", main).  ``other_lanes``: storing one lane of an entry keeps the other seven
    ("kept", modified) or sets them to 0 ("cleared", main).

    **Where operands come from.**  ``activations``: SoC memory ("soc") or SPAD1 ("spad1", branch uni_act_spad).
    ``weight_bits``: 8, where the byte is the high half of a 16-bit weight, or 16 (branch wgt_16bits).

    **The ChannelCfg register.**  ``channel_word``: the number of filters is in bits 26:19 ("implemented"), 30:19
    ("wide", branch wgt_16bits), or 21:19 ("documented", the comment in the hardware's header, which is wrong).

    **Corrected faults of the published ILA**, as options so that they can be refuted.  ``kernel_end``: the loop over
    kernel rows (columns) ends when the next one, k + stride, is beyond the kernel ("stride"), or after the first one
    that is not below K - 1 ("last").  ``kernel_start``: kernel rows beyond the kernel are skipped ("checked"), or
    the first one, r mod stride, is used even if there is no such row ("unchecked").  ``bounds``: output rows below 0
    are skipped ("signed"), or taken as unsigned numbers of 11 bits and divided ("unsigned").

    **Numbers.**  All are two's complement; ``*_fraction`` is the number of bits after the point.  Weights and the bias
    have 16 bits, 14 of them fraction; activations 16 and 7.  A partial sum has ``psum_bits`` = 32 and 16.  What is
    stored has 16 bits and ``output_fraction`` of them: 7, the format of activations; the published configuration also
    defines an output format with 4, which the recording excludes.  A product of a weight of 16 bits and an activation
    has 14 + 7 = 21 fraction bits, a partial sum only 16: it is cut (toward minus infinity) to those bits before it is
    added, as ``+=`` on fixed-point types does.  With ``psum_fraction=21, psum_bits=37``, and with weights of 8 bits,
    all is exact.

    **Conversions** to 16 bits.  ``tap_rounding``: of the sum over eight channels, after every tap; ``store_rounding``:
    of what is stored, which matters only where a bias is added.  The published conversion functions name a rounding
    type for the first and none for the second.  ``overflow``: 16 bits are kept ("wrap") or the nearest number that
    fits is taken ("saturate").

    Raises ValueError on an unknown choice and on fractions that do not fit the words or each other.
    """

    coordinates: Literal["valid", "same"] = "same"
    outputs: Literal["blocked", "per_filter"] = "blocked"
    other_lanes: Literal["kept", "cleared"] = "kept"
    activations: Literal["soc", "spad1"] = "soc"
    weight_bits: Literal[8, 16] = 8
    channel_word: Literal["implemented", "wide", "documented"] = "implemented"
    kernel_end: Literal["stride", "last"] = "stride"
    kernel_start: Literal["checked", "unchecked"] = "checked"
    bounds: Literal["signed", "unsigned"] = "signed"
    weight_fraction: int = 14
    activation_fraction: int = 7
    output_fraction: int = 7
    psum_fraction: int = 16
    psum_bits: int = 32
    tap_rounding: Rounding = "half_up"
    store_rounding: Rounding = "truncate"
    overflow: Literal["wrap", "saturate"] = "wrap"

    def __post_init__(self) -> None:
        require_choices(self)
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

    @property
    def reading(self) -> str:
        """What a claim says of the reading that it is about: formats, roundings, and where outputs lie."""
        where = "input - tap + K/2" if self.coordinates == "same" else "(input - tap) / stride"
        weights = self.weight_fraction - (16 - self.weight_bits)
        return (
            f"weights of {self.weight_bits} bits ({weights} of fraction), stored words of 16 "
            f"({self.output_fraction}), partial sums of {self.psum_bits} ({self.psum_fraction}); after every tap the "
            f"sum over 8 channels is {_ROUNDED[self.tap_rounding]}, what is stored is {_ROUNDED[self.store_rounding]}, "
            f"and words {self.overflow}; outputs at {where}"
        )


MASTER = HlscnnOptions(outputs="per_filter", other_lanes="cleared")
"""The readings of the published ILA's main branch, without the faults that were corrected later.

As the recording, which has one filter, but for a plane of outputs for each filter.
"""

WGT_16BITS = HlscnnOptions(coordinates="valid", weight_bits=16)
"""The readings of its branch wgt_16bits, a hardware with weights of 16 bits and outputs at (r - k) / stride.

No recording of that hardware is public; conversions are taken to be those of the recorded one.
"""

BY_WEIGHT_BITS = {8: HlscnnOptions(), 16: WGT_16BITS}
"""The hardware by the number of bits of a weight."""

PRESETS = {"recorded": HlscnnOptions(), "master": MASTER, "wgt_16bits": WGT_16BITS}
"""Readings by name; the first is the default."""
