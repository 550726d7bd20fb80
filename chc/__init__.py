"""Unbounded proofs: mappings and rules on tensors for every size, rules on scalars for every value, the order of tokens
for any number of blocks, and refinement between MLIR functions.

The package trusts the step from kernels to clauses, the distinguished-cell abstraction, the encodings of
``smt_encodings``, and the solvers' answers.

One package for each kind of claim: ``mapping``, ``tensor_rules``, ``scalar_rules``, ``token_order`` and
``translation``.  ``bijections`` has the theorem on sums in any order that they share.
"""
