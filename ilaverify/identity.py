"""What a proof depends on besides the claim: the prover's version, the code of its method, the solvers."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

from reports.method_code import PACKAGES, installed
from reports.subjects import Subject
from rewrites.claims.method import METHODS
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

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


def read_provers() -> None:
    """Reads the code of all methods, once for this process and those that it forks."""
    code = installed()
    gc.disable()  # to look for garbage in syntax trees, which leave none, takes a third of the time
    try:
        methods = [function.__module__ for method in METHODS.all().values() for function in method.functions]
        code.digest(code.modules("rewrites.claims.subjects.mapping", "rewrites.claims.registry", *methods))
    finally:
        gc.enable()


def sources_stamp() -> Stamp:
    """The stamp of all source files of our packages."""
    return {path: (status.st_mtime_ns, status.st_size) for path in _files() if (status := path.stat())}


def _files() -> Iterator[Path]:
    roots = (installed().path(package) for package in PACKAGES)
    return (path for root in roots if root is not None for path in root.parent.rglob("*.py"))
