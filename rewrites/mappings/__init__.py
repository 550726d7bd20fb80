"""The mappings: fragments of the tensor IR beside programs of accelerators, as claims."""
