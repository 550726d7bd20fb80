"""Compiled models as directories: what runs where, the programs, the plan, and the proofs that all of it rests on.

``directory`` is the place on disk and its digests; ``arrays``, ``graphs`` and ``chain`` are the forms of data, graphs
and explanations in it.  Nothing in a compiled model is trusted: ``checking`` generates everything again from the model,
the certificates and the choices that the compiler recorded, and compares.
"""
