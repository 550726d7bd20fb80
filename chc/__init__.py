"""Unbounded proofs: mappings and rules on tensors for every size, rules on scalars for every
value, and the order of tokens for any number of blocks.

The package trusts the step from kernels to clauses, the distinguished-cell abstraction, the
encodings of ``smt_encodings``, and the solvers' answers.
"""
