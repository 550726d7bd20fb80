"""The solvers, each in one module: ``z3`` and ``cvc5``, both asked by SMT-LIB text."""
