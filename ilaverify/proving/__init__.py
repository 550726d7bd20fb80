"""Many claims, proved in processes of their own or found in the store."""
