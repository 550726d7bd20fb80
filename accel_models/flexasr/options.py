"""Readings of FlexASR's specification, where the published models disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from accel_models.choices import require_choices

Stride = Literal["manager", "unit"]


@dataclass(frozen=True)
class FlexAsrOptions:
    """Readings of the specification; the default follows the hardware source.

    *Numerics.*  ``saturation``: a negative fixed-point number beyond the range of AdaptivFloat becomes the largest
    negative code ("2022"), or the largest *positive* one ("pre2022", before the hardware source's commit e4f60b5 of
    2022-04-11).  LayerReduce was never affected.  ``sigmoid``: that of ac_math up to 3.2 ("A", all published results)
    or from 3.4 on ("B").

    *Strides.*  ``reduce_stride``, ``padding_stride``, ``norm_stride``, ``control_stride``, ``attention_stride``: the
    distance between timestep groups comes from the memory manager's num_vector ("manager", hardware) or from the
    unit's own ("unit", the published ILA).  They agree where software sets both alike, as published drivers do.

    ``reduce_odd``: with an odd number N of timesteps LayerReduce processes ceil(N/2) pairs ("rtl"; the
    last pair reads one timestep beyond the matrix), or floor(N/2) ("recorded", the ILA-generated
    simulator). The recorded simulator never finishes for N < 2, so under "recorded" such a start has no
    effect.

    ``padding_base``: ZeroPadding clears the matrix of the manager entry that its memory_index_1 names ("manager",
    hardware), or always one at address 0 ("zero", the recorded simulator), whatever lies there.

    ``padding_vectors``: vector v of a timestep begins v * 256 bytes after vector 0 ("rtl"), or the offset is added up
    from vector to vector, which makes it v * (v + 1) / 2 * 256 bytes ("accumulated", the recorded simulator).  The two
    part at the third vector: timesteps keep their old contents there, and other data are cleared.

    ``control_input_base``: GBControl reads its input where memory_index_1 says ("manager"), or at address 0 ("zero",
    the recorded simulator; its output has its base).

    ``control_passes``: the two passes of a bidirectional layer.  Step t of N of the forward pass (mode 1) writes
    timestep 2 * t; of the backward pass (mode 2), 2 * (N - t) - 1.  They read timesteps t and N - 1 - t ("rtl").  Or
    each reads the timestep that it writes, 2 * t and 2 * (N - t) + 1 ("recorded").

    ``control_high_modes``: modes 4 to 7 of GBControl use timestep 0 of the large buffer ("large", hardware), or the
    small buffer as mode 3 does ("small", read in the recorded simulator's text).

    ``attention_end``: every number of timesteps ends ("rtl"), or numbers above 65520 do not, because their end test
    adds 16 in 16 bits ("recorded"); there such a start has no effect.

    ``act_buffer_base``: bits of the activation buffer's base and of its vector addresses, 5 (hardware, 32 vectors) or
    16 (the published ILA, whose buffer goes on).  ``input_buffer``: the same for the input buffer of a processing
    element, 8 bits (256 vectors) or 16.  Commands reach only the first 32 (256) vectors in either reading.

    ``act_registers``: the registers of an activation unit keep their contents from run to run ("kept"), or each
    timestep begins with zeros ("cleared", read in the recorded simulator's text).

    ``starts``: a start register answers writes and reads ("any", hardware) or writes only ("write", published ILA).

    ``addresses``: commands move aligned vectors and the low four bits of an address are ignored ("vector", hardware);
    or registers answer at their own address only, and buffers at any byte up to that of their last vector ("byte",
    measured for the global buffer's buffers; the published ILA).

    ``pe_loads``: the buffers of processing elements can be read (True), or not (False, the recorded simulator).

    ``unanswered``: commands that no register or buffer answers are refused ("reserved"; hardware's answer is not
    described), or have no effect ("ignored", the recorded simulator; a read then returns the word of the last one).
    """

    saturation: Literal["2022", "pre2022"] = "2022"
    sigmoid: Literal["A", "B"] = "A"
    reduce_odd: Literal["rtl", "recorded"] = "rtl"
    reduce_stride: Stride = "manager"
    padding_stride: Stride = "manager"
    padding_base: Literal["manager", "zero"] = "manager"
    padding_vectors: Literal["rtl", "accumulated"] = "rtl"
    norm_stride: Stride = "manager"
    control_stride: Stride = "manager"
    control_input_base: Literal["manager", "zero"] = "manager"
    control_passes: Literal["rtl", "recorded"] = "rtl"
    control_high_modes: Literal["large", "small"] = "large"
    attention_stride: Stride = "manager"
    attention_end: Literal["rtl", "recorded"] = "rtl"
    act_buffer_base: Literal[5, 16] = 5
    input_buffer: Literal[8, 16] = 8
    act_registers: Literal["kept", "cleared"] = "kept"
    starts: Literal["any", "write"] = "any"
    addresses: Literal["vector", "byte"] = "vector"
    pe_loads: bool = True
    unanswered: Literal["reserved", "ignored"] = "reserved"

    def __post_init__(self) -> None:
        require_choices(self)


RECORDED_SIMULATOR = FlexAsrOptions(
    reduce_odd="recorded",
    reduce_stride="unit",
    padding_stride="unit",
    padding_base="zero",
    padding_vectors="accumulated",
    norm_stride="unit",
    control_stride="unit",
    control_input_base="zero",
    control_passes="recorded",
    control_high_modes="small",
    attention_stride="unit",
    attention_end="recorded",
    act_buffer_base=16,
    input_buffer=16,
    act_registers="cleared",
    starts="write",
    addresses="byte",
    pe_loads=False,
    unanswered="ignored",
)
"""The readings of the public ILA-generated simulator (flexasr-sim, November 2021), with today's numerics."""
