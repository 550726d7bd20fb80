"""Which write gave a cell of a memory its value, proved: iterations, addresses, cases, and that nothing kills it."""
