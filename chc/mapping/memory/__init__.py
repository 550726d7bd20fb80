"""What a cell of a memory holds: which write gave it its value, proved, and the values read back from it."""
