"""Proved bounds of the accelerators' errors against real-valued operators.

Lemmas on primitives (:mod:`.codes`, :mod:`.activations`, :mod:`.machine`) are proved on every argument or by two
solvers; :mod:`.real_rules` has the rules by which errors compose; :mod:`.calculus` derives from both a closed form for
each operator (:mod:`.flexasr`, :mod:`.norm`, :mod:`.machines`, over time :mod:`.recurrence`).  docs/numerics.md, which
``python -m rewrites.numerics --write`` writes, says what is claimed.
"""
