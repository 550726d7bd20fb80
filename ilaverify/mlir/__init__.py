"""Functions of MLIR files, and passes on them, as claims to be proved."""
