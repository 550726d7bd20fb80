"""A layer normalisation compiled to FlexASR: only its scales are declared, and its programs rest on joint and bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilaverify.catalogue import all_entries, backends
from ilaverify.models.comparison import Samples, compare
from ilaverify.models.compilation import Request, compile_model
from reports.certificate import certificate_name
from reports.subjects import Entry
from rewrites.compiler.artefact.checking import check_compiled
from rewrites.compiler.artefact.model import Compiled, read_compiled, write_compiled
from rewrites.compiler.artefact.summary import summary_text
from rewrites.compiler.graph_rules.tensor_rewrites import claims_of
from rewrites.mappings.flexasr.claims import LAYER_NORM as MAPPING
from rewrites.rules.tensor.matching import BIAS_AFTER_RESHAPE, PRODUCTS_COMMUTE
from rewrites.targets.flexasr.operators import LAYER_NORM
from rewrites.targets.flexasr.places import LAYER_NORM_RULES
from tests.ilaverify.compiled_models import pretended

JOINT, BOUND = "joint-flexasr-layer-norm-flexasr-layernorm", "bound-flexasr-layer-norm"
LEMMAS = ("lemma-float32-to-adaptivfloat", "lemma-adaptivfloat-to-float32")
RESTS_ON = (MAPPING.name, "flexasr_round", "flexasr_read", *LEMMAS, JOINT, *LAYER_NORM.bound_claims(MAPPING))
RULES = (*LAYER_NORM_RULES, *BIAS_AFTER_RESHAPE.values(), PRODUCTS_COMMUTE[4])
FORMS = tuple(name for rule in RULES for name in claims_of(rule))


def entries(names: Sequence[str] = RESTS_ON) -> dict[str, Entry]:
    return {name: entry for name, entry in all_entries().items() if name in names}


def model(path: Path, epsilon: float) -> Path:
    onnx = pytest.importorskip("onnx")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    weights = [numpy_helper.from_array(np.linspace(-1, 1, 32, dtype=np.float32), name) for name in ("gamma", "beta")]
    node = helper.make_node("LayerNormalization", ["x", "gamma", "beta"], ["y"], epsilon=epsilon)
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3, 32]) for name in "xy")
    graph = helper.make_graph([node], "norm", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def compiled(place: Path, epsilon: float = 1e-5) -> Compiled:
    request = Request(model(place / "norm.onnx", epsilon), ("flexasr",), place / "proofs", {})
    return compile_model(request, entries())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("norm")
    pretended(RESTS_ON, directory / "proofs")
    return directory


@pytest.mark.parametrize("epsilon", [1e-5, 1e-12])
def test_nothing_but_its_scales_is_declared(place: Path, epsilon: float) -> None:
    made = compiled(place, epsilon)
    assert {JOINT, BOUND} <= set(made.proof.certificates)
    summary = summary_text(made)
    assert "That operators are what their mappings compute over the real numbers is among these claims" in summary
    declared = summary.partition("DECLARED, NOT PROVED:\n\n")[2].partition("\n\n")[0]
    assert declared == "* that scales of flexasr.layer_norm cancel out: no rule of scales is stated"
    write_compiled(place / f"made{epsilon}", made, summary)
    read = read_compiled(place / f"made{epsilon}", backends())
    assert [p for c in check_compiled(read, entries(), place / "proofs") for p in c.problems] == []
    inputs = {"x": np.random.default_rng(3).normal(size=(3, 32)).astype(np.float32)}
    (node,) = compare(read.graph, read.implementations, Samples.one(inputs))[0].nodes
    assert node.inside and node.known == f"proved by {BOUND}"
    for name in (BOUND, "flexasr_round"):
        del read.proof.certificates[name]  # type: ignore[attr-defined]
        problems = [p for c in check_compiled(read, entries(), place / "proofs") for p in c.problems]
        assert f"{name}: programs rest on it, and the model does not name its certificate" in problems


@pytest.mark.parametrize("name", [JOINT, BOUND, "lemma-inverse-root", "flexasr_round", "flexasr_read"])
def test_without_one_of_its_claims_it_stays_on_the_host(name: str, place: Path, tmp_path: Path) -> None:
    (tmp_path / "proofs").mkdir()
    left_out = certificate_name(name, entries()[name].build().method)
    for path in (place / "proofs").iterdir():
        if path.name != left_out:
            (tmp_path / "proofs" / path.name).write_bytes(path.read_bytes())
    made = compiled(tmp_path)
    assert not made.implementations
    (host,) = (h for h in made.host if h.operator.endswith("layer_norm"))
    assert name in host.reason


def written_out(helper: Any) -> list[Any]:
    """The nodes of a layer normalisation as exporters write it, of which the last Mul and Add may be left out."""
    steps = (
        ("ReduceMean", ["x"], "mean", {"axes": [-1]}), ("Sub", ["x", "mean"], "centred", {}),
        ("Pow", ["centred", "two"], "squares", {}), ("ReduceMean", ["squares"], "variance", {"axes": [-1]}),
        ("Add", ["variance", "epsilon"], "more", {}), ("Sqrt", ["more"], "deviation", {}),
        ("Div", ["centred", "deviation"], "normal", {}), ("Mul", ["normal", "gamma"], "scaled", {}),
        ("Add", ["scaled", "beta"], "moved", {}),
    )  # fmt: skip
    return [helper.make_node(name, inputs, [output], **more) for name, inputs, output, more in steps]


def folded(helper: Any) -> list[Any]:
    """Likewise by the mean of squares, as a batch normalisation: a factor times the input, plus an offset."""
    steps = (
        ("ReduceMean", ["x"], "mean", {"axes": [-1]}), ("Mul", ["mean", "mean"], "mean squared", {}),
        ("Mul", ["x", "x"], "squares", {}), ("ReduceMean", ["squares"], "mean of squares", {"axes": [-1]}),
        ("Sub", ["mean of squares", "mean squared"], "variance", {}), ("Add", ["variance", "epsilon"], "more", {}),
        ("Sqrt", ["more"], "deviation", {}), ("Reciprocal", ["deviation"], "inverse", {}),
        ("Mul", ["gamma", "inverse"], "factor", {}), ("Mul", ["x", "factor"], "scaled", {}),
        ("Mul", ["mean", "factor"], "share", {}), ("Sub", ["beta", "share"], "offset", {}),
        ("Add", ["scaled", "offset"], "folded", {}),
    )  # fmt: skip
    return [helper.make_node(name, inputs, [output], **more) for name, inputs, output, more in steps]


@pytest.mark.parametrize(
    ("build", "result", "shape"),
    [
        *((written_out, name, (2, 3, 16)) for name in ("normal", "scaled", "moved")),
        (folded, "folded", (2, 2, 3, 16)),
    ],
)
def test_forms_of_exporters_run_within_the_bound(
    build: Callable[[Any], list[Any]], result: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    onnx = pytest.importorskip("onnx")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    pretended((*RESTS_ON, *FORMS), tmp_path / "proofs")
    weights = {"two": np.float32(2), "epsilon": np.float32(1e-5)}
    weights |= {name: np.linspace(-1, 1, 16, dtype=np.float32) for name in ("gamma", "beta")}
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in ("x", result))
    nodes = build(helper)
    nodes = nodes[: 1 + next(k for k, node in enumerate(nodes) if node.output[0] == result)]
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "norm", [x], [y], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "n.onnx")
    request = Request(tmp_path / "n.onnx", ("flexasr",), tmp_path / "proofs", {})
    made = compile_model(request, entries((*RESTS_ON, *FORMS)))
    inputs = {"x": np.random.default_rng(3).normal(size=shape).astype(np.float32)}
    (node,) = compare(made.graph, made.implementations, Samples.one(inputs))[0].nodes
    assert node.inside and node.known == f"proved by {BOUND}"
