"""Benchmarks: commands that measure, with committed results.  Nothing here is asserted by tests."""
