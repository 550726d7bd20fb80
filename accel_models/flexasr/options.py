"""Readings of FlexASR's specification, where the published models disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["RECORDED_SIMULATOR", "FlexAsrOptions"]


@dataclass(frozen=True)
class FlexAsrOptions:
    """Readings of the specification; the default follows the hardware source.

    ``reduce_stride``, ``padding_stride``, ``norm_stride``: in LayerReduce, ZeroPadding and LayerNorm the distance
    between timestep groups comes from the memory manager's num_vector ("manager", hardware) or from the unit's own
    num_vector_1 ("unit", the published ILA).  They agree where software sets both alike, as published drivers do.

    ``reduce_odd``: with an odd number N of timesteps LayerReduce processes ceil(N/2) pairs ("rtl"; the
    last pair reads one timestep beyond the matrix), or floor(N/2) ("recorded", the ILA-generated
    simulator). The recorded simulator never finishes for N < 2, so under "recorded" such a start has no
    effect.

    ``padding_base``: ZeroPadding clears the matrix of the manager entry that its memory_index_1 names ("manager",
    hardware), or always one at address 0 ("zero", the recorded simulator), whatever lies there.

    ``padding_vectors``: vector v of a timestep begins v * 256 bytes after vector 0 ("rtl"), or the offset is added up
    from vector to vector, which makes it v * (v + 1) / 2 * 256 bytes ("accumulated", the recorded simulator).  The two
    part at the third vector: timesteps keep their old contents there, and other data are cleared.
    """

    reduce_odd: Literal["rtl", "recorded"] = "rtl"
    reduce_stride: Literal["manager", "unit"] = "manager"
    padding_stride: Literal["manager", "unit"] = "manager"
    padding_base: Literal["manager", "zero"] = "manager"
    padding_vectors: Literal["rtl", "accumulated"] = "rtl"
    norm_stride: Literal["manager", "unit"] = "manager"

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("reduce_odd", self.reduce_odd, ("rtl", "recorded")),
            ("reduce_stride", self.reduce_stride, ("manager", "unit")),
            ("padding_stride", self.padding_stride, ("manager", "unit")),
            ("padding_base", self.padding_base, ("manager", "zero")),
            ("padding_vectors", self.padding_vectors, ("rtl", "accumulated")),
            ("norm_stride", self.norm_stride, ("manager", "unit")),
        ):
            if value not in allowed:
                raise ValueError(f"{name} must be {' or '.join(allowed)}, not {value!r}")


RECORDED_SIMULATOR = FlexAsrOptions(
    reduce_odd="recorded",
    reduce_stride="unit",
    padding_stride="unit",
    padding_base="zero",
    padding_vectors="accumulated",
    norm_stride="unit",
)
"""The readings of the public ILA-generated simulator (flexasr-sim, November 2021)."""
