"""What is written must be apart from what is read, and from the files of compiled models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .errors import UsageError

MODEL = "model.json"
"""The file that every compiled model has."""


def require_apart(read: Mapping[str, Path], written: Mapping[str, Path], replaced: Mapping[str, Path]) -> None:
    """Raises UsageError where writing would destroy what is read, what is written besides, or a compiled model.

    Paths are by what messages call them.  A directory that is ``replaced`` may be a compiled model itself, and is
    removed with all that it holds; into another one, files are put.
    """
    named: dict[Path, str] = {}
    for name, path in {**written, **replaced}.items():
        other = named.setdefault(path.resolve(), name)
        if other != name:
            raise UsageError(f"{other} and {name} must name different files, not both {path}")
    for name, path in read.items():
        if path.resolve() in named and not path.is_dir():
            raise UsageError(f"{named[path.resolve()]} must not name {path}, which is read as {name}; name another")
    for name, path in replaced.items():
        for other, kept in {**read, **written}.items():
            if kept.resolve().is_relative_to(path.resolve()):
                raise UsageError(f"{name} must not name {path}, which is replaced and has {other} in it; name another")
    for name, path in {**written, **replaced}.items():
        folders = [path.resolve(), *path.resolve().parents]
        model = next(filter(_is_model, folders[name in replaced :]), None)
        if model is not None:
            raise UsageError(
                f"{name} must not name {path}, for {model} is a compiled model, which no other file may be in; name "
                "another"
            )


def _is_model(folder: Path) -> bool:
    if not (folder / MODEL).is_file():
        return False
    from rewrites.compiler.artefact.directory import is_artefact

    return is_artefact(folder)
