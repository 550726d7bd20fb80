"""An accelerator in a module of its own is compiled to, checked and run; nothing of the compiler names it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from ila_lang import extensions
from ilaverify import new
from ilaverify.catalogue import find_backends
from ilaverify.cli import main
from ilaverify.models.compilation import claims_for
from ir_semantics.graph.operator import OPERATORS
from tests.ilaverify.compiled_models import pretended

Call = Callable[..., tuple[int, str, str]]

MODULE = """
from rewrites.claims.theorems import machines
from rewrites.compiler.codegen import AcceleratorOperator, Choice
from rewrites.compiler.offload.backend import Backend
from rewrites.compiler.offload.places import WEIGHTS
from rewrites.compiler.offload.rules import AcceleratorRule
from rewrites.compiler.offload.takers import as_product
from rewrites.egraph.pattern import operator
from rewrites.mappings.vta.claims import GEMM
from rewrites.targets.target import Target
from rewrites.rules.tensor.boxes import PRODUCT_IN_BOXES
from rewrites.targets.vta.code import Dense

LEAST_OUTPUTS = Choice("least_outputs", "least-outputs", (1, 16), "outputs from which on products go to toy")


def product(b, of, a):
    return b.add("matmul", of[0], b.add("transpose", of[1], permutation=(1, 0)))


