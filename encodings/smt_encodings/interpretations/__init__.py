"""Interpretations of scalar operators as SMT terms, one in each module.

``symbols``: uninterpreted functions with lemmas.  ``exact``: reals and integers without bound.  ``machine``: integers,
fixed point and formats given by primitives, as bit-vectors.  ``abstract_floats``: mlir-tv's abstraction of IEEE floats.
``ieee``: IEEE floats by the solvers' theory.

An interpretation is an :class:`Encoding`: it maps variables, constants and operators to terms, and writes questions.
"""

from .abstract_floats import AbstractFloats
from .exact import ExactNumbers
from .ieee import IeeeFloats
from .machine import MachineBits
from .protocol import CannotInterpret, DataFormat, Literal, MachineDomain
from .symbols import Symbols

__all__ = [
    "AbstractFloats",
    "CannotInterpret",
    "DataFormat",
    "Encoding",
    "ExactNumbers",
    "IeeeFloats",
    "Literal",
    "MachineBits",
    "MachineDomain",
    "Symbols",
]
