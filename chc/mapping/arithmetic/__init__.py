"""Arithmetic on integers of symbolic size: exact words, sums of products, their ranges, and injectivity."""
