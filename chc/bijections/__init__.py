"""Folds whose order is free: index sets, bijections between them, and what must hold of these.

``solve`` guesses maps from equations between subscripts, ``pieces`` takes the equations from summands, ``theorem`` says
what makes of guesses a proof.  Nothing here asks a solver, and no guess is trusted.
"""
