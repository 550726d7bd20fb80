"""Programs as trees of loops: what commands do, and every write with its loops and its place.

``schedule`` is the door; ``commands`` decodes, ``statements`` and ``writes`` are what a schedule consists of.
"""
