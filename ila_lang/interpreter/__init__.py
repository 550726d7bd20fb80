"""The reference meaning: kernels and terms as Python functions, machines, and the flat child-ILA.

``machine`` runs devices and fragments, ``compile`` expressions and kernels.
"""
