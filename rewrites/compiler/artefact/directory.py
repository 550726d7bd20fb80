"""The directory of an artefact: written whole or not at all, replaced only if it is one, and read as untrusted.

``model.json`` names every other file with its SHA-256, and holds its own digest; so one digest covers all.  A directory
with an extra or missing file, or a byte that differs, is refused.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ila_lang import canonical_text

from .arrays import Data
from .errors import ArtefactError, field, text

MODEL = "model.json"
SCHEMA = "ilaverify-artefact-5"
"""Version of the format."""
_SCHEMAS = r"ilaverify-artefact-[1-9]\d?"

MOST_BYTES = (1 << 32) - 1
"""Bytes of all files of an artefact; a bound of this implementation."""
MOST_FILES = 100_000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}\.[a-z0-9]{1,16}")


def write_directory(directory: Path, content: Mapping[str, Any], files: Mapping[str, Data]) -> str:
    """Writes an artefact and gives its digest; ``content`` is that of ``model.json`` without schema, files and digest.

    The directory appears with all its files, under its name, or not at all.  An existing artefact is replaced.
    Raises ArtefactError as :func:`may_write` does, and OSError as the file system does.
    """
    may_write(directory)
    document: dict[str, Any] = {**content, "schema": SCHEMA, "files": {}}
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
    try:
        for name, data in files.items():
            document["files"][name] = _write(temporary / name, data)
        document["digest"] = _digest(document)
        _write(temporary / MODEL, (canonical_text(document) + "\n").encode("ascii"))
        os.chmod(temporary, 0o755)
        _replace(directory, temporary)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError) and error.strerror and error.filename is None:
            raise OSError(error.errno, error.strerror, str(directory)) from error
        raise
    return str(document["digest"])


def _write(path: Path, data: Data) -> str:
    """Writes a file through to disk, and gives its digest."""
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(data).hexdigest()


def _replace(directory: Path, temporary: Path) -> None:
    """Moves the finished ``temporary`` to a path that is free, an empty directory, or an artefact."""
    may_write(directory)
    if not directory.exists():
        os.rename(temporary, directory)
        return
    old = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
    os.rename(directory, old)  # an empty directory may be replaced by a rename
    try:
        os.rename(temporary, directory)
    except BaseException:
        os.rename(old, directory)
        raise
    shutil.rmtree(old, ignore_errors=True)


def may_write(directory: Path) -> None:
    """Raises ArtefactError where the path exists and is neither an empty directory nor an artefact."""
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise ArtefactError(
            f"{directory} must be a directory or a new name, but there is something else; name another place"
        )
    if directory.is_dir() and any(directory.iterdir()) and not is_artefact(directory):
        raise ArtefactError(
            f"{directory} must be new, empty, or a compiled model, which is then replaced; "
            "it holds other files; name another place"
        )


def is_artefact(directory: Path) -> bool:
    """Whether a directory has a ``model.json`` of any version, and no file that it does not name."""
    try:
        content = _document(directory / MODEL)
        named = set(field("files", content.get("files"), dict, "an object"))
        return _listing(directory) <= named | {MODEL}
    except (ArtefactError, OSError):
        return False


def read_directory(directory: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The content of ``model.json`` and the bytes of all other files, every digest checked.

    Raises ArtefactError where something is missing, superfluous, changed or of another format.
    """
    if not directory.is_dir():
        raise ArtefactError(
            f"{directory} must be the directory of a compiled model, and there is none; make one with ilaverify compile"
        )
    content = _model(directory / MODEL)
    if content.get("digest") != _digest(content):
        raise ArtefactError(
            f"{directory / MODEL}: the digest must match the content; the file was changed after it was written; "
            "compile the model again"
        )
    named = field(f"{directory / MODEL}: files", content.get("files"), dict, "an object of digests")
    if len(named) > MOST_FILES or not all(_NAME.fullmatch(name) for name in named):
        raise ArtefactError(f"{directory / MODEL}: files must have names as compile gives them")
    there = _listing(directory)
    for name in sorted(set(named) - there):
        raise ArtefactError(f"{directory} must hold {name}, as its model says; it is missing; compile the model again")
    for name in sorted(there - set(named) - {MODEL}):
        raise ArtefactError(f"{directory} must hold only the files that its model names; remove {name}")
    left = MOST_BYTES
    files: dict[str, bytes] = {}
    for name in sorted(named):
        data = _bytes(directory / name, left)
        left -= len(data)
        if hashlib.sha256(data).hexdigest() != text(f"the digest of {name}", named[name]):
            raise ArtefactError(
                f"{directory / name}: the file must have the digest that the model names; it was changed; "
                "compile the model again"
            )
        files[name] = data
    return content, files


def _digest(content: Mapping[str, Any]) -> str:
    body = {key: value for key, value in content.items() if key != "digest"}
    return hashlib.sha256(canonical_text(body).encode()).hexdigest()


def _model(path: Path) -> dict[str, Any]:
    document = _document(path)
    if document["schema"] != SCHEMA:
        raise ArtefactError(
            f"{path}: schema must be {SCHEMA}, not {document['schema']}; another version wrote it; "
            "compile the model again"
        )
    return document


def _document(path: Path) -> dict[str, Any]:
    """The content of ``model.json`` in any version of the format."""
    data = _bytes(path, MOST_BYTES)
    try:
        content = json.loads(data.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise ArtefactError(f"{path}: the description of a compiled model must be JSON text: {error}") from error
    document = field(f"{path}: the description of a compiled model", content, dict, "a JSON object")
    if not re.fullmatch(_SCHEMAS, str(document.get("schema"))):
        raise ArtefactError(
            f"{path}: schema must be {SCHEMA}, not {document.get('schema')!r:.60}; compile the model with this version"
        )
    try:
        canonical = canonical_text(document) + "\n"
    except ValueError as error:
        raise ArtefactError(f"{path}: numbers must be finite: {error}") from error
    if canonical.encode("ascii") != data:
        raise ArtefactError(f"{path}: the text must be in canonical form; the file was edited or reformatted")
    return document


def _listing(directory: Path) -> set[str]:
    """All files below a directory by relative name; at most MOST_FILES of them, directories that are links included."""
    listing: set[str] = set()
    for parent, folders, names in os.walk(directory):
        base = Path(parent)
        links = [f for f in folders if (base / f).is_symlink()]
        empty = [f for f in folders if f not in links and not any((base / f).iterdir())]
        for name in (*names, *links, *empty):
            listing.add((base / name).relative_to(directory).as_posix())
            if len(listing) > MOST_FILES + 1:
                raise ArtefactError(f"{directory} must hold at most {MOST_FILES} files")
    return listing


def _bytes(path: Path, most: int) -> bytes:
    """The bytes of a regular file; raises ArtefactError for symbolic links."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                raise ArtefactError(f"{path}: a compiled model's file must be a regular file of at most {most} bytes")
            return file.read(most)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ArtefactError(
                f"{path}: a compiled model's file must be a file of its own, not a symbolic link, for links are not "
                "followed; put the file itself there"
            ) from error
        raise ArtefactError(f"{path}: a compiled model's file must be readable: {error.strerror}") from error
