"""Bounds of FlexASR's pooling, linear and recurrent layers.

Every operator is written as its primitives in order; tests compare the primitives that a derivation uses with those of
the unit's kernel.
"""

from __future__ import annotations

from fractions import Fraction

from .calculus import Derivation, Operator, Quantity, convert, exactly
from .constants import SIGMOID_ERROR, TANH_ERROR
from .formula import Formula, FormulaLike, constant, maximum, power_of_two, symbol

__all__ = ["OPERATORS", "UNIT", "dense", "minus", "plus", "times"]

UNIT = Fraction(1, 1 << 14)
_RANGE = 32  # where Q6.14 wraps
_LARGEST_FIXED = 32 - UNIT
_WRAPS = "a number of 20 bits wraps"

S = symbol


def plus(d: Derivation, a: Quantity, b: Quantity, text: str) -> Quantity:
    """The sum in Q6.14."""
    return d.step(
        text,
        [a, b],
        lambda x, y: x.magnitude + y.magnitude,
        lambda x, y: x.error + y.error,
        lemmas=["sum"],
        rules=["sum"],
        limit=_RANGE,
        otherwise=_WRAPS,
    )


def minus(d: Derivation, a: Quantity, b: Quantity, text: str) -> Quantity:
    """The difference in Q6.14 (a sum with the other's negative, which is exact)."""
    return plus(d, a, b, text)


def times(d: Derivation, a: Quantity, b: Quantity, text: str) -> Quantity:
    """The product in Q6.14, rounded down."""
    return d.step(
        text,
        [a, b],
        lambda x, y: x.magnitude * y.magnitude,
        lambda x, y: x.magnitude * y.error + y.magnitude * x.error + x.error * y.error + UNIT,
        lemmas=["product"],
        rules=["product", "round down"],
        limit=_RANGE,
        otherwise=_WRAPS,
    )


def dense(d: Derivation, x: Quantity, weight: str, bias: str, total: str, result: str, scale: Formula) -> Quantity:
    """A processing element: rows times x, plus a layer bias.

    ``weight`` names the largest sum of a row's magnitudes, ``bias`` the largest magnitude of the layer's bias,
    ``total`` and ``result`` the magnitudes of the sum without and with it.  ``scale`` is the sum of both biases.
    """
    norm = S(weight)
    products = d.step(
        f"{weight}-weighted sum of products",
        [x],
        lambda a: norm * a.magnitude,
        lambda a: norm * a.error,
        lemmas=["decode", "multiply codes"],
        rules=["product", "sum"],
    )
    summed = d.at_most(products, total)
    d.require(summed.magnitude + summed.error, 8 * power_of_two(scale), "the accumulator of 32 bits wraps")
    shifted = d.step(
        "14 bits of fraction",
        [summed],
        lambda a: a.magnitude,
        lambda a: a.error + UNIT,
        lemmas=["shift of a sum"],
        rules=["round down"],
    )
    biased = d.step(
        "plus the layer's bias",
        [shifted],
        lambda a: a.magnitude + S(bias),
        lambda a: a.error,
        lemmas=["add bias"],
        rules=["sum"],
        limit=1 << 17,
        otherwise="the accumulator of 32 bits wraps",
    )
    biased = d.at_most(biased, result)
    return d.step(
        "cut to 20 bits",
        [biased],
        lambda a: a.magnitude,
        lambda a: a.error + maximum(a.magnitude - _LARGEST_FIXED, 0),
        lemmas=["saturate"],
        rules=["cut"],
    )


def _function(
    d: Derivation, a: Quantity, lemma: str, rules: list[str], slope: FormulaLike, most: FormulaLike, error: Fraction
) -> Quantity:
    return d.step(
        lemma, [a], lambda _: most, lambda x: slope * x.error + error, lemmas=[lemma], rules=["slope", *rules]
    )


def sigmoid(d: Derivation, a: Quantity) -> Quantity:
    """The logistic function."""
    return _function(d, a, "sigmoid", ["slope of the logistic function"], Fraction(1, 4), 1, SIGMOID_ERROR)


def tanh(d: Derivation, a: Quantity) -> Quantity:
    """The hyperbolic tangent."""
    return _function(d, a, "tanh", ["slope of tanh"], 1, 1, TANH_ERROR)


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
    d.defaults["W"] = S("I") * S("w")
    x = d.given("input", S("X"))
    y = dense(d, x, "W", "B", "S", "Y", S("b_w") + S("b_x"))
    if activation == "relu":
        y = d.step("relu", [y], lambda a: a.magnitude, lambda a: a.error, lemmas=["relu"], rules=["rectify"])
    elif activation:
        y = (sigmoid if activation == "sigmoid" else tanh)(d, y)
    code = convert(d, y, S("b_y"), "encode")
    name = "FlexASR linear" + (f" + {activation}" if activation else "")
    return Operator(name, "W x + b" if not activation else f"{activation}(W x + b)", _LAYER, d, code, _LAYER_EXAMPLE)


