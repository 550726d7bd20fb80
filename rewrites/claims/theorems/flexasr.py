"""Bounds of FlexASR's pooling, linear and recurrent layers, layer normalisation and attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial

from rewrites.bounds.derivations.calculus import Operator
from rewrites.bounds.derivations.names import Leaf, Names
from rewrites.mappings.flexasr import attention, layer_norm, linear, pooling, recurrent

from .derived import derived

Example = dict[str, Fraction | int]

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
_LAYER_EXAMPLE: Example = {"I": 64, "w": Fraction(1, 8), "X": 1, "B": 1, "b_w": 0, "b_x": 3, "b_y": 7}
_LAYER_NAMES = Names(
    {
        "weight": Leaf("w", "code", "w", "b_w"),
        "element": Leaf("x", "code", "X", "b_x"),
        "bias": Leaf("b", "code", "B", "b_b", total="Y"),
    },
    loops={"depth": ("i", "I")},
    biases={"bias_w": "b_w", "bias_x": "b_x", "bias_b": "b_b", "bias_y": "b_y"},
    ranges={"acc": "S"},
    norms={"acc": "W"},
)


def _linear(activation: str) -> Operator:
    plain = activation == "none"
    name = "FlexASR linear" + ("" if plain else f" + {activation}")
    summary = "W x + b" if plain else f"{activation}(W x + b)"
    fragment = partial(linear.ir_fragment, None if plain else activation)
    return Operator(name, summary, _LAYER, derived(fragment, _LAYER_NAMES), _LAYER_EXAMPLE)


def _pool(kind: str) -> Operator:
    symbols = {"X": "largest magnitude of an input", "b": "AdaptivFloat bias of inputs and results"}
    if kind != "max":
        symbols["Y"] = f"largest magnitude of a {kind}"
    summary = {"max": "max(x0, x1)", "mean": "(x0 + x1) / 2", "add": "x0 + x1"}[kind]
    names = Names({"element": Leaf("x#", "code", "X", "b")}, ranges={} if kind == "max" else {"tensor_out": "Y"})
    lemma = pooling.pooling_lemma(kind)
    fragment = partial(pooling.ir_fragment, kind)
    derivation = derived(fragment, names, lemmas=(lemma,))
    return Operator(f"FlexASR {kind} pooling", summary, symbols, derivation, {"X": 1, "b": 3})


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
_GATES = {"F": "largest gate, a value of the logistic function (at most 1)"}
_OF_KIND: Mapping[str, Mapping[str, str]] = {
    "rnn": {},
    "gru": {**_GATES, "E": "largest distance of the gate z from 1 (at most 1)"},
    "lstm": {
        **_GATES,
        "C": "largest magnitude of the cell state before the step (at most F / (1 - F), and the first one)",
        "e_c": "error of the cell state before the step",
        "V": "largest magnitude of the cell state after the step",
    },
}
_RECURRENT_EXAMPLE: Example = {
    "I": 16, "w": Fraction(1, 8), "X": 1, "B": Fraction(1, 8), "H": 16, "u": Fraction(1, 16), "D": Fraction(1, 8),
    "b_w": 0, "b_x": 3, "b_u": 0, "b_h": 3, "e_h": 0,
}  # fmt: skip


def _recurrent_names(kind: str) -> Names:
    """All gates have one bound, with rows and biases of their own."""
    gates = recurrent.CELLS[kind][0]
    hidden = Leaf("h", "code", "1", "b_h", "e_h")
    state = Leaf("c", "code", "C", "b_h", "e_c") if kind == "lstm" else hidden
    first_hidden, first = (replace(leaf, name=f"{leaf.name}_0") for leaf in (hidden, state))
    leaves = {"state_code": state, "state_first_code": first}
    for gate in gates:
        leaves |= {
            f"{gate}_weight": Leaf(f"w{gate}", "code", "w", "b_w"),
            f"{gate}_x": Leaf("x", "code", "X", "b_x"),
            f"{gate}_bias": Leaf(f"b{gate}", "code", "B", "b_b", total="A"),
            f"{gate}_hidden_weight": Leaf(f"u{gate}", "code", "u", "b_u"),
            f"{gate}_h": hidden,
            f"{gate}_first_h": first_hidden,
            f"{gate}_hidden_bias": Leaf(f"d{gate}", "code", "D", "b_d", total="Z"),
        }

    def each(of_input: str, of_state: str) -> dict[str, str]:
        return {f"{g}_{name}": value for g in gates for name, value in (("acc", of_input), ("hidden_acc", of_state))}

    return Names(
        leaves,
        loops={f"{g}_{name}": index for g in gates for name, index in (("depth", ("i", "I")), ("width", ("j", "H")))},
        biases={
            "bias_w": "b_w", "bias_x": "b_x", "bias_b": "b_b", "bias_u": "b_u", "bias_c": "b_d", "bias_h": "b_h",
        },
        ranges=each("S", "R") | {"tensor_state": "V", "sigmoid": "F", "complement": "E"},
        norms=each("W", "U"),
    )  # fmt: skip


def _step(kind: str, name: str, summary: str, result: str = "tensor_out", *, given: bool = False) -> Operator:
    symbols = {**_RECURRENT, **_OF_KIND[kind]}
    example: Example = {**_RECURRENT_EXAMPLE, **({"C": 1, "e_c": 0} if kind == "lstm" else {})}
    fragment = partial(recurrent.ir_fragment, kind, given=given)
    derivation = derived(fragment, _recurrent_names(kind), result=result)
    return Operator(f"FlexASR {name}{', from given states' if given else ''}", summary, symbols, derivation, example)


def _steps(given: bool) -> Mapping[str, tuple[Operator, ...]]:
    return {
        "rnn": (_step("rnn", "RNN step", "tanh(W x + b + U h + d)", given=given),),
        "gru": (_step("gru", "GRU step", "(1 - z) n + z h, three gates", given=given),),
        "lstm": (
            _step("lstm", "LSTM step, hidden state", "four gates", given=given),
            _step("lstm", "LSTM step, cell state", "four gates", "tensor_state", given=given),
        ),
    }


def _rnn_steps() -> Operator:
    """T steps in closed form: a conversion's error is taken at its largest, whatever the state is."""
    symbols = {**_RECURRENT, "G": "1 + U + U^2 + .. + U^(T-1)"}
    example: Example = {**_RECURRENT_EXAMPLE, "G": 4}
    del symbols["e_h"], example["e_h"]
    fragment, names, growth = partial(recurrent.ir_fragment, "rnn"), _recurrent_names("rnn"), ("e_h", "U", "G")
    title, summary, note = "FlexASR RNN, T steps", "states after T steps", "G = T where U = 1"
    return Operator(title, summary, symbols, derived(fragment, names, growth=growth), example, note)


