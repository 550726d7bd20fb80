"""Runs of kernels on arrays: terms compiled, iterations ordered, and runs recorded."""
