"""The campaigns on FlexASR."""
