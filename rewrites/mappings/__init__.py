"""The mappings: fragments of the tensor IR paired with programs of accelerators, as claims.

``claim`` is the form in which all are offered.  One package for each accelerator; ``conversions`` and ``packing`` are
the host's, ``sequence`` puts programs one after the other, and ``programs`` runs them at sizes.
"""
