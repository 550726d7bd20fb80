"""Rewrite rules between tensor terms, proved for every size: rules as data, the prover, the search for counterexamples.

``rule`` says what is claimed, ``prove`` and ``decide`` give verdicts, ``refute`` searches for counterexamples.
"""
