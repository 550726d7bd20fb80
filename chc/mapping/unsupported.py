"""What a prover of mappings raises where it does not cover a program."""

from __future__ import annotations

from ila_lang import Expr
from smt_encodings.environment import plain

__all__ = ["Unsupported", "variable_text"]


class Unsupported(Exception):
    """A program shape that this method does not cover; the answer is UNKNOWN, never PROVED."""


def variable_text(variable: Expr) -> str:
    """A variable that a proof found no value for, in words of the program."""
    kind, _, name = plain(variable.name).partition(".")
    match kind:
        case "initial":
            return f"{name} as it was before the program"
        case "unknown":
            return f"{name} after a loop that changes it"
    return plain(variable.name)
