"""What nodes cost: work on the host, and data moved.

Every function gives an integer for an e-node, its operands left out.  What depends on constants alone costs nothing: it
is computed when a model is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from ir_semantics.graph.build import nodes_within
from ir_semantics.graph.ir import Named, Node, remembered
from ir_semantics.graph.operator import OPERATORS, meaning
from ir_semantics.graph.types import TensorType
from ir_semantics.tensors.work import Work, work_of
from rewrites.compiler.codegen import accelerator_operator
from rewrites.egraph import Cost, EGraph, ENode, Symbol

from .backend import Backend

Types: TypeAlias = tuple[TensorType, ...]
Implementable: TypeAlias = Callable[[Node, Sequence[TensorType]], "str | None"]
"""Why code cannot be generated for a node with operands of these types; None where it can."""

VIEWS: Final = frozenset({"input", "constant", "reshape", "broadcast"})
"""What moves no data: inputs are there, and NumPy reads repeated and reshaped elements where they are."""


class Fixed:
    """An analysis of e-graphs: whether a class has a term of constants alone."""

    def make(self, symbol: Symbol, operands: Sequence[Hashable]) -> Hashable:
        """Constants, and operators on nothing else."""
        return symbol.operator == "constant" or (bool(operands) and all(operands))

    def merge(self, left: Hashable, right: Hashable) -> Hashable:
        """A class has such a term if one of its parts had."""
        return bool(left) or bool(right)


@remembered(10_000)
def _work_of(operator: str, types: Types, attributes: Named) -> Work | None:
    """What a tensor operator does, by its definition."""
    of = OPERATORS.get(operator)
    return None if of is None or of.term is None else work_of(meaning(of, types, dict(attributes)))


def moves_data(operator: str, types: Types, attributes: Named) -> bool:
    """Whether an operator computes nothing: every element of its result is one of an operand."""
    work = _work_of(operator, types, attributes)
    return work is not None and work.moves


@remembered(10_000)
def reduction_steps(operator: str, types: Types, attributes: Named, result: TensorType) -> int:
    """How many elements a node adds up, or takes extrema of: multiply-accumulates of products and convolutions."""
    work = _work_of(operator, types, attributes)
    return _within(reduction_steps, operator, types, attributes) if work is None else work.steps


@remembered(10_000)
def multiply_accumulates(operator: str, types: Types, attributes: Named, result: TensorType) -> int:
    """The reduction steps of sums of products, such as products of matrices and convolutions."""
    work = _work_of(operator, types, attributes)
    return _within(multiply_accumulates, operator, types, attributes) if work is None else work.products


@remembered(10_000)
def scalar_operations(operator: str, types: Types, attributes: Named, result: TensorType) -> int:
    """How many scalar operators a node applies outside of reductions."""
    if OPERATORS[operator].scalar is not None:
        return result.elements
    return _within(scalar_operations, operator, types, attributes)


Count: TypeAlias = Callable[[str, Types, Named, TensorType], int]


def _within(count: Count, operator: str, types: Types, attributes: Named) -> int:
    """The count of all nodes that a composite stands for; 0 for other operators."""
    if OPERATORS[operator].expand is None:
        return 0
    within = nodes_within(operator, types, attributes)
    return sum(count(node.operator, inner, node.attributes, node.type) for node, inner in within)


def _typed(egraph: EGraph, node: ENode) -> tuple[Types, TensorType]:
    types = tuple(t for t in map(egraph.type_of, node.classes) if isinstance(t, TensorType))
    assert len(types) == len(node.classes) and isinstance(node.symbol.type, TensorType), "graphs are of tensors"
    return types, node.symbol.type


def _attributes(symbol: Symbol) -> Named:
    return cast(Named, symbol.attributes)


def _counted(count: Count) -> Cost:
    """Work of the host by a count; what accelerators do is none."""

    def cost(egraph: EGraph, node: ENode) -> int:
        symbol = node.symbol
        if symbol.operator in VIEWS or accelerator_operator(symbol.operator) is not None or _is_fixed(egraph, node):
            return 0
        types, result = _typed(egraph, node)
        return count(symbol.operator, types, _attributes(symbol), result)

    return cost


def _is_fixed(egraph: EGraph, node: ENode) -> bool:
    return all(egraph.fact(c) for c in node.classes)


def moved(egraph: EGraph, node: ENode) -> int:
    """Elements read and written by a node, wherever it is executed."""
    operator = accelerator_operator(node.symbol.operator)
    return 0 if operator is not None and operator.resident else _traffic(egraph, node)


def passed(egraph: EGraph, node: ENode) -> int:
    """Elements read and written by the host for nothing but their places, or to add or compare them."""
    types, result = _typed(egraph, node)
    attributes = _attributes(node.symbol)
    work = _work_of(node.symbol.operator, types, attributes) if types else None
    if work is None:
        elsewhere = accelerator_operator(node.symbol.operator) is not None or _is_fixed(egraph, node)
        return 0 if elsewhere else _reduced(node.symbol.operator, types, attributes, result)
    return _traffic(egraph, node) if work.moves or work.steps > work.products else 0


@remembered(10_000)
def _reduced(operator: str, types: Types, attributes: Named, result: TensorType) -> int:
    """Elements read and written to add or compare them within a composite."""
    work = _work_of(operator, types, attributes)
    if work is None:
        return _within(_reduced, operator, types, attributes)
    return result.elements + sum(t.elements for t in types) if work.steps > work.products else 0


def transferred(egraph: EGraph, node: ENode) -> int:
    """Elements that a node brings to an accelerator and back."""
    operator = accelerator_operator(node.symbol.operator)
    return 0 if operator is None or operator.resident else _traffic(egraph, node)


def _traffic(egraph: EGraph, node: ENode) -> int:
    if node.symbol.operator in VIEWS or _is_fixed(egraph, node):
        return 0
    _, result = _typed(egraph, node)
    return result.elements + sum(_read(egraph, c) for c in node.classes)


def _read(egraph: EGraph, number: int) -> int:
    """The elements of an operand; what is repeated in it is read where it is."""
    of = egraph.type_of(number)
    assert isinstance(of, TensorType), "graphs are of tensors"
    repeated = (egraph.type_of(n.operands[0]) for n in egraph.nodes(number) if n.symbol.operator == "broadcast")
    return min([of.elements, *(t.elements for t in repeated if isinstance(t, TensorType))])


def _work(operator: str, types: Types, attributes: Named, result: TensorType) -> int:
    steps = reduction_steps(operator, types, attributes, result)
    return steps + scalar_operations(operator, types, attributes, result)


def _nodes(egraph: EGraph, node: ENode) -> int:
    return 1


COSTS: Final[Mapping[str, tuple[Cost, ...]]] = {
    "offload": (_counted(multiply_accumulates), passed, moved, _counted(_work)),
    "movement": (_counted(reduction_steps), transferred, passed, moved, _counted(scalar_operations)),
}
"""Costs in the order of their importance.  ``offload``: as few multiply-accumulates on the host as can be; of equals
what rearranges or reduces fewer elements on the host, so that convolutions go where they need not become products of
matrices, and pooling of images stays; of these what moves fewer elements anywhere, and then leaves less work to the
host.  ``movement``: as few reduction steps on the host, those of pooling included, and of equals what transfers fewer
elements between host and accelerators.  At last come the order of accelerators and the number of nodes."""


def costs_for(name: str, backends: Sequence[Backend], implementable: Implementable | None = None) -> tuple[Cost, ...]:
    """The cost functions of a name, followed by the order in which accelerators are preferred.

    An operator of another accelerator, or one for which ``implementable`` has a reason against it, must not be
    chosen.  Raises ValueError for an unknown name.
    """
    if name not in COSTS:
        raise ValueError(f"costs must be one of {', '.join(COSTS)}, not {name!r}")

    order = {operator.name: k for k, backend in enumerate(backends, 1) for operator in backend.operators}

    def preferred(egraph: EGraph, node: ENode) -> int | None:
        symbol = node.symbol
        if symbol.operator not in order:
            return 0 if accelerator_operator(symbol.operator) is None else None
        if implementable is not None:
            types, result = _typed(egraph, node)
            if implementable(Node(symbol.operator, (), _attributes(symbol), result), types) is not None:
                return None
        return order[symbol.operator]

    return (*COSTS[name], preferred, _nodes)
