"""Functions of MLIR files, and passes on them, as claims to be proved.

``translation`` makes the claims, ``campaign`` puts random programs to passes.
"""
