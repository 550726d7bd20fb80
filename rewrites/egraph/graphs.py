"""Graphs of the tensor IR in, graphs out, with explanations for each output."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from ir_semantics.graph.build import result_type
from ir_semantics.graph.ir import Attribute, Graph, Named, Node, digest_of
from ir_semantics.graph.types import Array, GraphError, TensorType, type_of

from .egraph import Analysis, EGraph, ENode
from .explanation import Explanation
from .extraction import Extraction
from .terms import EGraphError, Symbol


@dataclass(frozen=True)
class Network:
    """A graph in an e-graph: the e-nodes of its nodes, by their numbers."""

    egraph: EGraph
    graph: Graph
    numbers: tuple[int, ...]

    @property
    def outputs(self) -> dict[str, int]:
        """The e-nodes of the outputs."""
        return {name: self.numbers[i] for name, i in self.graph.outputs.items()}

    @property
    def roots(self) -> tuple[int, ...]:
        """The e-nodes of the outputs, in their order: what is to be extracted."""
        return tuple(self.outputs.values())


def from_graph(graph: Graph, analysis: Analysis | None = None) -> Network:
    """An e-graph with the nodes of a graph."""
    egraph = EGraph(analysis)
    numbers: list[int] = []
    for node in graph.nodes:
        symbol = Symbol(node.operator, node.attributes, node.type)
        numbers.append(egraph.add(symbol, [numbers[o] for o in node.operands]))
    return Network(egraph, graph, tuple(numbers))


def typing(operator: str, types: Sequence[Hashable], attributes: tuple[tuple[str, Hashable], ...]) -> TensorType:
    """The type of an operator of the tensor IR, for patterns; raises EGraphError where operands do not fit."""
    tensors = [t for t in types if isinstance(t, TensorType)]
    if len(tensors) != len(types):
        raise EGraphError(f"the operands of {operator} must have types of the tensor IR")
    try:
        return result_type(operator, tensors, _attributes(operator, attributes))
    except GraphError as error:
        raise EGraphError(f"{operator} must be well-typed; {error}") from error


def _attributes(operator: str, pairs: Sequence[tuple[str, Hashable]]) -> Named:
    return tuple((name, _attribute(operator, name, value)) for name, value in pairs)


def _attribute(operator: str, name: str, value: Hashable) -> Attribute:
    if isinstance(value, tuple):
        return tuple(_attribute(operator, name, v) for v in value)
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    raise EGraphError(f"{operator}: the attribute {name} must be one of the tensor IR, not {value!r}")


def to_graph(network: Network, extraction: Extraction, constants: Mapping[str, Array] | None = None) -> Graph:
    """The graph of what was extracted for the network's outputs.

    It has all inputs of the original. Constants that rules brought in are in ``constants`` by digest. Types are
    inferred again. A node stems from what the first original node of its class stems from. Raises EGraphError where the
    extraction is of other roots, a type is not what is inferred, or an input or a constant is unknown.
    """
    egraph, graph = network.egraph, network.graph
    if extraction.roots != network.roots:
        raise EGraphError("an extraction must be of the network's outputs, in their order")
    origins: dict[int, str] = {}
    for i, number in enumerate(network.numbers):
        origin = origins.setdefault(egraph.find(number), graph.origins[i])
        if not origin:
            origins[egraph.find(number)] = graph.origins[i]
    nodes: list[Node] = []
    inputs: dict[str, int] = {}
    stems: list[str] = []
    for name, i in graph.inputs.items():
        inputs[name] = len(nodes)
        nodes.append(graph.nodes[i])
        stems.append(graph.origins[i])
    data: dict[str, Array] = {}
    places: dict[int, int] = {}
    for c, enode in extraction.chosen.items():
        operands = tuple(places[o] for o in enode.classes)
        node = _node(enode, operands, nodes)
        if node.operator == "input":
            name = str(node.attribute("name"))
            if name not in inputs or nodes[inputs[name]] != node:
                raise EGraphError(f"an input must be one of the original graph; {name} of type {node.type} is none")
            places[c] = inputs[name]
            continue
        if node.operator == "constant":
            digest = str(node.attribute("digest"))
            data[digest] = _data(digest, node.type, graph, constants or {})
        places[c] = len(nodes)
        nodes.append(node)
        stems.append(origins.get(c, ""))
    outputs = {name: places[egraph.find(number)] for name, number in network.outputs.items()}
    return Graph(tuple(nodes), inputs, outputs, data, tuple(stems))


def _node(enode: ENode, operands: tuple[int, ...], nodes: Sequence[Node]) -> Node:
    """The node of an e-node on earlier nodes, with its type inferred anew."""
    symbol = enode.symbol
    of = symbol.type
    if symbol.operator not in ("input", "constant"):
        inferred = typing(symbol.operator, [nodes[o].type for o in operands], symbol.attributes)
        if inferred != of:
            raise EGraphError(f"{symbol.operator} must have the type {inferred}, not {of}")
    if not isinstance(of, TensorType):
        raise EGraphError(f"{symbol.operator} must have a type of the tensor IR, not {of!r}")
    return Node(symbol.operator, operands, _attributes(symbol.operator, symbol.attributes), of)


def _data(digest: str, of: TensorType, graph: Graph, constants: Mapping[str, Array]) -> Array:
    known = graph.constants.get(digest)
    if known is not None:
        return known
    if digest not in constants:
        raise EGraphError(f"the data of each constant must be given; those of {digest[:12]} ({of}) are not")
    array = constants[digest]
    if digest_of(array) != digest or type_of(array) != of:
        raise EGraphError(f"the data of the constant {digest[:12]} must be {of} with that digest; they are others")
    return array


def explain_outputs(network: Network, extraction: Extraction) -> dict[str, Explanation]:
    """For each output, why what was extracted for it equals what it was."""
    chosen = extraction.numbers(network.egraph)
    return {
        name: network.egraph.explain(number, new)
        for (name, number), new in zip(network.outputs.items(), chosen, strict=True)
    }
