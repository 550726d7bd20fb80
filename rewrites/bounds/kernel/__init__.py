"""The kernel: replays derivations of bounds, and knows nothing of how they were found."""
