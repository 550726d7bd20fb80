"""Reading untrusted files: with a limit of bytes, so that no file exhausts the memory."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from ila_lang.errors import InputError


class FileRefused(InputError):
    """A file that cannot be read or is too large; the message names it, and says what must hold and what to do."""


def read_at_most(path: Path, what: str, most: int) -> bytes:
    """The bytes of a file or pipe, which messages call ``what``.

    Raises FileRefused where there is none, where it is a device or a directory, or has more than ``most`` bytes: no
    more than these are read.
    """
    try:
        with path.open("rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
                raise FileRefused(f"{path}: {what} must be a file or a pipe, not a device; name a file")
            data = b"" if status.st_size > most else _read(file.fileno(), most)
    except (OSError, ValueError) as error:
        if isinstance(error, FileRefused):
            raise
        reason = error.strerror if isinstance(error, OSError) else error  # a name with a null character, for one
        raise FileRefused(f"{path}: {what} must be a readable file: {reason}") from error
    if max(status.st_size, len(data)) > most:
        raise FileRefused(
            f"{path}: {what} must have at most {most:,} bytes, not {max(status.st_size, len(data)):,} or more; "
            "name a smaller file"
        )
    return data


class KeyTwice(ValueError):
    """A key that an object of JSON text has twice, so that readers may take either value."""


def read_json(text: str) -> Any:
    """The content of JSON text; raises as json.loads does, and KeyTwice."""
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise KeyTwice(f"an object must have a key once, not {twice[:40]!r} twice; remove one")
    return content


def _read(descriptor: int, most: int) -> bytes:
    """All bytes, but at most one more than ``most``."""
    parts, left = [], most + 1
    while left:
        part = os.read(descriptor, min(left, 1 << 24))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
