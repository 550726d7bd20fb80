"""What a proof depends on beside what is claimed: the prover's version, its source files, the solvers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import accel_models
import bmc
import chc
import ila_lang
import ir_semantics
import reports
import rewrites
import smt_encodings
from smt_encodings import solver_cvc5, solver_z3

from . import __version__

__all__ = ["prover_identities", "prover_identity", "sources_stamp", "written_by"]

_PROVERS = (ila_lang, smt_encodings, bmc, chc)
_OTHERS = (ir_semantics, accel_models, rewrites)


def prover_identity(kind: str = "mapping") -> dict[str, str]:
    """Versions, and a digest of the source files of whatever proves claims of a ``kind``.

    For mappings these are provers and encodings: models and mappings have digests of their own.  Everything else is
    proved by modules of ``rewrites``, which may use anything.
    """
    return _identity(kind, {})


def prover_identities(kinds: Iterable[str]) -> dict[str, dict[str, str]]:
    """That of each kind, from one reading of the files."""
    read: dict[Path, bytes] = {}
    return {kind: _identity(kind, read) for kind in kinds}


def _identity(kind: str, read: dict[Path, bytes]) -> dict[str, str]:
    sources = hashlib.sha256()
    for path in _files(kind):
        data = read.get(path)
        if data is None:
            data = read[path] = path.read_bytes()
        sources.update(f"{path.parent.name}/{path.name} {len(data)}\n".encode() + data)
    return {
        "tool": __version__,
        "sources": sources.hexdigest(),
        "solvers": f"{solver_z3.version()}, {solver_cvc5.version()}",
        "pysmt": version("pysmt"),
    }


def written_by(identity: Mapping[str, str]) -> str:
    """What a certificate names as its tool where a prover with this identity made it: version and source files."""
    return f"ilaverify {identity['tool']}, sources {identity['sources'][:16]}"


def sources_stamp() -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of all source files: another stamp is a reason to ask for the identity again."""
    found = []
    for path in _files("rule"):
        status = path.stat()
        found.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(found)


def _files(kind: str) -> Iterable[Path]:
    here = Path(__file__).parent
    yield from (here / "verify.py", here / "mapping_subject.py", Path(str(reports.__file__)).parent / "certificate.py")
    packages: tuple[ModuleType, ...] = _PROVERS if kind == "mapping" else (*_PROVERS, *_OTHERS)
    for package in packages:
        yield from sorted(Path(str(package.__file__)).parent.rglob("*.py"))
