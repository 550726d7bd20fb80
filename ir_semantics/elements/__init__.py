"""One arbitrary element of a tensor as a term over several number formats, with folds and quantified conditions.

``terms`` says what a term is, ``operators`` builds, ``evaluate`` runs, ``folds`` has laws, ``bags`` sums whose order
is free.
"""
