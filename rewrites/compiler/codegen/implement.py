"""Accelerator operators and their implementations, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ir_semantics.graph import Graph, Node, TensorType
from ir_semantics.graph.types import Array
from rewrites.targets.flexasr.code.linear import Linear
from rewrites.targets.flexasr.code.pools import POOLS, Pool
from rewrites.targets.flexasr.code.recurrent import Recurrent
from rewrites.targets.flexasr.code.rows import LayerNorm
from rewrites.targets.hlscnn.code import Convolution
from rewrites.targets.vta.code import Dense

from .interface import CannotOffload, Implementation, Options, Quantisation, Ranges, Reals

__all__ = ["OPERATORS", "OperatorCode", "constants_of", "implement", "implementable", "quantisation_of"]


@dataclass(frozen=True)
class OperatorCode:
    """Code generation of an operator: its implementation, and what that says of shapes, ranges and formats.

    ``split(node, types)`` raises CannotOffload where shapes do not fit; ``observe(node, operands, result)`` gives the
    ranges of a run on the host, and ``choose(node, ranges, options)`` the quantisation for such ranges.
    """

    implementation: type[Implementation]
    split: Callable[[Node, Sequence[TensorType]], Any]
    observe: Callable[[Node, Sequence[Reals], Reals], Ranges]
    choose: Callable[[Node, Ranges, Options], dict[str, int]]


def _code(cls: Any) -> OperatorCode:
    return OperatorCode(cls, cls.split, cls.observe, cls.choose)


OPERATORS: Mapping[str, OperatorCode] = {
    "flexasr.linear": _code(Linear),
    "flexasr.lstm": _code(Recurrent),
    "flexasr.gru": _code(Recurrent),
    "flexasr.rnn": _code(Recurrent),
    **{name: _code(Pool) for name in POOLS},
    "flexasr.layer_norm": _code(LayerNorm),
    "hlscnn.conv2d": _code(Convolution),
    "vta.dense": _code(Dense),
}
"""Operators that code is generated for."""


def implementable(node: Node, operand_types: Sequence[TensorType]) -> str | None:
    """Why no calls of proved mappings implement an accelerator node of these types, or None where they do."""
    code = OPERATORS.get(node.operator)
    if code is None:
        return f"no code is generated for {node.operator}"
    try:
        code.split(node, operand_types)
    except CannotOffload as error:
        return str(error)
    return None


def quantisation_of(node: Node, ranges: Ranges, options: Options | None = None) -> dict[str, int]:
    """The parameters of number formats for ranges that calibration saw.

    Raises CannotOffload where no formats fit, and KeyError where there is no code for the operator.
    """
    return OPERATORS[node.operator].choose(node, ranges, options or Options())


def implement(
    node: Node, operand_types: Sequence[TensorType], quantisation: Quantisation, options: Options | None = None
) -> Implementation:
    """The calls of proved mappings that execute an accelerator node.

    Raises CannotOffload where no split fits a mapping's domain, and KeyError where there is no code for the operator,
    or a parameter of the quantisation is missing.
    """
    return OPERATORS[node.operator].implementation(node, operand_types, quantisation, options or Options())


def constants_of(graph: Graph, operands: Sequence[int]) -> dict[int, Array]:
    """Those operands that are constants, by position."""
    return {p: graph.constant(i) for p, i in enumerate(operands) if graph.nodes[i].operator == "constant"}
