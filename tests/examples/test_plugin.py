"""Accelerators in packages of their own: what ``ilaverify new`` writes, and that it works from an installation."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from chc.tensor_rules.rule import TensorRule
from ila_lang import extensions
from ilaverify import cli, new
from ir_semantics.graph import Builder, TensorType
from rewrites.compiler.codegen import CannotOffload, calibrate, implement, quantisation_of
from rewrites.compiler.codegen.instances import joints_of
from tests.marks import slow_but

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "examples" / "plugin"
Run = Callable[..., tuple[int, str, str]]


# -- what is written -----------------------------------------------------------------------------------


def contents(folder: Path) -> dict[str, bytes]:
    files = (p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def test_the_example_is_what_the_command_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "accelerator", "tiny_gemm", "-o", str(tmp_path / "made")]) == 0
    out = capsys.readouterr().out.splitlines()
    found = contents(tmp_path / "made")
    assert found == contents(PLUGIN)
    assert sorted(out[:-1]) == sorted(f"written   {tmp_path / 'made' / path}" for path in found)
    assert out[-1] == f"next      pip install -e {tmp_path / 'made'}, then ilaverify prove --target tiny_gemm -o proofs"
    again = tmp_path / "empty"
    again.mkdir()
    assert cli.main(["new", "accelerator", "tiny_gemm", "-o", str(again)]) == 0
    assert contents(again) == found


def test_no_name_is_left_over() -> None:
    for path, text in new.accelerator_files("other_chip").items():
        assert "@name" not in text and "@rule" not in text, path
        assert "tiny_gemm" not in path + text and "tiny-gemm" not in text


FORM = "NAME must be a name for a Python package, of at most 40 of a-z, 0-9 and _, not '{}'; for example my_gemm"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Chip-1", FORM.format("Chip-1")),
        ("class", "NAME must be a name for a Python package, and class is a keyword of Python; take my_class"),
        ("vta", "NAME must be new, and there is a target vta already; choose another"),
        ("ir", "NAME must be new, and there is a model ir already; choose another"),
        ("numpy", "NAME must be new, and there is a Python module numpy already; choose another"),
        ("sys", "NAME must be new, and there is a Python module sys already; choose another"),
    ],
)
def test_a_name_must_be_new(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "accelerator", name]) == 64
    assert capsys.readouterr() == ("", f"ilaverify: {message}\n")
    assert not list(tmp_path.iterdir())


def test_a_folder_must_be_new_or_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "mine").touch()
    for path, what in ((tmp_path / "used", "has files in it"), (tmp_path / "used" / "mine", "is a file")):
        assert cli.main(["new", "accelerator", "tiny_gemm", "-o", str(path)]) == 64
        told = f"the folder must be new or empty, and {path} {what}; name another with -o"
        assert capsys.readouterr() == ("", f"ilaverify: {told}\n")
    assert contents(tmp_path) == {"used/mine": b""}


@pytest.mark.parametrize("there", [True, False])
def test_nothing_is_left_where_writing_fails(there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "made"
    if there:
        folder.mkdir()
    rename = Path.rename

    def fails(path: Path, target: Path) -> Path:
        if path.name == "tiny_gemm":
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match="No space left"):
        new.write_accelerator("tiny_gemm", folder)
    assert folder.exists() == there and not contents(tmp_path)


@pytest.mark.proof
def test_a_driver_that_forgets_clear_leaves_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new.write_accelerator("forgetful", tmp_path)
    mapping = tmp_path / "forgetful" / "mapping.py"
    right = mapping.read_text()
    mapping.write_text(right.replace("(model.CLEAR, model.GEMM,", "(model.GEMM,"))
    assert mapping.read_text() != right
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(extensions, "_modules", [])
    assert cli.main(["mapping", "forgetful_dense", "--module", "forgetful.target", "-o", "refuted"]) == 1
    value = re.search(r"0x(\w+) on the device and", " ".join(capsys.readouterr().out.split()))
    assert value is not None
    program = "refuted/forgetful_dense.counterexample.json"
    assert cli.main(["simulate", "forgetful", program, "--module", "forgetful.target"]) == 0
    shown = capsys.readouterr().out.splitlines()[-1]
    assert int(shown.split("=0x")[1], 16) & 0xFF == int(value[1], 16)


def test_calls_of_an_implementation_without_proved_conversions_are_of_their_joint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new.write_accelerator("of_author", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    operator = importlib.import_module("of_author.backend").OPERATOR
    types = [TensorType("float32", (5, 1500)), TensorType("float32", (7, 1500))]
    builder = Builder()
    graph = builder.graph({"y": builder.add(operator.name, *map(builder.input, "xw", types))})
    number = graph.outputs["y"]
    quantisation = quantisation_of(graph.nodes[number], calibrate(graph).ranges[number])
    made = implement(graph.nodes[number], types, quantisation)
    joint = "joint-of-author-dense-of-author-dense"
    assert len(made.calls) == 12 and joints_of(made) == {joint: ""}
    rules = importlib.import_module("of_author.rules")
    plain = TensorRule("a rule without boxes", rules.PRODUCT_IN_BOXES.left, rules.PRODUCT_IN_BOXES.right)
    monkeypatch.setitem(operator.__dict__, "splits", (*operator.splits, plain))
    *first, last = made.calls
    others = tuple(first)
    moved, shorter = ((0, 2), last.parts["x"][1]), (last.parts["y"][0], (6, 7))
    for change, told in (
        ({"rules": (rules.RULES.tensor[-1],)}, "must rest on one of its rules"),
        ({"rules": (plain,)}, "must be a rule of boxes or of layers"),
        ({"rules": ()}, "without a rule must be given its operands"),
        ({"parts": {**last.parts, "x": moved}}, "must have the box ((4, 6), (0, 1500)) of x, not ((0, 2), (0, 1500))"),
        ({"parts": {**last.parts, "y": shorter}}, "must have the box ((4, 6), (6, 8)) of y, not ((4, 6), (6, 7))"),
        ({"parts": {"y": last.parts["y"]}}, "'x'"),
        ({"parts": {**last.parts, "y": last.parts["y"][:1]}}, "zip()"),
    ):
        made.calls = (replace(last, **change), *others)
        assert told in joints_of(made)[joint]
    made.calls = (last, *others)
    assert joints_of(made) == {joint: ""}
    # calls must compute all of the result, and each element once
    whole = "calls of of_author.dense must compute every element of y once, not "
    for calls, told in ((others, "(4, 6) 0 times"), ((last, *others, others[0]), "(0, 0) 2 times")):
        made.calls = calls
        assert joints_of(made) == {joint: whole + told}
    made.calls = (last, *others)
    with monkeypatch.context() as patch:
        patch.setattr(type(made), "_calls", lambda self: [])
        with pytest.raises(
            CannotOffload, match=r"of_author\.dense must be computed by a call, and its code makes none"
        ):
            implement(graph.nodes[number], types, quantisation)
    # where programs of the host are said to put operands there, they must be those of the joint
    monkeypatch.setattr(type(made), "held_by", lambda self, number: {"host_x": "w", "host_w": "x"})
    assert joints_of(made)[joint]


# -- an installation -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chip(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs ilaverify where the package ``my_chip`` is installed beside it, in a folder of its own."""
    pytest.importorskip("setuptools", minversion="77")
    pytest.importorskip("pip", minversion="22.3")  # before, it has no --python
    base = tmp_path_factory.mktemp("plugin")
    (base / "elsewhere").mkdir()
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def call(*command: str | Path, **more: str) -> tuple[int, str, str]:
        done = subprocess.run(
            command, cwd=base / "elsewhere", env=plain | more, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    def done(*command: str | Path, **more: str) -> None:
        code, out, err = call(*command, **more)
        assert code == 0, out + err

    roots = [str(ROOT), str(ROOT / "encodings")]
    python = base / "env" / "bin" / "python"
    verb = ("-m", "ilaverify", "new", "accelerator", "my_chip", "-o", base / "package")
    done(sys.executable, *verb, PYTHONPATH=os.pathsep.join(roots))
    done(sys.executable, "-m", "venv", "--without-pip", base / "env")
    (packages,) = (base / "env").glob("lib/python*/site-packages")
    (packages / "ilaverify.pth").write_text("\n".join([*roots, sysconfig.get_path("purelib")]))
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check")
    done(sys.executable, "-m", "pip", "--python", python, "install", *offline, base / "package")
    return lambda *arguments: call(python, "-m", "ilaverify", *arguments)


def test_it_is_known(chip: Run) -> None:
    code, out, err = chip("list")
    assert code == 0, err
    listed = dict(line.split(None, 1) for line in out.splitlines() if line.startswith("  "))
    assert listed["my_chip_dense"] == "a dense layer of bytes with bias and requantisation, on my_chip"
    assert listed["my_chip"] == "my_chip at its bus: scratchpads, GEMM, requantisation"
    code, out, _ = chip("show", "my_chip", "--check")
    assert code == 0 and {line.split()[0] for line in out.splitlines()} == {"PROVED"}
    code, out, _ = chip("campaign", "my_chip_dense", "--examples", "10")
    assert code == 0 and "violations     0 of 10 examples" in out


@pytest.mark.slow
@pytest.mark.proof
def test_a_refutation_replays_by_simulate(chip: Run) -> None:
    code, out, err = chip("mapping", "my_chip_wraps", "-o", "refuted")
    values = re.search(r"0x(\w+) on the device and 0x(\w+) in the IR; 1 of 1 elements differ", " ".join(out.split()))
    assert code == 1 and values is not None, out + err
    for model, value in (("my_chip_wraps", values[1]), ("my_chip", values[2])):
        code, out, err = chip("simulate", model, "refuted/my_chip_wraps.counterexample.json")
        read = re.fullmatch(r"\d+ READ data_out=0x\w{6}(\w\w)\n", out)
        assert code == 0 and read is not None and int(read[1], 16) == int(value, 16), out + err


@pytest.mark.proof
@pytest.mark.parametrize("method", slow_but(["bmc"], ["bmc", "hash"]))
def test_one_shape_is_proved(method: str, chip: Run) -> None:
    code, out, err = chip("mapping", "my_chip_dense", "--method", method, "--shape", "2x3x2")
    assert code == 0 and out.startswith("PROVED  my_chip_dense"), out + err


@pytest.mark.slow
@pytest.mark.proof
def test_from_proofs_to_a_run(chip: Run, tmp_path: Path) -> None:
    store, proofs = ("--store", str(tmp_path / "store")), str(tmp_path / "proofs")
    rules = ("my-chip-a-box-of-a-product", "transposed-twice")
    wrong = (
        "my-chip-a-box-of-a-product-with-the-first-outputs",
        "my-chip-relu-of-bytes",
        "my_chip_wraps",
        "my_chip_weights",
    )
    joint = "joint-my-chip-dense-my-chip-dense"
    claims = ("my_chip_dense", joint, "my-chip-relu-of-bytes-repaired", *rules, *wrong)
    code, out, err = chip("prove", *claims, *store, "-o", proofs)
    assert code == 0 and out.endswith("5 PROVED, 4 REFUTED; all as expected\n"), out + err
    code, out, err = chip("check", proofs)
    assert code == 0, out + err
    code, out, err = chip("report", *claims, *store, "-o", str(tmp_path / "report.html"))
    assert code == 0, out + err
    code, out, _ = chip("rule", rules[0])
    assert code == 0 and "PROVED" in out

    draw = np.random.default_rng(3)
    w = draw.normal(size=(1500, 7)).astype("float32")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [5, 1500]), ("y", [5, 7])))
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([product], "product", [x], [y], [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx")
    compiled = str(tmp_path / "compiled")
    arguments = (str(tmp_path / "model.onnx"), "--target", "my_chip", "--proofs", proofs, *store, "-o", compiled)
    code, out, err = chip("compile", *arguments)
    # a scratchpad holds two rows of x or w: five rows in three parts, seven outputs in four
    assert code == 0 and "1 my_chip.dense; 12 programs" in out, out + err
    assert f"rests on      4 certificates: {joint}, my-chip-a-box-of-a-product" in out
    assert (
        out.count("declared ") == 1 and "declared      what the host does around programs of my_chip.dense, not" in out
    )
    summary = (tmp_path / "compiled" / "SUMMARY.md").read_text()
    assert "That operators are what their mappings compute over the real numbers is among these claims" in summary
    assert "| the author's code |" in summary and "is code of the target's author for node" in summary
    inputs = draw.normal(size=(5, 1500)).astype("float32")
    np.savez(tmp_path / "x.npz", x=inputs)
    result = tmp_path / "y.npz"
    code, out, err = chip("run", compiled, "--inputs", str(tmp_path / "x.npz"), "--output", str(result))
    assert code == 0 and "no bound: none is proved for my_chip" in out, out + err
    wanted = inputs.astype(np.float64) @ w.astype(np.float64)
    assert np.abs(np.load(result)["y"] - wanted).max() < 0.05 * np.abs(wanted).max()
