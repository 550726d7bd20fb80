"""Mappings to VTA.

``claims`` has them by name, ``operations`` their programs at the sizes of matrices.
"""
