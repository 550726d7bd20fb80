"""Rules on layers that repeat a step: a layer of changed operands is the layer, changed.

The proof is by induction over the iterations: if the states before one are those of the other side, changed, so are
those after it.  So the rule that is proved is about one iteration, in which the states before it are rows of any
tensors; at the first one they are those that are given.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import starmap
from math import prod
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from chc.tensor_rules.rule import TensorRule
from chc.tensor_rules.sizes import sizes_drawn
from ir_semantics.graph.build import expansion
from ir_semantics.graph.ir import Attributes, attributes_of
from ir_semantics.graph.operator import Operator
from ir_semantics.graph.terms import terms_of
from ir_semantics.graph.types import TensorType
from ir_semantics.tensors.conditions import TRUE, Condition, both, inside
from ir_semantics.tensors.elements import Element, Reader
from ir_semantics.tensors.evaluate import evaluate, shape_at
from ir_semantics.tensors.index import Index, IndexLike, Names, size
from ir_semantics.tensors.numbers import apart
from ir_semantics.tensors.operators import concat, slice_
from ir_semantics.tensors.terms import Tensor, input_, make, operands_of
from smt_encodings.claims import Equality

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


STEPS, N, INPUTS, HIDDEN = map(size, "tnih")
"""Timesteps, sequences, inputs, and the size of a state."""


def _itself(x: Tensor) -> Tensor:
    return x


@dataclass(frozen=True, eq=False)
class LayerRule(TensorRule):
    """A rule on layers that repeat a step: the first of ``layers``, changed, is the second.

    Of layers only operands and attributes are read.  ``left`` and ``right`` are the states of all iterations of both
    sides as one of them makes them of those before it, and ``requires`` must hold in every iteration.
    """

    layers: tuple[Tensor, ...] = ()
    changed: Callable[[Tensor], Tensor] = _itself
    requires: tuple[Obligation, ...] = ()

    @cached_property
    def sides(self) -> tuple[Tensor, Tensor]:
        """What is said to be equal."""
        whole, part = self.layers
        return self.changed(whole), part

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the first layer's operands."""
        return tuple(str(dict(x.attributes)["name"]) for x in self.layers[0].operands)


@dataclass(frozen=True)
class Change:
    """How rows of states [t, ...] differ between both sides of a rule on layers; ``rows`` changes each row for itself.

    Inputs in ``positive`` hold positive numbers only.

    Where ``cut`` has an axis and a place, the right side's rows are compared in two parts, those before the place and
    the others, each of which has simpler elements.
    """

    rows: Callable[[Tensor], Tensor] = _itself
    equality: Equality = Equality.BIT_EXACT
    domain: Condition = TRUE
    cut: tuple[int, Index] | None = None
    positive: frozenset[str] = frozenset()


def by_induction(
    name: str,
    operator: Operator,
    attributes: Attributes,
    operands: Mapping[Tensor, Tensor],
    states: Sequence[Tensor],
    change: Change,
) -> LayerRule:
    """That the layer of operands, changed, is the layer of what stands for these: the values of ``operands``.

    ``states`` are what rows of states lie in, the result's first; those of the right side are these, changed: that is
    the invariant.  Raises Unread where the operator is not one layer for all sizes.
    """
    named: dict[str, Any] = dict(attributes)
    of = [*operands], [*operands.values()]
    rows = states, [change.rows(x) for x in states]
    whole, part = (expanded(operator, o, attributes, states=s) for o, s in zip(of, rows, strict=True))
    within = inside(Index({(ITERATION,): 1}), states[0].shape[0])
    right = stack(part.term, *part.after)
    return LayerRule(
        name,
        stack(*map(change.rows, (whole.term, *whole.after))),
        right if change.cut is None else _in_parts(right, change.cut[0] + 1, change.cut[1]),
        both(whole.premise, part.premise, change.domain),
        change.equality,
        positive=change.positive,
        layers=(
            make(operator.name, of[0], whole.term.shape, _unread, **named),
            make(operator.name, of[1], part.term.shape, _unread, **named),
        ),
        changed=change.rows,
        requires=tuple(
            Obligation((within,), goal, f"every step is well formed: {goal}")
            for goal in dict.fromkeys((*whole.requires, *part.requires))
        ),
    )


def _in_parts(x: Tensor, axis: int, place: Index) -> Tensor:
    """A tensor, as the concatenation of its parts before and from a place along an axis."""
    start = [place if j == axis else 0 for j in range(x.rank)]
    stop = [place if j == axis else d for j, d in enumerate(x.shape)]
    return concat(axis, slice_(x, [0] * x.rank, stop), slice_(x, start, x.shape))


def difference(rule: LayerRule) -> str:
    """At which sizes both sides differ when the graphs of their layers are evaluated; empty where they do not."""
    draw = random.Random(0)
    whole, part = rule.layers
    changed = rule.changed(input_("states", *whole.shape))
    inputs = {str(dict(x.attributes)["name"]): x for x in operands_of(whole, part) if x.operator == "input"}
    for sizes in sizes_drawn(rule.sizes, rule.premise, 4, 3, draw):
        data = {name: _drawn(shape_at(x, sizes), draw) for name, x in inputs.items()}
        data |= {name: abs(data[name]) + 1 for name in rule.positive}
        states = _evaluated(whole, sizes, data)
        left, right = evaluate(changed, sizes, {"states": states}), _evaluated(part, sizes, data)
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


def inputs_of(kind: str) -> dict[str, Tensor]:
    """The operands of a layer of n sequences, by name."""
    stacked = HIDDEN * GATES[kind]
    shapes: dict[str, tuple[IndexLike, ...]] = {
        "x": (STEPS, N, INPUTS),
        "w": (stacked, INPUTS),
        "r": (stacked, HIDDEN),
        "b": (stacked * 2,),
        "h0": (N, HIDDEN),
    }
    if kind == "lstm":
        shapes |= {"c0": (N, HIDDEN), "peepholes": (HIDDEN * 3,)}
    return {name: input_(name, *shape) for name, shape in shapes.items()}


def states_of(kind: str) -> list[Tensor]:
    """What rows of the states of a layer of n sequences lie in."""
    return [input_(f"{name}_before", STEPS, N, HIDDEN) for name in ("hc" if kind == "lstm" else "h")]
