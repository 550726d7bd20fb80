"""The LayerReduce unit: max, mean or sum over pairs of timesteps.

Source: ``LayerReduce`` of the FlexASR SystemC design.
"""

from __future__ import annotations

from accel_models.flexasr.layout import LANES
from accel_models.flexasr.numerics import adpfloat_add, adpfloat_max, adpfloat_mean
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, Ila, Kernel, const, ite

from .matrix import Matrix, at_least_one


def layer_reduce_starts(ila: Ila, options: FlexAsrOptions) -> Expr:
    """The condition under which a start has an effect."""
    valid = ila.states["gb_layer_reduce_is_valid"]
    if options.reduce_odd == "rtl":
        return valid
    # The simulator's 16-bit N - 2 wraps for N < 2, its end test then never holds and no interrupt comes.
    return valid & ~(ila.states["gb_layer_reduce_num_timestep_1"] < 2)


def layer_reduce(ila: Ila, options: FlexAsrOptions) -> Kernel:
    """Pooling over pairs of timesteps, in place: row t of the result overwrites row t of the matrix.

    Pair p is read from rows 2p and 2p + 1 and written to row p <= 2p, so no row is overwritten before it
    is read (row 0 of the first pair is read lane by lane before it is written).  Rows from ceil(N/2) on
    keep their contents.
    """
    matrix = Matrix(ila, "layer_reduce", options.reduce_stride)
    count, mode = ila.states["gb_layer_reduce_num_timestep_1"], ila.states["gb_layer_reduce_mode"]
    # Hardware tests the end after the body, "t >= N - 2" on signed numbers: an odd N takes one more pair, whose
    # second row lies beyond the matrix.  The recorded simulator drops the last row of an odd N.  17 bits, because
    # N + 1 may be 2^16; half of it fits 16 again.
    if options.reduce_odd == "rtl":
        halves = (count.zext(17) + 1)[16:1]
        pairs = ite(count == 0, const(1, 16), halves)
    else:
        pairs = count >> 1
    kernel = Kernel("layer_reduce", "max (mode 0), mean (1) or sum (other) of timesteps 2p and 2p + 1, to timestep p")
    with (
        kernel.loop("pair", pairs) as pair,
        kernel.loop("vector", at_least_one(matrix.vectors)) as vector,
        kernel.loop("lane", const(LANES, 5)) as lane,
    ):
        t = pair * 2  # at most 65534: row t + 1 still has a 16-bit number
        a = kernel.load("a", matrix.memory, matrix.address(t, vector, lane))
        b = kernel.load("b", matrix.memory, matrix.address(t + 1, vector, lane))
        # All biases are ignored: codes are combined as if the bias were 0.
        result = ite(mode == 0, adpfloat_max(a, b), ite(mode == 1, adpfloat_mean(a, b), adpfloat_add(a, b)))
        kernel.store(matrix.memory, matrix.address(pair, vector, lane), result)
    kernel.done(ila.states["top_interrupt_request"], True)
    return kernel
