"""Theorems on the quantised operands of a run: the bound of each element of its result, or one for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from accel_models.flexasr.layout import LANES
from accel_models.flexasr.quantise import Quantised
from rewrites.bounds.derivations.calculus import Bound, Operator
from rewrites.bounds.elementwise import (
    FLOAT_ERROR,
    Bounded,
    Given,
    Reals,
    bound_elements,
    bound_whole,
    exact_elements,
    ranges_of,
)

from .flexasr import ATTENTION, LAYER_NORM, LINEAR, POOLINGS, STEPS, STEPS_FROM
from .machines import DENSE
from .recurrence import over_time, steady


@dataclass(frozen=True)
class Applied:
    """A theorem on arrays: the axes of its result, and what its leaves stand for (see :mod:`rewrites.bounds`)."""

    operator: Operator
    axes: str
    leaves: Mapping[str, Given]
    biases: Mapping[str, int]

    def exact(self) -> Reals:
        """The exact results, in float64."""
        return exact_elements(self.operator, self.axes, self.leaves)

    def elements(self) -> Bounded:
        """The exact results, and a bound for each."""
        return bound_elements(self.operator, self.axes, self.leaves, self.biases)

    def ranges(self) -> dict[str, float]:
        """The theorem's symbols as these leaves have them."""
        return ranges_of(self.operator, self.leaves, self.biases)

    def whole(self) -> Bound:
        """The bound of all elements, from sizes, ranges and biases alone."""
        return bound_whole(self.operator, self.leaves, self.biases)


def linear(x: Quantised, w: Quantised, b: Quantised, output_bias: int, activation: str = "none") -> Applied:
    """The dense layer of x [T, I], w [O, I] and b [O]."""
    leaves = {"x[i]": ("ti", x.values), "w[i]": ("oi", w.values), "b": ("o", b.values)}
    return Applied(LINEAR[activation], "to", leaves, {"b_x": x.bias, "b_w": w.bias, "b_b": b.bias, "b_y": output_bias})


def vta_dense(x: Reals, w: Reals, b: Reals, half: int, shift: int, activation: str = "none") -> Applied:
    """VTA's dense layer of bytes x [M, K] and w [N, K] and words b [N], shifted and cut: what its program computes."""
    numbers = {"h": half, "by": shift, "low": -128 if activation == "none" else 0, "high": 127}
    scalars = {name: ("", np.array(float(value))) for name, value in numbers.items()}
    leaves = {"x[k]": ("mk", x), "w[k]": ("nk", w), "b": ("n", b), **scalars}
    return Applied(DENSE[activation], "mn", leaves, {})


def pooling(kind: str, x: Quantised) -> Applied:
    """The maximum, mean or sum ("max", "mean" or "add") of pairs of rows of x [T, F]."""
    return Applied(POOLINGS[kind], "tf", {"x0": ("tf", x.values[::2]), "x1": ("tf", x.values[1::2])}, {"b": x.bias})


def pooled(kind: str, symbols: Mapping[str, float], steps: int) -> Bound:
    """The bound of maxima or means of pairs of rows, taken ``steps`` times, at the symbols of the first time.

    Each time adds an error of its own, at the range of what the accelerator then has, and enlarges no earlier one,
    because neither a maximum nor a mean of two numbers changes by more than the numbers do.  That is no theorem.
    """
    operator = POOLINGS[kind]
    ranges: dict[str, float | Fraction] = {**operator.values(symbols)}
    total = again = operator.bound(ranges)
    for _ in range(steps - 1):
        if total.value is None or again.value is None:
            break
        if kind == "mean":
            ranges["X"] = ranges["Y"] = Fraction(ranges["Y"]) + again.value
        again = operator.bound(ranges)
        total = Bound(None if again.value is None else total.value + again.value, again.unmet)
    return total


def layer_norm(x: Quantised, gamma: Quantised, beta: Quantised, epsilon: float) -> Applied:
    """Layer normalisation of x [T, F]; the result has the axes of rows, vectors, and features of a vector."""
    leaves = {
        "x[v,i]": ("tvi", x.values.reshape(len(x.values), -1, LANES)),
        "gamma[v,i]": ("vi", gamma.values.reshape(-1, LANES)),
        "beta[v,i]": ("vi", beta.values.reshape(-1, LANES)),
        "epsilon": ("", np.array(epsilon)),
    }
    return Applied(LAYER_NORM, "tvi", leaves, {"b": x.bias, "b_gamma": gamma.bias, "b_beta": beta.bias})


