"""Rewrite rules between scalar terms, proved for every value: rules as data, the prover, and a search."""
