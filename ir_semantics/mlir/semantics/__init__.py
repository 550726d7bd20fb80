"""What MLIR's operators mean: each in one text, by dialect, as elements that are terms."""
