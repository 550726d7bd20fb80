"""Rules on scalars: ``catalogue`` has all of them, with wrong ones and their repairs."""
