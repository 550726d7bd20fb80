"""Conversion of recurrent layers: both directions, optional operands, activations by name."""

from __future__ import annotations

from typing import Any

from ir_semantics.graph import words
from ir_semantics.graph.ir import Attribute

from .call import Call, converts

# Names of the specification: the IR's operator, and the defaults of alpha and beta.
_ACTIVATIONS: dict[str, tuple[str, tuple[float, ...]]] = {
    "relu": ("relu", ()),
    "tanh": ("tanh", ()),
    "sigmoid": ("sigmoid", ()),
    "softsign": ("softsign", ()),
    "softplus": ("softplus", ()),
    "affine": ("affine", (1.0, 0.0)),
    "leakyrelu": ("leaky_relu", (0.01,)),
    "thresholdedrelu": ("thresholded_relu", (1.0,)),
    "hardsigmoid": ("hard_sigmoid", (0.2, 0.5)),
    "elu": ("elu", (1.0,)),
}


MOST_STEPS = 1 << 12
"""Timesteps of a recurrent layer, which are written out one by one; a bound of this implementation."""


def _activations(call: Call, names: list[str], directions: int) -> list[tuple[Attribute, ...]]:
    """The activations of each direction, with their parameters."""
    functions = [str(n) for n in call.items("activations", names * directions)]
    alphas, betas = call.items("activation_alpha", []), call.items("activation_beta", [])
    if len(functions) != len(names) * directions:
        raise call.fail(f"activations must be {len(names) * directions} names, not {functions}")
    activations: list[Attribute] = []
    for name in functions:
        if name.lower() not in _ACTIVATIONS:
            raise call.fail(f"an activation must be one of {', '.join(sorted(_ACTIVATIONS))}, not {name}")
        operator, defaults = _ACTIVATIONS[name.lower()]
        # alphas and betas are consumed in order by the activations that have them
        sources = (alphas, betas)[: len(defaults)]
        parameters = [s.pop(0) if s else d for s, d in zip(sources, defaults, strict=True)]
        activations.append((operator, *parameters))
    return [tuple(activations[i * len(names) : (i + 1) * len(names)]) for i in range(directions)]


def _first(call: Call, x: int, direction: int) -> int:
    """One direction's part of an operand, without the axis of directions."""
    part = words.take(call.b, x, 0, direction, direction + 1)
    return words.reshape(call.b, part, call.b.shape(x)[1:])


def _layer(
    call: Call, operator: str, gates: int, activations: list[str], states: int, extra: dict[str, Any]
) -> list[int]:
    b, direction = call.b, call.text("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        raise call.fail(f"the attribute direction must be forward, reverse or bidirectional, not {direction}")
    directions = 2 if direction == "bidirectional" else 1
    batch_first = bool(call.integer("layout", 0))
    x = call.operand(0)
    if batch_first:
        x = words.transpose(b, x, [1, 0, 2])
    steps, batch, _ = b.shape(x)
    if steps > MOST_STEPS:
        raise call.fail(f"a sequence must have at most {MOST_STEPS} timesteps, not {steps}; cut it")
    hidden = call.b.shape(call.operand(2))[2]
    if call.integer("hidden_size", hidden) != hidden:
        raise call.fail(f"the attribute hidden_size must be that of the weights, {hidden}")
    lengths = call.operand(4) if call.has(4) else None
    if lengths is not None:
        known = b.value(lengths)
        if known is not None and (known == steps).all():
            lengths = None
    chosen = _activations(call, activations, directions)
    clip = call.real("clip", 0.0)
    dtype = b.type(x).dtype

    def optional(position: int, shape: tuple[int, ...], j: int) -> int:
        if call.has(position):
            value = call.operand(position)
            if batch_first and position in (5, 6):
                value = words.transpose(b, value, [1, 0, 2])
            return _first(call, value, j)
        return words.expand(b, call.literal(0, dtype), shape)

    parts: list[list[int]] = [[], [], []]
    for j in range(directions):
        operands = [x, _first(call, call.operand(1), j), _first(call, call.operand(2), j)]
        operands.append(optional(3, (2 * gates * hidden,), j))
        operands += [optional(5 + s, (batch, hidden), j) for s in range(states)]
        if states == 2:
            operands.append(optional(7, (3 * hidden,), j))
        if lengths is not None:
            operands.append(lengths)
        attributes: dict[str, Attribute] = {
            "activations": chosen[j],
            "clip": clip,
            "lengths": lengths is not None,
            **extra,
        }
        attributes["reverse"] = direction == "reverse" or j == 1
        for output in range(1 + states):
            if output < len(call.outputs):
                parts[output].append(call.add(operator, *operands, output=output, **attributes))
    results = []
    for output, members in enumerate(parts[: len(call.outputs)]):
        axis = 1 if output == 0 else 0  # Y is [T, directions, B, H], the last states [directions, B, H]
        shape = b.shape(members[0])
        stacked = [words.reshape(b, m, [*shape[:axis], 1, *shape[axis:]]) for m in members]
        y = stacked[0] if directions == 1 else b.add("concat", *stacked, axis=axis)
        if batch_first:
            y = words.transpose(b, y, [2, 0, 1, 3] if output == 0 else [1, 0, 2])
        results.append(y)
    return results


@converts("LSTM")
def _lstm(call: Call) -> list[int]:
    extra = {"input_forget": bool(call.integer("input_forget", 0))}
    return _layer(call, "lstm", 4, ["Sigmoid", "Tanh", "Tanh"], 2, extra)


@converts("GRU")
def _gru(call: Call) -> list[int]:
    extra = {"linear_before_reset": bool(call.integer("linear_before_reset", 0))}
    return _layer(call, "gru", 3, ["Sigmoid", "Tanh"], 1, extra)


@converts("RNN")
def _rnn(call: Call) -> list[int]:
    return _layer(call, "rnn", 1, ["Tanh"], 1, {})
