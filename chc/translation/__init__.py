"""Translation validation: one function refines another, for every size and every input.

``refine`` is the door; ``prove`` asks the solvers, ``runs``, ``models`` and ``small`` look for inputs that refute.
"""
