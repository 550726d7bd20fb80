"""Mappings, proved for every size: constrained Horn clauses with inferred relational invariants.

``prove`` gives a verdict, ``dataflow`` joins the parts, and ``proof`` is what these share.  ``program`` lists what a
program writes, ``memory`` finds out what a cell holds, and ``relate`` compares the values of both sides; ``horn`` has
the systems of clauses, and ``arithmetic`` the integers.  An inferred invariant is not trusted but checked again.
"""
