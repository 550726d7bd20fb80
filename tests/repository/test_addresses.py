"""The repository names no package registry and no path of one particular machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Each word is cut in two, so that this file does not contain it.
WORDS = [
    ("index", "-url"),
    ("find", "-links"),
    ("/sim", "ple/"),
    ("pypi", ".org"),
    ("python", "hosted"),
    ("/wo", "rk/"),
    ("/fa", "rm/"),
    ("/ro", "ot/"),
    ("/ho", "me/"),
]
ADDRESS = re.compile("|".join(re.escape(start + end) for start, end in WORDS))


def test_no_addresses_in_the_repository() -> None:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in paths
        if path.is_file()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if ADDRESS.search(line)
    ]
    assert paths
    assert found == []


@pytest.mark.parametrize("word", ["".join(parts) for parts in WORDS])
def test_an_address_is_found(word: str) -> None:
    assert ADDRESS.search(f"see {word} for more")