def attention(keys: Quantised, query: Quantised, weight_bias: int, output_bias: int) -> Applied:
    """Attention of one query [F] to keys [T, F]."""
    biases = {"b_k": keys.bias, "b_q": query.bias, "b_p": weight_bias, "b_y": output_bias}
    return Applied(ATTENTION, "f", {"k[t,f]": ("tf", keys.values), "q[f]": ("f", query.values)}, biases)


GATES: Mapping[str, tuple[str, ...]] = {"rnn": ("h",), "gru": ("r", "z", "n"), "lstm": ("i", "f", "g", "o")}
"""The gates of recurrent layers, in the order in which operands stack them."""


def _layer(kind: str, inputs: Sequence[Quantised], state_bias: int) -> tuple[dict[str, Given], dict[str, int]]:
    """The weights of a recurrent layer, in the order of the gates that operands have, and biases."""
    _, w, u, b, d = inputs
    gates = GATES[kind]
    rows = {"w{}[i]": ("oi", w), "u{}[j]": ("oj", u), "b{}": ("o", b), "d{}": ("o", d)}
    leaves: dict[str, Given] = {
        leaf.format(gate): (axes, values)
        for leaf, (axes, q) in rows.items()
        for gate, values in zip(gates, np.split(q.values, len(gates)), strict=True)
    }
    return leaves, {"b_x": inputs[0].bias, "b_w": w.bias, "b_u": u.bias, "b_h": state_bias}


def recurrent_elements(kind: str, inputs: Sequence[Quantised], state_bias: int) -> Bounded:
    """The hidden states [T, H] of a layer ("rnn", "gru" or "lstm"), with the bound of each.

    ``inputs`` are x, w, u, b and d, and where the layer does not begin with zeros the hidden state h [1, H], and of an
    LSTM the cell state c [1, H].  First states are exact; each later timestep starts from the states of the one before,
    with their errors.
    """
    weights, biases = _layer(kind, inputs[:5], state_bias)
    given, operators = [state.values[0] for state in inputs[5:]], (STEPS_FROM if inputs[5:] else STEPS)[kind]
    first = given or [np.zeros(inputs[2].shape[1])] * len(operators)
    states, steps = [Bounded(state, np.zeros_like(state)) for state in first], []
    for now in inputs[0].values:
        hidden, kept = states[0], states[-1]
        leaves = {**weights, "x[i]": ("i", now), "h[j]": ("j", hidden), "h": ("o", hidden), "c": ("o", kept)}
        states = [bound_elements(operator, "o", leaves, biases) for operator in operators]
        steps.append(states[0])
    return Bounded(np.stack([h.value for h in steps]), np.stack([h.error for h in steps]))


LONG = 16
"""Timesteps beyond which a bound for any number of them is looked for."""


def recurrent(kind: str, inputs: Sequence[Quantised], state_bias: int, states: Reals) -> list[Bound]:
    """For each timestep a bound of all elements up to it, of a layer with the exact states [T, H].

    ``inputs`` are x, w, u, b and d, and where the layer does not begin with zeros the hidden state h [1, H], and of an
    LSTM the cell state c [1, H]; elements of h are at most 1.  The list ends with the first timestep of
    which there is none any more.  Of long sequences all have the bound for any number of timesteps, where there is one.
    """
    weights, biases = _layer(kind, inputs[:5], state_bias)
    given = [state.values for state in inputs[5:]]
    before = np.vstack([given[0] if given else np.zeros((1, states.shape[1])), states[:-1]])
    if given and float(np.abs(given[0]).max(initial=0.0)) > 1:
        raise ValueError("the bound of a recurrent layer must be asked for a hidden state of at most 1")
    leaves = {**weights, "x[i]": ("ti", inputs[0].values), "h[j]": ("tj", before), "h": ("to", before)}
    ranges = ranges_of(STEPS[kind][0], leaves, biases)
    first = Fraction(float(np.abs(given[-1]).max(initial=0.0))) if given else None
    always = steady(kind, ranges, first) if len(states) > LONG else None
    bounds = over_time(kind, ranges, len(states), first) if always is None else [always] * len(states)
    return [_with_float64(b) for b in bounds]


def recurrent_in(kind: str, symbols: Mapping[str, float], steps: int, first: Fraction | None = None) -> Bound:
    """The bound of all elements after ``steps`` timesteps in these ranges; as of :func:`recurrent`."""
    always = steady(kind, symbols, first) if steps > LONG else None
    return _with_float64(over_time(kind, symbols, steps, first)[-1] if always is None else always)


def _with_float64(bound: Bound) -> Bound:
    """The bound of the distance from states in float64."""
    return bound if bound.value is None else replace(bound, value=bound.value + Fraction(FLOAT_ERROR))
