"""Networks compiled, run, compared with onnxruntime and with proved bounds; certificates are pretended, see below."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.models.applications import APPLICATIONS
from ilaverify.catalogue import all_entries, backends, find_backends
from ilaverify.models.comparison import Comparison, Samples, compare
from ilaverify.models.compilation import Request, claims_for, compile_model
from ilaverify.models.references import run_onnx
from rewrites.compiler.artefact.checking import check_compiled
from rewrites.compiler.artefact.model import Compiled, read_compiled, write_compiled
from rewrites.compiler.artefact.summary import summary_text
from rewrites.compiler.codegen import Options
from rewrites.compiler.codegen.calibration import drawn_inputs
from rewrites.mappings.flexasr.claims import LINEAR as DENSE_LAYERS
from rewrites.mappings.hlscnn.claims import CONVOLUTIONS
from rewrites.targets.flexasr.operators import LINEAR
from rewrites.targets.hlscnn.operators import CONV2D
from tests.ilaverify.compiled_models import image, pretended, small_model

pytestmark = pytest.mark.slow


def compiled_and_run(name: str, targets: tuple[str, ...], place: Path) -> tuple[Compiled, Comparison]:
    """What ``compile`` and ``run`` do, with a file for each claim that the gate takes for its certificate."""
    onnx = pytest.importorskip("onnx")
    model = place / f"{name}.onnx"
    onnx.save(APPLICATIONS[name].build(0), model)
    pretended(claims_for(find_backends(targets)), place / "proofs")
    made = compile_model(Request(model, targets, place / "proofs", {}), all_entries())
    write_compiled(place / "made", made, summary_text(made))
    compiled = read_compiled(place / "made", backends())
    assert [p for c in check_compiled(compiled, all_entries(), place / "proofs") for p in c.problems] == []
    (inputs,) = drawn_inputs(compiled.graph, 7, 1)
    pytest.importorskip("onnxruntime")
    reference = run_onnx(compiled.model.source.as_onnx(), inputs)
    return compiled, compare(compiled.graph, compiled.implementations, Samples.one(inputs, reference))[0]


def test_resnet20_on_two_accelerators(tmp_path: Path) -> None:
    compiled, found = compiled_and_run("resnet20", ("flexasr", "hlscnn"), tmp_path)
    operators = [compiled.graph.nodes[i].operator for i in compiled.implementations]
    assert operators.count("hlscnn.conv2d") == 21 and operators.count("flexasr.linear") == 2
    assert [n.inside for n in found.nodes] == [True] * 23
    (output,) = found.outputs
    assert output.error < output.scale


def test_resnet20_on_vta(tmp_path: Path) -> None:
    compiled, found = compiled_and_run("resnet20", ("vta",), tmp_path)
    assert len(compiled.implementations) == 22 and found.first_outside is None


def test_weights_of_16_bits_are_another_mapping(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    model = small_model(tmp_path / "small.onnx")
    names = ("flexasr_linear", "hlscnn_conv2d", "pads-of-a-convolution-as-a-pad-with-zeros", "transposed-twice")
    lemmas = (*LINEAR.bound_claims(DENSE_LAYERS["none"]), *CONV2D.bound_claims(CONVOLUTIONS[16]))
    pretended((*names, *lemmas), tmp_path / "proofs")
    request = Request(
        model, ("flexasr", "hlscnn"), tmp_path / "proofs", {}, options=Options(chosen={"weight_bits": 16})
    )
    made = compile_model(request, all_entries())
    write_compiled(tmp_path / "made", made, summary_text(made))
    compiled = read_compiled(tmp_path / "made", backends())
    assert set(names) <= set(compiled.proof.certificates) and "hlscnn_conv2d_8bit" not in compiled.proof.certificates
    assert [p for c in check_compiled(compiled, all_entries(), tmp_path / "proofs") for p in c.problems] == []
    found = compare(
        compiled.graph, compiled.implementations, Samples.one(image()), certified=compiled.proof.certificates
    )[0]
    assert [n.inside for n in found.nodes] == [True, True]
