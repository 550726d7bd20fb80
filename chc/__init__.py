"""Proofs for every size: mappings, rules, the order of tokens, and refinement between MLIR functions.

The package trusts the step from kernels to clauses, the distinguished-cell abstraction, the encodings of
``smt_encodings``, and the solvers' answers.

One package for each kind of claim: ``mapping``, ``tensor_rules``, ``scalar_rules`` (every value), ``token_order`` (any
number of blocks) and ``translation``.  ``bijections`` has the theorem on sums in any order that they share.
"""
