"""Theorems on numeric error: for the IR's side of a mapping, how far its numbers lie from real ones.

Derivations are written by :mod:`rewrites.bounds.derivations.writer` from the kernels that the mappings are about; here
are the names of what occurs in them.  docs/reference/numerics.md, which ``python -m docs.tables`` writes, says what is
claimed.
"""
