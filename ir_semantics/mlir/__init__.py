"""MLIR programs as data: the generic form read and printed, and other forms by way of ``mlir-opt``.

No dialect is known here.  What operators mean is said elsewhere, of the objects in :mod:`.ir`.
Source of the syntax: the MLIR Language Reference (mlir.llvm.org/docs/LangRef).
"""
