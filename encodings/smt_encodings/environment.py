"""A pySMT environment per proof.

pySMT keeps one table of symbols for the whole process, in which a name has one type for ever.  Two proofs may use one
name for different things (a size of one mapping, a memory of another), so each gets a table of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pysmt.environment import pop_env, push_env

__all__ = ["fresh_symbols"]


@contextmanager
def fresh_symbols() -> Iterator[None]:
    """Runs a block with an empty table of symbols; terms made inside must not be used outside."""
    push_env()
    try:
        yield
    finally:
        pop_env()
