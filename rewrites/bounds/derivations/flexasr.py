"""Bounds of FlexASR's pooling, linear and recurrent layers.

Every operator is written as its primitives in order; tests run the device's side and compare it with the unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from .calculus import Derivation, Operator


def plus(d: Derivation, a: int, b: int) -> int:
    """The sum in Q6.14."""
    return d.lemma("sum", d("sum", a, b))


def minus(d: Derivation, a: int, b: int) -> int:
    """The difference in Q6.14 (a sum with the other's negative, which is exact)."""
    return d.lemma("sum", d("difference", a, b))


def times(d: Derivation, a: int, b: int) -> int:
    """The product in Q6.14, rounded down."""
    return d.lemma("product", d("product", a, b))


def dense(
    d: Derivation, x: int, row: tuple[str, ...], bias: tuple[str, str], ranges: tuple[str, str], *, cut: bool
) -> int:
    """A processing element: rows times x, plus a layer bias.

    ``row`` has the index, leaf, bias, largest sum of magnitudes, length and largest magnitude of a row of weights;
    ``bias`` the layer bias's leaf and largest magnitude; ``ranges`` the magnitudes of the sum without and with it.
    Where it is not ``cut``, a condition excludes that the sum leaves its 20 bits.
    """
    products = d.named(d("weighted sum", x, lemmas=["multiply codes"], names=row), ranges[0])
    shifted = d.lemma("shift of a sum", products)
    leaf, most = bias
    biased = d.lemma("add bias", d("sum", shifted, d("given", names=[leaf, "code", most, "0", f"b_{leaf}"])))
    biased = d.named(biased, ranges[1])
    return d.lemma("saturate", biased) if cut else d("nothing is cut", biased, lemmas=["saturate"])


_LAYER = {
    "W": "largest sum of magnitudes of a row of weights (at most I max|w|)",
    "X": "largest magnitude of an input",
    "B": "largest magnitude of the layer's bias",
    "S": "largest magnitude of a sum W x",
    "Y": "largest magnitude of W x + b",
    "b_w": "AdaptivFloat bias of the weights",
    "b_x": "of the inputs",
    "b_y": "of the results",
    "I": "inputs of a layer",
    "w": "largest magnitude of a weight",
}
_LAYER_EXAMPLE: dict[str, Fraction | int] = {"I": 64, "w": Fraction(1, 8), "X": 1, "B": 1, "b_w": 0, "b_x": 3, "b_y": 7}


def _linear(activation: str = "") -> Operator:
    d = Derivation()
    x = d("given", names=["x[i]", "code", "X", "0", "b_x"])
    y = dense(d, x, ("i", "w[i]", "b_w", "W", "I", "w"), ("b", "B"), ("S", "Y"), cut=True)
    if activation == "relu":
        y = d.lemma("relu", d("rectify", y))
    elif activation:
        y = d.lemma(activation, y)
    d.lemma("encode", y, "b_y")
    name = "FlexASR linear" + (f" + {activation}" if activation else "")
    summary = "W x + b" if not activation else f"{activation}(W x + b)"
    return Operator(name, summary, _LAYER, tuple(d.steps), _LAYER_EXAMPLE)


def _pool(kind: str) -> Operator:
    d = Derivation()
    a, b = (d("given", names=[f"x{t}", "code", "X", "0", "b"]) for t in (0, 1))
    symbols = {"X": "largest magnitude of an input", "b": "AdaptivFloat bias of inputs and results"}
    if kind == "max":
        d.lemma("maximum", d("larger", a, b), "b")
        return Operator("FlexASR max pooling", "max(x0, x1)", symbols, tuple(d.steps), {"X": 1, "b": 3})
    exact = d("sum", a, b)
    exact = d("half", exact) if kind == "mean" else exact
    symbols["Y"] = f"largest magnitude of a {kind}"
    d.lemma(kind, d.named(exact, "Y"), "b")
    summary = "(x0 + x1) / 2" if kind == "mean" else "x0 + x1"
    return Operator(f"FlexASR {kind} pooling", summary, symbols, tuple(d.steps), {"X": 1, "b": 3})


_RECURRENT = {
    **{k: v for k, v in _LAYER.items() if k in ("W", "X", "I", "w", "b_w", "b_x")},
    "B": "largest magnitude of the bias of the input's layer",
    "S": "largest magnitude of W x",
    "A": "largest magnitude of W x + b",
    "H": "hidden features",
    "u": "largest magnitude of a hidden weight",
    "U": "largest sum of magnitudes of a row of hidden weights (at most H u)",
    "D": "largest magnitude of the bias of the hidden layer",
    "R": "largest magnitude of U h",
    "Z": "largest magnitude of U h + d",
    "b_u": "AdaptivFloat bias of the hidden weights",
    "b_h": "AdaptivFloat bias of the states",
    "e_h": "error of the hidden state before the step",
}
_RECURRENT_EXAMPLE: dict[str, Fraction | int] = {
    "I": 16, "w": Fraction(1, 8), "X": 1, "B": Fraction(1, 8), "H": 16, "u": Fraction(1, 16), "D": Fraction(1, 8),
    "b_w": 0, "b_x": 3, "b_u": 0, "b_h": 3, "e_h": 0,
}  # fmt: skip


def _sides(d: Derivation, cut: bool = True) -> tuple[int, int]:
    """W x + b and U h + d; all gates have one bound, with rows and biases of their own."""
    x = d("given", names=["x[i]", "code", "X", "0", "b_x"])
    h = d("given", names=["h[j]", "code", "1", "e_h", "b_h"])
    of_x = dense(d, x, ("i", "w[i]", "b_w", "W", "I", "w"), ("b", "B"), ("S", "A"), cut=cut)
    of_h = dense(d, h, ("j", "u[j]", "b_u", "U", "H", "u"), ("d", "D"), ("R", "Z"), cut=cut)
    return of_x, of_h


def _gate(d: Derivation, of: int, gate: str) -> int:
    """The same of another gate's rows and biases."""
    return d("again", of, names=[n for leaf in ("w[i]", "b", "u[j]", "d") for n in (leaf, leaf[0] + gate + leaf[1:])])


def _rnn() -> Operator:
    d = Derivation()
    x, h = _sides(d)
    d.lemma("encode", d.lemma("tanh", plus(d, x, h)), "b_h")
    return Operator("FlexASR RNN step", "tanh(W x + b + U h + d)", _RECURRENT, tuple(d.steps), _RECURRENT_EXAMPLE)


def _gru() -> Operator:
    d = Derivation()
    x, h = _sides(d)
    kept = d.lemma("decode", d("given", names=["h", "code", "1", "e_h", "b_h"]))
    reset = d.lemma("sigmoid", plus(d, x, h))
    update = _gate(d, reset, "z")
    reset = _gate(d, reset, "r")
    candidate = d.lemma("tanh", plus(d, times(d, reset, h), x))
    rest = d.lemma("one less", d("complement", update))
    mixed = plus(d, times(d, candidate, rest), times(d, kept, update))
    d.lemma("encode", d("weighted mean", mixed, candidate, kept), "b_h")
    summary = "(1 - z) n + z h, three gates"
    return Operator("FlexASR GRU step", summary, _RECURRENT, tuple(d.steps), _RECURRENT_EXAMPLE)


def _lstm() -> tuple[Operator, Operator]:
    """The hidden state and the cell state; the latter's magnitude before the step is C."""
    symbols = {
        **_RECURRENT,
        "C": "largest magnitude of the cell state before the step (at most the number of steps before)",
        "e_c": "error of the cell state before the step",
        "V": "largest magnitude of the cell state after the step",
    }
    example: dict[str, Fraction | int] = {**_RECURRENT_EXAMPLE, "C": 1, "e_c": 0}
    operators = []
    for part in ("hidden", "cell"):
        d = Derivation()
        x, h = _sides(d)
        kept = d.lemma("decode", d("given", names=["c", "code", "C", "e_c", "b_h"]))
        pre = plus(d, x, h)
        gate, candidate = d.lemma("sigmoid", pre), d.lemma("tanh", pre)
        entering, staying = _gate(d, gate, "i"), _gate(d, gate, "f")
        cell = d.named(plus(d, times(d, entering, candidate), times(d, staying, kept)), "V")
        result = cell if part == "cell" else times(d, _gate(d, gate, "o"), d.lemma("tanh", cell))
        d.lemma("encode", result, "b_h")
        name = f"FlexASR LSTM step, {part} state"
        operators.append(Operator(name, "four gates", symbols, tuple(d.steps), example))
    return operators[0], operators[1]


def _rnn_steps() -> Operator:
    """T steps in closed form: a conversion's error is taken at its largest, whatever the state is."""
    d = Derivation()
    x, h = _sides(d, cut=False)
    state = d.lemma("encode", d.lemma("tanh", plus(d, x, h)), "b_h", "any size")
    d("growth", state, names=["e_h", "U", "G"])
    symbols = {**_RECURRENT, "G": "1 + U + U^2 + .. + U^(T-1)"}
    example: dict[str, Fraction | int] = {**_RECURRENT_EXAMPLE, "G": 4}
    del symbols["e_h"], example["e_h"]
    name, summary = "FlexASR RNN, T steps", "states after T steps"
    return Operator(name, summary, symbols, tuple(d.steps), example, "G = T where U = 1")


POOLINGS: Mapping[str, Operator] = {kind: _pool(kind) for kind in ("max", "mean", "add")}
"""Poolings of pairs of rows, by kind."""
LINEAR: Mapping[str, Operator] = {a: _linear("" if a == "none" else a) for a in ("none", "relu", "sigmoid", "tanh")}
"""Dense layers, by activation."""
STEPS: Mapping[str, tuple[Operator, ...]] = {"rnn": (_rnn(),), "gru": (_gru(),), "lstm": _lstm()}
"""The operators of one step of recurrent layers, by kind; the hidden state's first."""

OPERATORS: tuple[Operator, ...] = (
    *POOLINGS.values(),
    *LINEAR.values(),
    *STEPS["rnn"],
    _rnn_steps(),
    *STEPS["gru"],
    *STEPS["lstm"],
)
"""The operators of this module."""
