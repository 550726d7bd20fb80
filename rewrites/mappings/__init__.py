"""The mappings: fragments of the tensor IR paired with programs of accelerators, as claims."""
