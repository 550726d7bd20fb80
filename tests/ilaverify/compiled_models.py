"""A small model, and certificates for compiling it that cost nothing: for tests of everything behind the gate.

The gate asks no solver: it compares digests, claims and answers.  So a file with all of these right, and a theorem in
place of the obligations, passes it; that ``check`` finds such a file out is tested, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ilaverify.catalogue import all_entries
from ilaverify.identity import prover_identity
from ilaverify.models.compilation import Request, compile_model
from reports.certificate import certificate_name, certificate_of, certificate_text, written_by
from reports.subjects import Entry
from rewrites.compiler.artefact.model import Compiled, write_compiled
from rewrites.compiler.artefact.summary import summary_text
from rewrites.mappings.flexasr.claims import LINEAR as DENSE_LAYERS
from rewrites.mappings.hlscnn.claims import CONVOLUTIONS
from rewrites.targets.flexasr.operators import LINEAR
from rewrites.targets.hlscnn.operators import CONV2D
from smt_encodings.claims import Answer, Obligation, Runs, Status, Verdict

TARGETS = ("flexasr", "hlscnn")
RESTS_ON = (
    "a-box-of-a-convolution",
    "a-box-of-a-dense-layer",
    "flexasr_linear",
    "flexasr_read",
    "flexasr_round",
    "hlscnn_conv2d_8bit",
    "hlscnn_pack",
    "hlscnn_read",
    "hlscnn_round",
    "joint-flexasr-linear-flexasr-linear",
    "joint-hlscnn-conv2d-hlscnn-conv2d-8bit",
    "pads-of-a-convolution-as-a-pad-with-zeros",
    "scales-of-a-convolution",
    "scales-of-a-dense-layer",
    "transposed-twice",
)
CONVERSIONS = tuple(
    f"lemma-{name}"
    for name in (
        "16-bits-to-float32",
        "adaptivfloat-to-float32",
        "float32-to-16-bits",
        "float32-to-8-bits",
        "float32-to-adaptivfloat",
    )
)
BOUNDS = tuple(
    sorted({*CONVERSIONS, *LINEAR.bound_claims(DENSE_LAYERS["none"]), *CONV2D.bound_claims(CONVOLUTIONS[8])}),
)


def small_model(path: Path) -> Path:
    """A convolution with pads, relu, and a dense layer, as networks have them; image [1, 2, 6, 6] to scores [1, 5]."""
    draw = np.random.default_rng(5)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        scale = np.sqrt(2 / np.prod(shape[1:])) if len(shape) > 1 else 0.1
        return numpy_helper.from_array((scale * draw.normal(size=shape)).astype("float32"), name)

    nodes = [
        helper.make_node("Conv", ["image", "filters"], ["sums"], "first", pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        helper.make_node("Relu", ["sums"], ["features"], "act"),
        helper.make_node("Flatten", ["features"], ["flat"], "flat"),
        helper.make_node("Gemm", ["flat", "matrix", "bias"], ["scores"], "last", transB=1),
    ]
    initial = [weights("filters", 4, 2, 3, 3), weights("matrix", 5, 144), weights("bias", 5)]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 2, 6, 6])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 5])],
        initial,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString(deterministic=True))
    return path


def image(seed: int = 1) -> dict[str, np.ndarray]:
    """An input of the model."""
    return {"image": np.random.default_rng(seed).normal(size=(1, 2, 6, 6)).astype("float32")}


def pretended(names: Iterable[str], directory: Path) -> Path:
    """A directory with a file for each claim that the gate takes for its certificate."""
    directory.mkdir(exist_ok=True)
    entries = all_entries()
    known = [name for name in names if name in entries]
    script = "(set-logic ALL)\n(assert false)\n(check-sat)\n"
    answers = (Answer("unsat", 0.0, "z3"), Answer("unsat", 0.0, "cvc5"))
    for name in known:
        subject = entries[name].build()
        obligation = Obligation("a theorem", "pretended", script, "unsat", "false is false", answers)
        verdict = Verdict(
            Status.PROVED, subject.claim({}), subject.method, 0.0, obligations=[obligation], runs=Runs(1, ())
        )
        content = certificate_of(subject.semantics(), verdict, {}, written_by(prover_identity(subject)))
        (directory / certificate_name(name, subject.method)).write_text(certificate_text(content))
    return directory


@cache
def entries() -> dict[str, Entry]:
    """Of all claims those that the small model rests on: fewer subjects to build."""
    return {name: entry for name, entry in all_entries().items() if name in (*RESTS_ON, *BOUNDS)}


def compiled_with(proofs: Path, model: Path, **options: Any) -> Compiled:
    return compile_model(Request(model, TARGETS, proofs, {}, **options), entries())


def small_compiled(directory: Path) -> Path:
    """A directory with ``small.onnx``, ``proofs``, and ``made``, compiled from these."""
    small_model(directory / "small.onnx")
    pretended((*RESTS_ON, *BOUNDS), directory / "proofs")
    made = compiled_with(directory / "proofs", directory / "small.onnx")
    write_compiled(directory / "made", made, summary_text(made))
    return directory
