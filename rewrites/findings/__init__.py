"""Faults and surprises of published accelerators and compilers, each found by search, or evaluated, on every call.

A finding is not a list of known constants: its function puts a claim to the solvers, or has Hypothesis look for a
program, and returns the finding, with a counterexample that the interpreter has replayed.  ``python -m
rewrites.findings`` shows them all; docs/reference/findings.md is written by it.
"""

from __future__ import annotations

from collections.abc import Callable

from . import flexasr_numbers, flexasr_programs, hlscnn, mlir, vta
from .finding import Finding, NotFound, section, updated

__all__ = ["FINDERS", "Finding", "NotFound", "find_all", "section", "updated"]

FINDERS: dict[str, Callable[[], Finding]] = {
    "flexasr_sign": flexasr_numbers.saturation_sign,
    "flexasr_attention": flexasr_numbers.attention_wraps,
    "flexasr_stride": flexasr_programs.stride,
    "flexasr_odd": flexasr_programs.odd_timesteps,
    "flexasr_backward": flexasr_programs.backward,
    "flexasr_padding": flexasr_programs.padding_vectors,
    "hlscnn_order": hlscnn.order,
    "hlscnn_leak": hlscnn.leak,
    "hlscnn_border": hlscnn.borders,
    "hlscnn_faults": hlscnn.faults,
    **vta.FINDERS,
    **mlir.FINDERS,
}
"""The functions that find them, by name."""


def find_all() -> list[Finding]:
    """All findings, found now (once per process); raises NotFound at the first that is not found."""
    return [finder() for finder in FINDERS.values()]
