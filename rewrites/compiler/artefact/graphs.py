"""Graphs, types, attributes and terms as JSON, and back from untrusted documents.

Numbers that JSON has no text for (infinities, -0.0 apart from 0) are texts: a float is ``{"float": "0.1"}`` with
Python's shortest text, a tuple a list, a type ``["float32", [1, 3]]``.  A graph that is read has the types that its
operators' rules give, and constants with the digests that its nodes name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ir_semantics.graph.build import MOST_NODES, result_type
from ir_semantics.graph.ir import Attribute, Graph, Named, Node
from ir_semantics.graph.types import MOST_ELEMENTS, MOST_RANK, Array, GraphError, TensorType, type_of

from .errors import ArtefactError, field, items, natural, parts, record, text

_DEPTH = 8  # how deep tuples of attributes are nested


def attribute_json(value: object) -> Any:
    """An attribute as JSON; raises ArtefactError for other values."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, tuple):
        return [attribute_json(v) for v in value]
    raise ArtefactError(f"an attribute must be a number, a text, a tuple of these or None, not {value!r:.60}")


def attribute_value(where: str, value: object, depth: int = 0) -> Attribute:
    """An attribute from JSON; raises ArtefactError for what :func:`attribute_json` does not write."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list) and depth < _DEPTH:
        return tuple(attribute_value(where, v, depth + 1) for v in value)
    if isinstance(value, dict) and set(value) == {"float"}:
        literal = text(where, value["float"])
        try:
            number = float(literal)
        except ValueError as error:
            raise ArtefactError(f"{where} must be the text of a number, not {literal!r:.60}") from error
        if repr(number) == literal:
            return number
    raise ArtefactError(f"{where} must be an attribute as compile writes them, not {value!r:.60}")


def attributes_json(attributes: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """Named attributes as a JSON object."""
    return {name: attribute_json(value) for name, value in attributes}


def attributes_value(where: str, value: object) -> Named:
    """Named attributes, sorted by name, from JSON."""
    attributes = field(where, value, dict, "an object of attributes")
    return tuple((name, attribute_value(f"{where}: {name}", attributes[name])) for name in sorted(attributes))


def type_json(of: TensorType) -> list[Any]:
    """A type as JSON: element type and extents."""
    return [of.dtype, list(of.shape)]


def type_value(where: str, value: object) -> TensorType:
    """A type from JSON; raises ArtefactError for other values."""
    dtype, shape = parts(where, value, 2, "be a type: element type and extents")
    extents = items(where, shape)
    if len(extents) > MOST_RANK:
        raise ArtefactError(f"{where} must have at most {MOST_RANK} axes, not {len(extents)}")
    try:
        return TensorType(text(where, dtype), tuple(natural(where, e, MOST_ELEMENTS + 1) for e in extents))
    except GraphError as error:
        raise ArtefactError(f"{where}: {error}") from error


def graph_json(graph: Graph) -> dict[str, Any]:
    """A graph as JSON, without the data of its constants."""
    return {
        "nodes": [
            {
                "operator": node.operator,
                "operands": list(node.operands),
                "attributes": attributes_json(node.attributes),
                "type": type_json(node.type),
                "origin": origin,
            }
            for node, origin in zip(graph.nodes, graph.origins, strict=True)
        ],
        "inputs": dict(graph.inputs),
        "outputs": dict(graph.outputs),
    }


def graph_value(where: str, value: object, constants: Mapping[str, Array]) -> Graph:
    """A graph from JSON, with the data of its constants by digest.

    Raises ArtefactError where an operand is no earlier node, a type is not what the operator's rule gives, an input or
    output is no node, or a constant's data are missing or of another type.  The caller must have checked the digests of
    ``constants``.
    """
    content = record(where, value, ("nodes", "inputs", "outputs"))
    entries = items(f"{where}: nodes", content["nodes"])
    if len(entries) > MOST_NODES:
        raise ArtefactError(f"{where} must have at most {MOST_NODES} nodes, not {len(entries)}")
    nodes: list[Node] = []
    origins: list[str] = []
    for number, item in enumerate(entries):
        place = f"{where}: node {number}"
        entry = record(place, item, ("operator", "operands", "attributes", "type", "origin"))
        operands = tuple(natural(f"{place}: an operand", o, number) for o in items(place, entry["operands"]))
        attributes = attributes_value(place, entry["attributes"])
        node = Node(text(place, entry["operator"]), operands, attributes, type_value(place, entry["type"]))
        _check_type(place, node, nodes, constants)
        nodes.append(node)
        origins.append(text(place, entry["origin"]))
    inputs = _ends(f"{where}: inputs", content["inputs"], len(nodes))
    outputs = _ends(f"{where}: outputs", content["outputs"], len(nodes))
    named = {i: str(dict(n.attributes)["name"]) for i, n in enumerate(nodes) if n.operator == "input"}
    if {number: name for name, number in inputs.items()} != named:
        raise ArtefactError(f"{where}: inputs must be the nodes that are inputs, under their names")
    if not outputs:
        raise ArtefactError(f"{where} must have an output")
    digests = {str(dict(n.attributes)["digest"]) for n in nodes if n.operator == "constant"}
    return Graph(tuple(nodes), inputs, outputs, {d: constants[d] for d in sorted(digests)}, tuple(origins))


def _check_type(place: str, node: Node, earlier: list[Node], constants: Mapping[str, Array]) -> None:
    if node.operator in ("input", "constant"):
        key = {"input": "name", "constant": "digest"}[node.operator]
        if node.operands or [name for name, _ in node.attributes] != [key]:
            raise ArtefactError(f"{place}: {node.operator} must have no operands, and the attribute {key} only")
        attribute = text(f"{place}: {key}", node.attributes[0][1])
        if node.operator == "constant":
            if attribute not in constants:
                raise ArtefactError(f"{place}: the data of the constant {attribute[:12]} must be there; they are not")
            if type_of(constants[attribute]) != node.type:
                raise ArtefactError(
                    f"{place}: the constant must be {type_of(constants[attribute])}, as its data are, not {node.type}"
                )
        return
    try:
        inferred = result_type(node.operator, [earlier[o].type for o in node.operands], node.attributes)
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArtefactError(f"{place}: {node.operator} must be given what it can work with: {error}") from error
    if inferred != node.type:
        raise ArtefactError(f"{place}: {node.operator} must give {inferred}, not {node.type}")


def _ends(where: str, value: object, count: int) -> dict[str, int]:
    ends = field(where, value, dict, "an object of node numbers")
    return {name: natural(f"{where}: {name}", number, count) for name, number in ends.items()}
