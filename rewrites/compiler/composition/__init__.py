"""Bounds of whole networks, composed from those of their operators.

:mod:`.differences` says, operator by operator, how a difference of operands becomes one of results, :mod:`.of_runs`
composes the bound of a run from that.
"""
