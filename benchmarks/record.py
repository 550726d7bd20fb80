"""What benchmarks measured, as they write it to ``benchmarks/results``: JSON, and a page of Markdown."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def takes_nothing(name: str, note: str | None) -> None:
    """Refuses arguments before anything is measured; ``--help`` shows the first line of a module's docstring."""
    what = (note or "").strip().splitlines()[0]
    argparse.ArgumentParser(prog=f"python -m {name}", description=what).parse_args()


def machine(*packages: str) -> dict[str, str]:
    """What the figures were measured on and with; ``packages`` are further ones."""
    versions = {n: version(n) for n in ("z3-solver", "cvc5", "pysmt", "numpy", *packages)}
    return versions | {"python": platform.python_version(), "cores": str(os.cpu_count()), "system": platform.system()}


def recorded(name: str) -> dict[str, Any]:
    """What was measured last, with its rows; without them where there is nothing."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {"rows": []}


def write(name: str, content: Mapping[str, Any], text: str, packages: Sequence[str] = ()) -> None:
    """Writes ``content`` with the command and the machine, and ``text`` as the page."""
    RESULTS.mkdir(exist_ok=True)
    whole = {"command": f"python -m benchmarks.{name}", "machine": machine(*packages), **content}
    (RESULTS / f"{name}.json").write_text(json.dumps(whole, indent=2) + "\n")
    (RESULTS / f"{name}.md").write_text(text.rstrip("\n") + "\n")


def page(name: str, title: str, note: str | None, tables: str) -> str:
    """A page: of a module's docstring, ``note``, all but its first line; then where to look, and the tables."""
    words = "\n".join((note or "").strip().splitlines()[2:])
    return f"# {title}\n\n{words}\n\nMachine and versions: {name}.json.\n\n{tables}\n"
