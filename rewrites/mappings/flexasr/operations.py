"""Operations on AdaptivFloat tensors as programs of FlexASR's mappings at the tensors' sizes.

Features are filled with zeros to whole vectors, those of dense and recurrent layers to 64, and what the device makes of
these is left out.  SizeError is raised where FlexASR cannot hold the tensors, and ValueError where they do not match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.layout import LANES, PE_COUNT
from accel_models.flexasr.quantise import Quantised
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.programs import DeviceProgram, filled

from .claims import ATTENTION, LAYER_NORM, LINEAR, POOLS, RECURRENT

Program = DeviceProgram[Quantised]
GATES: Final[Mapping[str, tuple[int, ...]]] = {"lstm": (0, 2, 1, 3), "gru": (0, 2, 1), "rnn": (0,)}
"""For each gate in the order in which FlexASR computes them (i, g, f, o; r, n, z), its place among the operands'."""


def linear(x: Quantised, w: Quantised, b: Quantised, *, output_bias: int, activation: str = "none") -> Program:
    """activation(x w^T + b) for x [T, I], w [O, I] and b [O], as codes [T, O] of AdaptivFloat bias ``output_bias``.

    ``activation`` is "none", "relu", "sigmoid" or "tanh".
    """
    (rows, features), outputs = x.shape, w.shape[0]
    _require(w=(w, (outputs, features)), b=(b, (outputs,)))
    wide, high = _filled(features, LANES), _filled(outputs, LANES * PE_COUNT)
    biases = {"bias_x": x.bias, "bias_w": w.bias, "bias_b": b.bias, "bias_y": output_bias}
    tensors = {"host_x": (x.codes, (rows, wide)), "host_w": (w.codes, (high, wide)), "host_b": (b.codes, (high,))}
    return _program(LINEAR[activation], (rows, wide, high), biases, tensors, _Result((rows, outputs), output_bias))


def recurrent(kind: str, operands: Sequence[Quantised], *, state_bias: int) -> Program:
    """The hidden states [T, H] of an "rnn", "gru" or "lstm" from zeros, as codes of AdaptivFloat bias ``state_bias``.

    ``operands`` are x [T, I], w [G H, I], u [G H, H], b [G H] and c [G H]; all but x stack the gates: r, z, n or
    i, f, g, o.  All states share ``state_bias``: the cell state of an LSTM, too, is rounded to a code after every
    timestep.  The reset gate of a GRU acts after the hidden product.
    """
    x, w, u, b, c = operands
    (rows, features), hidden, order = x.shape, u.shape[1], list(GATES[kind])
    wide, high, gates = _filled(features, LANES), _filled(hidden, LANES * PE_COUNT), len(order)
    stack = gates * hidden
    _require(w=(w, (stack, features)), u=(u, (stack, hidden)), b=(b, (stack,)), c=(c, (stack,)))
    extents = {"host_w": (w, (wide,)), "host_u": (u, (high,)), "host_b": (b, ()), "host_c": (c, ())}
    tensors: dict[str, tuple[NDArray[Any], tuple[int, ...]]] = {"host_x": (x.codes, (rows, wide))}
    for name, (tensor, inner) in extents.items():
        stacked = tensor.codes.reshape(gates, hidden, *tensor.shape[1:])[order]
        tensors[name] = stacked, (gates, high, *inner)
    named = zip(("bias_x", "bias_w", "bias_u", "bias_b", "bias_c"), operands, strict=True)
    biases = {name: tensor.bias for name, tensor in named} | {"bias_h": state_bias}
    return _program(RECURRENT[kind], (rows, wide, high), biases, tensors, _Result((rows, hidden), state_bias))


def pool(kind: str, x: Quantised) -> Program:
    """The larger one ("max"), the mean or the sum ("add") of timesteps 2t and 2t + 1 of x [T, F], with x's bias."""
    rows, features = x.shape
    extents = rows, _filled(features, LANES)
    tensors = {"host_in": (x.codes, extents)}
    return _program(POOLS[kind], extents, {}, tensors, _Result((rows // 2, features), x.bias, "host_out"))


def layer_norm(x: Quantised, gamma: Quantised, beta: Quantised) -> Program:
    """Each timestep of x [T, F] to mean 0 and variance 1, times gamma [F], plus beta [F]; the result has x's bias.

    F is a multiple of 16, because the unit counts padding as features.
    """
    biases = {"bias_x": x.bias, "bias_gamma": gamma.bias, "bias_beta": beta.bias}
    row = x.shape[1:]
    _require(gamma=(gamma, row), beta=(beta, row))
    tensors = {"host_x": (x.codes, x.shape), "host_gamma": (gamma.codes, row), "host_beta": (beta.codes, row)}
    return _program(LAYER_NORM, x.shape, biases, tensors, _Result(x.shape, x.bias))


def attention(keys: Quantised, query: Quantised, *, output_bias: int, weight_bias: int = 3) -> Program:
    """softmax(K q) K for keys K [T, F] and a query q [F], as codes [F] of AdaptivFloat bias ``output_bias``.

    ``weight_bias`` is the bias of the softmax weights: 3, the default, is the smallest that reaches 1.  Rows up to the
    next multiple of 16 are zeros, so that their score is 0; the unit takes a score of exactly 0, also that of a real
    row, for -64.
    """
    rows, features = keys.shape
    _require(query=(query, (features,)))
    wide = _filled(features, LANES)
    biases = {"bias_x": keys.bias, "bias_query": query.bias, "bias_weights": weight_bias, "bias_y": output_bias}
    tensors = {"host_x": (keys.codes, (_filled(rows, LANES), wide)), "host_query": (query.codes, (wide,))}
    return _program(ATTENTION, (rows, wide), biases, tensors, _Result((features,), output_bias))


def _require(**tensors: tuple[Quantised, tuple[int, ...]]) -> None:
    for name, (tensor, shape) in tensors.items():
        if tensor.shape != shape:
            raise ValueError(f"{name} must have shape {list(shape)}, not {list(tensor.shape)}; reshape or transpose it")


def _filled(count: int, unit: int) -> int:
    """The next multiple of a unit."""
    return -(-count // unit) * unit


@dataclass(frozen=True)
class _Result:
    """The tensor of a program's result, of which rows are whole vectors: its shape and AdaptivFloat bias."""

    shape: tuple[int, ...]
    bias: int
    tensor: str = "host_y"

    def read(self, tensors: Mapping[str, NDArray[Any]]) -> Quantised:
        """The result among the tensors."""
        rows = tensors[self.tensor].reshape(*self.shape[:-1], -1)
        return Quantised(np.ascontiguousarray(rows[..., : self.shape[-1]]), self.bias)


def _program(
    claim: MappingClaim,
    shape: tuple[int, ...],
    biases: Mapping[str, int],
    tensors: Mapping[str, tuple[NDArray[Any], tuple[int, ...]]],
    result: _Result,
) -> Program:
    """The mapping's program for a shape."""
    return filled(claim, {**claim.mapping.sizes_for(shape), **biases}, tensors, result.read)
