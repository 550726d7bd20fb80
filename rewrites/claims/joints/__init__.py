"""The joint between an operator of the graph IR and a mapping that executes it: two texts, and the claim that over the
real numbers they are one.

``joint`` says what is claimed, ``expansion`` and ``kernel`` read the two sides (``theorem`` that of a bound), ``runs``
runs them.  ``sequences`` and ``zeros`` have rules on layers, whose steps are read in the same way.
"""
