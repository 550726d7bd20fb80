"""The accelerator that the README begins with is proved, and beyond its buffer it is refuted."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ilaverify
from ilaverify import cli
from smt_encodings.claims import Status

ROOT = Path(__file__).parents[2]


@pytest.fixture
def relu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import relu  # type: ignore[import-not-found]

    yield relu
    sys.modules.pop("relu", None)


@pytest.mark.proof
def test_it_is_proved_for_every_length(relu: Any) -> None:
    assert ilaverify.prove(relu.claim, "chc").status is Status.PROVED


@pytest.mark.proof
def test_one_byte_more_than_the_buffer_has_is_refuted(relu: Any) -> None:
    domain = (("n = 4097", relu.n == 4097),)
    assert ilaverify.prove(replace(relu.claim, domain=domain), "chc").status is Status.REFUTED


def test_the_readme_quotes_it() -> None:
    quoted = (ROOT / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    assert quoted in (ROOT / "examples" / "relu.py").read_text(encoding="utf-8")
    assert 20 <= sum(bool(line) for line in quoted.splitlines()) <= 30


@pytest.mark.proof
def test_the_readme_shows_what_the_command_prints(
    relu: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ila_lang.extensions._modules", [])
    assert cli.main(["mapping", "relu", "--module", "relu"]) == 0
    command = "$ cd examples && ilaverify mapping relu --module relu\n"
    quoted = (ROOT / "README.md").read_text(encoding="utf-8").split(command)[1].split("```")[0]
    printed, parts = _without_times(capsys.readouterr().out), _without_times(quoted).split("\n [...]\n")
    assert len(parts) == 4
    for part in parts:
        before, found, printed = printed.partition(part.strip("\n"))
        assert found and bool(before.strip()) == (part is not parts[0]), part


def _without_times(text: str) -> str:
    return re.sub(" +", " ", re.sub(r"\d+\.\d+ s\b", "N s", text))
