"""Poolings of pairs of rows on FlexASR, one or several in a program: ``flexasr.max_pool``, ``flexasr.max_pool_x4`` etc.

What stands around the accelerator's program is part of the mappings: rounding, cutting rows and columns into parts of
one size, padding these with zeros, and joining them.  Here sizes of parts are chosen, as large as fit.

x goes to the accelerator as x 2^-s, with which pooling commutes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from accel_models.flexasr.floats import EXPONENT_AT_0
from accel_models.flexasr.layout import LANES
from accel_models.flexasr.quantise import BIASES
from ila_lang.mapping import SizeError
from ir_semantics.graph import Node, TensorType
from rewrites.claims.theorems import applied
from rewrites.compiler.codegen.bounding import bounds_of, operand_error
from rewrites.compiler.codegen.formats import check_scale, greatest, range_of
from rewrites.compiler.codegen.interface import Bounds, Call, CannotOffload, Executed, Options, Ranges, Reals
from rewrites.compiler.codegen.parts import equal_parts, most_that_fit, require_elements
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.conversions import ConversionClaim
from rewrites.mappings.flexasr import claims

from .adaptive import AdaptiveCodes, AdaptiveFloats, adaptive_bias, adaptive_scale


@dataclass(frozen=True)
class PoolProgram:
    """A program of poolings: their kind and number, and the mapping."""

    kind: Literal["max", "mean"]
    steps: int
    mapping: MappingClaim


POOLS: Final[Mapping[str, PoolProgram]] = {
    f"flexasr.{kind}_pool{f'_x{steps}' if steps > 1 else ''}": PoolProgram(kind, steps, mapping)
    for (kind, steps), mapping in claims.FLOAT_POOLS.items()
}
"""The program of each operator."""


class Pool(AdaptiveFloats):
    """The operators of :data:`POOLS`; quantisation ``bias`` and ``scale``; the range ``x``."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    conversions: ClassVar[tuple[ConversionClaim, ...]] = ()

    @staticmethod
    def split(node: Node, types: Sequence[TensorType]) -> dict[str, int]:
        """The mapping's sizes: the fewest parts of one size; raises CannotOffload for a tensor without elements."""
        rows, columns = types[0].shape
        require_elements(node, "FlexASR", rows, columns)
        program = POOLS[node.operator]
        results, vectors, mapping = rows >> program.steps, -(-columns // LANES), program.mapping.mapping

        def sizes(height: int, width: int) -> dict[str, int]:
            parts = {"H": height, "nv": width, "down": -(-results // height), "across": -(-vectors // width)}
            return {"Y": results, "C": columns, **parts, "base": 0, "exponent": EXPONENT_AT_0}

        try:
            mapping.require(sizes(1, 1))
        except SizeError as error:
            raise CannotOffload(f"{node.operator} does not fit, in parts of one row of results. {error}") from error
        _, width = equal_parts(vectors, most_that_fit(vectors, lambda n: mapping.holds(sizes(1, n))))[0]
        _, height = equal_parts(results, most_that_fit(results, lambda n: mapping.holds(sizes(n, width))))[0]
        return sizes(height, width)

    def _calls(self) -> Sequence[Call]:
        sizes = self.split(self.node, self.types)
        program, codes = POOLS[self.node.operator], self._format("x")
        check_scale(codes.scale, "x")
        if codes.bias not in BIASES:
            raise CannotOffload(f"the AdaptivFloat bias of x must be in {BIASES[0]} .. {BIASES[-1]}, not {codes.bias}")
        return [Call(program.mapping, {**sizes, **codes.sizes})]

    @staticmethod
    def observe(node: Node, operands: Sequence[Reals], result: Reals) -> Ranges:
        """The range of x."""
        return {"x": greatest(operands[0])}

    @staticmethod
    def choose(node: Node, ranges: Ranges, options: Options) -> dict[str, int]:
        """The quantisation for these ranges."""
        x = range_of(ranges, "x")
        scale = adaptive_scale(x, options, options.margin)
        return {"bias": adaptive_bias(x * 2.0**-scale, options, options.margin), "scale": scale}

    def _format(self, name: str) -> AdaptiveCodes:
        return AdaptiveCodes(self.quantisation["bias"], self.quantisation["scale"])

    def cut(self, executed: Executed, exact: Reals) -> int:
        """None: maxima and means of numbers of a format do not leave it."""
        return 0

    def bounds(self, executed: Executed) -> Bounds:
        """The bound of all poolings, plus the largest change of an element of x: neither kind enlarges it."""
        x, program = self._quantised("x", executed.given["x"]), POOLS[self.node.operator]
        bound = applied.pooled(program.kind, applied.pooling(program.kind, x).ranges(), program.steps)
        return bounds_of(bound, operand_error(executed, "x"), self._format("x").scale)

    def bounds_in(self, ranges: Ranges) -> Bounds:
        """The theorem of all poolings at this range."""
        codes, program = self._format("x"), POOLS[self.node.operator]
        symbols = {"X": math.ldexp(ranges["x"], -codes.scale), "b": codes.bias}
        return bounds_of(applied.pooled(program.kind, symbols, program.steps), math.inf, codes.scale)
