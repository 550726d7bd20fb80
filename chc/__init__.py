"""Unbounded proofs: constrained Horn clauses with inferred relational invariants.

The package trusts the step from kernels to clauses, the distinguished-cell abstraction, the
encodings of ``smt_encodings``, and the solvers' answers; an inferred invariant is not trusted but
checked again. It proves that an IR fragment and an accelerator fragment agree at every size of a
stated domain.
"""
