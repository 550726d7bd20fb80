"""What a user or a test chooses about offloading; everything has a default."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rewrites.compiler.codegen import Options
from rewrites.egraph.saturation import Limits

from .costs import Implementable

LIMITS: Final = Limits(nodes=60_000, iterations=24, seconds=90.0, matches=4000)
"""The limits of saturation by default."""


@dataclass(frozen=True)
class Settings:
    """How a graph is offloaded.

    Without ``flexible`` only rules to accelerator operators are used, and those that put operands into their layout.
    ``costs`` is a name in :data:`rewrites.compiler.offload.costs.COSTS`.  ``implementable`` says for which nodes code
    can be generated; on ``options`` may depend which mappings execute an operator.  ``limits`` are those of saturation.
    """

    flexible: bool = True
    costs: str = "offload"
    implementable: Implementable | None = None
    options: Options = field(default_factory=Options)
    limits: Limits = LIMITS


DEFAULTS: Final = Settings()
