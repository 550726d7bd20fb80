"""Code generation: from accelerator nodes of a graph to calls of proved mappings, and their execution on simulators.

``implement`` makes an implementation of a node, ``calibration`` the ranges that its number formats rest on; operators
stand in ``flexasr``, ``hlscnn`` and ``vta``.
``interface`` says what they have in common, ``programs`` has the mappings' device programs, ``bounding`` bounds on
given operands, ``buffers`` memory plans, and ``claims`` the rules that parts rest on.
"""

from .buffers import device_memories, host_plan, host_problem
from .calibration import Calibration, calibrate
from .claims import SPLITS, bound_claims
from .implement import constants_of, implement, implementable, quantisation_of
from .interface import Bounds, Call, CannotOffload, Executed, Implementation, Options
from .programs import MAPPINGS, Devices, is_program_of

__all__ = [
    "MAPPINGS",
    "SPLITS",
    "Bounds",
    "Calibration",
    "Call",
    "CannotOffload",
    "Devices",
    "Executed",
    "Implementation",
    "Options",
    "bound_claims",
    "calibrate",
    "constants_of",
    "device_memories",
    "host_plan",
    "host_problem",
    "implement",
    "implementable",
    "is_program_of",
    "quantisation_of",
]
