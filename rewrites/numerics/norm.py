"""FlexASR's layer normalisation and attention, whose bounds need conditions on the data."""

from __future__ import annotations

from fractions import Fraction

from .calculus import Derivation, Operator, convert
from .constants import EXP_ERROR, EXP_VANISHES, INV_SQRT_ERROR, LEAST_RADICAND
from .flexasr import UNIT, minus, plus, times
from .formula import Formula, constant, inverse_root, maximum, minimum, power_of_two, symbol

__all__ = ["MASKED", "OPERATORS", "QUOTIENT", "SCORE_UNIT", "SLICE"]

S = symbol
SCORE_UNIT = Fraction(1, 1 << 20)
SLICE = Fraction(1, 16)
"""What the divider's operands lose at most."""
QUOTIENT = Fraction(1, 256)
MASKED = -64
"""What a score of exactly 0 becomes, also that of the rows that fill the last block."""
_WRAPS_AT = 4
_LARGEST_POWER = Fraction(1022, 1024)  # exp(0) of the unit: with at most 4 timesteps the sum is below 4
_EPSILON = Fraction(1, 99_999)
"""Above 1e-5, which the IR adds to a variance (as a float64 number it need not be 1e-5 exactly)."""


def _layer_norm() -> Operator:
    d = Derivation()
    symbols = {
        "X": "largest magnitude of an input",
        "V": "vectors of 16 features",
        "P": "largest magnitude of a vector's sum (at most 16 X)",
        "Q": "largest sum of squares of a vector (at most 16 X^2)",
        "v": "least variance plus 1e-5",
        "w": "largest variance plus 1e-5 (at most X^2 plus 1e-5)",
        "G": "largest magnitude of gamma",
        "B": "largest magnitude of beta",
        "C": "largest distance from the mean (at most 2 X)",
        "N": "largest normalised magnitude (at most C / sqrt(v))",
        "Y": "largest magnitude of a result",
        "b": "AdaptivFloat bias of inputs and results",
    }
    d.defaults |= {
        "P": 16 * S("X"),
        "Q": 16 * S("X") * S("X"),
        "w": S("X") * S("X") + _EPSILON,
        "C": 2 * S("X"),
        "N": S("C") * inverse_root(S("v")),
        "Y": S("N") * S("G") + S("B"),
    }
    for name, what in (("P", "sum"), ("Q", "sum of squares")):
        d.require(S(name), 32, f"a vector's {what} wraps in 20 bits")
        d.require(S("V") * S(name), 512, f"a timestep's {what} wraps in 24 bits")
    x = d.given("input", S("X"))
    mean = d.step(
        "mean, rounded toward zero",
        [x],
        lambda _: Fraction(1, 16) * S("P"),
        lambda _: UNIT,
        lemmas=["decode", "sum", "divide by a count"],
        rules=["sum", "scale"],
    )
    square = d.step(
        "mean of squares: each is rounded down, and so is their mean",
        [x],
        lambda _: Fraction(1, 16) * S("Q"),
        lambda _: 2 * UNIT,
        lemmas=["product", "sum", "divide by a count"],
        rules=["round down", "sum", "scale"],
    )
    variance = d.step(
        "variance",
        [square, times(d, mean, mean, "square of the mean")],
        lambda *_: S("w"),
        lambda p, q: p.error + q.error + _EPSILON,
        lemmas=["sum"],
        rules=["sum"],
        limit=64,
        otherwise="the variance wraps (an unsigned number of 20 bits)",
    )
    least = S("v") - variance.error
    d.require(LEAST_RADICAND, least, "the inverse root wraps, or is not positive")
    root = inverse_root(least)
    inverse = d.step(
        "one by its root",
        [variance],
        lambda _: inverse_root(S("v")),
        lambda a: Fraction(1, 2) * a.error * root * root * root + INV_SQRT_ERROR * root,
        lemmas=["inverse root"],
        rules=["difference of inverse roots", "relative error", "sum"],
        limit=32,
        otherwise="the inverse root wraps",
    )
    centred = d.at_most(minus(d, x, mean, "distance from the mean"), "C")
    d.defaults["C"] = 2 * S("X")
    normal = d.at_most(times(d, centred, inverse, "normalised"), "N")
    d.defaults["N"] = S("C") * inverse_root(S("v"))
    gamma, beta = d.given("gamma", S("G")), d.given("beta", S("B"))
    y = d.at_most(plus(d, times(d, normal, gamma, "times gamma"), beta, "plus beta"), "Y")
    d.defaults["Y"] = S("N") * S("G") + S("B")
    code = convert(d, y, S("b"), "encode")
    example: dict[str, Fraction | int] = {
        "X": 1, "V": 4, "v": Fraction(1, 4), "G": Fraction(1, 4), "B": Fraction(1, 4), "b": 3,
    }  # fmt: skip
    summary = "(x - mean) / sqrt(variance + 1e-5) gamma + beta"
    note = "No bound for a variance near 0, where 1 / sqrt has none, and for sums that wrap."
    return Operator("FlexASR layer norm", summary, symbols, d, code, example, note)


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
    d.defaults |= {
        "R": S("F") * S("K") * S("q"),
        "m": -1 * S("R"),
        "s": constant(1),
        "t": S("T"),
        "k": S("T") * S("K"),
        "Y": S("K"),
    }
    d.require(S("R"), 8 * power_of_two(S("b_k") + S("b_q")), "the accumulator of 32 bits wraps")
    d.require(2 * S("R") + 1, 1 << 11, "a difference of scores wraps (Q12.20)")
    d.require(MASKED + EXP_VANISHES, S("m"), "rows that fill the last block count in the sum")
    key, query = d.given("key", S("K")), d.given("query", S("q"))
    score = d.step(
        "score",
        [key, query],
        lambda *_: S("R"),
        lambda *_: SCORE_UNIT,
        lemmas=["multiply codes", "shift in attention"],
        rules=["product", "sum", "round down"],
    )
    power = d.step(
        "exponential of the distance from the largest score",
        [score],
        lambda _: 1,
        lambda a: EXP_ERROR + 2 * a.error,
        lemmas=["exponential", "exponential, tail", "exponential vanishes", "exponential is below 1"],
        rules=["slope", "sum"],
    )
    total = d.step("their sum", [power], lambda _: S("t"), lambda a: S("T") * a.error, rules=["sum"])
    reached = minimum(total.magnitude + total.error, S("T") * _LARGEST_POWER)
    d.require(reached, _WRAPS_AT, "the divider takes its operands modulo 4")
    least = S("s") - total.error - SLICE
    d.require(Fraction(1, 4), least, "a quotient may reach 4, and wrap")
    d.require(S("z"), 1, "the unit takes a score of exactly 0 for -64")

    def weight_error(p: Formula, s: Formula) -> Formula:
        above = (s + SLICE + p * S("s")) / (S("s") * (S("s") - s - SLICE))
        below = (s + (p + SLICE) * S("s")) / (S("s") * (S("s") + s)) + QUOTIENT
        return maximum(above, below)

    weight = d.step(
        "weight",
        [power, total],
        lambda *_: minimum(constant(1) / S("s"), 1),
        lambda p, s: weight_error(p.error, s.error),
        lemmas=["divide slices", "divide"],
        rules=["quotient, above", "quotient, below"],
    )
    coded = convert(d, weight, S("b_p"), "compress weights", "weight as a code")
    context = d.step(
        "weighted sum of keys",
        [coded, key],
        lambda *_: S("Y"),
        lambda a, _: S("k") * a.error + SCORE_UNIT,
        lemmas=["multiply codes", "shift in attention"],
        rules=["product", "sum", "round down"],
        limit=32,
        otherwise="the result's 26 bits wrap",
    )
    code = convert(d, context, S("b_y"), "compress")
    example: dict[str, Fraction | int] = {
        "T": 3, "F": 16, "K": 1, "q": Fraction(1, 4), "z": 0, "b_k": 3, "b_q": 1, "b_p": 3, "b_y": 3,
    }  # fmt: skip
    note = (
        "No bound exists once the sum of exponentials reaches 4: with 5 equal scores it is 4.99, of which the divider "
        "sees 15/16, as it does of each exponential, and every weight becomes 1 instead of 1/5."
    )
    return Operator("FlexASR attention", "softmax(K q) K", _ATTENTION, d, code, example, note)


OPERATORS: tuple[Operator, ...] = (_layer_norm(), _attention())
"""The operators of this module."""
