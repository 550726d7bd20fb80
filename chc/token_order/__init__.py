"""Dependency tokens of VTA order a program's modules, proved for any number of blocks, and for one program.

``theorem`` is the door; ``family`` and ``blocks`` are for any number of blocks, ``program`` for one program,
``lemmas`` for all.
"""
