"""MLIR programs as data: the generic form read and printed, and other forms by way of ``mlir-opt``.

No dialect is known here.  What operators mean is said in :mod:`.semantics`, of the objects in :mod:`.ir`.  ``convert``
reads a file of any form, ``reader`` the generic form, and ``printer`` writes it.  Source of the syntax: the MLIR
Language Reference (mlir.llvm.org/docs/LangRef).
"""
