"""Digests of source files, and where in them a rule is written down."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

__all__ = ["place_of", "sources_digest", "text_digest"]


def text_digest(*texts: str) -> str:
    """SHA-256 of texts, each with its length."""
    found = hashlib.sha256()
    for text in texts:
        data = text.encode()
        found.update(f"{len(data)}\n".encode() + data)
    return found.hexdigest()


@cache
def sources_digest(*packages: ModuleType) -> str:
    """SHA-256 of all Python files of packages, and of modules that are single files; with their names."""
    found = hashlib.sha256()
    for package in packages:
        path = Path(str(package.__file__))
        files = sorted(path.parent.rglob("*.py")) if path.stem == "__init__" else [path]
        for file in files:
            data = file.read_bytes()
            found.update(f"{package.__name__}/{file.name} {len(data)}\n".encode() + data)
    return found.hexdigest()


@cache
def _strings(path: Path) -> dict[str, int]:
    """The first line on which each string literal of a file stands."""
    lines: dict[str, int] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            lines[node.value] = min(node.lineno, lines.get(node.value, node.lineno))
    return lines


def place_of(modules: Iterable[ModuleType], *texts: str) -> tuple[str, int]:
    """The file (relative to the source root) and line where the first of ``texts`` stands as a string literal.

    The first module's first line where none does: names may be put together.
    """
    first = None
    for text in texts:
        for module in modules:
            path = Path(str(module.__file__))
            name = "/".join([*module.__name__.split(".")[:-1], path.name])
            first = first or name
            line = _strings(path).get(text)
            if line is not None:
                return name, line
    return first or "", 1
