"""References that compiled models are compared with: operators in float64, graphs on the host, and onnxruntime.

A reference is never the thing that ran on the accelerator; it is what the original model means, up to the rounding of
the arithmetic that is named with each.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ilaverify.errors import UsageError
from ir_semantics.graph.build import expansion
from ir_semantics.graph.ir import Graph, Node, digest_of, remembered
from ir_semantics.graph.run import run
from ir_semantics.graph.types import Array, TensorType


def in_double(node: Node, types: Sequence[TensorType], operands: Sequence[Array]) -> Array:
    """A composite operator with operands of these types, its expansion evaluated in binary64 on the given numbers.

    Each rounding is one of relative error 2^-53; element types that are no floats stay.
    """
    graph = _wide_expansion(node.operator, tuple(types), node.attributes)
    return run(graph, {f"x{i}": _wide(o) for i, o in enumerate(operands)})["y"]


@remembered(256)
def _wide_expansion(name: str, types: tuple[TensorType, ...], attributes: tuple[tuple[str, object], ...]) -> Graph:
    return widened(expansion(name, types, attributes))


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def widened(graph: Graph) -> Graph:
    """The same graph with binary64 in place of every other type of floats; constants keep their numbers."""
    constants: dict[str, Array] = {}
    digests: dict[str, str] = {}
    for digest, array in graph.constants.items():
        wide = _wide(array)
        digests[digest] = digest_of(wide)
        constants[digests[digest]] = wide
    nodes = []
    for node in graph.nodes:
        attributes = node.attributes
        if node.operator == "constant":
            attributes = (("digest", digests[str(node.attribute("digest"))]),)
        of = node.type.with_dtype("float64") if node.type.kind == "float" else node.type
        nodes.append(Node(node.operator, node.operands, attributes, of))
    return Graph(tuple(nodes), graph.inputs, graph.outputs, constants, graph.origins)


def run_onnx(model: bytes, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of an ONNX model by onnxruntime, on one core of the processor.

    Raises UsageError where onnxruntime is not installed, or refuses the model or its inputs.
    """
    try:
        session = _session(model, os.getpid())
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, dict(inputs)), strict=True))
    except ImportError as error:
        raise UsageError(
            "the reference onnxruntime needs the package onnxruntime, which is not installed; "
            "pip install ilaverify[compare], or take the reference host"
        ) from error
    except Exception as error:  # the runtime's errors have no common class
        raise UsageError(f"onnxruntime must run the model, and fails: {error}") from error


@lru_cache(1)
def _session(model: bytes, process: int) -> Any:
    """A session of this ``process``: one of its parent must not be used after a fork."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # exceptions say what is wrong
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # results do not depend on the machine's cores
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
