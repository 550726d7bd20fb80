"""HLSCNN as a target.

``backend`` is what the compiler sees; ``operators``, ``code`` and ``tiling`` are its parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.options import PRESETS
from accel_models.hlscnn.program import parse_program, run
from accel_models.mmio_program import format_reads
from ila_lang import Simulator
from rewrites.mappings.hlscnn.claims import CLAIMS
from rewrites.targets.target import Model, Simulated, Target

if TYPE_CHECKING:
    from rewrites.campaigns.definition import Campaign
    from rewrites.compiler.offload.backend import Backend

__all__ = ["TARGET"]


def _simulate(text: str, reading: str) -> Simulated:
    program = parse_program(text)
    return Simulated(format_reads(run(program, Simulator(hlscnn(PRESETS[reading])))), program.notes)


def _campaigns() -> tuple[Campaign, ...]:
    from rewrites.campaigns.accelerators.hlscnn import CAMPAIGNS

    return tuple(CAMPAIGNS.values())


def _backend() -> Backend:
    from .backend import BACKEND

    return BACKEND


TARGET: Final = Target(
    "hlscnn",
    models=(
        Model(
            "hlscnn",
            "HLSCNN at its AXI port: scratchpads, transfers, convolution",
            hlscnn,
            {
                "recorded": "what a recording of the hardware's model decides",
                "master": "as recorded, a plane for each filter, as in the published master branch",
                "wgt_16bits": "weights of 16 bits, as in that branch",
            },
            _simulate,
        ),
    ),
    mappings=CLAIMS,
    campaigns=_campaigns,
    backend=_backend,
)
