"""The LayerNorm unit: each timestep of a matrix to mean 0 and variance 1, then scaled and moved.

Source: ``LayerNorm`` of the FlexASR SystemC design.
"""

from __future__ import annotations

from accel_models.flexasr.functions import eadd, emul, inv_sqrt, norm_divide
from accel_models.flexasr.layout import LANES
from accel_models.flexasr.numerics import adpfloat_to_fixed, fixed_to_adpfloat, fixed_to_adpfloat_pre2022
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Ila, Kernel, concat, const

from .matrix import Matrix, Row, at_least_one

GAMMA, BETA = 5, 6  # entries of the small buffer's manager: scale and offset, a row of vectors each


def layer_norm(ila: Ila, options: FlexAsrOptions) -> Kernel:
    """((x - mean) / deviation) * gamma + beta for each element x of a timestep, in place.

    Numbers are Q6.14 of 20 bits; every product is rounded down, and every result wraps.  The sums over a vector have
    20 bits and those over a timestep 24, so values near the top of the range wrap long before 16 * num_vector of
    them are added.  There is no epsilon: the deviation is right only for a variance of at least 2^-10, and a variance
    of 0 makes its inverse -2^-14 (:data:`~accel_models.flexasr.functions.inv_sqrt`).

    adpbias_1 is the AdaptivFloat bias of the matrix before and after, adpbias_3 that of beta, adpbias_4 that of gamma.
    With num_vector_1 = 0 hardware divides by 0, whose result is not described; here it is that of SMT-LIB.
    """
    s = ila.states
    matrix, scale, offset = Matrix(ila, "layer_norm", options.norm_stride), Row(ila, GAMMA), Row(ila, BETA)
    to_code = fixed_to_adpfloat if options.saturation == "2022" else fixed_to_adpfloat_pre2022
    bias, bias_beta, bias_gamma = (s[f"gb_layer_norm_adpbias_{i}"] for i in (1, 3, 4))
    vectors = at_least_one(matrix.vectors)
    elements = concat(const(0, 12), matrix.vectors, const(0, 4))

    kernel = Kernel("layer_norm", "normalises each timestep, times gamma, plus beta")
    with kernel.loop("t", at_least_one(s["gb_layer_norm_num_timestep_1"])) as t:
        total, total_squares = kernel.let("total", const(0, 24)), kernel.let("total_squares", const(0, 24))
        with kernel.loop("vector", vectors) as vector:
            part, part_squares = kernel.let("part", const(0, 20)), kernel.let("part_squares", const(0, 20))
            with kernel.loop("lane", const(LANES, 5)) as lane:
                code = kernel.load("code", matrix.memory, matrix.address(t, vector, lane))
                x = kernel.let("x", adpfloat_to_fixed(code, bias))
                kernel.assign(part, eadd(part, x))
                kernel.assign(part_squares, eadd(part_squares, emul(x, x)))
            kernel.assign(total, total + part.sext(24))
            kernel.assign(total_squares, total_squares + part_squares.sext(24))
        mean = kernel.let("mean", norm_divide(total, elements))
        mean_square = kernel.let("mean_square", norm_divide(total_squares, elements))
        inverse = kernel.let("inverse", inv_sqrt(mean_square - emul(mean, mean)))
        with kernel.loop("out_vector", vectors) as vector, kernel.loop("out_lane", const(LANES, 5)) as lane:
            code = kernel.load("out_code", matrix.memory, matrix.address(t, vector, lane))
            gamma = kernel.load("gamma", scale.memory, scale.address(vector, lane))
            beta = kernel.load("beta", offset.memory, offset.address(vector, lane))
            normal = emul(adpfloat_to_fixed(code, bias) - mean, inverse)
            scaled = emul(normal, adpfloat_to_fixed(gamma, bias_gamma))
            y = kernel.let("y", eadd(scaled, adpfloat_to_fixed(beta, bias_beta)))
            kernel.store(matrix.memory, matrix.address(t, vector, lane), to_code(y, bias))
    kernel.done(s["top_interrupt_request"], True)
    return kernel
