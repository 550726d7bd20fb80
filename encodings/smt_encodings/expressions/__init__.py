"""Expressions of ``ila_lang`` as terms: ``bits`` as they are, ``integers`` where that is exact, ``direct`` as text.

``polynomials`` are integer terms as sums of products.
"""