def _pool(kind: str) -> Operator:
    d = Derivation()
    a, b = (d.given(f"timestep {t}", S("X")) for t in (0, 1))
    symbols = {"X": "largest magnitude of an input", "b": "AdaptivFloat bias of inputs and results"}
    if kind == "max":
        result = d.step("maximum", [a, b], lambda p, _: p.magnitude, exactly, lemmas=["maximum"], rules=["larger"])
        return Operator("FlexASR max pooling", "max(x0, x1)", symbols, d, result, {"X": 1, "b": 3})
    factor = Fraction(1, 2) if kind == "mean" else Fraction(1)
    exact = d.step(
        f"exact {kind}", [a, b], lambda p, q: factor * (p.magnitude + q.magnitude), exactly, rules=["sum", "scale"]
    )
    symbols["Y"] = f"largest magnitude of a {kind}"
    result = convert(d, d.at_most(exact, "Y"), S("b"), kind)
    summary = "(x0 + x1) / 2" if kind == "mean" else "x0 + x1"
    return Operator(f"FlexASR {kind} pooling", summary, symbols, d, result, {"X": 1, "b": 3})


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


def _sides(d: Derivation) -> tuple[Quantity, Quantity, Quantity]:
    """W x + b, U h + d and h; all gates have one bound."""
    d.defaults["W"], d.defaults["U"] = S("I") * S("w"), S("H") * S("u")
    x = d.given("input", S("X"))
    h = d.given("hidden state before", 1, S("e_h"))
    of_x = dense(d, x, "W", "B", "S", "A", S("b_w") + S("b_x"))
    of_h = dense(d, h, "U", "D", "R", "Z", S("b_u") + S("b_h"))
    return of_x, of_h, h


def _rnn() -> Operator:
    d = Derivation()
    x, h, _ = _sides(d)
    state = convert(d, tanh(d, plus(d, x, h, "pre-activation")), S("b_h"), "encode")
    return Operator("FlexASR RNN step", "tanh(W x + b + U h + d)", _RECURRENT, d, state, _RECURRENT_EXAMPLE)


def _gru() -> Operator:
    d = Derivation()
    x, h, kept = _sides(d)
    gate = sigmoid(d, plus(d, x, h, "pre-activation of a gate"))  # reset and update alike
    candidate = tanh(d, plus(d, times(d, gate, h, "reset times hidden part"), x, "pre-activation of the candidate"))
    rest = d.step(
        "one less the update gate",
        [gate],
        lambda _: 1,
        lambda a: a.error,
        lemmas=["one less"],
        rules=["sum"],
        limit=_RANGE,
        otherwise=_WRAPS,
    )
    new, old = times(d, candidate, rest, "candidate's part"), times(d, kept, gate, "old state's part")
    mixed = plus(d, new, old, "new state")
    mean = d.step("a weighted mean", [mixed], lambda _: 1, lambda a: a.error, rules=["weighted mean"])
    state = convert(d, mean, S("b_h"), "encode")
    return Operator("FlexASR GRU step", "(1 - z) n + z h, three gates", _RECURRENT, d, state, _RECURRENT_EXAMPLE)


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
        x, h, _ = _sides(d)
        kept = d.given("cell state before", S("C"), S("e_c"))
        pre = plus(d, x, h, "pre-activation of a gate")
        gate, candidate = sigmoid(d, pre), tanh(d, pre)
        new = times(d, gate, candidate, "input gate times candidate")
        old = times(d, gate, kept, "forget gate times cell state")
        cell = d.at_most(plus(d, new, old, "new cell state"), "V")
        if part == "cell":
            result = convert(d, cell, S("b_h"), "encode")
        else:
            result = convert(d, times(d, gate, tanh(d, cell), "output gate times tanh"), S("b_h"), "encode")
        operators.append(Operator(f"FlexASR LSTM step, {part} state", "four gates", symbols, d, result, example))
    return operators[0], operators[1]


def _rnn_steps() -> Operator:
    """T steps in closed form: the error of a conversion is at most 2^(b_h - 8) + 33/32 2^(b_h - 10), whatever it is."""
    d = Derivation()
    step = _rnn()
    d.defaults["W"], d.defaults["U"] = S("I") * S("w"), S("H") * S("u")
    largest = Fraction(31, 128) * power_of_two(S("b_h"))
    scale = power_of_two(S("b_h"))
    moved = maximum(Fraction(1, 256) * scale, Fraction(33, 32 << 10) * scale)
    own = 2 * UNIT + TANH_ERROR + moved + maximum(1 - largest, 0)
    for name in ("S", "A", "R", "Z"):
        d.defaults[name] = step.defaults[name]
    for condition in (_LARGEST_FIXED - S("A"), _LARGEST_FIXED - S("Z")):
        d.require(0, condition, "a processing element saturates")
    states = d.step(
        "T steps: every one adds r and multiplies the error by U",
        [],
        lambda: 1,
        lambda: constant(own) * S("G"),
        lemmas=step.lemmas,
        rules=[*step.rules, "growth"],
    )
    for old in step.conditions:  # with the error of the last step in place of e_h
        d.require(_with_error(old.left, states.error), old.right, old.reason)
    symbols = {**_RECURRENT, "G": "1 + U + U^2 + .. + U^(T-1)"}
    example: dict[str, Fraction | int] = {**_RECURRENT_EXAMPLE, "G": 4}
    del symbols["e_h"], example["e_h"]
    return Operator("FlexASR RNN, T steps", "states after T steps", symbols, d, states, example, "G = T where U = 1")


def _with_error(formula: Formula, error: Formula) -> Formula:
    if formula.op == "symbol" and formula.name == "e_h":
        return error
    return Formula(formula.op, tuple(_with_error(a, error) for a in formula.args), formula.name, formula.value)


OPERATORS: tuple[Operator, ...] = (
    *(_pool(kind) for kind in ("max", "mean", "add")),
    *(_linear(a) for a in ("", "relu", "sigmoid", "tanh")),
    _rnn(),
    _rnn_steps(),
    _gru(),
    *_lstm(),
)
"""The operators of this module."""
