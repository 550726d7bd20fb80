"""A run over every claim under the very same files as an earlier one: what that run looked up is not looked up again.

Looking claims up takes seconds, nearly all of them for building the claims anew and reading their certificates.  What
comes of it is determined by the files of all packages, by Python and the packages that these use, and by the texts in
the store.  So a run that got an answer to every claim puts the answers into the store, under the digest of all of the
former and with digests of the latter; a run that finds both unchanged takes them from there.  Any other byte in any
file of the packages, a comment or a blank included, makes it look up everything as before.

A stale answer would be the worst mistake, and one can arise only when a run is remembered: if the code that it ran was
not that of the files.  Therefore a run is remembered only where all of this holds (:func:`remember`):

* the process took its digest before it loaded what claims are made of, and the files are the same ones at its end;
* no file was changed within MARGIN seconds before the process began, or since;
* no compiled file of Python's cache may be of an older source, which Python judges by whole seconds and sizes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from reports.outcomes import ProofOutcome
from reports.store import CERTIFICATE, COUNTEREXAMPLE, ProofStore, StoreError

__all__ = ["MARGIN", "Files", "files_before_claims", "files_now", "recall", "remember", "steady", "unchanged"]

MARGIN = 2.0
"""Seconds; what clocks of file systems and of the machine may differ by."""

_PACKAGES = (
    "ila_lang", "ir_semantics", "accel_models", "smt_encodings", "bmc", "chc", "reports", "rewrites", "ilaverify",
)  # fmt: skip
_CLAIMS = ("ir_semantics", "accel_models", "bmc", "chc", "rewrites")
"""No claim is built, and none looked up, before one of these is loaded."""

_USED = ("cvc5", "numpy", "pysmt", "z3-solver")
_KINDS = {"PROVED": CERTIFICATE, "REFUTED": COUNTEREXAMPLE}


@dataclass(frozen=True)
class Files:
    """All files of the packages at one moment.

    ``digest`` (SHA-256) is of their names and bytes, and of what else decides what the program does; ``marks`` are,
    for each file, its path, device, inode, size, and times of change in nanoseconds.
    """

    digest: str
    marks: tuple[tuple[str, int, int, int, int, int], ...]


def files_before_claims() -> Files | None:
    """The files, if this process has loaded nothing yet that claims are made of; None where it has."""
    if any(name in sys.modules for name in _CLAIMS):
        return None
    return files_now()


def files_now() -> Files | None:
    """The files as they are; None where they are not found as files, or a package that they use is not."""
    try:
        versions = [f"{name} {version(name)}" for name in _USED]
    except PackageNotFoundError:
        return None
    found = hashlib.sha256()
    runs = [sys.version, sys.implementation.name, sys.platform, platform.machine(), repr(sys.flags), *versions]
    found.update(json.dumps(runs).encode())
    marks = []
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)  # without loading it
        if spec is None or not spec.has_location or spec.origin is None:
            return None
        root = Path(spec.origin).parent
        for path in _files(root):
            data, status = path.read_bytes(), path.stat()
            name = f"{package}/{path.relative_to(root).as_posix()}"
            found.update(f"{json.dumps(name)} {len(data)}\n".encode() + data)
            times = status.st_mtime_ns, status.st_ctime_ns
            marks.append((str(path), status.st_dev, status.st_ino, status.st_size, *times))
    return Files(found.hexdigest(), tuple(marks))


def _files(root: Path) -> Iterator[Path]:
    """All files below a folder, in a fixed order; without Python's cache, which is made from them."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (Path(folder) / name for name in sorted(names))


def steady(files: Files, began: float) -> bool:
    """Whether code that was loaded since ``began`` (seconds since the epoch) must be that of the files."""
    before = int((began - MARGIN) * 1e9)
    for path, _, _, size, changed, touched in files.marks:
        if max(changed, touched) >= before:
            return False
        if path.endswith(".py") and _may_be_outdated(path, size, changed // 10**9):
            return False
    return True


def _may_be_outdated(path: str, size: int, second: int) -> bool:
    """Whether Python may load a compiled file that was made from other bytes than the source has.

    Its header has the second and the size of the source, and where both are right it is loaded (PEP 552).  If it was
    made in that very second, the source may have changed once more in it.
    """
    if sys.implementation.cache_tag is None:
        return False  # there is no cache
    compiled = Path(importlib.util.cache_from_source(path))
    try:
        made = compiled.stat().st_mtime
        with compiled.open("rb") as file:
            header = file.read(16)
    except FileNotFoundError:
        return False
    if len(header) < 16 or header[:4] != importlib.util.MAGIC_NUMBER:
        return False  # not loaded
    flags, *source = (int.from_bytes(header[k : k + 4], "little") for k in (4, 8, 12))
    if flags:
        return flags != 0b11  # by the source's digest: 0b01 says that it is not to be compared
    return source == [second & 0xFFFFFFFF, size & 0xFFFFFFFF] and made < second + 1


def _began() -> float | None:
    """When this process began, in seconds since the epoch; None where the system does not say."""
    try:
        text = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
        ticks = int(text.rpartition(")")[2].split()[19])  # field 22, starttime: proc(5)
        up = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return time.time() - (up - ticks / os.sysconf("SC_CLK_TCK"))


def recall(store: ProofStore, files: Files) -> list[ProofOutcome] | None:
    """The outcomes of all claims, as a run under the same files looked them up; None where there are none that stand.

    Every certificate and counterexample must still be in the store, byte for byte.  What is wrong is not told here: the
    claims are then looked up one by one, which tells it.
    """
    try:
        text = store.run_under(files.digest)
        claims = [] if text is None else json.loads(text)
        found = store.texts([key for _, key, _ in claims])
        outcomes = []
        for content, key, digest in claims:
            outcome = ProofOutcome.from_json(content)
            kind, document = found[key]
            if kind != _KINDS[outcome.status] or hashlib.sha256(document.encode()).hexdigest() != digest:
                return None
            outcomes.append(replace(outcome, document=document, from_store=True, seconds=0.0))
    except (StoreError, ValueError, TypeError, KeyError):
        return None
    return outcomes or None


def unchanged(files: Files) -> bool:
    """Whether the files are still those of :func:`files_before_claims`, and no other ones can have been loaded."""
    began = _began()
    return began is not None and steady(files, began) and files_now() == files


def remember(store: ProofStore, files: Files, outcomes: Sequence[ProofOutcome]) -> bool:
    """Puts outcomes of all claims into the store for :func:`recall`; whether that was done.

    ``outcomes`` must be in the catalogue's order and all have come out of the store, each under the ``key`` that the
    claim has; ``files`` are those of :func:`files_before_claims`.  Raises StoreError as the store does.
    """
    if (
        not unchanged(files)
        or not outcomes
        or not all(o.from_store and o.key and o.document and o.status in _KINDS for o in outcomes)
    ):
        return False
    claims = [
        [replace(o, document="").to_json(), o.key, hashlib.sha256(o.document.encode()).hexdigest()] for o in outcomes
    ]
    store.put_run(files.digest, json.dumps(claims))
    return True
