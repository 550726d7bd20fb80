"""Memory plans: addresses for buffers, and their checker."""
