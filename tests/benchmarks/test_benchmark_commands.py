"""Every benchmark is a command: it loads, and says what it takes before it measures anything."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
    for path in (ROOT / "benchmarks").rglob("*.py")
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
)


def test_all_benchmarks_are_seen() -> None:
    assert {"benchmarks", "benchmarks.sums", "benchmarks.table2", "benchmarks.digits"} < set(COMMANDS)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a module that another benchmark imports is executed again
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("--nonsense", 2)])
def test_a_benchmark_reads_its_arguments_first(
    command: str, argument: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [command, argument])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(command, run_name="__main__")
    shown = capsys.readouterr()
    assert ended.value.code == code
    assert f"usage: python -m {command} " in (shown.err if code else shown.out)
