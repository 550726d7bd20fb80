"""The campaign of passes, with a program that stands for ``mlir-opt`` and has a pass that is wrong."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.mlir_passes import PIPELINES, Row, main, run, table, titles
from tests.ilaverify.cli.mlir_programs import ADD, UNKNOWN, fake_mlir_opt, function


def test_each_pass_is_run_on_each_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = fake_mlir_opt(tmp_path / "mlir-opt")
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "a.mlir").write_text(function("f", ADD) + function("g", ADD), encoding="utf-8")
    (folder / "b.mlir").write_text("%", encoding="utf-8")
    passes = ["--passes", "swap,nothing,break,fails,absent", "--jobs", "1", "--json", str(tmp_path / "rows.json")]
    assert main([str(folder), "--mlir-opt", program, *passes]) == 1
    out = capsys.readouterr().out
    assert "| pass | PROVED | REFUTED | UNKNOWN | VACUOUS | ERROR | same | no output | not read |" in out
    assert "| swap | 2 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |" in out
    assert "| nothing | 0 | 0 | 0 | 0 | 0 | 1 | 0 | 1 |" in out
    assert "| break | 0 | 2 | 0 | 0 | 0 | 0 | 0 | 1 |" in out
    assert "| fails | 0 | 0 | 0 | 0 | 0 | 0 | 1 | 1 |" in out
    assert "Not in this release: absent" in out
    assert "a.mlir, break, @f: with arg0 = " in out
    assert "8 pairs of a file and a pass, mlir-opt 99.0.0: 4 functions were changed" in out
    assert len(json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))["rows"]) == 10


def test_pairs_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = fake_mlir_opt(tmp_path / "mlir-opt")
    (tmp_path / "a.mlir").write_text(function("f", ADD), encoding="utf-8")
    assert main([str(tmp_path), "--mlir-opt", program, "--passes", "swap,nothing", "--most", "1", "--jobs", "1"]) == 0
    assert "1 pairs of a file and a pass" in capsys.readouterr().out


def test_what_prepares_for_a_pass_is_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text(function("f", ADD) + function("g", UNKNOWN), encoding="utf-8")
    options = Namespace(mlir_opt=fake_mlir_opt(tmp_path / "mlir-opt"), seconds=10.0, buffers_apart=False)
    rows = json.loads(run(path, "a", "break,swap", options))
    assert [(row["function"], row["pass_name"], row["verdict"]) for row in rows] == [
        ("f", "swap", "REFUTED"),
        ("g", "swap", "UNKNOWN"),
    ]
    assert "* UNKNOWN or ERROR, 1 times: any.thing: the operator has no meaning here" in table([Row(**r) for r in rows])


def test_the_passes_are_written_as_they_should_be() -> None:
    assert all(titles(pipeline) for pipeline in PIPELINES)
    assert len(set(PIPELINES)) == len(PIPELINES)
