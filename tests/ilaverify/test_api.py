"""``import ilaverify``: the verbs in Python, with typed results."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import ilaverify
from ilaverify.catalogue import all_entries
from ilaverify.errors import UsageError
from ilaverify.parameters import checked
from rewrites.claims.verify import verify
from smt_encodings.claims import Status
from tests.chc.mapping.test_flow import flow
from tests.chc.mapping.toy import mapping

ROOT = Path(__file__).parents[2]


def test_claims_are_proved_by_name() -> None:
    assert ilaverify.prove("transposed-twice").status is Status.PROVED
    verdict = ilaverify.prove("flexasr_maxpool", shape=(2, 16))
    assert verdict.status is Status.PROVED and verdict.method == "bmc"
    with pytest.raises(UsageError, match="there is no claim named 'flexasr_maxpol' "):
        ilaverify.prove("flexasr_maxpol")
    with pytest.raises(
        UsageError, match=r"there is no claim named 'flexasr_maxpol' \(did you mean flexasr_maxpool\?\)"
    ):
        ilaverify.prove("flexasr_maxpol", "chc")
    with pytest.raises(ValueError, match=r"transposed-twice is no mapping, and has one method of proof"):
        ilaverify.prove("transposed-twice", "chc")


def test_a_mapping_is_proved_as_by_verify() -> None:
    def copied(k, s):  # type: ignore[no-untyped-def]
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, s["src"].load(i * s["m"] + j))

    claim = flow(mapping(copied, copied))
    said, again = ilaverify.prove(claim), verify(claim)
    assert said.status is again.status is Status.PROVED
    assert [o.name for o in said.obligations] == [o.name for o in again.obligations]


def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-m", "ilaverify", "prove", "transposed-twice", "relu-twice", "--no-store", "-o", "."]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "encodings")])}
    subprocess.run(command, env=env, cwd=tmp_path, check=True, capture_output=True)
    assert [c.verdict for c in ilaverify.check(tmp_path)] == ["ACCEPTED", "ACCEPTED"]
    path = next(tmp_path.glob("transposed-twice.*"))
    entries = all_entries()
    false = replace(entries["transposed-twice"], expected=Status.REFUTED)
    with monkeypatch.context() as patch:
        patch.setattr("ilaverify.catalogue.all_entries", lambda: {**entries, "transposed-twice": false})
        (checked,) = ilaverify.check(path)
    assert checked.problems == ["transposed-twice is known to be false, so that this is no proof of it"]
    content = json.loads(path.read_text())
    content["claim"]["statement"] = "another"
    path.write_text(json.dumps(content))
    (checked,) = ilaverify.check(path, solvers=["z3"])
    assert checked.verdict == "REJECTED" and not checked.accepted and checked.problems


def test_nothing_is_accepted_without_a_solver(tmp_path: Path) -> None:
    (tmp_path / "any").touch()
    for given in ((), ("z3", "yices")):
        with pytest.raises(UsageError) as raised:
            ilaverify.check(tmp_path / "any", solvers=given)
        assert str(raised.value) == f"solvers must be one or more of cvc5, z3, not {given!r}"
    with pytest.raises(UsageError, match=r"must hold certificates \(\*\.cert\.json\) or data of counterexamples"):
        ilaverify.check(tmp_path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ilaverify.prove(None), "claim must be a TensorMapping, or a claim's name, not None"),
        (lambda: ilaverify.prove("relu-twice", timeout="1"), "timeout must be a number, not '1'"),
        (lambda: ilaverify.prove("relu-twice", timeout=True), "timeout must be a number, not True"),
        (lambda: ilaverify.prove("relu-twice", None), "method must be a text, not None"),
        (lambda: ilaverify.simulate("vta", None), "program must be a text, not None"),
        (lambda: ilaverify.simulate(["vta"], "[]"), "model must be a text, not ['vta']"),
        (lambda: ilaverify.simulate("vta", "[]", 3), "reading must be a text, not 3"),
        (lambda: ilaverify.campaign(None), "name must be a text, not None"),
        (lambda: ilaverify.campaign(3), "name must be a text, not 3"),
        (lambda: ilaverify.campaign("vta_relu", examples="3"), "examples must be an integer, not '3'"),
        (lambda: ilaverify.campaign("vta_relu", examples=True), "examples must be an integer, not True"),
        (lambda: ilaverify.campaign("vta_relu", seed=1.5), "seed must be an integer, not 1.5"),
        (lambda: ilaverify.run("made", {}), "compiled must be a compiled model, of compile() or load(), not 'made'"),
        (lambda: ilaverify.compile("m", "vta"), "targets must be a list of names, not 'vta'"),
        (lambda: ilaverify.compile("m", None), "targets must be a list of names, not None"),
        (lambda: ilaverify.compile("m", [None]), "targets must be a list of names, not [None]"),
        (lambda: ilaverify.compile(None, ["vta"]), "model must be a path, not None"),
        (lambda: ilaverify.compile(b"m", ["vta"]), "model must be a path, not b'm'"),
        (lambda: ilaverify.compile("m", ["vta"], proofs=3), "proofs must be a path, not 3"),
        (lambda: ilaverify.compile("m", ["vta"], exact="no"), "exact must be True or False, not 'no'"),
        (lambda: ilaverify.compile("m", ["vta"], options={}), "options must be of the class Options, not {}"),
        (lambda: ilaverify.check(None), "path must be a path, not None"),
        (lambda: ilaverify.check(""), "path must be a path, not ''"),
        (lambda: ilaverify.check("p", solvers="z3"), "solvers must be a list of names, not 'z3'"),
        (lambda: ilaverify.load(None), "directory must be a path, not None"),
        (lambda: ilaverify.use_module(None), "name must be a text, not None"),
    ],
)
def test_arguments_of_another_type_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value) == message and isinstance(raised.value, ilaverify.InputError)


@pytest.mark.parametrize("dimensions", ["N=1", [4], {"N": 4.0}, {"N": "4"}, {"N": True}, {"N": -1}, {1: 4}])
def test_extents_are_natural_numbers_by_name(dimensions: object) -> None:
    with pytest.raises(TypeError) as raised:
        ilaverify.compile("m", ["vta"], dimensions=dimensions)  # type: ignore[arg-type]
    assert str(raised.value) == f"dimensions must be natural numbers by name, not {dimensions!r}"


@pytest.mark.parametrize("calibration", ["x.npz", [0.5, 1.0], {"x": [1]}, {"x": [[0.5, 1.0], [2.0, 3.0]]}])
def test_tensors_are_arrays_by_name(calibration: object) -> None:
    with pytest.raises(TypeError) as raised:
        ilaverify.compile("m", ["vta"], calibration=calibration)  # type: ignore[arg-type]
    assert str(raised.value) == f"calibration must be arrays of NumPy by name, not {calibration!r}"


def test_a_parameter_of_no_kind_is_a_fault_of_ours() -> None:
    def verb(number: complex) -> None: ...

    with pytest.raises(KeyError):
        checked()(verb)


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert ilaverify.campaign("vta_relu", examples=numpy.int64(3), seed=numpy.uint8(1)).violating == 0
    verdict = ilaverify.prove("flexasr_maxpool", shape=numpy.array([2, 16]), timeout=numpy.float32(30))
    assert verdict.status is Status.PROVED and verdict.details["parameters"]["shape"] == [2, 16]


def test_values_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    for timeout in (0, -1, math.inf, math.nan):
        with pytest.raises(ilaverify.InputError, match="timeout must be a positive number of seconds, not "):
            ilaverify.prove("relu-twice", timeout=timeout)
    with pytest.raises(UsageError, match=r"proofs must be a directory of certificates, and .*nosuch is none; "):
        ilaverify.compile("m.onnx", ["vta"], proofs=tmp_path / "nosuch")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ilaverify.check("nope"), "nope: a certificate must be a readable file: No such file or directory"),
        (
            lambda: ilaverify.prove("flexasr_maxpool", "fast"),
            "method must be one of auto, bmc, chc, hash, not 'fast'",
        ),
        (lambda: ilaverify.prove("flexasr_maxpool", "bmc"), "method bmc must be given a shape, e.g. 16x64"),
        (lambda: ilaverify.prove("flexasr_maxpool", shape=(3, 16)), "Rows of shape 3x16 of a FlexASR"),
        (lambda: ilaverify.prove("flexasr_maxpool", shape=[True]), "a shape must be a list of integers, not [True]"),
        (lambda: ilaverify.campaign("vta_relu", examples=0), "examples must be at least 1, not 0"),
        (lambda: ilaverify.simulate("vta", "{"), "Program must be complete JSON"),
        (lambda: ilaverify.use_module("nosuch"), "module 'nosuch' cannot be imported: ModuleNotFoundError: No mod"),
        (lambda: ilaverify.load("nope"), "nope must be the directory of a compiled model, and there is none; make"),
    ],
)
def test_all_bad_input_is_of_one_class(
    call: Callable[[], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ilaverify.InputError) as raised:
        call()
    assert str(raised.value).startswith(message)


def test_a_compiled_model_does_not_replace_what_it_is_made_of(tmp_path: Path) -> None:
    with pytest.raises(ilaverify.InputError) as raised:
        ilaverify.compile(tmp_path / "m.onnx", ["vta"], proofs=tmp_path / "proofs", directory=tmp_path)
    assert str(raised.value) == (
        f"directory must not name {tmp_path}, which is replaced and has model in it; name another"
    )


def test_programs_and_campaigns_run() -> None:
    assert ilaverify.simulate("vta", '{"program": ["finish"]}').reads == ""
    with pytest.raises(UsageError) as raised:
        ilaverify.simulate("vta", "", reading="rtl")
    assert str(raised.value) == "the reading of vta must be one of hls, fsim, chisel, vta-ila, not 'rtl'"
    assert ilaverify.campaign("vta_relu", examples=3).violating == 0


def test_importing_it_loads_nothing() -> None:
    code = "import sys, ilaverify; print(sorted({'numpy', 'z3', 'ila_lang', 'typing'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert set(ilaverify.__all__) <= {*dir(ilaverify.api), "__version__"}


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'ilaverify' has no attribute 'prov'"):
        _ = ilaverify.prov  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["bmc", "chc", "reports", "rewrites"])
def test_a_script_that_hides_a_package(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.py"
    path.write_text("from ilaverify import prove\nprint(prove)\n")
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "encodings")])}
    done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, check=False)
    said = f"ImportError: {path} hides the package {name} of ilaverify; give the file another name"
    assert done.stderr.splitlines()[-1] == said


def test_models_are_compiled_loaded_and_run(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    from tests.ilaverify.compiled_models import TARGETS, image

    np = pytest.importorskip("numpy")
    model, proofs = place / "small.onnx", place / "proofs"
    compiled = ilaverify.compile(model, TARGETS, proofs=proofs, directory=tmp_path / "compiled")
    assert compiled.implementations
    with pytest.raises(TypeError) as wrong:
        ilaverify.run(compiled, {name: array.tolist() for name, array in image().items()})
    assert str(wrong.value).startswith("inputs must be arrays of NumPy by name, not {'image': [[[[")
    again = ilaverify.load(tmp_path / "compiled")
    assert again.graph.nodes == compiled.graph.nodes
    one, two = ilaverify.run(compiled, image()), ilaverify.run(again, image(), jobs=np.int64(2))
    assert all((one.results[name] == two.results[name]).all() for name in one.results) and one.results
    (tmp_path / "compiled" / "model.json").write_text("{}")
    with pytest.raises(UsageError):
        ilaverify.load(tmp_path / "compiled")
    with pytest.raises(UsageError) as raised:
        ilaverify.compile(model, ["tpu"], proofs=proofs)
    assert str(raised.value) == "targets must be different names of flexasr, hlscnn, vta, not tpu"
