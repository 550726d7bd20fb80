"""What a prover of mappings raises where it does not cover a program."""

from __future__ import annotations

__all__ = ["Unsupported"]


class Unsupported(Exception):
    """A program shape that this method does not cover; the answer is UNKNOWN, never PROVED."""
