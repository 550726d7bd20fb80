"""``hlscnn.conv2d``: convolutions on HLSCNN, a program for each image, band of output rows and group of filters.

Formats are the hardware's: activations and results have 16 bits, 7 of them fraction, weights 8 and 6.  Every tap's sum
is rounded to the results' format, so that results should be large.  x and w go to the accelerator as x 2^-s and w 2^-t,
and its result is that of the convolution times 2^-(s+t).

Weights of 16 bits (14 of them fraction) are for the hardware of a published branch, which has a mapping of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np

from accel_models.hlscnn.layout import LANES
from accel_models.hlscnn.options import BY_WEIGHT_BITS
from accel_models.hlscnn.quantise import FixedPoint, activation_format, convolution_error, result_format, weight_format
from ila_lang.mapping import SizeError
from ir_semantics import reference
from ir_semantics.graph import Node, TensorType
from ir_semantics.graph.ir import integer_of
from rewrites.claims.theorems.convolution import DECLARED, on_run
from rewrites.claims.theorems.machines import CONVOLUTIONS as BOUNDS
from rewrites.compiler.codegen.bounding import bounds_of, linear_change
from rewrites.compiler.codegen.floats import FloatImplementation, Piece
from rewrites.compiler.codegen.formats import FixedCodes, check_scale, greatest, power_above, range_of, unscale
from rewrites.compiler.codegen.interface import (
    RESULT,
    Bounds,
    Call,
    CannotOffload,
    Choice,
    Executed,
    Options,
    Part,
    Ranges,
    Reals,
)
from rewrites.compiler.codegen.parts import require_elements
from rewrites.mappings.conversions import ConversionClaim
from rewrites.mappings.hlscnn.claims import CONVOLUTIONS, PACK, READ, ROUND
from rewrites.mappings.programs import program_of
from rewrites.rules.tensor.boxes import CONVOLUTION_IN_BOXES, convolution_boxes
from rewrites.rules.tensor.scales import SCALED_CONVOLUTION, Scaling

from .tiling import Shape, Tiling, tile

WEIGHT_BITS: Final = Choice("weight_bits", "weights", (8, 16), "bits of HLSCNN's weights; the recorded hardware has 8")
_X, _Y = activation_format(), result_format()
PACKED_BITS: Final = 8
"""Weights of so many bits go to the accelerator packed, and activations of whole blocks of channels."""


class Convolution(FloatImplementation):
    """``hlscnn.conv2d``; its quantisation: ``weight_bits``, ``scale_x`` and ``scale_w``.

    Ranges: ``x``, ``w``, ``magnitude`` (the largest sum of magnitudes of a result's products) and ``error`` (what
    conversions may add to a result, in the accelerator's units).
    """

    operands: ClassVar[tuple[str, ...]] = ("x", "w")
    conversions: ClassVar[tuple[ConversionClaim, ...]] = (ROUND, PACK, READ)
    lemmas: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "x": ("float32 to 16 bits",),
        "w": ("float32 to 8 bits", "float32 to 16 bits"),
        RESULT: ("16 bits to float32",),
    }
    scalings: ClassVar[tuple[Scaling, ...]] = (SCALED_CONVOLUTION,)

    @staticmethod
    def split(node: Node, types: Sequence[TensorType], weight_bits: int | None = None) -> tuple[Shape, Tiling]:
        """The sizes of an image's convolution, and how it is cut; raises CannotOffload where nothing fits.

        Without ``weight_bits`` it must fit the hardware of either width: weights of 8 bits need less room than those of
        16, and results more, since a plane of them is as large as the input.
        """
        (images, channels, height, width), (filters, _, *kernel) = types[0].shape, types[1].shape
        require_elements(node, "HLSCNN", images, filters, channels)
        shape = Shape(filters, channels, height, width, (kernel[0], kernel[1]), _strides(node))
        try:
            widths = sorted(BY_WEIGHT_BITS) if weight_bits is None else [weight_bits]
            *_, tiling = (tile(CONVOLUTIONS[bits].mapping, shape) for bits in reversed(widths))
            return shape, tiling
        except SizeError as error:
            raise CannotOffload(f"hlscnn.conv2d does not fit, with one filter and one output row. {error}") from error

    def _calls(self) -> Sequence[Call]:
        bits = self.quantisation["weight_bits"]
        shape, tiling = self.split(self.node, self.types, bits)
        scale_x, scale_w = self.quantisation["scale_x"], self.quantisation["scale_w"]
        for scale, what in ((scale_x, "x"), (scale_w, "w"), (self._scale, "the result")):
            check_scale(scale, what)
        images, (rows, columns) = self.types[0].shape[0], shape.outputs
        bands = [(first, min(first + tiling.rows, rows)) for first in range(0, rows, tiling.rows)]
        groups = [(first, min(first + tiling.group, shape.filters)) for first in range(0, shape.filters, tiling.group)]
        calls = []
        for image in range(images):
            for first, last in bands:
                for start, end in groups:
                    result = (image, image + 1), (start, end), (first, last), (0, columns)
                    sizes = shape.sizes(end - start, last - first)
                    parts = {**self._operand_boxes(result), RESULT: result}
                    calls.append(Call(CONVOLUTIONS[bits], sizes, parts, (CONVOLUTION_IN_BOXES,)))
        return calls

    def _operand_boxes(self, result: Part) -> dict[str, Part]:
        """With weights of 8 bits there are zeros behind the channels."""
        (_, channels, _, columns), (_, _, *kernel) = self.types[0].shape, self.types[1].shape
        filled = channels + (-channels % LANES if self.quantisation["weight_bits"] == PACKED_BITS else 0)
        whole = (0, filled), (0, kernel[0]), (0, kernel[1]), (0, columns)
        images, filters, rows, _ = result
        return convolution_boxes((images, filters, rows), _strides(self.node)[0], whole)

    # -- number formats ----------------------------------------------------------------------------

    @staticmethod
    def observe(node: Node, operands: Sequence[Reals], result: Reals) -> Ranges:
        """The ranges of a run on the host."""
        x, w = operands
        magnitude = _convolve(node, np.abs(x), np.abs(w))
        errors = (convolution_error(w.shape[1], (w.shape[2], w.shape[3]), o) for o in BY_WEIGHT_BITS.values())
        error = max(abs(e) for pair in errors for e in pair)
        return {"x": greatest(x), "w": greatest(w), "magnitude": greatest(magnitude), "error": error}

    @staticmethod
    def choose(node: Node, ranges: Ranges, options: Options) -> dict[str, int]:
        """The quantisation for these ranges.

        No partial sum can leave the stored format if the sum of magnitudes is below its end.  As much as that allows,
        results are made large; x and w share the scale so that rounding either of them costs about the same.
        """
        x, w, magnitude = (range_of(ranges, name) for name in ("x", "w", "magnitude"))
        bits = WEIGHT_BITS.of(options)
        unscaled = {WEIGHT_BITS.name: bits, "scale_x": 0, "scale_w": 0}
        if options.as_published or 0 in (x, w):
            return unscaled
        weights = _weights(bits)
        least_x, least_w = _least(x * options.margin, _X.largest), _least(w, weights.largest)
        room = max(_Y.largest - range_of(ranges, "error"), _Y.largest / 4)
        total = max(_least(max(magnitude, LEAST_PART * x * w) * options.margin, room), least_x + least_w)
        # the steps of both formats in units of the largest elements: s and t with s + t = total and equal steps
        steps = math.log2(_X.step / x) - math.log2(weights.step / w)
        scale_w = min(max(round((total + steps) / 2), least_w), total - least_x)
        return {**unscaled, "scale_x": total - scale_w, "scale_w": scale_w}

    def _format(self, name: str) -> FixedCodes:
        x, w = self.quantisation["scale_x"], self.quantisation["scale_w"]
        form, scale = {"x": (_X, x), "w": (_weights(self.quantisation["weight_bits"]), w), RESULT: (_Y, x + w)}[name]
        return FixedCodes(form.bits, scale, form.fraction)

    @property
    def _scale(self) -> int:
        return self._format(RESULT).scale

    # -- execution ---------------------------------------------------------------------------------

    def _packs(self, name: str) -> bool:
        return name == "w" and self.quantisation["weight_bits"] == PACKED_BITS

    def _rounding(self, name: str) -> ConversionClaim:
        return PACK if self._packs(name) else ROUND

    def _matrix(self, name: str) -> tuple[int, ...]:
        """Channels of all images, and their pixels; filters, and their weights, of which packing knows channels."""
        first, second, *pixels = self._type(name).shape
        if name != "w":
            return first * second, math.prod(pixels)
        return (first, second, math.prod(pixels)) if self._packs(name) else (first, second * math.prod(pixels))

    def _box(self, name: str, part: Part) -> Part:
        """Channels of an image, and whole rows of pixels; whole filters."""
        (first, end), (channel, last), (top, bottom), _ = part
        _, channels, *_, columns = self._type(name).shape
        if name == "w":
            return (first, end), (0, self._matrix(name)[1])
        return (first * channels + channel, first * channels + last), (top * columns, bottom * columns)

    def _pieces(self, name: str, part: Part) -> list[Piece]:
        """Channels of an image, with zeros up to those of the part; filters."""
        (first, end), channels = self._box(name, part)[0], self._type(name).shape[1]
        rows = first + channels if name == "x" else self._matrix(name)[0]
        return [Piece(first, rows, 0, end - first)]

    def _extents(self, name: str, part: Part) -> tuple[int, ...]:
        if not self._packs(name):
            return super()._extents(name, part)
        return PACK.of("Y", self._rounding_sizes(name, part)[0])

    def _rounding_sizes(self, name: str, part: Part) -> list[dict[str, int]]:
        if not self._packs(name):
            return super()._rounding_sizes(name, part)
        (first, end), (_, channels, taps) = part[0], self._matrix(name)
        return [{"k": end - first, "first": first, "c": channels, "taps": taps, **self._format(name).sizes}]

    def _behind(self, name: str, part: Part) -> int:
        """Packed weights are read in entries of two taps, of which the last one may have one."""
        return math.prod(self._extents(name, part)) % (2 * LANES) if self._packs(name) else 0

    def _zeros(self, call: Call) -> Mapping[str, int]:
        """What fills lanes beyond the last channel, where the program reads it."""
        if "host_fill" not in call.mapping.mapping.device.tensors:
            return {}
        return {"host_fill": program_of(call.mapping, call.sizes).reads.get("host_fill", 0)}

    def cut(self, executed: Executed, exact: Reals) -> int:
        """None: what leaves 16 bits wraps, and where that is not excluded there is no bound."""
        return 0

    def bounds(self, executed: Executed) -> Bounds:
        """The bound of the convolution, plus what rounding x and w may change; of each element at the run's roundings.

        Sums of magnitudes of products are exact in float64: multiples of 2^-21 below 2^26.
        """
        x, w = (unscale(executed.quantised[name], -self._format(name).scale) for name in self.operands)
        magnitude = _convolve(self.node, np.abs(x), np.abs(w))
        least, most, bound = on_run(x, w, magnitude, _strides(self.node), self.quantisation["weight_bits"])
        elements = np.maximum(np.abs(least), np.abs(most))
        of_run = replace(bounds_of(bound, linear_change(executed), self._scale, elements), declared=DECLARED)
        if not np.isfinite(elements).all():
            return of_run
        centre, radius = unscale((least + most) / 2, self._scale), unscale((most - least) / 2, self._scale)
        return replace(of_run, centre=centre, radius=radius)

    def bounds_in(self, ranges: Ranges) -> Bounds:
        """The theorem at these ranges, with the filters that are constants."""
        if "w" not in self._bound:
            return Bounds(None, None, "its filters are no constants")
        w = self.constant_of("w")
        symbols = {
            "n": w.shape[2] * w.shape[3] * -(-w.shape[1] // LANES),
            "x": math.ldexp(ranges["x"], -self._format("x").scale),
            "w": math.ldexp(greatest(w), -self._format("w").scale),
            "M": math.ldexp(ranges["magnitude"], -self._scale),
        }
        return bounds_of(BOUNDS[self.quantisation["weight_bits"]].bound(symbols), math.inf, self._scale)


LEAST_PART = 2.0**-8
"""Sums of magnitudes count as at least this part of a product of the largest elements, so that scales stay small."""


def _weights(bits: int) -> FixedPoint:
    return weight_format(BY_WEIGHT_BITS[bits])


def _least(magnitude: float, largest: float) -> int:
    """The least scale at which numbers of this magnitude are at most ``largest``."""
    scale = power_above(magnitude / largest)
    return scale - 1 if magnitude <= math.ldexp(largest, scale - 1) else scale


def _strides(node: Node) -> tuple[int, int]:
    down, right = (integer_of(dict(node.attributes), name) for name in ("stride_h", "stride_w"))
    return down, right


def _convolve(node: Node, x: Reals, w: Reals) -> Reals:
    return reference.conv2d(x, w, stride=_strides(node))
