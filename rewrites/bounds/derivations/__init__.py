"""Derivations of bounds: a closed form for each operator.

``writer`` writes one from a kernel, ``calculus`` is what operators with bounds are.  The kernel replays it: nothing
here is trusted but what of a kernel the theorem is about.
"""
