"""Tutorials on examples/plugin, and the guide to packages: sessions print what they show, quotes are the package's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "examples" / "plugin"
FILES = [*PLUGIN.rglob("*.py"), ROOT / "rewrites" / "mappings" / "vta" / "programs.py"]
TUTORIALS = [ROOT / "docs" / "tutorials" / name for name in ("gemm.md", "compile.md")]


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda t: t.stem)
def test_quoted_code_is_part_of_the_example(tutorial: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", tutorial.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    quotes = [b for b in blocks if not b.startswith(">>>")]
    assert len(quotes) >= 4 and len(blocks) - len(quotes) >= 3
    code = "".join(file.read_text(encoding="utf-8") for file in FILES)
    assert [q for q in quotes if q not in code] == []


@pytest.mark.proof
@pytest.mark.parametrize(
    "tutorial",
    [pytest.param(TUTORIALS[0], marks=pytest.mark.slow), TUTORIALS[1], ROOT / "docs" / "how-to" / "extending.md"],
    ids=lambda t: t.stem,
)
def test_the_session_prints_what_is_shown(tutorial: Path) -> None:
    # in a process of its own: operators of the package stay in tables of the process
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "encodings", PLUGIN)))}
    command = [sys.executable, "-m", "doctest", str(tutorial)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_model_of_the_tutorial_is_written(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from ir_semantics.onnx.importer import import_model

    script = re.search(r"<<'END'\n(.*?)^END$", TUTORIALS[1].read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert script is not None
    subprocess.run([sys.executable, "-c", script[1]], cwd=tmp_path, check=True)
    graph = import_model(onnx.load(tmp_path / "model.onnx"))
    assert graph.nodes[graph.outputs["y"]].operator == "matmul" and graph.nodes[graph.inputs["x"]].type.shape == (3, 8)
