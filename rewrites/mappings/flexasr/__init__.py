"""Mappings to FlexASR."""
