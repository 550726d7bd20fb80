"""Sums that are equal up to the order of their reduction."""
