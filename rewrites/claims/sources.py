"""Digests of code and texts, and where in them a rule is written down."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ila_lang.extensions import guest_modules
from reports.method_code import installed


def text_digest(*texts: str) -> str:
    """SHA-256 of texts, each with its length."""
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogateescape")  # as MLIR's strings may be any bytes
        digest.update(f"{len(data)}\n".encode() + data)
    return digest.hexdigest()


def meaning_digest(functions: Iterable[Callable[..., Any]], *packages: str) -> str:
    """SHA-256 of what modules of ``packages`` say that functions rest on: of the meaning of the words they speak of."""
    return installed().digest(
        name
        for name in installed().modules(*(f.__module__ for f in functions))
        if any(f"{name}.".startswith(f"{package}.") for package in packages)
    )


def code_digest(*modules: ModuleType) -> str:
    """SHA-256 of what modules say, without what they import."""
    return installed().digest(module.__name__ for module in modules)


@cache
def _strings(path: Path) -> dict[str, int]:
    """The first line on which each string literal of a file stands."""
    lines: dict[str, int] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            lines[node.value] = min(node.lineno, lines.get(node.value, node.lineno))
    return lines


def place_of(modules: Sequence[ModuleType], *texts: str) -> tuple[str, int]:
    """The file (relative to the source root) and line where the first of ``texts`` stands as a string literal.

    Where no module is given, those of other packages that offer something are searched.  The first module's first line
    where none has it: names may be put together.
    """
    for text in texts:
        for module in modules or guest_modules():
            path = Path(getattr(module, "__file__", None) or "")
            line = _strings(path).get(text) if path.suffix == ".py" else None
            if line is not None:
                return _source_name(module), line
    return (_source_name(modules[0]), 1) if modules else ("", 0)


def _source_name(module: ModuleType) -> str:
    return "/".join([*module.__name__.split(".")[:-1], Path(str(module.__file__)).name])
