"""Object code on disk: in a directory that belongs to the user alone, and believed only where all of it is intact.

What is run was compiled here from the same text, by the same compiler, for the same processor: the key of an entry is a
digest of all three, and the entry begins with a digest of the key and the code.  An entry that is damaged, of another
key or of another user is as good as none.  Where no private directory can be made, nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from functools import reduce
from operator import or_
from pathlib import Path

#: So many entries are kept; the oldest ones go.
MOST_ENTRIES = 512
SUFFIX = ".o"
#: No entry has more bytes; the largest of our models has less than a hundredth.
MOST_BYTES = 1 << 26


def key(target: str, text: str) -> str:
    """The key of a module's code for a target."""
    return hashlib.sha256(f"{target}\0{text}".encode()).hexdigest()


def directory() -> Path | None:
    """The directory of entries, made if needed; None where there is no private one.

    It is ``ilaverify/native`` in ``XDG_CACHE_HOME``, or in ``.cache`` of the home directory.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"  # the XDG rules ignore relative paths
        path = root / "ilaverify" / "native"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path if _is_private(path.lstat()) else None
    except (OSError, RuntimeError):
        return None


def _is_private(status: os.stat_result) -> bool:
    """Whether a directory is one, is ours, and others can do nothing in it."""
    is_ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return stat.S_ISDIR(status.st_mode) and is_ours and not status.st_mode & 0o077


def find(key: str) -> bytes | None:
    """The code of an entry that is intact."""
    place = directory()
    if place is None:
        return None
    try:
        flags = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK"))  # a pipe would never end
        file = os.open(place / (key + SUFFIX), reduce(or_, flags, os.O_RDONLY))
        with open(file, "rb") as opened:
            status = os.fstat(opened.fileno())
            is_foreign = hasattr(os, "getuid") and status.st_uid != os.getuid()
            if not stat.S_ISREG(status.st_mode) or is_foreign or status.st_size > MOST_BYTES:
                return None
            content = opened.read()
    except OSError:
        return None
    return content[32:] if len(content) > 32 and content[:32] == _seal(key, content[32:]) else None


def keep(key: str, code: bytes) -> None:
    """Makes an entry, as a whole or not at all."""
    place = directory()
    if place is None:
        return
    with suppress(OSError):
        file, name = tempfile.mkstemp(dir=place)
        try:
            with open(file, "wb") as opened:
                opened.write(_seal(key, code) + code)
            os.replace(name, place / (key + SUFFIX))
        except OSError:
            os.unlink(name)
            raise
        _forget_oldest(place)


def _seal(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + code).digest()


def _forget_oldest(place: Path) -> None:
    entries = [e for e in os.scandir(place) if e.name.endswith(SUFFIX)]
    if len(entries) <= MOST_ENTRIES:
        return
    entries.sort(key=lambda e: e.stat(follow_symlinks=False).st_mtime)
    for entry in entries[: len(entries) - MOST_ENTRIES * 3 // 4]:
        with suppress(OSError):
            os.unlink(entry.path)
