"""The steps by which the bound of a network in ranges follows, and the law of each operator.

The laws are claims (:mod:`rewrites.bounds.lemmas.network_rules` and ``real_rules``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ir_semantics.graph import Graph, Node, TensorType
from ir_semantics.graph.build import expansion
from ir_semantics.graph.ir import integer_of, integers_of
from ir_semantics.graph.operator import lookup

from .upward import Reals

Place = tuple[int | str, ...]
"""What a step is about: see :mod:`.replay`."""


class Rejected(ValueError):
    """A step is no instance of its law, or its number is too small; the message says which and why."""


@dataclass(frozen=True)
class Step:
    """A law, what the result is about, the steps that it is of, and the largest error of an element.

    ``given`` is the number that an accelerator states: what rounding an operand may change, or its own bound.
    """

    law: str
    place: Place
    of: tuple[int, ...]
    most: float
    given: float | None = None


_MOVES = frozenset(
    {"broadcast", "reshape", "transpose", "slice", "concat", "pad", "reverse", "gather", "gather_elements", "patches"}
)
NEGLIGIBLE = 2.0**-7
"""A part that is at most so long, compared with the longest one, is no longer told apart behind a function."""
EXTREMA = frozenset({"reduce_max", "reduce_min", "max_pool"})
_SLOPES = {"relu": "slope of relu", "sigmoid": "slope of the logistic function", "tanh": "slope of tanh"}
_LAWS: Mapping[str, frozenset[str]] = {
    "move": _MOVES,
    "sum": frozenset({"add", "sub"}),
    "row": frozenset({"reduce_sum", "mean", "cumsum", "avg_pool"}),
    "factor": frozenset({"mul", "matmul", "conv"}),
    "choice": frozenset({"neg", "abs", "maximum", "minimum", "clamp"}) | EXTREMA,
    "slope": frozenset(_SLOPES),
}
LAW_OF: Mapping[str, str] = {operator: law for law, operators in _LAWS.items() for operator in operators}
"""The law of each operator."""
_FORMS = (
    *("sum", "one more of a row", "product and squares", "Cauchy and Schwarz", "length of a sum"),
    *("one more element of a length", "spectral norm", "either bound"),
)
_ROUNDED = ("rounded product", "one more rounding")
PROOFS: Mapping[str, tuple[str, ...]] = {
    "input": (),
    "constant": (),
    "operand": ("sum",),
    "own": ("sum",),
    "move": (),
    "sum": ("sum", *_ROUNDED),
    "row": ("sum", "one more of a row", *_ROUNDED),
    "factor": ("sum", "factor that is known", "magnitude of a product", "one more of a row", *_ROUNDED),
    "choice": ("negation", "magnitude", "larger", "smaller", "clamp"),
    "slope": (
        *(*_SLOPES.values(), "half of a slope", "range"),
        *_FORMS,
    ),
    "form": _FORMS,
    "output": _FORMS,
}
"""The names of the laws that a step rests on: of :mod:`~rewrites.bounds.lemmas.network_rules` and ``real_rules``.

Of slopes it is the operator's own (:func:`proofs_of`).
"""


def proofs_of(law: str, operators: Collection[str]) -> tuple[str, ...]:
    """The names of the laws that steps of a law about these operators rest on."""
    others = {name for operator, name in _SLOPES.items() if operator not in operators}
    return tuple(name for name in PROOFS[law] if name not in others)


def laws_of(graph: Graph) -> tuple[str, ...]:
    """The names of the laws that steps about a network may rest on."""
    operators = _operators_of(graph)
    steps = ("operand", "own", "form", "output", *(LAW_OF[name] for name in LAW_OF if name in operators))
    return tuple(dict.fromkeys(name for law in steps for name in proofs_of(law, operators)))


def _operators_of(graph: Graph) -> set[str]:
    """Those of nodes, and of what composite ones stand for."""
    found = set[str]()
    for node in graph.nodes:
        found.add(node.operator)
        if node.operator not in ("input", "constant") and lookup(node.operator).expand is not None:
            types = tuple(graph.nodes[i].type for i in node.operands)
            found |= _operators_of(expansion(node.operator, types, node.attributes))
    return found


def terms_of(node: Node, types: Sequence[TensorType]) -> int:
    """How many products each result is the sum of."""
    attributes = dict(node.attributes)
    match node.operator:
        case "add" | "sub":
            return 2
        case "reduce_sum" | "mean":
            return math.prod(types[0].shape[axis] for axis in integers_of(attributes, "axes"))
        case "cumsum":
            return types[0].shape[integer_of(attributes, "axis")]
        case "avg_pool":
            return math.prod(integers_of(attributes, "kernel"))
        case "matmul":
            return types[0].shape[-1]
        case "conv":
            return math.prod(types[1].shape[1:])
    return 1


def roundings_of(node: Node, types: Sequence[TensorType]) -> int:
    """How often the host rounds on the way to a result; sigmoid's and tanh's float32 is taken for two operations'."""
    law = LAW_OF[node.operator]
    if node.operator in ("sigmoid", "tanh"):
        return 2
    if law in ("move", "choice", "slope"):
        return 0
    return 1 if law == "sum" else terms_of(node, types)


class Device(Protocol):
    """What an accelerator states of a node, as :class:`~rewrites.compiler.codegen.Implementation` does."""

    @property
    def operands(self) -> tuple[str, ...]:
        """Their names, in order."""

    def rounding(self, name: str, magnitude: float) -> float:
        """What rounding an operand of at most this magnitude may change."""

    def constant_of(self, name: str) -> Reals:
        """What it gets for a constant operand."""


@dataclass(frozen=True, eq=False)
class Places:
    """The places of a network: nodes, operands of accelerators, and nodes of what composite operators stand for."""

    graph: Graph
    devices: Mapping[int, Device]

    def inside(self, place: Place) -> Graph:
        """What the composite operator at a place stands for."""
        graph, at = self.graph_of(place)
        node = graph.nodes[at]
        if node.operator in ("input", "constant") or lookup(node.operator).expand is None:
            raise Rejected(f"{place} is no composite operator")
        return expansion(node.operator, tuple(graph.nodes[i].type for i in node.operands), node.attributes)

    def graph_of(self, place: Place) -> tuple[Graph, int]:
        """The graph that a place is in, and the number of its node; raises Rejected where there is none."""
        graph = self.graph if len(place) == 1 else self.inside(place[:-1])
        at = place[-1]
        if not isinstance(at, int) or not 0 <= at < len(graph.nodes):
            raise Rejected(f"{place} is no place of the network")
        return graph, at

    def resolved(self, place: Place) -> Place:
        """Where the value at a place comes from: operands of composites, and what these stand for, are others'."""
        graph, at = self.graph_of(place)
        node = graph.nodes[at]
        if len(place) > 1 and node.operator == "input":
            outer, number = self.graph_of(place[:-1])
            position = next(int(name[1:]) for name, i in graph.inputs.items() if i == at)
            if len(place) == 2 and place[0] in self.devices:
                return (place[0], self.devices[int(place[0])].operands[position])
            return self.resolved((*place[:-2], outer.nodes[number].operands[position]))
        if node.operator in ("input", "constant") or (len(place) == 1 and at in self.devices):
            return place
        if lookup(node.operator).expand is not None:
            return self.resolved((*place, self.inside(place).outputs["y"]))
        return place
