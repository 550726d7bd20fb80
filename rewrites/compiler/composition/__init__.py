"""Bounds of whole networks, composed from those of their operators.

:mod:`.differences` says, operator by operator, how a difference of operands becomes one of results, :mod:`.of_runs`
composes the bound of a run from that, which :mod:`.balance` makes independent of it, and :mod:`.of_ranges` the bound
for all inputs in calibrated ranges, with steps that :mod:`.replay` checks.
"""
