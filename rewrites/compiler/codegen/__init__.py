"""Code generation: from accelerator nodes of a graph to calls of proved mappings, and their execution on simulators.

``operators`` says what is known of an accelerator operator, ``interface`` what implementations of nodes have in common;
those of one accelerator stand in :mod:`rewrites.targets`.  ``implement`` makes one, ``calibration`` the ranges that its
number formats rest on, ``programs`` the mappings' device programs, ``bounding`` bounds on given operands, and
``buffers`` memory plans.
"""

from .buffers import host_plan, host_problem
from .calibration import Calibration, calibrate
from .implement import constants_of, implement, implementable, quantisation_of
from .instances import joints_of
from .interface import Bounds, Call, CannotOffload, Choice, Executed, ExecutedSamples, Implementation, Options
from .operators import AcceleratorOperator, accelerator_operator, declared, joint_problem, operator_of, without_lemma
from .programs import Devices, is_program_of

__all__ = [
    "AcceleratorOperator",
    "Bounds",
    "Calibration",
    "Call",
    "CannotOffload",
    "Choice",
    "Devices",
    "Executed",
    "ExecutedSamples",
    "Implementation",
    "Options",
    "accelerator_operator",
    "calibrate",
    "constants_of",
    "declared",
    "host_plan",
    "host_problem",
    "implement",
    "implementable",
    "is_program_of",
    "joint_problem",
    "joints_of",
    "operator_of",
    "quantisation_of",
    "without_lemma",
]
