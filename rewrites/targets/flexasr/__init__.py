"""FlexASR as a target.

``backend`` is what the compiler sees; ``operators``, ``rules``, ``places`` and ``code`` are its parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import RECORDED_SIMULATOR, FlexAsrOptions
from accel_models.flexasr.program import parse_program, run
from accel_models.mmio_program import format_reads
from ila_lang import Simulator
from rewrites.mappings.flexasr.claims import CLAIMS
from rewrites.mappings.flexasr.pooling import ir_model
from rewrites.targets.target import Model, Simulated, Target

if TYPE_CHECKING:
    from rewrites.campaigns.definition import Campaign
    from rewrites.compiler.offload.backend import Backend

__all__ = ["TARGET"]


def _simulate(text: str, reading: str) -> Simulated:
    machine = Simulator(flexasr(RECORDED_SIMULATOR if reading == "recorded" else FlexAsrOptions()))
    program = parse_program(text)
    reads = format_reads(run(program, machine))
    started = bool(machine.values["top_interrupt_request"])
    return Simulated(reads, (*program.notes, *(() if started else ("the program starts no unit",))))


def _campaigns() -> tuple[Campaign, ...]:
    from rewrites.campaigns.accelerators.flexasr import attention, layer_norm, linear, numerics, pooling, recurrent

    modules = (pooling, layer_norm, linear, recurrent, attention, numerics)
    return tuple(campaign for module in modules for campaign in module.CAMPAIGNS.values())


def _backend() -> Backend:
    from .backend import BACKEND

    return BACKEND


TARGET: Final = Target(
    "flexasr",
    models=(
        Model(
            "flexasr",
            "FlexASR at its AXI port: global buffer, processing elements and all units",
            flexasr,
            {"rtl": "the hardware source", "recorded": "the public simulator"},
            _simulate,
        ),
        Model("ir", "the tensor IR, one instruction per operator", ir_model),
    ),
    mappings=CLAIMS,
    campaigns=_campaigns,
    backend=_backend,
)
