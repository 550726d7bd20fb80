"""Bounds of HLSCNN's convolution, and VTA's exact operations with their conditions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from accel_models.hlscnn.options import BY_WEIGHT_BITS

from .calculus import Derivation, Operator


def _convolution(bits: int, bias: bool) -> Operator:
    d = Derivation()
    symbols = {
        "n": "taps: kernel rows x columns x blocks of 8 channels",
        "x": "largest magnitude of an input",
        "w": "largest magnitude of a weight",
        "M": "largest sum of magnitudes of a result's products (at most 8 n x w)",
    }
    a = d("given", names=["x[t,c]", "word", "x", "0", ""])
    b = d("given", names=["w[t,c]", "weight" if bits == 16 else "byte weight", "w", "0", ""])
    # weights of a byte: 6 + 7 bits of fraction are no more than a partial sum's
    product = d.lemma("HLSCNN product" if bits == 16 else "HLSCNN product of a byte", d("product", b, a))
    eight = d.named(d("repeated sum", product, names=["c", "8"]), "M")
    word = d.lemma("HLSCNN requantise", eight)
    stored = ["HLSCNN total", "HLSCNN store"]
    result = d.named(d("repeated sum", word, names=["t", "n"], lemmas=stored), "M")
    note = (
        "The bound grows with taps x channel blocks. ReLU at the end changes nothing (rule 'rectify'). HLSCNN in the "
        f"reading: {BY_WEIGHT_BITS[bits].reading}."
    )
    example: dict[str, Fraction | int] = {"n": 9, "x": 1, "w": 1, "M": 32}
    if bias:
        symbols["B"] = "largest magnitude of the bias"
        example["B"] = 1
        total = d.lemma("HLSCNN total", d("sum", result, d("given", names=["b", "bias", "B", "0", ""])))
        d.lemma("HLSCNN store", total)
    name = f"HLSCNN conv2d, weights of {bits} bits" + (", bias" if bias else "")
    summary = "convolution" + (" plus bias" if bias else "")
    return Operator(name, summary, symbols, tuple(d.steps), example, note)


def _immediate(d: Derivation, leaf: str, most: str) -> int:
    return d.lemma("VTA immediate", d("given", names=[leaf, "immediate", most, "0", ""]))


_LARGEST_IMMEDIATE = "32768"


def _dense() -> Operator:
    d = Derivation()
    symbols = {
        "K": "inputs",
        "B": "largest magnitude of the bias",
        "A": "largest magnitude of the sum with its bias",
        "Y": "largest magnitude of the result, before it becomes a byte (at most A)",
    }
    x, w = (d("given", names=[f"{leaf}[k]", "byte", "128", "0", ""]) for leaf in ("x", "w"))
    total = d("repeated sum", d.lemma("VTA product", d("product", x, w)), names=["k", "K"], lemmas=["VTA sum"])
    bias = d("given", names=["b", "accumulator", "B", "0", ""])
    total = d.named(d.lemma("VTA sum", d("sum", total, bias)), "A")
    shifted = d.lemma("VTA shift", d("shift", total, _immediate(d, "by", "15")))
    below = d.lemma("VTA minimum", d("smaller", shifted, _immediate(d, "high", _LARGEST_IMMEDIATE)))
    cut = d.lemma("VTA maximum", d("larger", below, _immediate(d, "low", _LARGEST_IMMEDIATE)))
    d.lemma("VTA narrow", d.named(d("clip", cut, shifted), "Y"))
    note = "Exact. Without the conditions the result is that of integers modulo 2^32, then modulo 2^8."
    example: dict[str, Fraction | int] = {"K": 256, "B": 1 << 20, "Y": 127}
    return Operator("VTA dense", "shift(x w^T + b), cut", symbols, tuple(d.steps), example, note)


def _elementwise(name: str, lemma: str, law: str) -> Operator:
    d = Derivation()
    symbols = {"A": "largest magnitude of an operand", "Y": "largest magnitude of the result"}
    a = d("given", names=["a", "accumulator", "A", "0", ""])
    other = _immediate(d, "by", "15") if law == "shift" else _immediate(d, "b", "A")
    result = d.lemma(lemma, d(law, a, other))
    d.lemma("VTA narrow", d.named(result, "Y"))
    note = "Exact. A second operand in the accumulator is no other case: it needs no widening."
    return Operator(f"VTA {name}", f"{name} of words, as bytes", symbols, tuple(d.steps), {"A": 60, "Y": 120}, note)


CONVOLUTIONS: Mapping[int, Operator] = {bits: _convolution(bits, bias=False) for bits in (16, 8)}
"""HLSCNN's convolution without bias, by the width of weights."""
DENSE = _dense()

OPERATORS: tuple[Operator, ...] = (
    *(operator for bits, plain in CONVOLUTIONS.items() for operator in (plain, _convolution(bits, bias=True))),
    DENSE,
    *(
        _elementwise(name, lemma, law)
        for name, lemma, law in (
            ("sum", "VTA sum", "sum"),
            ("minimum", "VTA minimum", "smaller"),
            ("maximum and ReLU", "VTA maximum", "larger"),
            ("shift", "VTA shift", "shift"),
        )
    ),
)
"""The operators of this module."""
