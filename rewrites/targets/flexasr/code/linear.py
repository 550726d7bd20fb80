"""``flexasr.linear``: the dense layer on FlexASR's processing elements.

Features are padded with zeros to 16 inputs and 64 outputs.  Where weights or rows do not fit, rows and outputs are cut
into parts of one size; inputs are never cut.  Rounding, padding, cutting and joining are proved programs of the host.

x, w and b go to the accelerator as x 2^-s, w 2^-t and b 2^-(s+t), so that its result is that of the layer times
2^-(s+t): this is exact without activation and with relu.  With sigmoid and tanh s + t is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from accel_models.flexasr.layout import LANES
from accel_models.flexasr.quantise import BIASES, largest
from ila_lang.mapping import SizeError
from ir_semantics.graph import Node, TensorType
from rewrites.claims.theorems import applied
from rewrites.claims.theorems.flexasr import LINEAR as LAYERS
from rewrites.compiler.codegen.bounding import bounds_of, linear_change, row_sum
from rewrites.compiler.codegen.formats import check_scale, greatest, range_of
from rewrites.compiler.codegen.interface import Bounds, Call, CannotOffload, Executed, Options, Ranges, Reals
from rewrites.compiler.codegen.parts import equal_parts, fits, most_that_fit, require_elements
from rewrites.mappings.flexasr.claims import LINEAR
from rewrites.rules.tensor.boxes import DENSE_IN_BOXES, dense_boxes
from rewrites.rules.tensor.scales import SCALED_DENSE, Scaling

from .adaptive import AdaptiveCodes, AdaptiveFloats, adaptive_bias, adaptive_scale

OUTPUTS = 64
"""Outputs come in vectors of 16 for each of four processing elements."""
_SLOPES = {"none": 1.0, "relu": 1.0, "sigmoid": 0.25, "tanh": 1.0}


class Linear(AdaptiveFloats):
    """``flexasr.linear``; its quantisation: ``bias_x``, ``bias_w``, ``bias_b``, ``bias_y``, ``scale_x``, ``scale_w``.

    Ranges: ``x``, ``w``, ``b``, ``products`` (of x w^T), ``sum`` (of x w^T + b) and ``y``.
    """

    operands: ClassVar[tuple[str, ...]] = ("x", "w", "b")
    scalings: ClassVar[tuple[Scaling, ...]] = tuple(SCALED_DENSE.values())

    @staticmethod
    def split(node: Node, types: Sequence[TensorType]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """For each call its rows and its outputs.

        Raises CannotOffload where one row of inputs does not fit.
        """
        (rows, features), (outputs, _) = types[0].shape, types[1].shape
        require_elements(node, "FlexASR", rows, features, outputs)
        claim, wide = LINEAR[str(node.attribute("activation"))], -(-features // LANES) * LANES
        try:
            claim.mapping.sizes_for((1, wide, OUTPUTS))
        except SizeError as error:
            raise CannotOffload(
                f"flexasr.linear does not fit, with one row and {OUTPUTS} outputs, and inputs are not split. {error}"
            ) from error
        blocks = -(-outputs // OUTPUTS)
        across = equal_parts(blocks, most_that_fit(blocks, lambda n: fits(claim, 1, wide, n * OUTPUTS)))
        own = across[0][1] * OUTPUTS
        down = equal_parts(rows, most_that_fit(rows, lambda n: fits(claim, n, wide, own)))
        return [(part, (start * OUTPUTS, end * OUTPUTS)) for part in down for start, end in across]

    def _calls(self) -> Sequence[Call]:
        activation = str(self.node.attribute("activation"))
        split = self.split(self.node, self.types)
        x, w = (self.quantisation[f"scale_{name}"] for name in "xw")
        for scale, what in ((x, "x"), (w, "w"), (x + w, "the result")):
            check_scale(scale, what)
        if x + w and activation not in ("none", "relu"):
            raise CannotOffload(f"the scales of x and w must cancel out in front of {activation}, not give 2^{x + w}")
        biases = {bias: self.quantisation[bias] for bias in ("bias_w", "bias_b", "bias_x", "bias_y")}
        claim, features = LINEAR[activation], -(-self.types[0].shape[1] // LANES) * LANES
        calls = []
        for rows, outputs in split:
            sizes = claim.mapping.sizes_for((rows[1] - rows[0], features, outputs[1] - outputs[0]))
            parts = {**dense_boxes(rows, outputs, (0, features)), "y": (rows, outputs)}
            calls.append(Call(claim, {**sizes, **biases}, parts, (DENSE_IN_BOXES[activation],)))
        return calls

    # -- number formats ----------------------------------------------------------------------------

    @staticmethod
    def observe(node: Node, operands: Sequence[Reals], result: Reals) -> Ranges:
        """The ranges of a run on the host."""
        x, w, b = operands
        products = x @ w.T
        tensors = {"x": x, "w": w, "b": b, "products": products, "sum": products + b, "y": result}
        return {name: greatest(values) for name, values in tensors.items()}

    @staticmethod
    def choose(node: Node, ranges: Ranges, options: Options) -> dict[str, int]:
        """The quantisation for these ranges."""
        r = {name: range_of(ranges, name) for name in ("x", "w", "b", "products", "sum", "y")}
        margin, linear = options.margin, node.attribute("activation") in ("none", "relu")
        scale_x, scale_w = adaptive_scale(r["x"], options, margin), adaptive_scale(r["w"], options)
        if not linear:
            scale_w = -scale_x
        while linear and not options.as_published:
            # sums and the layer's bias must not leave their formats
            reached = max(r["sum"] * margin, r["y"] * margin, r["b"])
            if reached * 2.0 ** -(scale_x + scale_w) <= largest(BIASES[-1]):
                break
            scale_x += 1
        total = scale_x + scale_w
        bias_x = adaptive_bias(r["x"] * 2.0**-scale_x, options, margin)
        bias_w = adaptive_bias(r["w"] * 2.0**-scale_w, options)
        # the accumulator has 28 - bias_x - bias_w fraction bits in 32
        while not options.as_published and r["products"] * 2.0**-total * margin >= 8 * 2.0 ** (bias_x + bias_w):
            if bias_x < BIASES[-1]:
                bias_x += 1
            elif bias_w < BIASES[-1]:
                bias_w += 1
            else:
                break
        return {
            "bias_x": bias_x,
            "bias_w": bias_w,
            "bias_b": adaptive_bias(r["b"] * 2.0**-total, options),
            "bias_y": adaptive_bias(r["y"] * 2.0**-total, options, margin),
            "scale_x": scale_x,
            "scale_w": scale_w,
        }

    def _format(self, name: str) -> AdaptiveCodes:
        x, w = self.quantisation["scale_x"], self.quantisation["scale_w"]
        scale = {"x": x, "w": w, "b": x + w, "y": x + w}[name]
        return AdaptiveCodes(self.quantisation[f"bias_{name}"], scale)

    # -- execution ---------------------------------------------------------------------------------

    def cut(self, executed: Executed, exact: Reals) -> int:
        """Results beyond their format.

        Sums beyond 32 are cut, too; that is seen in no result in front of relu, sigmoid and tanh, which are flat there,
        and without activation such a result is beyond its format.
        """
        return self._format("y").beyond(exact)

    def bounds(self, executed: Executed) -> Bounds:
        """The bound of the dense layer, plus what rounding x, w and b may change in front of the activation."""
        activation = str(self.node.attribute("activation"))
        x, w, b = (self._quantised(name, executed.given[name]) for name in self.operands)
        layer = applied.linear(x, w, b, self._format("y").bias, activation)
        change = _SLOPES[activation] * linear_change(executed)
        return bounds_of(layer.whole(), change, self._format("y").scale, layer.elements().error)

    def bounds_in(self, ranges: Ranges) -> Bounds:
        """The theorem at these ranges, with the weights that are constants."""
        if not {"w", "b"} <= self._bound.keys():
            return Bounds(None, None, "its weights are no constants")
        w, b = self.constant_of("w"), self.constant_of("b")
        total = self._format("y").scale
        symbols = {
            "I": w.shape[1],
            "W": math.ldexp(row_sum(w), -self._format("w").scale),
            "w": math.ldexp(greatest(w), -self._format("w").scale),
            "X": math.ldexp(ranges["x"], -self._format("x").scale),
            "B": math.ldexp(greatest(b), -total),
            "S": math.ldexp(ranges["products"], -total),
            "Y": math.ldexp(ranges["sum"], -total),
            **{f"b_{name}": self._format(name).bias for name in "wxy"},
        }
        return bounds_of(LAYERS[str(self.node.attribute("activation"))].bound(symbols), math.inf, total)
