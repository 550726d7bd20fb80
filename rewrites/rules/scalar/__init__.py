"""Rules on scalars."""
