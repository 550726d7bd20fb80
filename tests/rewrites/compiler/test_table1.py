"""Table 1: the committed numbers are those of the page, none is below the paper's, and they can be found again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from benchmarks.table1 import MARKERS, PAGE, PAPER, RESULTS, table
from examples.models.applications import APPLICATIONS
from ir_semantics.graph import run
from ir_semantics.onnx import import_model
from rewrites.compiler.codegen import implementable
from rewrites.compiler.offload.backend import Backend
from rewrites.compiler.offload.compiler import offload
from rewrites.compiler.offload.settings import Settings
from tests.rewrites.compiler.offload.offload_gates import EVERY, gate

FOUND: dict[str, dict[str, Any]] = json.loads((RESULTS / "table1.json").read_text())["applications"]


def test_the_page_has_the_measured_numbers() -> None:
    inside = PAGE.read_text().split(MARKERS[0])[1].split(MARKERS[1])[0]
    assert inside.strip().splitlines() == table(FOUND)
    assert (RESULTS / "table1.md").read_text().splitlines()[2:] == table(FOUND)


@pytest.mark.parametrize("target", PAPER)
def test_no_count_is_below_the_paper(target: str) -> None:
    assert set(FOUND) == set(APPLICATIONS) == set(PAPER[target])
    for name, (exact, flexible) in PAPER[target].items():
        found = FOUND[name]["targets"][target]
        assert found["flexible"]["invocations"] >= flexible, name
        assert found["flexible"]["invocations"] >= found["exact"]["invocations"], name
        lower = name == "resnet20" and target in ("flexasr", "vta")  # docs/reference/table1.md says why
        assert (found["exact"]["invocations"] >= exact) is not lower, name


def test_certificates_were_there_for_what_was_used() -> None:
    for name, found in FOUND.items():
        for left_out in found["left_out"]:
            flexasr = left_out.startswith(("flexasr_", "joint-flexasr-"))
            assert left_out == "hlscnn_conv2d_8bit" or flexasr, (name, left_out)
        assert found["optimal"] and found["saturation"] == "nothing new follows"


@pytest.mark.slow
@pytest.mark.parametrize("target", EVERY, ids=lambda target: target.name)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_the_counts_can_be_found_again(name: str, target: Backend) -> None:
    graph = import_model(APPLICATIONS[name].build(0))
    for flexible in (False, True):
        found = offload(graph, gate(), [target], Settings(flexible=flexible, implementable=implementable))
        told = FOUND[name]["targets"][target.name]["flexible" if flexible else "exact"]
        assert found.invocations == told["operators"]


@pytest.mark.slow
@pytest.mark.parametrize("name", APPLICATIONS)
def test_applications_compute_the_same_on_the_host(name: str) -> None:
    graph = import_model(APPLICATIONS[name].build(0))
    found = offload(graph, gate(), EVERY, Settings(implementable=implementable))
    draw = np.random.default_rng(0)
    inputs = {}
    for key, i in graph.inputs.items():
        of = graph.nodes[i].type
        inputs[key] = (
            draw.normal(size=of.shape).astype("float32") if of.kind == "float" else draw.integers(0, 9, of.shape)
        )
    before, after = run(graph, inputs), run(found.graph, inputs)
    for key, value in before.items():
        # some 50 layers, each with at most 1,000 roundings of 2^-24 of what matters to an output: 50 * 1000 * 2^-24
        np.testing.assert_allclose(after[key], value, atol=3e-3 * max(1.0, float(np.abs(value).max())))
