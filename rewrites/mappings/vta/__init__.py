"""Mappings to VTA."""
