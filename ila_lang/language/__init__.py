"""What people write: sorts, expressions, functions, kernels, models, and fragments of programs."""
