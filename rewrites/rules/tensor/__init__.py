"""Rules on tensors: ``catalogue`` has all of them, with wrong ones and their repairs."""
