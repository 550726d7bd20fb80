"""Rules on tensors as pairs of MLIR functions: read from a file, and written as one.

``files`` is the door; ``reading`` and ``writing`` are the two directions.
"""
