"""Bounds of HLSCNN's convolution, and VTA's exact operations with their conditions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial

from accel_models.hlscnn.options import BY_WEIGHT_BITS
from rewrites.bounds.derivations.calculus import Operator
from rewrites.bounds.derivations.names import Leaf, Names
from rewrites.mappings.hlscnn import convolution, convolution_8bit
from rewrites.mappings.vta import elementwise, gemm

from .derived import derived


def _convolution(bits: int, bias: bool) -> Operator:
    symbols = {
        "n": "taps: kernel rows x columns x blocks of 8 channels",
        "x": "largest magnitude of an input",
        "w": "largest magnitude of a weight",
        "M": "largest sum of magnitudes of a result's products (at most 8 n x w)",
    }
    example: dict[str, Fraction | int] = {"n": 9, "x": 1, "w": 1, "M": 32}
    # weights of a byte: 6 + 7 bits of fraction are no more than a partial sum's
    leaves = {"value": Leaf("x", "word", "x"), "weight": Leaf("w", "weight" if bits == 16 else "byte weight", "w")}
    values = {"relu": 0, "bias": 0}
    if bias:
        symbols["B"], example["B"] = "largest magnitude of the bias", 1
        leaves["bias"] = Leaf("b", "bias", "B")
        del values["bias"]
    names = Names(
        leaves,
        loops={"group": ("t", "n"), "member": ("c", "8")},
        given=values,
        ranges={"total": "M", "element": "M"},
    )
    note = (
        "The bound grows with taps x channel blocks. ReLU at the end changes nothing (rule 'rectify'). HLSCNN in the "
        f"reading: {BY_WEIGHT_BITS[bits].reading}."
    )
    name = f"HLSCNN conv2d, weights of {bits} bits" + (", bias" if bias else "")
    summary = "convolution" + (" plus bias" if bias else "")
    fragment = partial(convolution.ir_fragment, BY_WEIGHT_BITS[16]) if bits == 16 else convolution_8bit.ir_fragment
    return Operator(name, summary, symbols, derived(fragment, names), example, note)


_SHIFT = Leaf("by", "accumulator", "15")


def _dense(activation: str) -> Operator:
    symbols = {
        "K": "inputs",
        "B": "largest magnitude of the bias",
        "H": "what is added so that the shift rounds to the nearest number (0: it rounds down)",
        "A": "largest magnitude of the sum with its bias",
        "T": "largest magnitude of all that is shifted (at most A + H)",
        "Y": "largest magnitude of the result, before it becomes a byte (at most T)",
    }
    names = Names(
        {
            "weight": Leaf("w", "byte", "128"),
            "element": Leaf("x", "byte", "128"),
            "bias": Leaf("b", "accumulator", "B", total="A"),
            "half": Leaf("h", "accumulator", "H", total="T"),
            "shift": _SHIFT,
        },
        loops={"depth": ("k", "K")},
        ranges={"tensor_out": "Y"},
    )
    note = "Exact. Without the conditions the result is that of integers modulo 2^32, then modulo 2^8."
    example: dict[str, Fraction | int] = {"K": 256, "B": 1 << 20, "H": 1 << 8, "Y": 127}
    name, after = ("VTA dense", "") if activation == "none" else (f"VTA dense and {activation}", " from 0 on")
    fragment = partial(gemm.ir_fragment, activation)
    return Operator(name, f"shift(x w^T + b + h), cut{after}", symbols, derived(fragment, names), example, note)


def _elementwise(name: str, operation: str) -> Operator:
    symbols = {"A": "largest magnitude of an operand", "Y": "largest magnitude of the result"}
    names = Names(
        {"element": Leaf("a", "accumulator", "A"), "other": Leaf("b", "accumulator", "A"), "imm": _SHIFT},
        ranges={"tensor_out": "Y"},
    )
    note = "Exact. An immediate is no other case than a second operand."
    fragment = partial(elementwise.ir_fragment, elementwise.OPERATIONS[operation])
    example: dict[str, Fraction | int] = {"A": 60, "Y": 120}
    return Operator(f"VTA {name}", f"{name} of words, as bytes", symbols, derived(fragment, names), example, note)


CONVOLUTIONS: Mapping[int, Operator] = {bits: _convolution(bits, bias=False) for bits in (16, 8)}
"""HLSCNN's convolution without bias, by the width of weights."""
DENSE: Mapping[str, Operator] = {activation: _dense(activation) for activation in gemm.FINISH}
"""VTA's dense layer, by activation."""

OPERATORS: tuple[Operator, ...] = (
    *(operator for bits, plain in CONVOLUTIONS.items() for operator in (plain, _convolution(bits, bias=True))),
    *DENSE.values(),
    _elementwise("sum", "add"),
    _elementwise("minimum", "min"),
    _elementwise("maximum and ReLU", "max"),
    _elementwise("shift", "shift"),
)
"""The operators of this module."""
