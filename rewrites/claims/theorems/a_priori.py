"""Bounds from sizes, ranges and biases alone (docs/reference/numerics.md), at the ranges that given tensors have.

Ranges are of the quantised tensors, which the accelerator got, and of the exact results on them.  Where a range comes
from a computation that float64 rounds, :data:`FLOAT_ERROR` is added; so it is to a bound that is compared with such a
reference.  No function gives a bound whose conditions do not hold.

Campaigns use these bounds on random examples, the code generator on the operands of compiled models.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.quantise import Quantised
from rewrites.bounds.derivations.calculus import Bound
from rewrites.bounds.elementwise import FLOAT_ERROR

from .flexasr import ATTENTION, LAYER_NORM, LINEAR, POOLINGS
from .machines import CONVOLUTIONS
from .recurrence import over_time

Reals = NDArray[np.float64]


def _largest(values: Reals) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def _rows(weights: Reals) -> float:
    """The largest sum of magnitudes of a row of codes' values: exact in float64."""
    return float(np.abs(weights).sum(axis=1).max(initial=0.0))


def _rounded(bound: Bound) -> Bound:
    return bound if bound.value is None else replace(bound, value=bound.value + Fraction(FLOAT_ERROR))


def pooling(kind: str, x: Quantised, ideal: Reals, steps: int = 1) -> Bound:
    """Maximum, mean or sum pooling (``kind`` "max", "mean" or "add"); ``ideal`` are the exact results.

    With ``steps`` the maximum or mean of pairs is taken that many times, and ``ideal`` are those of the first time.
    Each time adds an error of its own, at the range of what the accelerator then has, and enlarges no earlier one,
    because neither a maximum nor a mean of two numbers changes by more than the numbers do.  That is no theorem.

    Raises ValueError for sums more than once.
    """
    if steps > 1 and kind not in ("max", "mean"):
        raise ValueError(f"pooling more than once must be of maxima or means, not {kind!r}; add up bounds of each time")
    given: dict[str, float | Fraction] = {"X": _largest(x.values), "b": float(x.bias)}
    if kind != "max":
        given["Y"] = _largest(ideal)
    operator = POOLINGS[kind]
    total = operator.bound(given)
    error = total.value
    for _ in range(steps - 1):
        if total.value is None or error is None:
            break
        if kind == "mean":
            given["X"] = given["Y"] = Fraction(given["Y"]) + error
        again = operator.bound(given)
        error = again.value
        total = Bound(None if error is None else total.value + error, again.unmet)
    return total


def linear(
    x: Quantised, w: Quantised, b: Quantised, ideal: Reals, output_bias: int, activation: str | None = None
) -> Bound:
    """The linear layer x w^T + b, with ``activation`` None, "relu", "sigmoid" or "tanh"; ``ideal`` are x w^T + b."""
    given: dict[str, float | Fraction] = {
        "W": _rows(w.values),
        "X": _largest(x.values),
        "B": _largest(b.values),
        "S": _largest(x.values @ w.values.T),
        "Y": _largest(ideal),
        "I": w.shape[1],
        "w": _largest(w.values),
        "b_w": w.bias,
        "b_x": x.bias,
        "b_y": output_bias,
    }
    bound = LINEAR[activation or "none"].bound(given)
    return _rounded(bound) if activation in ("sigmoid", "tanh") else bound


def recurrent(kind: str, inputs: list[Quantised], state_bias: int, states: Reals) -> list[Bound]:
    """A recurrent layer (``kind`` rnn, gru or lstm) from the exact states [T, H] on its inputs: a bound per timestep.

    They grow; the list ends with the first timestep of which there is none any more.
    """
    x, w, u, b, d = inputs
    before = np.vstack([np.zeros((1, states.shape[1])), states[:-1]])
    of_x, of_h = x.values @ w.values.T, before @ u.values.T
    given: dict[str, float | Fraction] = {
        "W": _rows(w.values),
        "U": _rows(u.values),
        "X": _largest(x.values),
        "B": _largest(b.values),
        "D": _largest(d.values),
        "S": _largest(of_x),
        "A": _largest(of_x + b.values),
        "R": _largest(of_h) + FLOAT_ERROR,
        "Z": _largest(of_h + d.values) + FLOAT_ERROR,
        "I": w.shape[1],
        "w": _largest(w.values),
        "H": u.shape[1],
        "u": _largest(u.values),
        "b_w": w.bias,
        "b_x": x.bias,
        "b_u": u.bias,
        "b_h": state_bias,
    }
    return [_rounded(bound) for bound in over_time(kind, given, len(states))]


def layer_norm(x: Quantised, gamma: Quantised, beta: Quantised, ideal: Reals, epsilon: float) -> Bound:
    """Layer normalisation of x [T, F]; one timestep that breaks a condition leaves all without a bound."""
    values = x.values
    parts = values.reshape(len(values), -1, 16)
    variance = values.var(axis=1)
    centred = values - values.mean(axis=1, keepdims=True)
    normal = centred / np.sqrt(variance + epsilon)[:, None]
    given: dict[str, float | Fraction] = {
        "X": _largest(values),
        "V": parts.shape[1],
        "P": _largest(parts.sum(axis=2)),
        "Q": _largest(np.square(parts).sum(axis=2)),
        "v": float(variance.min()) + epsilon - FLOAT_ERROR,
        "w": float(variance.max()) + epsilon + FLOAT_ERROR,
        "G": _largest(gamma.values),
        "B": _largest(beta.values),
        "C": _largest(centred) + FLOAT_ERROR,
        "N": _largest(normal) * (1 + FLOAT_ERROR),
        "Y": _largest(ideal) + FLOAT_ERROR,
        "b": x.bias,
    }
    return _rounded(LAYER_NORM.bound(given))


def attention(keys: Quantised, query: Quantised, ideal: Reals, weight_bias: int, output_bias: int) -> Bound:
    """Attention of one query; ``ideal`` is its exact result."""
    scores = keys.values @ query.values
    total = float(np.exp(scores - scores.max()).sum())
    given: dict[str, float | Fraction] = {
        "T": len(scores),
        "F": keys.shape[1],
        "K": _largest(keys.values),
        "q": _largest(query.values),
        "R": _largest(scores),
        "m": float(scores.max()),
        "s": total - FLOAT_ERROR,
        "t": total + FLOAT_ERROR,
        "z": int((scores == 0).sum()),
        "k": _rows(keys.values.T),
        "Y": _largest(ideal) + FLOAT_ERROR,
        "b_k": keys.bias,
        "b_q": query.bias,
        "b_p": weight_bias,
        "b_y": output_bias,
    }
    return _rounded(ATTENTION.bound(given))


def convolution(x: Reals, w: Reals, magnitude: Reals, weight_bits: int) -> Bound:
    """HLSCNN's convolution without bias of quantised x [..., C, H, W] and w [F, C, K, L].

    It is that of the hardware with weights of ``weight_bits`` bits
    (:data:`~accel_models.hlscnn.options.BY_WEIGHT_BITS`). ``magnitude`` are the sums of magnitudes of the results'
    products.
    """
    blocks = -(-w.shape[1] // 8)
    given: dict[str, float | Fraction] = {
        "n": w.shape[2] * w.shape[3] * blocks,
        "x": _largest(x),
        "w": _largest(w),
        "M": _largest(magnitude),
    }
    return CONVOLUTIONS[weight_bits].bound(given)
