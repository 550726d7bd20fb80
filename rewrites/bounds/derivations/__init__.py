"""Derivations of bounds: a closed form for each operator."""
