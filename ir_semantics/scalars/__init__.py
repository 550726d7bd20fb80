"""Terms over scalars, whose operators have one meaning for all number formats, and their values."""
