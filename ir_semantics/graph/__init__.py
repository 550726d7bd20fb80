"""The tensor IR as graphs: operators with one meaning each, typed immutable nodes, and their evaluation.

``types`` and ``ir`` say what a graph is, ``build`` makes one, ``run`` evaluates it, ``terms`` makes terms of it.  The
operators stand in ``elementwise``, ``tensor_operators``, ``composites``, ``recurrent`` and ``host``.
"""

from .build import Builder, expansion, run_node
from .composites import COMPOSITES
from .elementwise import SCALAR_OPERATORS
from .host import HOST
from .ir import Graph, Node
from .operator import OPERATORS, Operator, complete, meaning
from .recurrent import RECURRENT
from .run import run, steps
from .tensor_operators import TENSOR_OPERATORS
from .terms import terms_of
from .types import GraphError, TensorType

__all__ = [
    "COMPOSITES",
    "HOST",
    "OPERATORS",
    "RECURRENT",
    "SCALAR_OPERATORS",
    "TENSOR_OPERATORS",
    "Builder",
    "Graph",
    "GraphError",
    "Node",
    "Operator",
    "TensorType",
    "expansion",
    "meaning",
    "run",
    "run_node",
    "steps",
    "terms_of",
]

complete()
