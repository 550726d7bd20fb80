"""Concrete sizes, coordinates and iterations at which a proof guesses, and what programs do there."""
