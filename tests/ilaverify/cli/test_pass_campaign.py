"""``campaign mlir_passes``, with programs that stand for ``mlir-opt``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ilaverify.cli import main
from ilaverify.mlir import translation

FAKE = """#!{python}
import sys
if "--version" in sys.argv:
    print("LLVM version {release}")
    sys.exit()
text = sys.stdin.read()
pipeline = " ".join(a for a in sys.argv if a.startswith("--pass-pipeline="))
if "wrong" in pipeline and {wrong}:
    for right, other in (("tosa.add", "tosa.sub"), ("arith.addi", "arith.subi"), ("tosa.maximum", "tosa.minimum")):
        text = text.replace(f'"{{right}}"', f'"{{other}}"')
print(text, end="")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, release, wrong in (("good-opt", "19.8.0", False), ("bad-opt", "22.9.0", True)):
        path = tmp_path / name
        path.write_text(FAKE.format(python=sys.executable, release=release, wrong=wrong))
        path.chmod(0o755)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["campaign", "mlir_passes", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


@pytest.mark.slow
def test_a_wrong_pass_is_found_and_its_program_made_small(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs = ("--mlir-opt", "./good-opt", "--mlir-opt", "./bad-opt")
    arguments = ("--examples", "6", "--seed", "2", "--jobs", "1", "--passes", "nothing,wrong", "-o", "out")
    code, out, _ = run(capsys, *programs, *arguments)
    assert code == 1
    assert out.startswith("mlir_passes: 6 programs, seed 2, mlir-opt 19.8.0, mlir-opt 22.9.0\n")
    (result,) = [json.loads(p.read_text()) for p in Path("out").glob("*.campaign.json")]
    assert result["programs"] == 6 and not result["interrupted"]
    rows = {(row["release"], row["pass"]): row for row in result["steps"]}
    assert set(rows["mlir-opt 19.8.0", "wrong"]) == {"release", "pass", "same"}
    assert rows["mlir-opt 22.9.0", "wrong"]["REFUTED"] >= 1
    for number, failure in enumerate(result["failures"], 1):
        assert failure["pass_name"] == "wrong" and failure["release"] == "mlir-opt 22.9.0"
        assert "REFUTED  wrong of mlir-opt 22.9.0" in out
        pair = [f"out/mlir_passes.{number}-wrong.{side}.mlir" for side in ("before", "after")]
        assert main(["tv", "--jobs", "1", *pair]) == 1
        assert failure["source"].count(" = ") <= 4  # few operations
    capsys.readouterr()


def test_a_campaign_needs_an_mlir_opt(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = run(capsys, "--mlir-opt", "./absent")
    expected = "./absent must be a program that can be run; name an mlir-opt, on the path or with its folder"
    assert (code, err) == (64, f"ilaverify: {expected}\n")
    code, _, err = run(capsys, "--mlir-opt", "./bad-opt", "--mlir-opt", "./bad-opt")
    expected = "--mlir-opt must name programs of different releases, and mlir-opt 22.9.0 is named twice"
    assert (code, err) == (64, f"ilaverify: {expected}\n")
    monkeypatch.setattr(translation, "find_converter", lambda name: None)
    code, _, err = run(capsys)
    assert code == 64 and err.startswith("ilaverify: mlir_passes needs an mlir-opt, and none was found; install one")


def test_options_of_other_campaigns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--mlir-opt", "./good-opt", "--cluster", "127.0.0.1:1")
    expected = "mlir_passes has no --replay and no --cluster; give a failure's two files to ilaverify tv"
    assert (code, err) == (64, f"ilaverify: {expected}\n")
    assert main(["campaign", "flexasr_linear", "--passes", "cse"]) == 64
    expected = "--mlir-opt and --passes are of the campaign mlir_passes; leave them out"
    assert capsys.readouterr().err == f"ilaverify: {expected}\n"
    assert main(["campaign", "--list"]) == 0
    assert "\nmlir_passes                  passes of mlir-opt on random programs" in capsys.readouterr().out
