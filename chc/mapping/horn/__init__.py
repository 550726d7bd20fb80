"""Horn systems: loops in lock-step, one system for each loop level, and invariants.

``systems`` lists the levels of a proof, ``levels`` and ``splits`` write their clauses, ``align`` says which loops
correspond, and ``invariants`` asks Spacer and checks its answer.
"""
