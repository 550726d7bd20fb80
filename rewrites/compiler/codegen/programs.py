"""Programs of proved mappings at concrete sizes, and the simulators on which they run.

What is proved is what is sent: a program is the device fragment of the mapping itself, at sizes that its domain admits
(:class:`~ila_lang.templates.instance.Template`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from numpy.typing import NDArray

from ila_lang import Ila, Simulator
from ila_lang.mapping import TensorMapping
from ila_lang.templates.instance import Template
from reports.certificate import semantics_of
from rewrites.mappings.flexasr.chains import chain_mapping
from rewrites.mappings.flexasr.layer_norm import layer_norm_mapping
from rewrites.mappings.flexasr.linear import linear_mapping
from rewrites.mappings.flexasr.pooling import pooling_mapping
from rewrites.mappings.flexasr.recurrent import recurrent_mapping
from rewrites.mappings.hlscnn.convolution import convolution_mapping
from rewrites.mappings.hlscnn.convolution_8bit import narrow_mapping
from rewrites.mappings.vta.gemm import gemm_mapping
from rewrites.targets.flexasr.operators import CHAINS

__all__ = ["MAPPINGS", "Columns", "Devices", "is_program_of", "mapping_of", "template_of"]

Columns = Mapping[str, NDArray[Any]]
"""Commands as columns, for :class:`~ila_lang.streams.simulator.CommandStream`."""

MAPPINGS: Mapping[str, Callable[[], TensorMapping]] = {
    "flexasr_linear": linear_mapping,
    "flexasr_linear_relu": lambda: linear_mapping("relu"),
    "flexasr_linear_sigmoid": lambda: linear_mapping("sigmoid"),
    "flexasr_linear_tanh": lambda: linear_mapping("tanh"),
    "flexasr_rnn": lambda: recurrent_mapping("rnn"),
    "flexasr_gru": lambda: recurrent_mapping("gru"),
    "flexasr_lstm": lambda: recurrent_mapping("lstm"),
    "flexasr_maxpool": lambda: pooling_mapping("max"),
    "flexasr_meanpool": lambda: pooling_mapping("mean"),
    **{f"flexasr_{kind}pool_x{steps}": partial(chain_mapping, kind, steps) for kind, steps in CHAINS},
    "flexasr_layernorm": layer_norm_mapping,
    "hlscnn_conv2d": convolution_mapping,
    "hlscnn_conv2d_8bit": narrow_mapping,
    "vta_gemm": gemm_mapping,
}
"""The mappings that code is generated from, by the names of their claims."""


KEPT_BYTES = 1 << 29
"""Commands of programs with the last run's data in them are kept up to so many bytes; others are made anew."""


class Devices:
    """One simulator for each device, made when it is first used.

    Programs may share them: every mapping claims its result from arbitrary contents of the device.
    """

    def __init__(self) -> None:
        self._simulators: dict[Ila, Simulator] = {}

        self._left = KEPT_BYTES

    def keep(self, size: int) -> bool:
        """Whether there is room to keep so many bytes of commands for later runs, which is taken then."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def of(self, ila: Ila) -> Simulator:
        """The simulator of a device."""
        if ila not in self._simulators:
            self._simulators[ila] = Simulator(ila)
        return self._simulators[ila]


@cache
def mapping_of(name: str) -> TensorMapping:
    """The mapping of that name; raises KeyError for one that code is not generated from."""
    return MAPPINGS[name]()


@cache
def _semantics(name: str) -> Mapping[str, str]:
    return semantics_of(mapping_of(name))


def is_program_of(name: str, semantics: Mapping[str, str]) -> bool:
    """Whether the mapping of that name is the one that a claim is about: both have the digests ``semantics``.

    A certificate is of a claim, and code is generated from a mapping; that they have one name is not enough.
    """
    return _semantics(name) == semantics


def template_of(name: str, sizes: Mapping[str, int]) -> Template:
    """The device program of a mapping at these sizes; the same object for equal sizes.

    Raises SizeError where the sizes lie outside the mapping's domain.
    """
    return _template(name, tuple(sorted(sizes.items())))


@cache
def _template(name: str, sizes: tuple[tuple[str, int], ...]) -> Template:
    mapping = mapping_of(name)
    mapping.require(dict(sizes))
    return Template.of(mapping.device, dict(sizes))
