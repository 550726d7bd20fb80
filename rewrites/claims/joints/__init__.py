"""The joint between an operator of the graph IR and a mapping that executes it: two texts, and the claim that over
the real numbers they are one.  ``sequences`` has rules on layers, whose steps are read in the same way.
"""
