"""Horn systems: loops in lock-step, one system for each loop level, and invariants."""