def _layer_norm() -> Operator:
    symbols = {
        "X": "largest magnitude of an input",
        "V": "vectors of 16 features",
        "P": "largest magnitude of a vector's sum (at most 16 X)",
        "Q": "largest sum of squares of a vector (at most 16 X^2)",
        "v": "least variance plus epsilon",
        "w": "largest variance plus epsilon (at most 2 X^2 plus 1/99999)",
        "G": "largest magnitude of gamma",
        "B": "largest magnitude of beta",
        "C": "largest distance from the mean (at most 2 X)",
        "N": "largest normalised magnitude (at most C / sqrt(v))",
        "Y": "largest magnitude of a result",
        "b": "AdaptivFloat bias of inputs and results",
    }
    x = Leaf("x", "code", "X", "b", total="C")
    names = Names(
        {
            "code": x,
            "again": x,
            "factor": Leaf("gamma", "code", "G", "b_gamma"),
            "offset": Leaf("beta", "code", "B", "b_beta"),
        },
        loops={"block": ("v", "V"), "within": ("i", "16"), "feature": ("v", "i", "16")},
        biases={"bias_x": "b", "bias_gamma": "b_gamma", "bias_beta": "b_beta"},
        ranges={"added": "P", "squares": "Q", "inverse root": "w", "1/sqrt": "N", "tensor_out": "Y"},
        bounds={"inverse root": ("v",)},
        # any number up to the float64 number 1e-5, which need not be 1e-5 exactly
        omitted={"inverse root": ("epsilon", "1/99999")},
    )
    example: Example = {"X": 1, "V": 4, "v": Fraction(1, 4), "G": Fraction(1, 4), "B": Fraction(1, 4), "b": 3}
    summary = "(x - mean) / sqrt(variance + epsilon) gamma + beta"
    note = "No bound for a variance near 0, where 1 / sqrt has none, and for sums that wrap."
    return Operator("FlexASR layer norm", summary, symbols, derived(layer_norm.ir_fragment, names), example, note)


