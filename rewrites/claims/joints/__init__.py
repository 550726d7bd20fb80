"""The joint between an operator of the graph IR and a mapping that executes it: over the real numbers they are one.

Both are texts of their own.  ``joint`` says what is claimed, ``expansion`` and ``kernel`` read the two sides
(``theorem`` that of a bound), and ``runs`` runs them.  ``sequences`` and ``zeros`` have rules on layers, whose steps
are read in the same way.
"""
