"""Values of options that several commands share."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from .errors import UsageError

__all__ = ["count", "require_writable", "seconds"]


def seconds(text: str) -> float:
    """A positive number of seconds; raises argparse.ArgumentTypeError on anything else."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"must be a positive number of seconds, not '{text}'")
    return value


def count(text: str) -> int:
    """A positive integer; raises argparse.ArgumentTypeError on anything else."""
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) < 10**7:
        raise argparse.ArgumentTypeError(f"must be a positive integer, not '{text}'")
    return int(text)


def require_writable(option: str, path: Path, *, directory: bool = False) -> None:
    """Tries, before work begins, whether a file or directory can be written; raises UsageError where it cannot.

    A block is written where the file will be, or in the nearest directory above that is there, and is gone at once.
    """
    folder = path if directory else path.parent
    try:
        if path.exists() and directory != path.is_dir():
            wanted, found = ("directory", "file") if directory else ("file", "directory")
            raise UsageError(f"{option} must name a {wanted}, not the {found} {path}")
        if path.exists() and not (path.is_dir() or path.is_file()):
            raise UsageError(f"{option} must name a file, not the device {path}")
        while not folder.exists():
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_BLOCK))
    except OSError as error:
        raise UsageError(
            f"{option}: {path} must be a place that can be written, and {folder} is none: {error.strerror}; "
            "make room there, or name another place"
        ) from error


_BLOCK = 4096
"""Bytes; a file without any may be made on a full disk."""