def _attention() -> Operator:
    symbols = {
        "T": "timesteps",
        "F": "features",
        "K": "largest magnitude of a key",
        "q": "largest magnitude of the query",
        "R": "largest magnitude of a score",
        "m": "a lower bound of the largest score",
        "s": "a lower bound of the sum of exponentials (at least 1)",
        "t": "an upper bound of it (at most T)",
        "z": "scores that are exactly 0",
        "k": "largest sum of magnitudes of a column of the keys (at most T K)",
        "Y": "largest magnitude of a result (at most K)",
        "b_k": "AdaptivFloat bias of the keys",
        "b_q": "of the query",
        "b_p": "of the weights",
        "b_y": "of the result",
    }
    key = Leaf("k", "code", "K", "b_k")
    names = Names(
        {"element": key, "value": key, "asked": Leaf("q", "code", "q", "b_q")},
        loops={
            **dict.fromkeys(("scored", "compared", "summed", "weighed", "row"), ("t", "T")),
            **dict.fromkeys(("depth", "feature"), ("f", "F")),
        },
        biases={"bias_x": "b_k", "bias_query": "b_q", "bias_weights": "b_p", "bias_y": "b_y"},
        ranges={"product": "R", "tensor_out": "Y"},
        norms={"sum": "k"},
        bounds={"distance from the largest": ("m", "z"), "sum of exponentials": ("t", "s")},
    )
    example: Example = {"T": 3, "F": 16, "K": 1, "q": Fraction(1, 4), "z": 0, "b_k": 3, "b_q": 1, "b_p": 3, "b_y": 3}
    note = (
        "No bound exists once the sum of exponentials reaches 4: with 5 equal scores it is 4.99, of which the divider "
        "sees 15/16, as it does of each exponential, and every weight becomes 1 instead of 1/5."
    )
    return Operator(
        "FlexASR attention", "softmax(K q) K", symbols, derived(attention.ir_fragment, names), example, note
    )


POOLINGS: Mapping[str, Operator] = {kind: _pool(kind) for kind in ("max", "mean", "add")}
"""Poolings of pairs of rows, by kind."""
LINEAR: Mapping[str, Operator] = {a: _linear(a) for a in ("none", "relu", "sigmoid", "tanh")}
"""Dense layers, by activation."""
STEPS, STEPS_FROM = _steps(given=False), _steps(given=True)
"""The operators of one step of recurrent layers from zeros and from given states, by kind; the hidden state's first."""
LAYER_NORM, ATTENTION = _layer_norm(), _attention()

OPERATORS: tuple[Operator, ...] = (
    *POOLINGS.values(),
    *LINEAR.values(),
    *STEPS["rnn"],
    _rnn_steps(),
    *STEPS["gru"],
    *STEPS["lstm"],
    *(operator for steps in STEPS_FROM.values() for operator in steps),
    LAYER_NORM,
    ATTENTION,
)
"""The operators of this module."""
