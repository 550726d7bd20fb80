"""Operators of FlexASR as calls of its mappings."""
