"""Recurrent layers as composite operators: LSTM, GRU and RNN over all timesteps.

Operands, with T timesteps, a batch of B, I features and a state of H: x [T, B, I]; w [G*H, I],
r [G*H, H], bias [2*G*H]; h [B, H]; for LSTM also c [B, H] and peephole weights p [3*H]; and last, lengths [B] of the
sequences, where ``lengths`` is set.  Gates (G of them) are stacked in ONNX's order: i, o, f, c (LSTM); z, r, h (GRU).

Attributes: ``reverse`` (from the last timestep to the first), ``activations`` (scalar operators with their parameters,
one for each kind of gate), ``clip`` (0 for none), ``output`` (0: the states of all timesteps [T, B, H]; 1: the last
hidden state [B, H]; 2: the last cell state); ``input_forget`` of LSTM and ``linear_before_reset`` of GRU.
Source: the ONNX operator specification.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .ir import Attributes
from .operator import Assembly, composite
from .words import apply, expand, literal, reshape, take, transpose


@dataclass
class _Layer:
    """What the three layers share: products of all timesteps, the parts of gates, activations, masks."""

    b: Assembly
    of: Sequence[int]
    a: Attributes
    gates: int

    def __post_init__(self) -> None:
        b = self.b
        x, w, self.r, bias = self.of[:4]
        self.timesteps, self.batch, features = b.shape(x)
        self.hidden = b.shape(self.r)[1]
        flat = reshape(b, x, [self.timesteps * self.batch, features])
        products = b.add("matmul", flat, transpose(b, w, [1, 0]))
        self.bias = [take(b, bias, 0, i * self.gates * self.hidden, (i + 1) * self.gates * self.hidden) for i in (0, 1)]
        self.inputs = reshape(
            b, apply(b, "add", products, self.bias[0]), [self.timesteps, self.batch, self.gates * self.hidden]
        )

    def input(self, t: int) -> list[int]:
        """W x_t + Wb of every gate."""
        b, stacked = self.b, self.gates * self.hidden
        row = b.add("slice", self.inputs, start=(t, 0, 0), stop=(t + 1, self.batch, stacked), stride=(1, 1, 1))
        row = reshape(b, row, [self.batch, stacked])
        return [self.gate(row, j) for j in range(self.gates)]

    def gate(self, stacked: int, j: int) -> int:
        """Gate number j of [..., gates * hidden]."""
        axis = len(self.b.shape(stacked)) - 1
        return take(self.b, stacked, axis, j * self.hidden, (j + 1) * self.hidden)

    def weights(self, first: int, last: int) -> int:
        """R of the gates first .. last - 1, transposed."""
        return transpose(self.b, take(self.b, self.r, 0, first * self.hidden, last * self.hidden), [1, 0])

    def recur(self, h: int, first: int = 0, last: int | None = None) -> list[int]:
        """R h + Rb of the gates first .. last - 1."""
        b, end = self.b, self.gates if last is None else last
        bias = take(b, self.bias[1], 0, first * self.hidden, end * self.hidden)
        stacked = apply(b, "add", b.add("matmul", h, self.weights(first, end)), bias)
        return [self.gate(stacked, j) for j in range(end - first)]

    def add(self, *terms: int) -> int:
        """A sum from left to right."""
        total = terms[0]
        for term in terms[1:]:
            total = apply(self.b, "add", total, term)
        return total

    def activate(self, x: int, j: int) -> int:
        """Activation number j, after the clip."""
        b, clip = self.b, self.a["clip"]
        assert isinstance(clip, int | float)
        if clip:
            dtype = b.type(x).dtype
            x = apply(b, "clamp", x, literal(b, -clip, dtype), literal(b, clip, dtype))
        activations = self.a["activations"]
        assert isinstance(activations, tuple)
        chosen = activations[j]
        assert isinstance(chosen, tuple)
        name, *parameters = chosen
        assert isinstance(name, str)
        if name == "affine":
            alpha, beta = (literal(b, float(p), b.type(x).dtype) for p in parameters)  # type: ignore[arg-type]
            return apply(b, "add", apply(b, "mul", x, alpha), beta)
        names: dict[str, tuple[str, ...]] = {
            "leaky_relu": ("alpha",),
            "thresholded_relu": ("alpha",),
            "elu": ("alpha",),
        }
        names |= {"hard_sigmoid": ("alpha", "beta")}
        return b.add(name, x, **dict(zip(names.get(name, ()), parameters, strict=True)))

    def run(self, states: list[int], step: Callable[[int, list[int]], list[int]]) -> int:
        """All timesteps; where sequences have lengths, states stay and outputs are 0 beyond them."""
        b = self.b
        lengths = self.of[-1] if self.a["lengths"] else None
        shape = (self.batch, self.hidden)
        zero = expand(b, literal(b, 0, b.type(states[0]).dtype), shape)

        def masked(t: int, states: list[int]) -> tuple[int, list[int]]:
            new = step(t, states)
            if lengths is None:
                return new[0], new
            here = apply(b, "less", b.constant(np.asarray(t, b.type(lengths).dtype)), lengths)
            inside = expand(b, reshape(b, here, [self.batch, 1]), shape)
            kept = [b.add("where", inside, n, o) for n, o in zip(new, states, strict=True)]
            return b.add("where", inside, new[0], zero), kept

        outputs, last = b.repeat(self.timesteps, states, masked, reverse=bool(self.a["reverse"]))
        selected = self.a["output"]
        assert isinstance(selected, int)
        return last[selected - 1] if selected else outputs


def _lstm(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """A long short-term memory: i, f, o = sigmoid(...), c' = f * c + i * tanh(...), h' = o * tanh(c')."""
    layer = _Layer(b, of, a, 4)
    h, c, p = of[4:7]

    def step(t: int, states: list[int]) -> list[int]:
        h, c = states
        i, o, f, g = (layer.add(x, y) for x, y in zip(layer.input(t), layer.recur(h), strict=True))
        pi, po, pf = (layer.gate(p, j) for j in range(3))
        i = layer.activate(layer.add(i, apply(b, "mul", pi, c)), 0)
        if a["input_forget"]:
            f = apply(b, "sub", literal(b, 1, b.type(i).dtype), i)
        else:
            f = layer.activate(layer.add(f, apply(b, "mul", pf, c)), 0)
        c = layer.add(b.add("mul", f, c), b.add("mul", i, layer.activate(g, 1)))
        o = layer.activate(layer.add(o, apply(b, "mul", po, c)), 0)
        return [b.add("mul", o, layer.activate(c, 2)), c]

    return layer.run([h, c], step)


def _gru(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """A gated recurrent unit: z, r = sigmoid(...), n = tanh(... r ...), h' = (1 - z) * n + z * h."""
    layer = _Layer(b, of, a, 3)

    def step(t: int, states: list[int]) -> list[int]:
        (h,) = states
        z, r, n = layer.input(t)
        from_z, from_r = layer.recur(h, 0, 2)
        z, r = layer.activate(layer.add(z, from_z), 0), layer.activate(layer.add(r, from_r), 0)
        if a["linear_before_reset"]:
            inner = b.add("mul", r, layer.recur(h, 2, 3)[0])
        else:
            inner = layer.recur(b.add("mul", r, h), 2, 3)[0]
        n = layer.activate(layer.add(n, inner), 1)
        other = apply(b, "sub", literal(b, 1, b.type(z).dtype), z)
        return [layer.add(b.add("mul", other, n), b.add("mul", z, h))]

    return layer.run([of[4]], step)


def _rnn(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """A recurrent layer: h' = tanh(W x + R h + bias)."""
    layer = _Layer(b, of, a, 1)

    def step(t: int, states: list[int]) -> list[int]:
        return [layer.activate(layer.add(layer.input(t)[0], layer.recur(states[0])[0]), 0)]

    return layer.run([of[4]], step)


def _plain(kind: str, layer: Callable[[Assembly, Sequence[int], Attributes], int]) -> Callable[..., int]:
    """A layer by the one from the first timestep to the last, with the states of all, where sequences have one length.

    From the last timestep to the first it is that of the reversed input, reversed; the last hidden state is a row.
    """

    def build(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        if not a["lengths"] and a["reverse"]:
            of = [b.add("reverse", of[0], axes=(0,)), *of[1:]]
            states = b.add(kind, *of, **{**a, "reverse": False})
            return states if a["output"] else b.add("reverse", states, axes=(0,))
        if not a["lengths"] and a["output"] == 1 and (steps := b.shape(of[0])[0]):
            states = b.add(kind, *of, **{**a, "output": 0})
            return reshape(b, take(b, states, 0, steps - 1, steps), b.shape(states)[1:])
        return layer(b, of, a)

    build.__doc__ = layer.__doc__
    return build


_COMMON = "reverse activations clip output lengths"

RECURRENT = (
    composite("lstm", _plain("lstm", _lstm), arity=range(7, 9), attributes=f"{_COMMON} input_forget"),
    composite("gru", _plain("gru", _gru), arity=range(5, 7), attributes=f"{_COMMON} linear_before_reset"),
    composite("rnn", _plain("rnn", _rnn), arity=range(5, 7), attributes=_COMMON),
)
"""The recurrent layers."""
