"""Mappings to HLSCNN."""
