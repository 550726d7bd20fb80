"""What ilaverify knows of tiny_gemm; pyproject.toml names TARGET, and RULES, as entry points."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from rewrites.targets.target import Model, Target

from .mapping import CLAIMS
from .model import device
from .rules import RULES

if TYPE_CHECKING:
    from rewrites.campaigns.definition import Campaign
    from rewrites.compiler.offload.backend import Backend

__all__ = ["RULES", "TARGET"]


def _campaigns() -> tuple[Campaign, ...]:
    from .campaign import CAMPAIGN  # loaded only for campaigns

    return (CAMPAIGN,)


def _backend() -> Backend:
    from .backend import BACKEND

    return BACKEND


TARGET: Final = Target(
    "tiny_gemm",
    models=(
        Model("tiny_gemm", "tiny_gemm at its bus: scratchpads, GEMM, requantisation", device),
        Model("tiny_gemm_wraps", "tiny_gemm without saturation, which is a fault", partial(device, True)),
    ),
    mappings=CLAIMS,
    campaigns=_campaigns,
    backend=_backend,
)
