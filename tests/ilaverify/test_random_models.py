"""Random models on random accelerators: what runs is what was claimed, bit for bit, and stays within its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx.shape_inference import infer_shapes

from ila_lang import Machine, run_fragment
from ila_lang.language.sorts import MemSort
from ila_lang.mapping import TensorMapping
from ilaverify.catalogue import backends, find_backends
from ilaverify.models.comparison import Samples, compare
from ir_semantics.graph import Graph, run
from ir_semantics.graph.types import Array
from ir_semantics.onnx import import_model
from rewrites.compiler.artefact.running import run_compiled, run_samples
from rewrites.compiler.codegen import (
    CannotOffload,
    Devices,
    Executed,
    Implementation,
    Options,
    accelerator_operator,
    calibrate,
    constants_of,
    implement,
    implementable,
    quantisation_of,
)
from rewrites.compiler.codegen.floats import RESULT, FloatImplementation
from rewrites.compiler.offload.compiler import offload
from rewrites.compiler.offload.settings import Settings
from tests.ilaverify.random_models import STYLES, Model, numbers, random_models
from tests.rewrites.compiler.offload.offload_gates import gate

ALL = gate()
DEVICES = Devices()
TARGET_LISTS = st.lists(st.sampled_from(sorted(backends())), min_size=1, max_size=3, unique=True)
OPTIONS = st.builds(
    Options,
    chosen=st.fixed_dictionaries({"weight_bits": st.sampled_from([16, 8])}),
    as_published=st.sampled_from([False, False, True]),
    headroom=st.sampled_from([1.0, 1.25]),
)
COSTS = st.sampled_from(["offload", "movement"])


def imported(model: Model) -> Graph:
    """The graph of a model, the type of its result being what ONNX infers."""
    inferred = infer_shapes(model.proto(())).graph.value_info
    shapes = {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in inferred}
    assume(all(shapes[model.at]))  # a window may leave no result
    return import_model(model.proto(shapes[model.at]))


def implementations(graph: Graph, sample: dict[str, Array], options: Options) -> dict[int, Implementation]:
    """Programs for all accelerator operators that formats can be found for, with their constants in them."""
    ranges = calibrate(graph, [sample]).ranges
    found = {}
    for number, node in enumerate(graph.nodes):
        if accelerator_operator(node.operator) is None:
            continue
        types = [graph.nodes[o].type for o in node.operands]
        try:
            made = implement(node, types, quantisation_of(node, ranges[number], options), options)
        except CannotOffload:
            continue
        made.bind(constants_of(graph, node.operands))
        found[number] = made
    return found


def claimed(implementation: Implementation, executed: Executed) -> NDArray[Any]:
    """The result that the mappings' claims say: every program's IR side on the same operands, by the interpreter."""
    codes = {name: c[None] for name, c in executed.codes.items()}
    if isinstance(implementation, FloatImplementation):
        contents = {name: words.reshape(-1) for name, words in (codes | implementation._zero_words).items()}
        for step in implementation.sequence.steps:
            own = {name: contents[tensor] for name, tensor in step.tensors.items() if tensor in contents}
            result = _computed(step.claim.mapping, step.sizes, own)
            contents[step.output] = result
        return implementation._result([{RESULT: contents[RESULT][None]}])[0].astype(np.float32)
    outputs = []
    for number, call in enumerate(implementation.calls):
        tensors = implementation._tensors(call, codes)
        given = implementation.program(number).padded({name: tensor[0] for name, tensor in tensors.items()})
        outputs.append({call.mapping.mapping.output[0]: _computed(call.mapping.mapping, call.sizes, given)[None]})
    return implementation._result(outputs)[0].astype(np.float32)


def _computed(mapping: TensorMapping, sizes: Mapping[str, int], given: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """What the IR side makes of host tensors; those that are not given are zeros."""
    machine = Machine(mapping.ir.ila)
    for device, ir in mapping.inputs:
        if device in given:
            codes = given[device]
            machine.memories[ir].update(enumerate(codes.view(f"u{codes.itemsize}").tolist()))
    run_fragment(mapping.ir, sizes, {}, machine)
    rows, columns = mapping.output_extents(sizes)
    memory = machine.memories[mapping.output[1]]
    sort = mapping.ir.ila.states[mapping.output[1]].sort
    assert isinstance(sort, MemSort)
    return np.array([memory[i] for i in range(rows * columns)], f"u{sort.data_width // 8}")


def agree(model: Model, style: str, targets: list[str], costs: str, options: Options) -> int:
    """Checks a model, calibrated on its own input or on another one; the number of operators with a bound."""
    graph = imported(model)
    found = offload(graph, ALL, find_backends(targets), Settings(costs=costs, implementable=implementable))
    x, sample = ({"x": numbers(s, model.seed + k, *model.shape)} for k, s in ((50, model.style), (51, style)))
    if model.style == "whole" and not {"sigmoid", "tanh", "layer_norm", "lstm", "gru", "rnn"} & set(graph.operators()):
        np.testing.assert_array_equal(run(found.graph, x)["y"], run(graph, x)["y"])  # no operation rounds
    programs = implementations(found.graph, sample if style != "whole" else x, options)
    for ran in run_compiled(found.graph, programs, x, DEVICES):
        if ran.executed is not None:
            np.testing.assert_array_equal(ran.value, claimed(programs[ran.number], ran.executed))
    compared = compare(found.graph, programs, Samples.one(x), DEVICES)[0]
    for ran in run_samples(found.graph, programs, {"x": np.stack([sample["x"], x["x"]])}, DEVICES):
        if ran.number == found.graph.outputs["y"]:
            assert ran.value[-1].tobytes() == compared.results["y"].tobytes()
    assert compared.first_outside is None
    return sum(node.inside is True for node in compared.nodes)


QUIET = pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")


@QUIET
@pytest.mark.parametrize("examples,least", [(8, 4), pytest.param(400, 200, marks=pytest.mark.slow)])
def test_random_models(examples: int, least: int) -> None:
    bounded = 0

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],  # programs of many sizes take long to shrink
        suppress_health_check=list(HealthCheck),
    )
    @given(random_models(), st.sampled_from(STYLES), TARGET_LISTS, COSTS, OPTIONS)
    def check(model: Model, style: str, targets: list[str], costs: str, options: Options) -> None:
        nonlocal bounded
        bounded += agree(model, style, targets, costs, options)

    check()
    assert bounded >= least  # operators are compared with bounds
