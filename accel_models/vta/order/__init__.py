"""In which orders VTA's modules may run, and what that changes."""
