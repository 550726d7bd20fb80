"""Values of both sides compared: folds step by step, by induction, and in any order.

``equivalence`` is the door; ``lockstep`` pairs loops, ``blocks``, ``few_iterations`` and ``idle`` take a fold in
another form first, ``any_order`` compares sums, and ``induction`` has timesteps.
"""
