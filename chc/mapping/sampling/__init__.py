"""Concrete sizes, coordinates and iterations at which a proof guesses, and what programs do there.

``sizes`` draws, ``samples`` runs, ``candidates`` proposes terms.  Nothing here is trusted.
"""
