"""Proved bounds of the accelerators' errors against real-valued operators.

Lemmas on primitives (:mod:`.lemmas.codes`, :mod:`.lemmas.activations`, :mod:`.lemmas.machine`) are proved on every
argument or by two solvers; :mod:`.lemmas.real_rules` has the rules by which errors compose;
:mod:`.derivations.calculus` derives from both a closed form for each operator (:mod:`.derivations.flexasr`,
:mod:`.derivations.norm`, :mod:`.derivations.machines`, over time :mod:`.derivations.recurrence`).
docs/reference/numerics.md,
which ``python -m rewrites.bounds --write`` writes, says what is claimed.
"""
