"""VTA as a target.

``backend`` is what the compiler sees; ``operators`` and ``code`` are its parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from accel_models.mmio_program import format_reads
from accel_models.vta.model import vta
from accel_models.vta.options import PRESETS
from accel_models.vta.program import parse_program, run
from ila_lang import Simulator
from rewrites.mappings.vta.claims import CLAIMS
from rewrites.targets.target import Model, Simulated, Target

if TYPE_CHECKING:
    from rewrites.campaigns.definition import Campaign
    from rewrites.compiler.offload.backend import Backend

__all__ = ["TARGET"]


def _simulate(text: str, reading: str) -> Simulated:
    options = PRESETS[reading]
    return Simulated(format_reads(run(parse_program(text, options), Simulator(vta(options)), options)))


def _campaigns() -> tuple[Campaign, ...]:
    from rewrites.campaigns.accelerators.vta import CAMPAIGNS

    return tuple(CAMPAIGNS.values())


def _backend() -> Backend:
    from .backend import BACKEND

    return BACKEND


TARGET: Final = Target(
    "vta",
    models=(
        Model(
            "vta",
            "VTA at its instruction interface: scratchpads, tokens, LOAD, GEMM, ALU, STORE",
            vta,
            {"hls": "HLS", "fsim": "functional simulator", "chisel": "Chisel", "vta-ila": "the published ILA"},
            _simulate,
        ),
    ),
    mappings=CLAIMS,
    campaigns=_campaigns,
    backend=_backend,
)
