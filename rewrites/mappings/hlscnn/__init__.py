"""Mappings to HLSCNN.

``claims`` has them by name, ``operations`` the convolution's program at the sizes of tensors.
"""
