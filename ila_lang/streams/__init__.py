"""The simulator: a device that takes streams of commands, as native code."""
