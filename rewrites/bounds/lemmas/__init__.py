"""Lemmas on primitives, and the rules by which errors compose."""
