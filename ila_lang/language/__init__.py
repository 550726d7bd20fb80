"""What people write: sorts, expressions, functions, kernels, models, and fragments of programs.

``model`` has the ILA, ``kernel`` loops, ``fragment`` programs, ``expr`` and ``build`` expressions, ``function``
primitives.
"""
