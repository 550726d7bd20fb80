"""The kernel: replays derivations of bounds, and knows nothing of how they were found.

``replay`` is the door; ``judgements`` and ``formula`` are its language, ``laws`` and ``readings`` what steps may name.
"""
