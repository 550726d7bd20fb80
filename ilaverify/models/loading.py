"""Reading a compiled model to run it; no solver is loaded for that."""

from __future__ import annotations

from pathlib import Path

from ilaverify.catalogue import backends
from ilaverify.errors import UsageError
from rewrites.compiler.artefact.contents import check_contents
from rewrites.compiler.artefact.errors import ArtefactError
from rewrites.compiler.artefact.model import Compiled, read_compiled


def load_compiled(directory: Path) -> Compiled:
    """The compiled model in a directory; raises UsageError where it is damaged, or not what compile writes."""
    try:
        compiled = read_compiled(directory, backends())
    except ArtefactError as error:
        raise UsageError(str(error)) from error
    wrong = [f"{check.what}: {problem}" for check in check_contents(compiled) for problem in check.problems]
    if wrong:
        raise UsageError(f"{directory} must be a compiled model as compile writes it: {'; '.join(wrong)}")
    return compiled
