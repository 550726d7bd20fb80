"""What a command writes is neither what it reads nor in a compiled model: it is refused, and nothing is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from ila_lang import canonical_text
from ilaverify.cli import main
from rewrites.compiler.artefact.directory import SCHEMA


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with some files, a link and a compiled model in which another file lies."""
    for name in ("p.json", "x.npz", "y.npy"):
        (tmp_path / name).write_text(name)
    (tmp_path / "proofs").mkdir()
    (tmp_path / "link.npz").symlink_to("x.npz")
    model = tmp_path / "compiled"
    model.mkdir()
    files = {"source.onnx": "0" * 64}
    (model / "model.json").write_text(canonical_text({"schema": SCHEMA, "files": files}) + "\n")
    (model / "source.onnx").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


MODEL = "which no other file may be in; name another"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("run compiled --inputs x.npz --output x.npz", "--output must not name x.npz, which is read as --inputs; name"),
        ("run compiled --inputs x.npz --output ./link.npz", "--output must not name x.npz, which is read as --inputs;"),
        ("run compiled --inputs x.npz --labels y.npy --output y.npy", "--output must not name y.npy, which is read as"),
        ("run compiled --random 1 --output o --commands o", "--output and --commands must name different files, not"),
        (
            "run compiled --random 1 --output compiled/model.json",
            f"--output must not name compiled/model.json, for FOLDER/compiled is a compiled model, {MODEL}",
        ),
        (
            "run compiled --random 1 --output compiled/y.npz",
            f"--output must not name compiled/y.npz, for FOLDER/compiled is a compiled model, {MODEL}",
        ),
        (
            "run compiled --random 1 --commands compiled/a/cmds",
            f"--commands must not name compiled/a/cmds, for FOLDER/compiled is a compiled model, {MODEL}",
        ),
        (
            "mapping flexasr_maxpool -o compiled",
            f"-o must not name compiled, for FOLDER/compiled is a compiled model, {MODEL}",
        ),
        ("rule relu-twice -o compiled", f"-o must not name compiled, for FOLDER/compiled is a compiled model, {MODEL}"),
        ("prove --all -o compiled", f"-o must not name compiled, for FOLDER/compiled is a compiled model, {MODEL}"),
        (
            "new accelerator my_gemm -o compiled/x",
            f"-o must not name compiled/x, for FOLDER/compiled is a compiled model, {MODEL}",
        ),
        ("simulate vta p.json -o p.json", "-o must not name p.json, which is read as PROGRAM; name another"),
        ("report --scaling p.json -o p.json", "-o must not name p.json, which is read as --scaling; name another"),
        ("campaign vta_relu --replay p.json -o p.json", "-o must not name p.json, which is read as --replay; name an"),
        ("compile p.json -o p.json --target vta", "-o must not name p.json, which is read as MODEL; name another"),
        (
            "compile compiled/source.onnx -o compiled --target vta",
            "-o must not name compiled, which is replaced and has MODEL in it; name another",
        ),
        (
            "compile p.json --proofs compiled -o compiled --target vta",
            "-o must not name compiled, which is replaced and has --proofs in it; name another",
        ),
        (
            "compile p.json -o compiled/new --target vta",
            f"-o must not name compiled/new, for FOLDER/compiled is a compiled model, {MODEL}",
        ),
        ("check ''", "argument CERT: must name what is read, not ''; the working directory is ."),
    ],
)
def test_places_that_are_refused(command: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main([word.strip("'") for word in command.split()]) == 64
    assert f"ilaverify: {message}".replace("FOLDER", str(folder)) in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_places_that_are_taken(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory that is read may get more files, and a folder with a model.json of another kind is no model."""
    (folder / "model.json").write_text("{}")
    (folder / "q.json").write_text('{"program": ["finish"]}')
    assert main(["simulate", "vta", "q.json", "-o", "reads.txt"]) == 0
    assert capsys.readouterr().out == "written   reads.txt\n"
    assert main(["report", "relu-twice", "--store", "p.json", "--campaigns", "proofs", "-o", "proofs"]) == 64
    assert "-o must name a file, not the directory proofs" in capsys.readouterr().err
