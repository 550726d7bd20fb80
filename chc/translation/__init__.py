"""Translation validation: one function refines another, for every size and every input."""
