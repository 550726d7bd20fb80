"""Memory plans: addresses for buffers, and their checker.

``problem`` says what a plan is, ``plan`` makes one, ``plan_checker`` checks it with code of its own, ``liveness`` has
intervals.
"""
