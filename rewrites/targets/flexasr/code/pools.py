"""Poolings of pairs of rows on FlexASR, one or several in a program: ``flexasr.max_pool``, ``flexasr.max_pool_x4`` etc.

Where a tensor does not fit, its rows and its columns are cut into parts of one size, rows between the groups that
become one row.  Columns are padded with zeros to 16.

x goes to the accelerator as x 2^-s, with which pooling commutes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from numpy.typing import NDArray

from accel_models.flexasr.layout import LANES
from accel_models.flexasr.quantise import BIASES
from ir_semantics.graph import Node, TensorType
from rewrites.claims.theorems import applied
from rewrites.compiler.codegen.bounding import bounds_of, operand_error
from rewrites.compiler.codegen.formats import check_scale, greatest, range_of
from rewrites.compiler.codegen.interface import (
    Bounds,
    Call,
    CannotOffload,
    Executed,
    Options,
    Part,
    Ranges,
    Reals,
    Tensors,
)
from rewrites.compiler.codegen.parts import equal_parts, fits, flat, most_that_fit, require_elements
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.flexasr import claims
from rewrites.rules.tensor.splitting import POOLED_COLUMNS, POOLED_ROWS

from .adaptive import AdaptiveImplementation, adaptive_bias, adaptive_scale


@dataclass(frozen=True)
class PoolProgram:
    """A program of poolings: their kind and number, the mapping, and its host tensors of operand and result."""

    kind: Literal["max", "mean"]
    steps: int
    mapping: MappingClaim
    tensors: tuple[str, str] = ("host_x", "host_y")


POOLS: Final[Mapping[str, PoolProgram]] = {
    "flexasr.max_pool": PoolProgram("max", 1, claims.POOLS["max"], ("host_in", "host_out")),
    "flexasr.mean_pool": PoolProgram("mean", 1, claims.POOLS["mean"], ("host_in", "host_out")),
    **{
        f"flexasr.{kind}_pool_x{steps}": PoolProgram(kind, steps, mapping)
        for (kind, steps), mapping in claims.CHAINS.items()
    },
}
"""The program of each operator."""


class Pool(AdaptiveImplementation):
    """The operators of :data:`POOLS`; quantisation ``bias`` and ``scale``; the range ``x``."""

    operands: ClassVar[tuple[str, ...]] = ("x",)

    @staticmethod
    def split(node: Node, types: Sequence[TensorType]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Rows and columns of x of the calls; raises CannotOffload for a tensor without elements."""
        rows, columns = types[0].shape
        require_elements(node, "FlexASR", rows, columns)
        claim, group = POOLS[node.operator].mapping, 1 << POOLS[node.operator].steps
        vectors, groups = -(-columns // LANES), rows // group
        across = equal_parts(vectors, most_that_fit(vectors, lambda n: fits(claim, group, n * LANES)))
        wide = across[0][1] * LANES
        down = equal_parts(groups, most_that_fit(groups, lambda n: fits(claim, n * group, wide)))
        return [(a * group, b * group) for a, b in down], [(a * LANES, b * LANES) for a, b in across]

    def _calls(self) -> Sequence[Call]:
        program = POOLS[self.node.operator]
        down, across = self.split(self.node, self.types)
        bias, scale = self._format("x")
        check_scale(scale, "x")
        if bias not in BIASES:
            raise CannotOffload(f"the AdaptivFloat bias of x must be in {BIASES[0]} .. {BIASES[-1]}, not {bias}")
        rules = [POOLED_ROWS[program.kind]] if len(down) > 1 else []
        rules += [POOLED_COLUMNS[program.kind]] if len(across) > 1 else []

        def call(rows: tuple[int, int], columns: tuple[int, int]) -> Call:
            sizes = {"T": rows[1] - rows[0], "nv": (columns[1] - columns[0]) // LANES, "base": 0}
            parts: dict[str, Part] = {
                "x": (rows, columns),
                "y": ((rows[0] >> program.steps, rows[1] >> program.steps), columns),
            }
            return Call(program.mapping, sizes, parts, tuple(rules))

        return [call(rows, columns) for rows in down for columns in across]

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

    def _format(self, name: str) -> tuple[int, int]:
        return self.quantisation["bias"], self.quantisation["scale"]

    def _tensors(self, call: Call, codes: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        tensor = POOLS[self.node.operator].tensors[0]
        return {tensor: flat(codes["x"].codes, call.parts["x"])} if "x" in codes else {}

    def _result(self, outputs: Sequence[Tensors]) -> Reals:
        written = POOLS[self.node.operator].tensors[1]
        return self._decoded(outputs, self.quantisation["bias"], self.quantisation["scale"], written)

    def bounds(self, executed: Executed) -> Bounds:
        """The bound of all poolings, plus the largest change of an element of x: neither kind enlarges it."""
        x, program = executed.codes["x"], POOLS[self.node.operator]
        bound = applied.pooled(program.kind, x, program.steps)
        return bounds_of(bound, operand_error(executed, "x"), self.quantisation["scale"])
