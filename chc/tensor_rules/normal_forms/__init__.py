"""Normal forms of elements of tensors, and the steps that lead to them.

``normalise`` brings an element to its normal form (``normal``, ``extrema``), and ``derive`` writes the steps down.
Only the kernel that replays these is trusted.
"""
