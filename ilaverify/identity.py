"""What a proof depends on besides the claim: the prover's version, the code of its method, the solvers."""

from __future__ import annotations

import gc
import hashlib
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ila_lang.extensions import modules_in_use
from reports.certificate import certificate_of, certificate_text, written_by
from reports.method_code import PACKAGES, installed
from reports.subjects import Subject
from rewrites.claims.method import METHODS
from smt_encodings.claims import Verdict
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

from .modules import SUFFIX
from .version import VERSION

Stamp = Mapping[Path, tuple[int, int]]
"""Times of change (in nanoseconds) and sizes of files."""


def prover_identity(subject: Subject, method: str = "") -> dict[str, str]:
    """Versions, and a digest of the code that a proof of ``subject`` by a method consists of, by default by its own.

    Of a method of another package, ``package`` is the distribution with its version, or the module.
    """
    method = method or subject.method
    guest = METHODS.guest(method) if subject.kind == "mapping" else ""
    return ({"package": guest} if guest else {}) | {
        "tool": VERSION,
        "method": installed().digest(_modules(subject, method)),
        "solvers": f"{solver_z3.version()}, {solver_cvc5.version()}",
        "pysmt": version("pysmt"),
    }


def method_files(subject: Subject) -> list[Path]:
    """The files of that code."""
    paths = (installed().path(name) for name in _modules(subject, subject.method))
    return sorted(path for path in paths if path is not None)


def _modules(subject: Subject, method: str) -> frozenset[str]:
    return installed().of_method(subject.provers(method), type(subject))


def read_provers() -> frozenset[str]:
    """Reads the code of all methods, once for this process and those that it forks, and returns their modules."""
    code = installed()
    gc.disable()  # to look for garbage in syntax trees, which leave none, takes a third of the time
    try:
        methods = [function.__module__ for method in METHODS.all().values() for function in method.functions]
        modules = code.modules("rewrites.claims.subjects.mapping", "rewrites.claims.registry", *methods)
        code.digest(modules)
    finally:
        gc.enable()
    return modules


def certified(subject: Subject, verdict: Verdict, parameters: Mapping[str, Any]) -> str:
    """The text of the certificate of a proof that this process has made; raises CertificateError for other verdicts."""
    prover = prover_identity(subject, verdict.method if subject.kind == "mapping" else "")
    return certificate_text(certificate_of(subject.semantics(), verdict, parameters, written_by(prover)))


def sources_stamp() -> Stamp:
    """The stamp of all source files of our packages."""
    return {path: (status.st_mtime_ns, status.st_size) for path in _files() if (status := path.stat())}


def is_unchanged(stamp: Stamp) -> bool:
    """Whether the files of a stamp are as they were."""
    try:
        return all((now.st_mtime_ns, now.st_size) == was for path, was in stamp.items() if (now := os.stat(path)))
    except OSError:
        return False


def environment() -> dict[str, str]:
    """What machines that work for one run must have in common: versions, and digests of the code of packages in use."""
    points = entry_points()
    ours = [point for group in points.groups if group.startswith("ilaverify.") for point in points.select(group=group)]
    files = [name for name in modules_in_use() if name.endswith(SUFFIX)]
    modules = [name for name in modules_in_use() if name not in files]
    packages = {name.partition(".")[0] for name in (*(point.module for point in ours), *modules)}
    return {
        "ilaverify": f"{VERSION}, code {_code(PACKAGES)}",
        "Python": platform.python_version(),
        "solvers": f"{solver_z3.version()}, {solver_cvc5.version()}",
        "pySMT": version("pysmt"),
        "NumPy": version("numpy"),
        **{f"package {name}": f"code {_code([name])}" for name in sorted(packages - set(PACKAGES))},
        **{f"file {name}": hashlib.sha256(Path(name).read_bytes()).hexdigest()[:16] for name in files},
    }


def _code(packages: Iterable[str]) -> str:
    """A digest of the source files of packages, or of modules that are a file."""
    digest = hashlib.sha256()
    for name in packages:
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None, f"{name} is in use"
        file = Path(spec.origin)
        for path in sorted(file.parent.rglob("*.py")) if spec.submodule_search_locations else [file]:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{name} {path.relative_to(file.parent)} {content}\n".encode())
    return digest.hexdigest()[:16]


def _files() -> Iterator[Path]:
    roots = (installed().path(package) for package in PACKAGES)
    return (path for root in roots if root is not None for path in root.parent.rglob("*.py"))
