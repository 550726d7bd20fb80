"""Proved bounds of the accelerators' errors against real-valued operators.

Lemmas on primitives (:mod:`.lemmas.codes`, :mod:`.lemmas.activations`, :mod:`.lemmas.machine`) are proved on every
argument or by two solvers; :mod:`.lemmas.real_rules` has the laws by which errors compose; :mod:`.derivations.writer`
writes from the kernel of an operator which of them apply, and :mod:`.kernel` makes a theorem of that, which
:mod:`.elementwise` evaluates on arrays.  The operators stand in :mod:`rewrites.claims.theorems`;
docs/reference/numerics.md says what is claimed.
"""
