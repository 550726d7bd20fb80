"""Which certificates a run of ``check`` begins with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ilaverify.cli.check import _seconds_of_proof


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (json.dumps({"seconds": 2.5}), 2.5),
        (json.dumps({"seconds": 3}), 3.0),
        ("{}", 0.0),
        ("[]", 0.0),
        ("{", 0.0),
        ("[" * 100_000, 0.0),
        (json.dumps({"seconds": "long"}), 0.0),
        ('{"seconds": NaN}', 0.0),
        ('{"seconds": -Infinity}', 0.0),
        ('{"seconds": ' + "9" * 400 + "}", 0.0),
    ],
)
def test_the_hint_of_any_file_is_a_number(text: str, seconds: float, tmp_path: Path) -> None:
    (tmp_path / "a.cert.json").write_text(text)
    assert _seconds_of_proof(tmp_path / "a.cert.json") == seconds


def test_a_file_that_is_not_there_takes_no_time(tmp_path: Path) -> None:
    assert _seconds_of_proof(tmp_path / "a.cert.json") == 0.0
