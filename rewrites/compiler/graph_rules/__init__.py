"""Rules on tensors as rewrites of graphs, and graphs made better by them."""
