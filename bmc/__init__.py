"""Bounded proofs: both fragments unrolled at one fixed shape, with symbolic data.

The package trusts the unrolling, the encodings of ``smt_encodings``, and the solver's answers.  It proves that an IR
fragment and an accelerator fragment agree at that shape and at no other; a refutation is replayed on the interpreter.

``prove`` and ``sums`` are the methods ``bmc`` and ``hash``.  ``search`` finds counterexamples, ``runs`` has the
concrete runs before every PROVED, and ``mutants`` changes claims in one place.
"""
