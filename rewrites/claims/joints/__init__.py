"""The joint between an operator of the graph IR and a mapping that executes it: two texts, and the claim that over
the real numbers they are one.
"""
