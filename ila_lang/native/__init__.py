"""Kernels, devices and fragments as native code: the same text, translated to LLVM IR with exact widths."""
