"""What all mappings to FlexASR have in common."""

from __future__ import annotations

from functools import partial

from accel_models.flexasr.driver import program_file, setup_commands
from accel_models.flexasr.numerics import describe_code
from ila_lang.mapping import TensorMapping

ASSUMPTIONS = (
    "commands arrive one at a time, and the host waits for the interrupt after the start",
    "buffers, registers and host memory hold arbitrary values before the program",
)
flexasr_mapping = partial(
    TensorMapping,
    output=("host_y", "tensor_out"),
    lemmas=(),
    show_element=describe_code,
    program_file=program_file,
    setup_commands=setup_commands,
)
"""A mapping to FlexASR; arguments are those of a TensorMapping."""
