"""Python starts with the repository's root on PYTHONPATH.

Python loads its own package ``encodings`` before any other code; a package of that name at the root
would take its place and stop the interpreter.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_python(code: str, *path: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env["PYTHONPATH"] = os.pathsep.join(map(str, path))
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("code", ["", "import encodings.utf_8"])
def test_python_starts(code: str) -> None:
    done = run_python(code, ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_second_source_root_holds_smt_encodings() -> None:
    done = run_python("import smt_encodings; print(smt_encodings.__file__)", ROOT, ROOT / "encodings")
    assert done.stdout.strip() == str(ROOT / "encodings" / "smt_encodings" / "__init__.py"), done.stderr


def test_a_package_called_encodings_stops_python(tmp_path: Path) -> None:
    (tmp_path / "encodings").mkdir()
    (tmp_path / "encodings" / "__init__.py").touch()
    assert run_python("", tmp_path).returncode != 0
