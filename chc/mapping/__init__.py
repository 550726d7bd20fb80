"""Mappings, proved for every size: constrained Horn clauses with inferred relational invariants.

``prove`` gives a verdict, ``dataflow`` joins the parts, and ``proof`` is what these share.  ``program`` lists what a
program writes, ``memory`` finds out which write gave a cell its value, ``contents`` what that value is, and ``relate``
compares the values of both sides.  ``horn`` has the systems of clauses, ``arithmetic`` the integers, and ``sampling``
the concrete sizes at which a proof guesses.  No guess and no inferred invariant is trusted: each is an obligation.
"""
