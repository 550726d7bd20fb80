"""The simulator: a device that takes streams of commands, and runs its kernels on arrays."""
