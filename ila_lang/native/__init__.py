"""Kernels, devices and fragments as native code: the same text, translated to LLVM IR with exact widths.

``terms``, ``kernels`` and ``devices`` write IR, ``build`` makes functions of it, and ``session`` runs a device.  It is
tested against the interpreter, not proved equal; no prover uses it.
"""
