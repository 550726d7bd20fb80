"""The memory that the command line needs before it loads anything large."""

from __future__ import annotations

from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

LEAST_MEMORY = 512
"""Megabytes of address space: about 300 are measured to be needed, with two processors."""


def require_memory() -> None:
    """Raises MemoryError where the limit of address space is too low for loading NumPy and the solvers.

    Their libraries end the process themselves, with any exit code, where they cannot get memory while they load.
    """
    limit = getrlimit(RLIMIT_AS)[0]
    if limit != RLIM_INFINITY and limit < LEAST_MEMORY << 20:
        raise MemoryError(
            f"the limit of address space must be at least {LEAST_MEMORY} MB, not {limit >> 20} MB; raise it (ulimit -v)"
        )
