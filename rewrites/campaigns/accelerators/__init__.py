"""The campaigns on accelerators."""
