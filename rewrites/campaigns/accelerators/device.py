"""How a campaign runs an accelerator's program: the one place that knows the simulators."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import FlexAsrOptions
from accel_models.flexasr.quantise import Quantised, quantise
from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.options import HlscnnOptions
from accel_models.vta.model import vta
from ila_lang import Simulator
from rewrites.mappings.programs import DeviceProgram


def run_flexasr(program: DeviceProgram[Quantised], options: FlexAsrOptions | None = None) -> Quantised:
    """The result of a program on a reset FlexASR."""
    return program.run(Simulator(flexasr(options)))


def run_hlscnn(convolution: DeviceProgram[NDArray[np.int16]], options: HlscnnOptions) -> NDArray[np.int16]:
    """The output codes of a convolution on a reset HLSCNN."""
    return convolution.run(Simulator(hlscnn(options)))


def run_vta(program: DeviceProgram[NDArray[np.int8]]) -> NDArray[np.int8]:
    """The output matrix of a program on a reset VTA in the reading of the HLS design."""
    return program.run(Simulator(vta()))


# -- FlexASR's host -------------------------------------------------------------------------------------


def fitting_bias(values: NDArray[np.float64]) -> int:
    """The AdaptivFloat bias (0..7) whose range fits a tensor best: floor(log2(max|x|)) + 3, cut to 0 .. 7."""
    magnitude = float(np.max(np.abs(values), initial=0.0))
    return int(np.clip(np.frexp(magnitude)[1] + 2, 0, 7)) if magnitude else 0


def quantise_fitting(values: NDArray[np.float64]) -> Quantised:
    """The tensor quantised at the bias that fits it best."""
    return quantise(values, fitting_bias(values))
