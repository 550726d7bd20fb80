"""Rewrite rules between scalar terms, proved for every value: rules as data, the prover, and a search.

``rule`` says what is claimed, ``prove`` decides, ``search`` and ``enclosures`` refute, ``formats`` has accelerators'
numbers.
"""
