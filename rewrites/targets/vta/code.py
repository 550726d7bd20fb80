"""``vta.dense`` and ``vta.linear``: products of matrices of bytes on VTA's GEMM and ALU, in blocks that fit its
scratchpads, and dense layers with bias and relu.

Operands are bytes times a power of two, symmetric around 0: x is close to X 2^s with X in -127 .. 127.  Sums of
products are exact in 32 bits, in units in which a bias is a number of 24 bits.  VTA shifts them right and cuts them to
bytes, after it has added half a unit of the shifted result, so that the shift rounds to the nearest number (as
published it rounds down).

Rows are padded with zeros to whole blocks, features to 16 and to whole blocks.  Rows and outputs are cut into parts
where the operands do not fit VTA's DRAM.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import ClassVar

import numpy as np

from chc.tensor_rules.rule import TensorRule
from ir_semantics.graph import Node, TensorType
from rewrites.bounds.derivations.calculus import Bound
from rewrites.bounds.kernel.formula import constant
from rewrites.bounds.kernel.laws import of_shift
from rewrites.claims.theorems import applied
from rewrites.claims.theorems.machines import DENSE
from rewrites.compiler.codegen.bounding import bounds_of, linear_change
from rewrites.compiler.codegen.floats import FloatImplementation
from rewrites.compiler.codegen.formats import FixedCodes, check_scale, greatest, power_above, range_of, unscale
from rewrites.compiler.codegen.interface import (
    RESULT,
    Bounds,
    Call,
    CannotOffload,
    Executed,
    Options,
    Part,
    Ranges,
    Reals,
)
from rewrites.compiler.codegen.parts import equal_parts, require_elements
from rewrites.mappings.conversions import ConversionClaim
from rewrites.mappings.vta.claims import GEMMS, READ, ROUND, ROUND_BIAS
from rewrites.mappings.vta.gemm import ROOM
from rewrites.rules.tensor.boxes import DENSE_IN_BOXES, PRODUCT_IN_BOXES, dense_boxes
from rewrites.rules.tensor.scales import SCALED_DENSE, SCALED_PRODUCT, Scaling

LANES = 16
LARGEST = 127
BIAS_BITS = 24
LARGEST_BIAS = (1 << BIAS_BITS - 1) - 1
MOST_SHIFT = 15
MOST_VECTORS = ((1 << 31) - (1 << MOST_SHIFT) - LARGEST_BIAS) // (LARGEST * LARGEST * LANES)
"""Vectors of 16 inputs of which sums of products, with a bias and half a unit, stay below 2^31 in magnitude."""
_TRIED = 64


@dataclass(frozen=True)
class _Blocks:
    """Sizes of a block and of the padded matrices, in rows and in vectors of 16; ``cost`` counts commands."""

    block: tuple[int, int, int]
    counts: tuple[int, int, int]
    cost: int

    @property
    def padded(self) -> tuple[int, int, int]:
        rows, outputs, inputs = (b * c for b, c in zip(self.block, self.counts, strict=True))
        return rows, outputs, inputs


class Dense(FloatImplementation):
    """``vta.dense``; its quantisation: ``scale_x``, ``scale_w``, ``shift`` and ``rounding`` (1: to the nearest).

    Ranges: ``x``, ``w``, ``y`` and ``products`` (of x w^T, which ``y`` is but for roundings).
    """

    operands: ClassVar[tuple[str, ...]] = ("x", "w")
    conversions: ClassVar[tuple[ConversionClaim, ...]] = (ROUND, READ)
    lemmas: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **dict.fromkeys("xw", ("float32 to 8 bits, symmetric",)),
        RESULT: ("8 bits to float32",),
    }
    laws: ClassVar[tuple[str, ...]] = ("shift and cut",)
    scalings: ClassVar[tuple[Scaling, ...]] = (SCALED_PRODUCT,)
    summed: ClassVar[str] = "products"
    """The range of what is shifted."""

    @staticmethod
    def split(node: Node, types: Sequence[TensorType]) -> list[tuple[_Blocks, tuple[int, int], tuple[int, int]]]:
        """For each call its blocks, rows and outputs; raises CannotOffload where one row does not fit."""
        (rows, features), (outputs, _) = types[0].shape, types[1].shape
        require_elements(node, "VTA", rows, features, outputs)
        inputs = -(-features // LANES)
        if inputs > MOST_VECTORS:
            raise CannotOffload(
                f"{node.operator} has {features} inputs, and with more than {MOST_VECTORS * LANES} sums of products of "
                "bytes may leave 32 bits; inputs are not split"
            )
        row_parts, output_parts = _cut(node.operator, rows, -(-outputs // LANES), inputs)
        blocks = _blocks(row_parts[0][1], output_parts[0][1], inputs)
        assert blocks is not None, "_cut has looked"
        return [(blocks, part, (first * LANES, end * LANES)) for part in row_parts for first, end in output_parts]

    def _calls(self) -> Sequence[Call]:
        split = self.split(self.node, self.types)
        scale_x, scale_w = self.quantisation["scale_x"], self.quantisation["scale_w"]
        for scale, what in ((scale_x, "x"), (scale_w, "w"), (self._scale, "the result")):
            check_scale(scale, what)
        calls = []
        for blocks, row_part, output_part in split:
            m, n, kk = blocks.padded
            sizes = {"m": m, "n": n, "kk": kk}
            sizes |= {f"block_{axis}": size for axis, size in zip("mnk", blocks.block, strict=True)}
            sizes |= {f"blocks_{axis}": count for axis, count in zip("mnk", blocks.counts, strict=True)}
            # blocks may compute what is another part's
            parts = {**self._computed(sizes, row_part[0], output_part[0]), RESULT: (row_part, output_part)}
            sizes |= {"shift": self.quantisation["shift"], "nearest": self.quantisation["rounding"]}
            calls.append(Call(GEMMS[self._activation], sizes, parts, (self._rule,)))
        return calls

    @property
    def _activation(self) -> str:
        return "none"

    @property
    def _rule(self) -> TensorRule:
        return PRODUCT_IN_BOXES

    def _computed(self, sizes: Mapping[str, int], row: int, output: int) -> dict[str, Part]:
        """What a program computes from a row and an output on, and of which boxes of operands."""
        rows, outputs = (row, row + sizes["m"]), (output, output + sizes["n"] * LANES)
        boxes = dense_boxes(rows, outputs, (0, sizes["kk"] * LANES))
        return {**{name: boxes[name] for name in self.operands}, RESULT: (rows, outputs)}

    # -- number formats ----------------------------------------------------------------------------

    @staticmethod
    def observe(node: Node, operands: Sequence[Reals], result: Reals) -> Ranges:
        """The ranges of a run on the host."""
        x, w = operands
        named = {"x": x, "w": w, "y": result, "products": x @ w.T}
        return {name: greatest(values) for name, values in named.items()}

    @staticmethod
    def choose(node: Node, ranges: Ranges, options: Options) -> dict[str, int]:
        """The quantisation for these ranges: the finest bytes, and the least shift at which results fit a byte.

        VTA shifts by at most 15 bits: where that is not enough, x is made coarser.
        """
        x, w, y = (range_of(ranges, name) for name in ("x", "w", "y"))
        scale_x, scale_w = (_byte_scale(v) for v in (x * options.margin, w))
        shift = max(_byte_scale(y * options.margin) - scale_x - scale_w, 0) if y else 0
        scale_x, shift = scale_x + max(shift - MOST_SHIFT, 0), min(shift, MOST_SHIFT)
        return {"scale_x": scale_x, "scale_w": scale_w, "shift": shift, "rounding": int(not options.as_published)}

    @property
    def _scale(self) -> int:
        return self._format(RESULT).scale

    @property
    def _half(self) -> int:
        q = self.quantisation
        return 1 << (q["shift"] - 1) if q["rounding"] and q["shift"] else 0

    def _format(self, name: str) -> FixedCodes:
        x, w = self.quantisation["scale_x"], self.quantisation["scale_w"]
        return {
            "x": FixedCodes(8, x, symmetric=True),
            "w": FixedCodes(8, w, symmetric=True),
            "b": FixedCodes(BIAS_BITS, x + w, symmetric=True, width=32),
            RESULT: FixedCodes(8, x + w + self.quantisation["shift"]),
        }[name]

    # -- execution ---------------------------------------------------------------------------------

    def _quantised_sizes(self, call: Call) -> Mapping[str, int]:
        return {"shift": self.quantisation["shift"], "nearest": self.quantisation["rounding"]}

    def _zeros(self, call: Call) -> Mapping[str, int]:
        return {} if "b" in self.operands else {"host_b": call.sizes["n"] * LANES}

    def cut(self, executed: Executed, exact: Reals) -> int:
        """Results that are not in -128 .. 127 when they were shifted."""
        shifted = np.floor(unscale(exact, -self._scale) + self._half / (1 << self.quantisation["shift"]))
        return int(np.count_nonzero((shifted < -LARGEST - 1) | (shifted > LARGEST)))

    def bounds(self, executed: Executed) -> Bounds:
        """What VTA computes is known by its theorem, and so is its error at these operands, with its sign.

        In units of 2^(scale_x + scale_w) let a be the exact sum of products and bias, h what is added to it,
        u = 2^shift, and r the theorem's result, a + h shifted and cut to a byte.  The error is r u - a: all of these
        are integers below 2^31.  With relu r and a are those that are at least 0.
        Where a condition of the theorem fails, which a result of -128 does, the bound is that of :meth:`_own_error`,
        which is declared: ``split`` sees to it that no sum leaves 32 bits.
        """
        shift = self.quantisation["shift"]
        codes = {name: unscale(executed.quantised[name], -self._format(name).scale) for name in self.operands}
        x, w, b = codes["x"], codes["w"], codes.get("b", np.zeros(len(codes["w"])))
        layer, sums = applied.vta_dense(x, w, b, self._half, shift, self._activation), x @ w.T + b
        whole = layer.whole()
        if whole.value is None:
            own = Bound(self._own_error(Fraction(greatest(sums))), ())
            return bounds_of(own, linear_change(executed), self._format("b").scale)
        exact = np.maximum(sums, 0) if self._activation == "relu" else sums
        error = unscale(layer.exact() * (1 << shift) - exact, self._format("b").scale)
        known = bounds_of(replace(whole, value=Fraction(greatest(error))), linear_change(executed))
        return replace(known, centre=error, radius=np.zeros_like(error))

    def bounds_in(self, ranges: Ranges) -> Bounds:
        """The theorem at these ranges, and what it says of sums: see :meth:`bounds`."""
        half, unit, scale = self._half, 1 << self.quantisation["shift"], self._format("b").scale
        sums = Fraction(ranges[self.summed]) / Fraction(2) ** scale
        lowest = -LARGEST - 1 if self._activation == "none" else 0
        reached = min((sums + half) // unit, LARGEST), -max((half - sums) // unit, lowest)
        symbols: dict[str, Fraction | int] = {
            "K": self.calls[0].sizes["kk"] * LANES,
            "B": LARGEST_BIAS,
            "H": half,
            "A": sums,
            "T": sums + half,
        }
        theorem, own = DENSE[self._activation].bound({**symbols, "Y": max(reached)}), self._own_error(sums)
        known = Bound(own, ()) if theorem.value is None else replace(theorem, value=theorem.value + own)
        return bounds_of(known, math.inf, scale)

    def _own_error(self, sums: Fraction) -> Fraction:
        """How far shift and cut move sums of at most this magnitude, in units of both scales: 'shift and cut'."""
        unit = constant(1 << self.quantisation["shift"])
        return of_shift(constant(self._half), unit, constant(sums), LARGEST * unit).evaluate({})


class Linear(Dense):
    """``vta.linear``: the quantisation of :class:`Dense`, and the same scale for a bias as for products.

    Ranges: those, ``b``, and ``sum`` (of x w^T + b); of a layer with relu, ``y`` is what is not negative.
    """

    operands: ClassVar[tuple[str, ...]] = ("x", "w", "b")
    conversions: ClassVar[tuple[ConversionClaim, ...]] = (ROUND, ROUND_BIAS, READ)
    lemmas: ClassVar[Mapping[str, tuple[str, ...]]] = {**Dense.lemmas, "b": ("float32 to 24 bits, symmetric",)}
    scalings: ClassVar[tuple[Scaling, ...]] = tuple(SCALED_DENSE[activation] for activation in GEMMS)
    summed: ClassVar[str] = "sum"

    @property
    def _activation(self) -> str:
        return str(self.node.attribute("activation"))

    @property
    def _rule(self) -> TensorRule:
        return DENSE_IN_BOXES[self._activation]

    def _rounding(self, name: str) -> ConversionClaim:
        return ROUND_BIAS if name == "b" else ROUND

    @staticmethod
    def observe(node: Node, operands: Sequence[Reals], result: Reals) -> Ranges:
        """The ranges of a run on the host."""
        x, w, b = operands
        of_products = Dense.observe(node, (x, w), result)
        return {**of_products, "b": greatest(b), "sum": greatest(x @ w.T + b)}

    @staticmethod
    def choose(node: Node, ranges: Ranges, options: Options) -> dict[str, int]:
        """As of a product; where the bias is too large for its codes, x is made coarser."""
        quantisation, b = Dense.choose(node, ranges, options), range_of(ranges, "b")
        coarser = 0
        while np.rint(b * 2.0 ** -(quantisation["scale_x"] + quantisation["scale_w"] + coarser)) > LARGEST_BIAS:
            coarser += 1
        quantisation["scale_x"] += coarser
        quantisation["shift"] = max(quantisation["shift"] - coarser, 0)
        return quantisation


def _byte_scale(magnitude: float) -> int:
    """The least scale at which numbers of this magnitude are at most 127 (after rounding); 0 for 0."""
    if magnitude == 0:
        return 0
    scale = power_above(magnitude / LARGEST)
    return scale - 1 if magnitude <= LARGEST * 2.0 ** (scale - 1) else scale


def _candidates(count: int, most: int) -> Iterator[int]:
    """Sizes of equal parts of at most ``most``, the largest first."""
    least = -(-count // most)
    sizes = {-(-count // number): None for number in range(least, min(least + _TRIED, count) + 1)}
    return iter(sizes)


@cache
def _blocks(rows: int, outputs: int, inputs: int) -> _Blocks | None:
    """The blocks with the fewest commands for so many rows, and vectors of outputs and inputs; None where none fit."""
    best: _Blocks | None = None
    for block_k in _candidates(inputs, 1024):
        for block_m in _candidates(rows, min(2047, 2048 // block_k)):
            most = min(1024 // block_k, 2048 // (block_m + 1))
            if not most:
                continue
            block_n = -(-outputs // -(-outputs // most))
            block = (block_m, block_n, block_k)
            counts = tuple(-(-count // size) for count, size in zip((rows, outputs, inputs), block, strict=True))
            m, n, k = (b * c for b, c in zip(block, counts, strict=True))
            if 16 * n * k + 4 * n + m * k + m * n > ROOM or n * k > ROOM >> 4 or max(m, n, k) > 65535:
                continue
            instructions = counts[0] * counts[1] * (counts[2] * (2 + 2 * block_n) + 8)
            cost = 16 * n * k + 4 * n + m * k + m * n + 4 * instructions
            if best is None or cost < best.cost:
                best = _Blocks(block, (counts[0], counts[1], counts[2]), cost)
    return best


@cache
def _cut(operator: str, rows: int, outputs: int, inputs: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Parts of rows and of output vectors, as few as fit DRAM; raises CannotOffload where one of each does not."""
    number = 1
    while True:
        row_parts, output_parts = equal_parts(rows, -(-rows // number)), equal_parts(outputs, outputs)
        for split in range(1, min(outputs, 256) + 1):
            output_parts = equal_parts(outputs, -(-outputs // split))
            if _blocks(row_parts[0][1], output_parts[0][1], inputs) is not None:
                return row_parts, output_parts
        if number >= rows:
            raise CannotOffload(
                f"{operator} has {inputs * LANES} inputs, and a row of them with 16 outputs does not fit VTA's DRAM of "
                "16 MiB; inputs are not split"
            )
        number *= 2