PRODUCT = AcceleratorOperator(
    "toy.product", "x w^T.", range(2, 3), expand=product, mappings=(GEMM,), code=Dense,
    bounds={GEMM: (machines.DENSE["none"],)}, splits=(PRODUCT_IN_BOXES,),
)
RULE = AcceleratorRule(
    "product on toy",
    operator("matmul", "x", operator("transpose", "w", attributes={"permutation": (1, 0)})),
    operator("toy.product", "x", "w", attributes={}),
)
from rewrites.compiler.offload.hardware import Hardware
BACKEND = Backend(
    "toy", (PRODUCT,), (RULE,), WEIGHTS, WEIGHTS, lambda constants, flexible: (), as_product(PRODUCT, {}),
    Hardware("toy", frozenset(), ""), choices=(LEAST_OUTPUTS,),
)
TARGET = Target("toy", models=(), backend=lambda: BACKEND)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("own")
    (place / "toy.py").write_text(MODULE)
    weights = np.random.default_rng(1).normal(size=(8, 5)).astype("float32")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"], "product"), helper.make_node("Relu", ["z"], ["y"], "act")]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 5])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (place / "m.onnx").write_bytes(model.SerializeToString(deterministic=True))
    pretended(claims_for(find_backends(["vta"])), place / "proofs")
    return place


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The command in a folder; modules that it loads, and operators that these register, are gone after it."""

    def called(folder: Path, *arguments: str) -> tuple[int, str, str]:
        loaded = set(sys.modules)
        with monkeypatch.context() as own:
            own.chdir(folder)
            own.setattr(extensions, "_modules", [])
            own.setattr(sys, "path", list(sys.path))
            operators = dict(OPERATORS)
            try:
                code = main(arguments)
            finally:
                for name in set(sys.modules) - loaded:
                    if name.partition(".")[0] in ("toy", "relu_toy"):
                        del sys.modules[name]
                for name in OPERATORS.keys() - operators:
                    del OPERATORS[name]
        return code, *capsys.readouterr()

    return called


def test_it_is_compiled_to_and_run(place: Path, call: Call) -> None:
    asked = ("--module", "toy", "--target", "toy", "--proofs", "proofs", "--no-store", "--least-outputs", "16")
    code, out, err = call(place, "compile", "m.onnx", "-o", "made", "--json", *asked)
    assert code == 0, err
    told = json.loads(out)
    assert [(a["operator"], a["mappings"]) for a in told["accelerated"]] == [("toy.product", ["vta_gemm"])]
    assert {"operator": "relu", "count": 1, "reason": "toy has no maximum"} in told["host"]
    content = json.loads((place / "made" / "model.json").read_text())
    assert content["targets"] == ["toy"] and content["options"]["least_outputs"] == 16
    assert {"vta_gemm", "bound-vta-dense", "transposed-twice"} <= set(content["certificates"])
    assert told["declared"] == {"that toy.product is what vta_gemm computes": "no joint is stated"}
    summary = (place / "made" / "SUMMARY.md").read_text()
    assert "DECLARED, NOT PROVED:\n" in summary and "is among these claims (joint-...)" not in summary
    assert (
        "On accelerators: 1 operator, by 1 program of " in summary and "is printed by `ilaverify rule NAME`" in summary
    )
    assert "* that toy.product is what vta_gemm computes: no joint is stated" in summary
    code, out, err = call(place, "run", "made", "--random", "1", "--module", "toy")
    assert code == 0 and "1 of 1 operator is within its bound, computed" in out, err


@pytest.mark.slow
def test_check_says_what_is_declared(place: Path, call: Call) -> None:
    asked = ("--module", "toy", "--target", "toy", "--proofs", "proofs", "--no-store")
    _, out, err = call(place, "compile", "m.onnx", "-o", "told", *asked)
    assert "declared      that toy.product is what vta_gemm computes, not proved: no joint is stated\n" in out, err
    _, out, _ = call(place, "check", "told", "--module", "toy", "--proofs", "proofs")
    assert "that toy.product is what vta_gemm computes is declared, not proved: no joint is stated" in out


def test_an_operator_that_means_something_else_is_refuted(tmp_path: Path, call: Call) -> None:
    """The mapping computes x w^T, and its author offers it for relu(x w^T)."""
    for path, text in new.accelerator_files("relu_toy").items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    backend = tmp_path / "relu_toy" / "backend.py"
    text = backend.read_text()
    for right, wrong in (
        ('b.add("matmul", of[0], transpose(b, of[1], [1, 0]))', 'b.add("relu", {})'),
        (
            'operator("matmul", "x", operator("transpose", "w", attributes={"permutation": (1, 0)}))',
            'operator("relu", {})',
        ),
    ):
        assert text.count(right) == 1
        text = text.replace(right, wrong.replace("{}", right))
    backend.write_text(text)
    name, asked = "joint-relu-toy-dense-relu-toy-dense", ("--module", "relu_toy.target", "--no-store")
    code, out, err = call(tmp_path, "prove", name, *asked, "-o", "proofs")
    assert code == 1 and f"REFUTED  {name}" in out, err
    assert "the left side is 0, the right side -" in out
    code, out, err = call(tmp_path, "check", f"proofs/{name}.counterexample-data.json", "--module", "relu_toy.target")
    assert code == 0 and "the sides differ, replayed" in out, err


def test_it_must_be_named(place: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(place, "compile", "m.onnx", "-o", "other", "--target", "toy", "--proofs", "proofs")
    assert code == 64
    assert "--target must be different names of flexasr, hlscnn, vta, separated by commas, not 'toy'" in err
    with pytest.raises(SystemExit):
        call(place, "compile", "--help", "--module", "toy")
    shown = " ".join(capsys.readouterr().out.split())
    assert "of flexasr, hlscnn, vta, toy; the preferred one first" in shown
    assert "--least-outputs {1,16} outputs from which on products go to toy; default: 1" in shown


def test_without_a_certificate_of_its_mapping_it_is_not_used(place: Path, call: Call) -> None:
    (place / "none").mkdir()
    asked = ("--module", "toy", "--target", "toy", "--proofs", "none", "--no-store")
    code, out, _ = call(place, "compile", "m.onnx", "-o", "nothing", *asked)
    assert code == 0 and "accelerators  none" in out
    assert "trusts        module toy: for what it says of toy\n" in out
    assert "1 matmul: without a live certificate it must not be offloaded (vta_gemm: there is no certificate" in out
