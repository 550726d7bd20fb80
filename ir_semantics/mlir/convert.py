"""Files in any form: what is not in MLIR's generic form goes through a program ``mlir-opt`` first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from ila_lang.text.files import read_at_most

from .ir import Module, Position
from .reader import LONGEST_TEXT, CustomForm, read
from .scanner import MlirError

SECONDS = 120.0
"""Time that ``mlir-opt`` has for one file."""
MISSING = (
    "an operation must be in the generic form, because no mlir-opt was found to convert it; install one "
    "(Debian: mlir-19-tools or mlir-22-tools; pip: the extra mlir of ilaverify), or name it, or write the file with "
    "mlir-opt --mlir-print-op-generic"
)
ORIGIN = "<stdin>"
"""The name that ``mlir-opt`` gives its input in positions."""
_COMPLAINT = re.compile(rf"^{ORIGIN}:(\d+):(\d+): error: (.*)$", re.MULTILINE)
_OF_OTHER_OPERATIONS = re.compile("unable to schedule pass|did you intend to nest")
_VERSION = re.compile(r"version (\S+)")
_NUMBERED = re.compile(r"mlir-opt-(\d+)\Z")


class ConverterError(RuntimeError):
    """``mlir-opt`` cannot be run, or did not end as it should."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was read: its text in the generic form, what that says, and the release of its converter."""

    text: str
    module: Module
    release: str | None


@dataclass(frozen=True)
class Converter:
    """A program ``mlir-opt``."""

    program: str

    @cached_property
    def release(self) -> str:
        """Its version as it tells it, such as ``mlir-opt 22.1.8``."""
        match = _VERSION.search(self.run(["--version"], ""))
        if match is None:
            raise ConverterError(f"{self.program} --version must name a version")
        return f"mlir-opt {match[1]}"

    def generic(self, text: str, pipeline: str = "") -> Source:
        """The text in the generic form, after a pass or several, such as ``canonicalize{top-down=1},cse``.

        Passes that do not run on modules are run on functions.  Positions are those of ``text``.  Raises MlirError for
        what ``mlir-opt`` complains about, and ConverterError where it fails in other ways.
        """
        options = ["--mlir-print-op-generic", "--mlir-print-debuginfo", "--allow-unregistered-dialect"]
        if not pipeline:
            converted = self.run(options, text)
        else:
            try:
                converted = self.run([*options, f"--pass-pipeline=builtin.module({pipeline})"], text)
            except ConverterError as error:
                if not _OF_OTHER_OPERATIONS.search(str(error)):
                    raise
                converted = self.run([*options, f"--pass-pipeline=builtin.module(func.func({pipeline}))"], text)
        return Source(converted, read(converted, ORIGIN), self.release)

    def run(self, options: Sequence[str], text: str) -> str:
        """What it prints with these options for a text; raises as :meth:`generic` does."""
        try:
            run = subprocess.run(
                [self.program, *options],
                input=text.encode("utf-8", "surrogateescape"),
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ConverterError(f"{self.program} must end within {SECONDS:g} seconds; it was stopped") from None
        except OSError as error:
            raise ConverterError(f"{self.program} must be a program that can be run: {error.strerror}") from None
        if run.returncode == 0:
            return run.stdout.decode("utf-8", "surrogateescape")
        complaints = run.stderr.decode("utf-8", "replace")
        if match := _COMPLAINT.search(complaints):
            complaint = f"{self.program}: {match[3].rstrip()}"
            if match[1] == "0":  # of no place
                raise ConverterError(complaint)
            raise MlirError(Position(int(match[1]), int(match[2])), complaint)
        first = next(iter(complaints.splitlines()), "")
        how = f"exit code {run.returncode}" if run.returncode > 0 else f"signal {-run.returncode}"
        raise ConverterError(f"{self.program} ended with {how}: {first}")


@lru_cache
def find_converter(name: str | None = None) -> Converter | None:
    """The program of this name or path; without one, the first ``mlir-opt`` there is, or else None.

    It is looked for on the path, then where the extra ``mlir`` installs it, then on the path with a release's number,
    such as ``mlir-opt-22``, the newest first.  Raises ConverterError if a named one is not there.
    """
    if name is not None:
        program = shutil.which(name)
        if program is None:
            raise ConverterError(
                f"{name} must be a program that can be run; name an mlir-opt, on the path or with its folder"
            )
        return Converter(program)
    installed = shutil.which("mlir-opt", path=str(Path(sysconfig.get_path("platlib"), "mlir", "bin")))
    program = shutil.which("mlir-opt") or installed or next(_numbered(), None)
    return None if program is None else Converter(program)


def _numbered() -> Iterator[str]:
    names = {
        path.name: int(match[1])
        for folder in os.get_exec_path()
        for path in (Path(folder).glob("mlir-opt-*") if Path(folder).is_dir() else ())
        if (match := _NUMBERED.match(path.name))
    }
    for name in sorted(names, key=names.__getitem__, reverse=True):
        if program := shutil.which(name):
            yield program


def load(path: Path, converter: str | None = None) -> Source:
    """The file at ``path``, converted if it is not in the generic form, by the ``mlir-opt`` that is named if one is.

    Raises MlirError for what is wrong with the file or if there is nothing to convert it, ConverterError for what is
    wrong with the converter, and FileRefused if the file cannot be read or is too large.
    """
    text = read_at_most(path, "an MLIR file", LONGEST_TEXT).decode("utf-8", "surrogateescape")
    try:
        return Source(text, read(text), None)
    except CustomForm as error:
        program = find_converter(converter)
        if program is None:
            raise MlirError(error.position, MISSING) from None
    try:
        return program.generic(text)
    except ConverterError as error:
        raise ConverterError(f"{path}: {error}") from error
