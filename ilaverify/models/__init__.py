"""Compiled models: made, read, run on samples, and compared with references.

``compilation`` makes one, ``loading`` reads it, ``comparison`` runs it beside ``references``, ``datasets`` has
samples.
"""
