"""Templates: a fragment at concrete sizes as a stream of commands with places for the elements of tensors."""
