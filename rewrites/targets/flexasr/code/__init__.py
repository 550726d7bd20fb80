"""Operators of FlexASR as calls of its mappings.

One module for each family; ``adaptive`` is what they share.
"""
