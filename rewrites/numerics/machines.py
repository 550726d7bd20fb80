"""Bounds of HLSCNN's convolution, and VTA's exact operations with their conditions."""

from __future__ import annotations

from fractions import Fraction

from accel_models.hlscnn.options import BY_WEIGHT_BITS

from .calculus import Derivation, Operator, exactly
from .formula import symbol

__all__ = ["OPERATORS", "PSUM_UNIT", "WORD_UNIT"]

S = symbol
PSUM_UNIT = Fraction(1, 1 << 16)
WORD_UNIT = Fraction(1, 1 << 7)


def _convolution(bits: int, bias: bool) -> Operator:
    d = Derivation()
    symbols = {
        "n": "taps: kernel rows x columns x blocks of 8 channels",
        "x": "largest magnitude of an input",
        "w": "largest magnitude of a weight",
        "M": "largest sum of magnitudes of a result's products (at most 8 n x w)",
    }
    a, b = d.given("input", S("x")), d.given(f"weight ({bits} bits)", S("w"))
    exact = bits == 8  # 6 + 7 bits of fraction: no more than a partial sum's
    product = d.step(
        "product, 16 bits of fraction",
        [b, a],
        lambda p, q: p.magnitude * q.magnitude,
        exactly if exact else lambda *_: PSUM_UNIT,
        lemmas=["HLSCNN product of a byte" if exact else "HLSCNN product"],
        rules=["product"] if exact else ["product", "round down"],
    )
    eight = d.step("sum over 8 channels", [product], lambda p: 8 * p.magnitude, lambda p: 8 * p.error, rules=["sum"])
    partial = d.step(
        "as a word: 7 bits of fraction, rounded half up",
        [eight],
        lambda p: p.magnitude,
        lambda p: p.error + WORD_UNIT / 2,
        lemmas=["HLSCNN requantise"],
        rules=["round to nearest"],
    )
    total = d.step(
        "sum over taps, stored after each",
        [partial],
        lambda p: S("n") * p.magnitude,
        lambda p: S("n") * p.error,
        lemmas=["HLSCNN total", "HLSCNN store"],
        rules=["sum"],
    )
    result = d.at_most(total, "M")
    note = (
        "The bound grows with taps x channel blocks. ReLU at the end changes nothing (rule 'rectify'). HLSCNN in the "
        f"reading: {BY_WEIGHT_BITS[bits].reading}."
    )
    example: dict[str, Fraction | int] = {"n": 9, "x": 1, "w": 1, "M": 32}
    if bias:
        symbols["B"] = "largest magnitude of the bias"
        example["B"] = 1
        result = d.step(
            "plus the bias, stored: cut to 7 bits of fraction",
            [result],
            lambda p: p.magnitude + S("B"),
            lambda p: p.error + WORD_UNIT,
            lemmas=["HLSCNN total", "HLSCNN store"],
            rules=["sum", "round down"],
        )
    d.require(result.magnitude + result.error, 256, "a stored word of 16 bits wraps")
    name = f"HLSCNN conv2d, weights of {bits} bits" + (", bias" if bias else "")
    return Operator(name, "convolution" + (" plus bias" if bias else ""), symbols, d, result, example, note)


_WORD = 1 << 31


def _dense() -> Operator:
    d = Derivation()
    symbols = {
        "K": "inputs",
        "B": "largest magnitude of the bias",
        "A": "largest magnitude of the sum with its bias",
        "Y": "largest magnitude of the result, before it becomes a byte",
    }
    x, w = d.given("input byte", 128), d.given("weight byte", 128)
    product = d.step("product", [x, w], lambda *_: 1 << 14, exactly, lemmas=["VTA product"])
    total = d.step(
        "sum with bias",
        [product],
        lambda p: S("K") * p.magnitude + S("B"),
        exactly,
        lemmas=["VTA sum"],
        limit=_WORD,
        otherwise="the accumulator wraps",
    )
    total = d.at_most(total, "A")
    shifted = d.step(
        "shift right, minimum, maximum", [total], lambda _: S("Y"), exactly,
        lemmas=["VTA immediate", "VTA shift", "VTA minimum", "VTA maximum"],
    )  # fmt: skip
    d.defaults["Y"] = S("A")
    result = d.step("low 8 bits", [shifted], lambda p: p.magnitude, exactly, lemmas=["VTA narrow"], limit=128,
                    otherwise="a byte wraps")  # fmt: skip
    note = "Exact. Without the conditions the result is that of integers modulo 2^32, then modulo 2^8."
    example: dict[str, Fraction | int] = {"K": 256, "B": 1 << 20, "Y": 127}
    return Operator("VTA dense", "shift(x w^T + b), cut", symbols, d, result, example, note)


def _elementwise(name: str, lemma: str, doubled: bool) -> Operator:
    d = Derivation()
    symbols = {"A": "largest magnitude of an operand", "Y": "largest magnitude of the result"}
    a, b = d.given("accumulator", S("A")), d.given("second accumulator, or an immediate", S("A"))
    factor = 2 if doubled else 1
    made = d.step(
        name,
        [a, b],
        lambda p, _: factor * p.magnitude,
        exactly,
        lemmas=["VTA immediate", lemma],
        limit=_WORD if doubled else None,
        otherwise="the accumulator wraps",
    )
    made = d.at_most(made, "Y")
    result = d.step(
        "low 8 bits", [made], lambda p: p.magnitude, exactly, lemmas=["VTA narrow"], limit=128, otherwise="a byte wraps"
    )
    return Operator(f"VTA {name}", f"{name} of words, as bytes", symbols, d, result, {"A": 60, "Y": 120}, "Exact.")


OPERATORS: tuple[Operator, ...] = (
    *(_convolution(bits, bias) for bits in (16, 8) for bias in (False, True)),
    _dense(),
    *(
        _elementwise(name, lemma, doubled)
        for name, lemma, doubled in (
            ("sum", "VTA sum", True),
            ("minimum", "VTA minimum", False),
            ("maximum and ReLU", "VTA maximum", False),
            ("shift", "VTA shift", False),
        )
    ),
)
"""The operators of this module."""
