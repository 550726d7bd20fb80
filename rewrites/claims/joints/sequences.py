"""Rules on recurrent layers: sequences of a layer do not depend on each other.

Some sequences of a layer are the layer of these alone.  A layer repeats a step, and the proof is by induction over the
iterations: if the states before one are the same, those after it are.  So the rule that is proved is about one
iteration, in which the states before it are rows of any tensors; at the first one they are those that are given.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import starmap
from math import prod
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from chc.tensor_rules.rule import TensorRule
from ir_semantics.graph.build import expansion
from ir_semantics.graph.ir import Attributes, attributes_of
from ir_semantics.graph.operator import Operator, lookup
from ir_semantics.graph.terms import terms_of
from ir_semantics.graph.types import TensorType
from ir_semantics.tensors.conditions import both, inside, le
from ir_semantics.tensors.elements import Element, Reader
from ir_semantics.tensors.evaluate import evaluate, shape_at
from ir_semantics.tensors.index import Index, Names, size
from ir_semantics.tensors.numbers import apart
from ir_semantics.tensors.operators import slice_
from ir_semantics.tensors.terms import Tensor, input_, make

from .expansion import ITERATION, expanded
from .indices import Obligation
from .instruction import Unread
from .joint import stack

_PLAIN: Final[Attributes] = {"clip": 0.0, "lengths": False, "output": 0, "reverse": False}
LAYER_OPTIONS: Final[Mapping[str, Attributes]] = {
    "lstm": {"activations": (("sigmoid",), ("tanh",), ("tanh",)), "input_forget": False, **_PLAIN},
    "gru": {"activations": (("sigmoid",), ("tanh",)), "linear_before_reset": True, **_PLAIN},
    "rnn": {"activations": (("tanh",),), **_PLAIN},
}
"""The attributes of the layers that rules are about: the usual functions, from the first timestep to the last."""


STEPS, N, P, Q, INPUTS, HIDDEN = map(size, "tnpqih")
"""Timesteps, sequences, which of these, inputs, and the size of a state."""


@dataclass(frozen=True, eq=False)
class LayerRule(TensorRule):
    """A rule on layers that repeat a step: ``layers`` are its sides, of which only operands and attributes are read.

    ``left`` and ``right`` are the states of all iterations of both sides as one of them makes them of those before it,
    and ``requires`` must hold in every iteration.
    """

    layers: tuple[Tensor, ...] = ()
    requires: tuple[Obligation, ...] = ()

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the layer's operands."""
        (layer,) = self.layers[0].operands
        return tuple(str(dict(x.attributes)["name"]) for x in layer.operands)


def taken(x: Tensor, axis: int | None) -> Tensor:
    """Of a tensor that has sequences along an axis so many as q, from number p on; of others all."""
    if axis is None:
        return x
    start = [P if j == axis else 0 for j in range(x.rank)]
    return slice_(x, start, [P + Q if j == axis else d for j, d in enumerate(x.shape)])


def sequences(
    name: str,
    operator: Operator,
    attributes: Attributes,
    operands: Mapping[Tensor, int | None],
    states: Sequence[Tensor],
) -> LayerRule:
    """That some sequences of a layer [t, n, ...] are the layer of these sequences of its operands.

    Operands have sequences along an axis, or none; ``states`` are what rows of states lie in, the result's first.
    Raises Unread where the operator is not one layer for all sizes.
    """
    named: dict[str, Any] = dict(attributes)
    of = [*operands], [taken(x, axis) for x, axis in operands.items()]
    rows = states, [taken(x, 1) for x in states]
    whole, part = (expanded(operator, o, attributes, states=s) for o, s in zip(of, rows, strict=True))
    within = inside(Index({(ITERATION,): 1}), states[0].shape[0])
    return LayerRule(
        name,
        taken(stack(whole.term, *whole.after), 2),
        stack(part.term, *part.after),
        both(whole.premise, part.premise, le(1, Q), le(P + Q, N)),
        layers=(
            taken(make(operator.name, of[0], whole.term.shape, _unread, **named), 1),
            make(operator.name, of[1], part.term.shape, _unread, **named),
        ),
        requires=tuple(
            Obligation((within,), goal, f"every step is well formed: {goal}")
            for goal in dict.fromkeys((*whole.requires, *part.requires))
        ),
    )


def difference(rule: LayerRule) -> str:
    """At which sizes both sides differ when the graphs of their layers are evaluated; empty where they do not."""
    draw = random.Random(0)
    some, part = rule.layers
    (whole,) = some.operands
    for steps, n, p, q in ((1, 2, 0, 1), (2, 3, 1, 2), (3, 2, 1, 1)):
        sizes = {"t": steps, "n": n, "p": p, "q": q, "i": 2, "h": 2}
        data = {str(dict(x.attributes)["name"]): _drawn(shape_at(x, sizes), draw) for x in whole.operands}
        left, right = _evaluated(whole, sizes, data)[:, p : p + q], _evaluated(part, sizes, data)
        if left.shape != right.shape or any(starmap(apart, zip(left.flat, right.flat, strict=True))):
            return f"the layers differ where {', '.join(f'{name} = {value}' for name, value in sizes.items())}"
    return ""


def _drawn(shape: Sequence[int], draw: random.Random) -> NDArray[np.object_]:
    return np.array([Fraction(draw.randint(-4, 4), 2) for _ in range(prod(shape))], dtype=object).reshape(shape)


def _evaluated(layer: Tensor, sizes: Mapping[str, int], data: Mapping[str, NDArray[Any]]) -> NDArray[np.object_]:
    """The result of a layer: that of the graph that its operator stands for at these sizes."""
    operands = [evaluate(x, sizes, data) for x in layer.operands]
    types = tuple(TensorType("float32", x.shape) for x in operands)
    graph = expansion(layer.operator, types, attributes_of(cast(Attributes, dict(layer.values))))
    return evaluate(terms_of(graph)["y"], {}, {f"x{j}": x for j, x in enumerate(operands)})


def _unread(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
    raise Unread("the elements of a layer are those of its steps")


GATES: Final = {"lstm": 4, "gru": 3, "rnn": 1}


def operands_of_layer(kind: str) -> dict[Tensor, int | None]:
    """The operands of a layer of n sequences, each with the axis along which it has them."""
    stacked = HIDDEN * GATES[kind]
    operands: dict[Tensor, int | None] = {
        input_("x", STEPS, N, INPUTS): 1,
        input_("w", stacked, INPUTS): None,
        input_("r", stacked, HIDDEN): None,
        input_("b", stacked * 2): None,
        input_("h0", N, HIDDEN): 0,
    }
    if kind == "lstm":
        operands |= {input_("c0", N, HIDDEN): 0, input_("peepholes", HIDDEN * 3): None}
    return operands


def _sequences(kind: str) -> LayerRule:
    states = [input_(f"{name}_before", STEPS, N, HIDDEN) for name in ("hc" if kind == "lstm" else "h")]
    name = f"sequences of {kind} layers"
    return sequences(name, lookup(kind), LAYER_OPTIONS[kind], operands_of_layer(kind), states)


SEQUENCES: Final = {kind: _sequences(kind) for kind in LAYER_OPTIONS}
"""That some sequences of a layer are the layer of these alone, by kind."""
