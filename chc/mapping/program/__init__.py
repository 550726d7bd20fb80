"""Programs as trees of loops: what commands do, and every write with its loops and its place."""
