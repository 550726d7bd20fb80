"""Mappings to FlexASR.

``claims`` has them by name, ``operations`` their programs at the sizes of tensors.
"""
