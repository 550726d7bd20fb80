"""FlexASR's layer normalisation and attention, whose bounds need conditions on the data."""

from __future__ import annotations

from fractions import Fraction

from .calculus import Derivation, Operator
from .flexasr import minus, plus, times

_EPSILON = "1/99999"
"""Above 1e-5, which the IR adds to a variance (as a float64 number it need not be 1e-5 exactly)."""

_LAYER_NORM = {
    "X": "largest magnitude of an input",
    "V": "vectors of 16 features",
    "P": "largest magnitude of a vector's sum (at most 16 X)",
    "Q": "largest sum of squares of a vector (at most 16 X^2)",
    "v": "least variance plus 1e-5",
    "w": "largest variance plus 1e-5 (at most 2 X^2 plus 1e-5)",
    "G": "largest magnitude of gamma",
    "B": "largest magnitude of beta",
    "C": "largest distance from the mean (at most 2 X)",
    "N": "largest normalised magnitude (at most C / sqrt(v))",
    "Y": "largest magnitude of a result",
    "b": "AdaptivFloat bias of inputs and results",
}


def _layer_norm() -> Operator:
    d = Derivation()
    x = d.lemma("decode", d("given", names=["x[v,i]", "code", "X", "0", "b"]))

    def average(of: int, name: str) -> int:
        """Of all features: sums of vectors, whose largest magnitude has a name, over their number."""
        total = d.named(d("repeated sum", of, names=["i", "16"], lemmas=["sum"]), name)
        return d("average", total, names=["v", "V"])

    mean, square = average(x, "P"), average(times(d, x, x), "Q")
    variance = d("omission", minus(d, square, times(d, mean, mean)), names=["epsilon", _EPSILON])
    inverse = d("inverse root", d.named(variance, "w"), names=["v"])
    normal = d.named(times(d, d.named(minus(d, x, mean), "C"), inverse), "N")
    gamma, beta = (
        d.lemma("decode", d("given", names=[leaf, "code", most, "0", f"b_{leaf}"]))
        for leaf, most in (("gamma", "G"), ("beta", "B"))
    )
    d.lemma("encode", d.named(plus(d, times(d, normal, gamma), beta), "Y"), "b")
    example: dict[str, Fraction | int] = {
        "X": 1, "V": 4, "v": Fraction(1, 4), "G": Fraction(1, 4), "B": Fraction(1, 4), "b": 3,
    }  # fmt: skip
    summary = "(x - mean) / sqrt(variance + 1e-5) gamma + beta"
    note = "No bound for a variance near 0, where 1 / sqrt has none, and for sums that wrap."
    return Operator("FlexASR layer norm", summary, _LAYER_NORM, tuple(d.steps), example, note)


_ATTENTION = {
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


def _attention() -> Operator:
    d = Derivation()
    query = d("given", names=["q[f]", "code", "q", "0", "b_q"])
    key = d("given", names=["k[t,f]", "code", "K", "0", "b_k"])
    products = d("weighted sum", query, lemmas=["multiply codes"], names=["f", "k[t,f]", "b_k", "", "F", "K"])
    score = d.lemma("shift in attention", d.named(products, "R"))
    power = d.lemma("exponential", d("distance from the largest", score, names=["t", "m", "z"]))
    total = d("sum of exponentials", power, names=["t", "T", "t", "s"])
    weight = d.lemma("compress weights", d("share", power, total, names=["s"]), "b_p")
    mixed = d("weighted sum", weight, lemmas=["multiply codes"], names=["t", "k[t,f]", "b_k", "k", "T", "K"])
    context = d.lemma("shift in attention", d.named(d("mean by shares", mixed, key), "Y"))
    d.lemma("compress", context, "b_y")
    example: dict[str, Fraction | int] = {
        "T": 3, "F": 16, "K": 1, "q": Fraction(1, 4), "z": 0, "b_k": 3, "b_q": 1, "b_p": 3, "b_y": 3,
    }  # fmt: skip
    note = (
        "No bound exists once the sum of exponentials reaches 4: with 5 equal scores it is 4.99, of which the divider "
        "sees 15/16, as it does of each exponential, and every weight becomes 1 instead of 1/5."
    )
    return Operator("FlexASR attention", "softmax(K q) K", _ATTENTION, tuple(d.steps), example, note)


LAYER_NORM, ATTENTION = _layer_norm(), _attention()
OPERATORS: tuple[Operator, ...] = (LAYER_NORM, ATTENTION)
"""The operators of this module."""
