"""Implementations of accelerator nodes."""

from __future__ import annotations

from collections.abc import Sequence

from ir_semantics.graph import Graph, Node, TensorType
from ir_semantics.graph.types import Array

from .interface import CannotOffload, Implementation, Options, Quantisation, Ranges
from .operators import accelerator_operator, operator_of


def _code(operator: str) -> type[Implementation]:
    accelerated = accelerator_operator(operator)
    if accelerated is None or accelerated.code is None:
        raise CannotOffload(f"no code is generated for {operator}")
    return accelerated.code


def implementable(node: Node, operand_types: Sequence[TensorType]) -> str | None:
    """Why no calls of proved mappings implement an accelerator node of these types, or None where they do."""
    try:
        _code(node.operator).split(node, operand_types)
    except CannotOffload as error:
        return str(error)
    return None


def quantisation_of(node: Node, ranges: Ranges, options: Options | None = None) -> dict[str, int]:
    """The parameters of number formats for ranges that calibration saw; raises CannotOffload where no formats fit."""
    return _code(node.operator).choose(node, ranges, options or Options())


def implement(
    node: Node, operand_types: Sequence[TensorType], quantisation: Quantisation, options: Options | None = None
) -> Implementation:
    """The calls of proved mappings that execute an accelerator node.

    Raises CannotOffload where no code is generated for it or no split fits a mapping's domain, and KeyError where a
    parameter of the quantisation is missing.
    """
    options = options or Options()
    made = _code(node.operator)(node, operand_types, quantisation, options)
    if not made.calls:
        raise CannotOffload(f"{node.operator} must be computed by a call, and its code makes none")
    selected = [m.name for m in operator_of(made).mappings_for(dict(node.attributes), options)]
    if wrong := [m.name for m in made.mappings if m.name not in selected]:
        raise CannotOffload(
            f"its calls must be of the mappings that the options select ({', '.join(selected)}), not of "
            f"{', '.join(wrong)}"
        )
    return made


def constants_of(graph: Graph, operands: Sequence[int]) -> dict[int, Array]:
    """Those operands that are constants, by position."""
    return {p: graph.constant(i) for p, i in enumerate(operands) if graph.nodes[i].operator == "constant"}
