"""Kernels of the layers that mappings implement, for every size, and the IR as an ILA.

One module for each layer; ``layer`` is what they share.
"""
