"""Control flow inside of functions: loops that carry values and memory, and choices."""
