"""Scales of a recurrent layer: inputs may be multiplied by a power of two, if their weights are divided by it.

Their products are the same, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ir_semantics.graph.ir import Graph
from ir_semantics.graph.operator import lookup
from ir_semantics.tensors.index import Index
from ir_semantics.tensors.operators import fill
from ir_semantics.tensors.terms import Tensor
from rewrites.rules.tensor.scales import NONE, RESULT, Scaling, U, scaled
from smt_encodings.claims import Equality

from .layers import HIDDEN, LAYER_OPTIONS, Change, LayerRule, by_induction, inputs_of, states_of

OF_INPUTS: Final = {"x": U, "w": -U}
"""Exponents of operands; those of others, and of states, are 0."""


def operands_scaled(kind: str, exponents: dict[str, Index]) -> dict[Tensor, Tensor]:
    """The operands of a layer, each with what it is when it is scaled; peepholes are zeros on both sides."""
    operands = {x: scaled(x, exponents.get(name, NONE)) for name, x in inputs_of(kind).items() if name != "peepholes"}
    return operands | ({(zeros := fill(0, HIDDEN * 3)): zeros} if kind == "lstm" else {})


UNCHANGED: Final = Change(equality=Equality.OVER_REALS, positive=frozenset(U.variables))


def _scales(kind: str) -> LayerRule:
    of = operands_scaled(kind, OF_INPUTS)
    return by_induction(f"scales of {kind} layers", lookup(kind), LAYER_OPTIONS[kind], of, states_of(kind), UNCHANGED)


SCALES: Final = {kind: _scales(kind) for kind in LAYER_OPTIONS}
"""That a layer of scaled inputs, with weights that are scaled back, is the layer, by kind."""

SCALED: Final = {
    kind: Scaling({**OF_INPUTS, **dict.fromkeys(("u", "b", "d", "h", "c", RESULT), NONE)}, rule)
    for kind, rule in SCALES.items()
}
"""By kind, of accelerators' operators: weights of states, both biases and given states are not scaled."""
MOVES: Final = frozenset({"broadcast", "concat", "reshape", "slice"})


def not_scaled(kind: str, graph: Graph, exponents: Sequence[Index]) -> str:
    """Why a graph is no layer of that kind of scaled inputs, each with its exponent; empty where it is one.

    It is one layer of moved inputs and zeros, moved; what moves is scaled as before.
    """
    own, layers = dict[int, set[Index]](), []
    for number, node in enumerate(graph.nodes):
        of = [own[operand] for operand in node.operands]
        if number in graph.inputs.values():
            own[number] = {exponents[[*graph.inputs.values()].index(number)]}
        elif node.operator == "constant" and not graph.constant(number).any():
            own[number] = set()
        elif node.operator in MOVES:
            own[number] = set().union(*of)
        elif node.operator == kind and dict(node.attributes) == LAYER_OPTIONS[kind]:
            needed = [{OF_INPUTS.get(name, NONE)} for name in inputs_of(kind)]
            if not all(map(set.issuperset, needed, of)):
                return f"the operands of {kind} must be scaled by the rule of such layers"
            own[number] = {NONE}
            layers.append(number)
        else:
            return f"it must be {kind} of what is moved, not have {node.operator}"
    within = [graph.outputs["y"]]
    while within[-1] not in layers and len(operands := graph.nodes[within[-1]].operands) == 1:
        within += operands
    return "" if within[-1] in layers else f"it must be {kind}, moved"
