"""Arithmetic on integers of symbolic size: exact words, sums of products, their ranges, and injectivity.

``exact`` compares words without a cut; ``ranges``, ``equalities`` and ``injectivity`` make obligations about sums of
products in ``steps`` that solvers find easy.
"""
