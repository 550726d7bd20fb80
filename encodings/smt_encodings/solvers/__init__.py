"""The solvers, each in one module."""
