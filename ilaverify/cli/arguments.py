"""Values of options that several commands share."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ilaverify.errors import UsageError
from ilaverify.places import require_apart

from .memory import LEAST_MEMORY

if TYPE_CHECKING:
    from ilaverify.proving.cluster import Cluster

MOST_SECONDS = 10**6
COUNT_DIGITS, SEED_DIGITS = 7, 40


def seconds(text: str) -> float:
    """A positive number of seconds; raises argparse.ArgumentTypeError on anything else."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number of seconds, not '{_short(text)}'")
    if value >= MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"must be fewer than {MOST_SECONDS} seconds, not '{_short(text)}'")
    return value


def count(text: str) -> int:
    """A positive integer; raises argparse.ArgumentTypeError on anything else."""
    digits = text.lstrip("0")
    if not digits or not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"must be a positive integer, not '{_short(text)}'")
    if len(digits) > COUNT_DIGITS:
        raise argparse.ArgumentTypeError(f"must be at most {10**COUNT_DIGITS - 1}, not '{_short(text)}'")
    return int(digits)


def megabytes(text: str) -> int:
    """A limit of address space that a process can begin with; raises argparse.ArgumentTypeError on anything else."""
    value = count(text)
    if value < LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"must be at least {LEAST_MEMORY} MB, which loading takes, not {value} MB")
    return value


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Adds the option that gives work to other machines."""
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="work on the Dask cluster with this scheduler, not with processes here"
    )


def cluster_of(options: argparse.Namespace) -> AbstractContextManager[Cluster | None]:
    """The connection to the cluster that the options name, if they name one; raises UsageError where there is none."""
    if options.cluster is None:
        return nullcontext()
    from ilaverify.proving.cluster import Cluster
    from ilaverify.proving.workers import MachinesError

    try:
        return Cluster(options.cluster)
    except MachinesError as error:
        raise UsageError(f"--cluster: {error}") from error


def note_large(path: Path) -> None:
    """Says on standard error that a file is read which takes long."""
    if path.is_file() and path.stat().st_size >= _LARGE:
        size = path.stat().st_size >> 20
        print(
            f"ilaverify: reading {path}, {size} MB, which takes about a minute for each 200 MB",
            file=sys.stderr,
            flush=True,
        )


def seed(text: str) -> int:
    """A seed of random numbers: a natural number, 0 too; raises argparse.ArgumentTypeError on anything else."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"must be a seed, an integer of 0 or more, not '{_short(text)}'")
    if len(text) > SEED_DIGITS:
        raise argparse.ArgumentTypeError(f"must be a seed of at most {SEED_DIGITS} digits, not '{_short(text)}'")
    return int(text)


def place(text: str) -> Path:
    """Where a file or directory is to be written; raises argparse.ArgumentTypeError on the empty text."""
    if not text:
        raise argparse.ArgumentTypeError("must name a place to write to, not ''; the working directory is .")
    return Path(text)


def replaced(text: str) -> Path:
    """Likewise, where a directory of the kind that is written is replaced."""
    return place(text)


def source(text: str) -> Path:
    """What is to be read; raises argparse.ArgumentTypeError on the empty text."""
    if not text:
        raise argparse.ArgumentTypeError("must name what is read, not ''; the working directory is .")
    return Path(text)


def require_paths_apart(actions: Sequence[argparse.Action], options: argparse.Namespace) -> None:
    """Refuses what would overwrite its own input; the types of arguments say which are read, and which written."""
    paths: dict[object, dict[str, Path]] = {source: {}, place: {}, replaced: {}}
    for action in actions:
        value = getattr(options, action.dest, None)
        name = "/".join(action.option_strings) or str(action.metavar)
        if action.type in paths and value is not None:
            values = value if isinstance(value, list) else [value]
            paths[action.type].update({f"{name} {path}" if len(values) > 1 else name: path for path in values})
    require_apart(*paths.values())


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def require_writable(option: str, path: Path, *, directory: bool = False) -> None:
    """Tries, before work begins, whether a file or directory can be written; raises UsageError where it cannot.

    A block is written where the file will be, or in the nearest directory above that is there, and is gone at once.
    """
    folder = path if directory else path.parent
    try:
        if path.exists() and directory != path.is_dir():
            required, existing = ("directory", "file") if directory else ("file", "directory")
            raise UsageError(f"{option} must name a {required}, not the {existing} {path}")
        if path.exists() and not (path.is_dir() or path.is_file()):
            raise UsageError(f"{option} must name a file, not the device {path}")
        while not folder.exists():
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_BLOCK))
    except OSError as error:
        raise UsageError(
            f"{option}: {path} must be a place that can be written; {folder} cannot: {error.strerror}; "
            "name another place"
        ) from error


def require_store(store: Path) -> None:
    """Likewise for a proof store, which is changed in its place."""
    require_writable("--store", store)
    try:
        if store.exists():
            store.open("ab").close()
    except OSError as error:
        raise UsageError(
            f"--store: {store} must be a file that can be written: {error.strerror}; name another one"
        ) from error


def require_replaceable(option: str, directory: Path) -> None:
    """Likewise for a directory that appears whole, in the place of one that may be there."""
    there = directory.exists()
    require_writable(option, directory.parent if there else directory, directory=there)


_LARGE = 1 << 24
"""Bytes of a file that takes seconds to read, for its text is parsed and written again."""

_BLOCK = 4096
"""Bytes; a file without any may be made on a full disk."""
