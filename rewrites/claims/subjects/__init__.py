"""The kinds of claims that have certificates."""
