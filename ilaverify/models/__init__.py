"""Compiled models: made, read, run on samples, and compared with references."""
