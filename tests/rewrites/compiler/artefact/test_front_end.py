"""The door for front ends, and one of a module that is named, from compiling a model to running it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ila_lang import extensions
from ila_lang.extensions import ExtensionError, use_module
from ilaverify import cli
from rewrites.compiler.artefact.errors import ArtefactError
from rewrites.compiler.artefact.sources.front_end import FRONT_ENDS, FrontEnd, Source, front_end_of

GUEST = """
from ir_semantics.graph.build import Builder
from ir_semantics.graph.types import GraphError, TensorType
from rewrites.compiler.artefact.sources.front_end import FrontEnd, Source

def read(path, dimensions):
    text = path.read_text()
    if not text.startswith("relu "):
        raise GraphError("a toy must begin with relu")
    builder = Builder()
    x = builder.input("x", TensorType("float32", (dimensions.get("n", 2), int(text.split()[1]))))
    return builder.graph({"y": builder.add("relu", x)}), Source(text.encode())

TOY = FrontEnd("toy", (".toy", ".toys"), read)
"""


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module that has a front end, a model for it, and a folder without certificates."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(extensions, "_modules", [])
    monkeypatch.delitem(sys.modules, "guest_front_end", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("guest_front_end.py").write_text(GUEST)
    Path("m.toys").write_text("relu 3")
    Path("proofs").mkdir()
    return tmp_path


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    extensions._modules.clear()  # as in a process of its own
    code = cli.main(list(arguments))
    written = capsys.readouterr()
    return code, written.out, written.err


def test_onnx_comes_in_by_the_door() -> None:
    assert list(FRONT_ENDS.all()) == ["onnx"] and FRONT_ENDS.guest("onnx") == ""
    assert front_end_of(Path("a/m.ONNX")).file_name == "source.onnx"


def test_a_front_end_of_a_module_from_compiling_to_running(guest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = ("--module", "guest_front_end")
    request = ("m.toys", "--target", "vta", "--dimension", "n=5", "-o", "made", "--no-store")
    assert ran(capsys, "compile", *request, *named)[0] == 0
    told = json.loads(Path("made/model.json").read_text())["source"]
    assert told == {
        "name": "m.toys", "dimensions": {"n": 5}, "front_end": "toy", "package": "module guest_front_end",
    }  # fmt: skip
    assert Path("made/source.toy").read_text() == "relu 3"
    assert (
        "Read by the front end toy of module guest_front_end, which is trusted" in Path("made/SUMMARY.md").read_text()
    )
    code, out, _ = ran(capsys, "check", "made", *named)
    assert code == 0 and out.endswith("1 accepted, 0 rejected\n")
    assert ran(capsys, "run", "made", "--random", "1", *named)[0] == 0
    assert ran(capsys, "run", "made", "--random", "1", "--reference", "onnxruntime", *named) == (
        64, "", "ilaverify: to run in a runtime of ONNX, the model must be one of ONNX; take the reference host\n",
    )  # fmt: skip
    code, _, err = ran(capsys, "run", "made", "--random", "1")
    assert code == 64 and "front_end must be one of onnx, not 'toy'; install its package, or name its module by" in err
    code, out, err = ran(capsys, "check", "made")
    assert (code, out) == (64, "") and "front_end must be one of onnx, not 'toy'; install its package, or name" in err
    (guest / "guest_front_end.py").write_text(GUEST.replace('add("relu"', 'add("tanh"'))
    del sys.modules["guest_front_end"]
    code, out, _ = ran(capsys, "check", "made", *named)
    assert code == 1 and "chain of rules" in out


def test_models_that_no_front_end_reads(guest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = ("compile", "m.toys", "--target", "vta", "-o", "made", "--no-store")
    assert ran(capsys, *request) == (
        64, "", "ilaverify: m.toys: a model must be a file with one of the suffixes .onnx (onnx), not '.toys'\n",
    )  # fmt: skip
    Path("m.toys").write_text("tanh")
    code, _, err = ran(capsys, *request, "--module", "guest_front_end")
    assert code == 64 and err.endswith("ilaverify: m.toys: a toy must begin with relu\n")
    assert not Path("made").exists()


def test_two_for_one_suffix_are_refused(guest: Path) -> None:
    Path("guest_front_end.py").write_text(GUEST + 'OTHER = FrontEnd("other", (".toy",), read)\n')
    use_module("guest_front_end")
    assert front_end_of(Path("m.toys")).name == "toy"
    with pytest.raises(ExtensionError) as two:
        front_end_of(Path("m.toy"))
    assert str(two.value) == (
        "files .toy are read by toy of module guest_front_end and other of module guest_front_end; remove one"
    )


def test_what_a_front_end_must_be() -> None:
    with pytest.raises(ValueError) as wrong:
        FrontEnd("a", ("toy",), lambda path, dimensions: NotImplemented)
    assert str(wrong.value) == "suffixes of a front end must be like .onnx, not ('toy',)"
    with pytest.raises(ArtefactError):
        Source(b"").as_onnx()
