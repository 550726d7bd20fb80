"""The ZeroPadding unit: clears timesteps of a matrix.

Source: ``ZeroPadding`` of the FlexASR SystemC design; its departures in the public simulator were measured.
"""

from __future__ import annotations

from accel_models.flexasr.layout import LANES
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Ila, Kernel, const, ite

from .matrix import Matrix, at_least_one


def zero_padding(ila: Ila, options: FlexAsrOptions) -> Kernel:
    """Clears the unit's vectors of timesteps num_timestep_1 up to, but without, num_timestep_2.

    Where that is no timestep, the first one is cleared nevertheless.
    """
    matrix = Matrix(ila, "zero_padding", options.padding_stride)
    first, end = ila.states["gb_zero_padding_num_timestep_1"], ila.states["gb_zero_padding_num_timestep_2"]
    if options.padding_base == "zero":
        matrix.base = const(0, 16)
    kernel = Kernel("zero_padding", "clears timesteps num_timestep_1 .. num_timestep_2 - 1")
    with (
        kernel.loop("step", ite(first < end, end - first, const(1, 16))) as step,
        kernel.loop("vector", at_least_one(matrix.vectors)) as vector,
        kernel.loop("lane", const(LANES, 5)) as lane,
    ):
        place = vector
        if options.padding_vectors == "accumulated":
            place = vector.zext(16) * (vector.zext(16) + 1) >> 1
        kernel.store(matrix.memory, matrix.address(first + step, place, lane), 0)
    kernel.done(ila.states["top_interrupt_request"], True)
    return kernel
