"""Kernels of the layers that mappings implement, for every size, and the IR as an ILA."""
