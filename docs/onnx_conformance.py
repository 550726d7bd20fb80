"""Conformance with ONNX (VT1): the node tests of ``onnx.backend.test``, run on the graph IR.

Each case is a model of one operator (or of the operators that define it) with inputs and expected outputs, which stem
from implementations that share nothing with this one.  A case passes if every output has the expected element type
and shape, and values within the case's own tolerances (integers and Booleans: equal), both by the index comprehensions
and in the fast forms of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ir_semantics.graph.ir import Graph
from ir_semantics.graph.run import run
from ir_semantics.graph.types import Array, GraphError
from ir_semantics.onnx.call import NeedsConstant
from ir_semantics.onnx.importer import import_model


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    ``status`` is passed, unsupported (refused when imported, with the reason) or failed.
    ``bound`` are the inputs that became constants since they decide shapes; ``operators`` what the graph is made of.
    """

    name: str
    nodes: tuple[str, ...]
    status: str
    reason: str = ""
    bound: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()


def cases(modules: Iterable[str] | None = None) -> list[Any]:
    """The node tests, or those of some modules of ``onnx.backend.test.case.node`` (making all takes about 10 s)."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if modules is None:
            from onnx.backend.test.loader import load_model_tests

            return sorted(load_model_tests(kind="node"), key=lambda c: str(c.name))
        node = import_module("onnx.backend.test.case.node")
        names = set()
        for module in modules:
            known = {c.name for c in node._NodeTestCases}
            import_module(f"onnx.backend.test.case.node.{module}")
            new = {c.name for c in node._NodeTestCases} - known
            names |= new or {c.name for c in node._NodeTestCases if c.name.startswith(f"test_{module}")}
        return sorted((c for c in node._NodeTestCases if c.name in names), key=lambda c: str(c.name))


def run_case(case: Any, *, by_definition: Sequence[bool] = (False, True)) -> Outcome:
    """Imports and runs a case; ``by_definition`` says which evaluations are compared."""
    nodes = tuple(sorted({f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in case.model.graph.node}))
    operators: set[str] = set()
    names: set[str] = set()
    for data, expected in case.data_sets:
        try:
            inputs = {i.name: _array(i.name, v) for i, v in zip(case.model.graph.input, data, strict=False)}
            graph, bound = _import(case.model, inputs)
        except GraphError as error:
            return Outcome(case.name, nodes, "unsupported", str(error))
        operators |= set(graph.operators())
        names |= set(bound)
        for definition in by_definition:
            results = run(graph, {n: inputs[n] for n in graph.inputs}, by_definition=definition)
            difference = next(_differences(results, expected, case), None)
            if difference is not None:
                how = "by definition" if definition else "by NumPy functions"
                return Outcome(case.name, nodes, "failed", f"{how}: {difference}")
    return Outcome(case.name, nodes, "passed", "", tuple(sorted(names)), tuple(sorted(operators)))


def _array(name: str, value: Any) -> Array:
    from onnx import TensorProto

    from ir_semantics.onnx.reading import tensor_value

    if isinstance(value, TensorProto):
        return tensor_value(value, f"the input {name}")
    if value is None or isinstance(value, list):
        raise GraphError(f"the input {name} must be a tensor, not a sequence or nothing")
    return np.asarray(value)


def _import(model: Any, inputs: Mapping[str, Array]) -> tuple[Graph, dict[str, Array]]:
    """The graph with inputs made constant one after the other where the import asks for their values."""
    shapes, bound = {n: v.shape for n, v in inputs.items()}, dict[str, Array]()
    while True:
        try:
            return import_model(model, shapes=shapes, values=bound), bound
        except NeedsConstant as error:
            missing = [n for n in error.inputs if n not in bound]
            if not missing:
                raise
            bound.update({n: inputs[n] for n in missing})


def _differences(results: Mapping[str, Array], expected: Sequence[Any], case: Any) -> Iterator[str]:
    if len(results) < len(expected):
        yield f"there must be {len(expected)} outputs, not {len(results)}"
    for (name, value), output in zip(results.items(), expected, strict=False):
        reference = _array(name, output)
        if (value.dtype, value.shape) != (reference.dtype, reference.shape):
            yield f"{name} must be {reference.dtype}{reference.shape}, not {value.dtype}{value.shape}"
            continue
        if value.dtype.kind == "f":
            same = np.isclose(value, reference, rtol=case.rtol, atol=case.atol, equal_nan=True)
        else:
            same = value == reference
        if not np.all(same):
            at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(same))[0])
            shown = np.atleast_1d(value)[at], np.atleast_1d(reference)[at]
            yield f"{name}{list(at)} must be {shown[1]!r}, not {shown[0]!r} ({int(np.sum(~same))} of {value.size})"
