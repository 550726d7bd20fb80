"""Rules on tensors."""
