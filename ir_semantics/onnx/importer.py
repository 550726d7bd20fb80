"""Import of ONNX models: from nodes of a model to nodes of the tensor IR.

Every node is converted by the converter of its operator, or by the function that the ONNX specification defines the
operator by.  Attributes that a converter does not know are errors.  Shapes are static: symbolic extents are bound by
the caller, and operands that decide shapes must be constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_semantics.graph.build import Builder
from ir_semantics.graph.ir import Graph
from ir_semantics.graph.types import Array, GraphError, TensorType, type_of

from . import elementwise, layers, movement, quantised, recurrent, reductions, resize
from .call import CONVERTERS, WIDE, Call, NeedsConstant, Unsupported
from .dtypes import dtype_of, name_of
from .reading import attribute_value, check_structure, read_model, tensor_value

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto

FIRST_OPSET, LAST_OPSET = 7, 28
"""Versions of ONNX's default operator set that are read; before 7, operators broadcast by other rules."""

MOST_DEPTH = 16
"""How deep functions and branches may be nested; a bound of this implementation."""

_MODULES = (elementwise, layers, movement, quantised, recurrent, reductions, resize)  # they register converters

Names = dict[str, int | None]


def import_model(
    model: ModelProto | str | Path,
    *,
    dimensions: Mapping[str, int] | None = None,
    values: Mapping[str, Array] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Graph:
    """A model as a graph of the tensor IR.

    ``dimensions`` bind symbolic extents by name, ``shapes`` the whole shape of inputs.  ``values`` are inputs that
    become constants, as those that decide shapes must.  A path is read by :func:`read_model`: files of external data
    must lie in the model's folder.

    Raises GraphError (Unsupported where a node is not supported, NeedsConstant where a value must be known) with a
    message that names the node, says what must hold, what was given and what to do.
    """
    proto = read_model(model) if isinstance(model, str | Path) else model
    check_structure(proto)
    versions = _versions({o.domain: o.version for o in proto.opset_import}, "the model")
    functions = {(f.domain, f.name): f for f in proto.functions}
    importer = _Importer(Builder(), functions, versions)
    names: Names = {}
    _check_dimensions(proto, dimensions or {})
    other = dict(values or {})
    initial = {t.name for t in proto.graph.initializer}
    for value in proto.graph.input:
        if value.name in other:
            array = other.pop(value.name)
            _fits(value.name, array, value.type)
            names[value.name] = importer.b.constant(array)
        elif value.name not in initial:
            shape = (shapes or {}).get(value.name)
            names[value.name] = importer.b.input(
                value.name, _input_type(value.name, value.type, dimensions or {}, shape)
            )
    if other:
        raise GraphError(f"values must be given for inputs of the model, not for {', '.join(other)}; correct the names")
    results = importer.graph(proto.graph, names, versions, 0)
    outputs = {o.name: r for o, r in zip(proto.graph.output, results, strict=True)}
    for output in proto.graph.output:
        _as_declared(output, importer.b.type(outputs[output.name]), shapes is None)
    return importer.b.graph(outputs)


def _versions(numbers: Mapping[str, int], what: str) -> dict[str, int]:
    versions = {"" if d == "ai.onnx" else d: v for d, v in numbers.items()}
    version = versions.get("")
    if version is not None and not FIRST_OPSET <= version <= LAST_OPSET:
        raise GraphError(
            f"{what} must use a version of the ONNX operator set in {FIRST_OPSET} .. {LAST_OPSET}, not {version}; "
            "convert it with onnx.version_converter.convert_version"
        )
    return versions


def _check_dimensions(proto: ModelProto, dimensions: Mapping[str, int]) -> None:
    """Raises GraphError where a symbolic extent is bound that no input has."""
    known = {d.dim_param: None for v in proto.graph.input for d in v.type.tensor_type.shape.dim if d.dim_param}
    unknown = [name for name in dimensions if name not in known]
    if unknown:
        there = f"({', '.join(known)})" if known else "(there are none)"
        raise GraphError(
            f"dimensions must be symbolic extents of the model's inputs {there}, not {', '.join(unknown)}; "
            "correct the names, or leave them out"
        )


def _as_declared(output: ValueInfoProto, inferred: TensorType, with_shape: bool) -> None:
    """Raises GraphError where an output is not of the type that the model declares."""
    declared = output.type.tensor_type
    dtype = dtype_of(declared.elem_type)
    shape = [d.dim_value if d.HasField("dim_value") else None for d in declared.shape.dim]
    same = not (with_shape and declared.HasField("shape")) or (
        len(shape) == inferred.rank and all(w in (None, d) for w, d in zip(shape, inferred.shape, strict=True))
    )
    if (declared.elem_type and dtype != inferred.dtype) or not same:
        extents = ", ".join("any" if d is None else str(d) for d in shape)
        raise GraphError(
            f"the output {output.name} must be {name_of(declared.elem_type)}[{extents}], as the model declares, "
            f"not {inferred}; correct the model"
        )


def _fits(name: str, array: Array, of: TypeProto) -> None:
    dtype = dtype_of(of.tensor_type.elem_type)
    if type_of(array).dtype != dtype:
        raise GraphError(f"the value of the input {name} must be of the type {dtype}, not {array.dtype}; convert it")


def _input_type(name: str, of: TypeProto, dimensions: Mapping[str, int], shape: Sequence[int] | None) -> TensorType:
    if of.WhichOneof("value") != "tensor_type":
        raise GraphError(f"the input {name} must be a tensor, not a {of.WhichOneof('value') or 'value without a type'}")
    dtype = dtype_of(of.tensor_type.elem_type)
    if dtype is None:
        kind = name_of(of.tensor_type.elem_type)
        raise GraphError(
            f"the input {name} must have elements of a type that the IR has, not {kind}; convert the model"
        )
    if shape is not None:
        return TensorType(dtype, tuple(int(d) for d in shape))
    extents = []
    for axis, d in enumerate(of.tensor_type.shape.dim):
        if d.WhichOneof("value") == "dim_value":
            extents.append(d.dim_value)
        elif d.dim_param in dimensions:
            extents.append(dimensions[d.dim_param])
        else:
            extent, how = "unknown extent", "write its extent into the model"
            if d.dim_param:
                extent = f"symbolic extent {d.dim_param}"
                how = f"bind it when importing (dimensions; compile --dimension {d.dim_param}=N)"
            raise GraphError(f"the input {name} must have a static shape, but its axis {axis} has the {extent}; {how}")
    try:
        return TensorType(dtype, tuple(extents))
    except GraphError as error:
        raise GraphError(f"the input {name}: {error}") from error


@dataclass
class _Importer:
    b: Builder
    functions: Mapping[tuple[str, str], FunctionProto]
    versions: Mapping[str, int]

    def graph(self, graph: GraphProto, outer: Names, versions: Mapping[str, int], depth: int) -> list[int]:
        """The outputs of a graph whose inputs (and outer names) stand in ``outer``."""
        names = dict(outer)
        if graph.sparse_initializer:
            raise GraphError(f"the graph {graph.name} must not have sparse initializers; make them dense")
        for tensor in graph.initializer:
            if tensor.name not in names:
                names[tensor.name] = self.b.constant(tensor_value(tensor, f"the initializer {tensor.name}"))
        self.nodes(graph.node, names, versions, depth, "")
        results = []
        for output in graph.output:
            result = names.get(output.name)
            if result is None:
                raise GraphError(f"the output {output.name} must be the result of a node; none gives it")
            results.append(result)
        return results

    def nodes(
        self, nodes: Sequence[NodeProto], names: Names, versions: Mapping[str, int], depth: int, inside: str
    ) -> None:
        """Converts nodes in order; their results enter ``names``."""
        for number, node in enumerate(nodes):
            where = f"{inside}node {node.name or f'number {number}'} ({node.op_type})"
            operands: list[int | None] = []
            for name in node.input:
                if name and name not in names:
                    raise GraphError(
                        f"{where}: the input {name!r} must be given by an earlier node, an input or an initializer; "
                        "none gives it: the graph is cyclic, not sorted, or cut off"
                    )
                operands.append(names[name] if name else None)
            self.b.origin = where
            results = self.node(node, operands, names, versions, depth, where)
            for name, result in zip(node.output, results, strict=False):
                if name:
                    names[name] = result
            for name in list(node.output)[len(results) :]:
                if name:
                    raise Unsupported(f"{where}: the output {name!r} is not supported; leave it out")

    def node(
        self,
        node: NodeProto,
        operands: Sequence[int | None],
        names: Names,
        versions: Mapping[str, int],
        depth: int,
        where: str,
    ) -> Sequence[int | None]:
        """The results of one node."""
        if depth > MOST_DEPTH:
            raise Unsupported(f"{where}: functions and branches must be nested at most {MOST_DEPTH} deep")
        domain = "" if node.domain == "ai.onnx" else node.domain
        attributes = {a.name: attribute_value(a, where) for a in node.attribute}
        local = self.functions.get((node.domain, node.op_type))
        if local is not None:
            return self.function(local, operands, attributes, depth, where)
        if domain:
            raise Unsupported(
                f"{where}: the operator must be of the default domain, not of {domain}; it is not supported"
            )
        version = versions.get("")
        if version is None:
            raise GraphError(f"{where}: the model must import a version of the default operator set; it imports none")
        if node.op_type == "If":
            return self.branch(attributes, operands, names, versions, depth, where)
        converter = CONVERTERS.get(node.op_type)
        if converter is None:
            body = _defined(node, version, [None if o is None else self.b.type(o) for o in operands])
            if body is None:
                raise Unsupported(f"{where}: the operator is not supported; replace it, or cut the model before it")
            return self.function(body, operands, attributes, depth, where)
        call = Call(self.b, node.op_type, where, operands, attributes, version, [bool(o) for o in node.output])
        narrow = node.op_type in WIDE and any(o is not None and self.b.type(o).dtype == "float16" for o in operands)
        if narrow:
            call.operands = [o if o is None else self.recast(o, "float16", "float32") for o in operands]
        try:
            result = converter.convert(call)
        except (Unsupported, NeedsConstant):
            raise
        except GraphError as error:
            raise GraphError(f"{where}: {error}") from error
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise GraphError(
                f"{where}: the inputs and attributes must be such as the operator has, which these are not ({error}); "
                "correct the model"
            ) from error
        unknown = sorted(set(attributes) - call.used)
        if unknown:
            raise Unsupported(f"{where}: the attribute {', '.join(unknown)} is not supported; leave it out")
        results = [result] if isinstance(result, int) else result
        return [o if o is None or not narrow else self.recast(o, "float32", "float16") for o in results]

    def recast(self, number: int, source: str, target: str) -> int:
        """A tensor of one type in another; others as they are."""
        return self.b.add("cast", number, to=target) if self.b.type(number).dtype == source else number

    def branch(
        self,
        attributes: Mapping[str, Any],
        operands: Sequence[int | None],
        names: Names,
        versions: Mapping[str, int],
        depth: int,
        where: str,
    ) -> Sequence[int | None]:
        """A branch whose condition is constant: the side that is taken."""
        condition = operands[0] if operands else None
        value = None if condition is None else self.b.value(condition)
        if condition is not None and value is None:
            inputs = self.b.inputs_below(condition)
            raise NeedsConstant(
                f"{where}: the condition must be constant; it depends on the input {', '.join(inputs)}: "
                "give its value when importing",
                inputs,
            )
        graph = attributes.get("then_branch" if value is not None and bool(value.any()) else "else_branch")
        if graph is None or not hasattr(graph, "node"):
            raise GraphError(f"{where}: both branches must be graphs; correct the model")
        return self.graph(graph, names, versions, depth + 1)

    def function(
        self,
        body: FunctionProto,
        operands: Sequence[int | None],
        attributes: Mapping[str, Any],
        depth: int,
        where: str,
    ) -> Sequence[int | None]:
        """The results of a function's body, with its parameters and attributes in place."""
        versions = _versions({o.domain: o.version for o in body.opset_import}, f"{where}: its definition")
        if len(operands) > len(body.input):
            raise GraphError(
                f"{where}: the function {body.name} must be given {len(body.input)} inputs, not {len(operands)}"
            )
        names: Names = dict.fromkeys(body.input)
        names.update(zip(body.input, operands, strict=False))
        known = {a.name: attribute_value(a, where) for a in body.attribute_proto}
        known.update(attributes)
        nodes = [_bound(node, known) for node in body.node]
        self.nodes(nodes, names, versions, depth + 1, f"{where}: ")
        return [names.get(o) for o in body.output]


def _bound(node: NodeProto, attributes: Mapping[str, Any]) -> NodeProto:
    """A function's node with references to attributes of the function replaced."""
    if not any(a.ref_attr_name for a in node.attribute):
        return node
    from onnx import NodeProto as Node
    from onnx import helper

    bound = Node()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            bound.attribute.append(attribute)
        elif attribute.ref_attr_name in attributes:
            value = attributes[attribute.ref_attr_name]
            if isinstance(value, np.ndarray):
                from onnx import numpy_helper

                value = numpy_helper.from_array(value)
            bound.attribute.append(helper.make_attribute(attribute.name, value, attr_type=attribute.type or None))
    return bound


def _defined(node: NodeProto, version: int, types: Sequence[TensorType | None]) -> FunctionProto | None:
    """The function that the ONNX specification defines an operator by, if it has one."""
    import onnx
    from onnx import defs, helper

    try:
        schema = defs.get_schema(node.op_type, version, "")
    except defs.SchemaError:
        return None
    body = onnx.FunctionProto()
    if schema.has_context_dependent_function:
        protos = [
            helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(t.dtype)), t.shape)
            if t is not None
            else onnx.TypeProto()
            for t in types
        ]
        data = schema.get_context_dependent_function(node.SerializeToString(), [p.SerializeToString() for p in protos])
        if not data:
            return None
        body.ParseFromString(data)
    elif schema.has_function:
        body.CopyFrom(schema.function_body)
    else:
        return None
    defaults = {a.name for a in node.attribute} | {a.name for a in body.attribute_proto}
    for name, declared in schema.attributes.items():
        if name not in defaults and declared.default_value.name:
            body.attribute_proto.append(declared.default_value)
    return body
