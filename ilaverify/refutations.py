"""Files of counterexamples: data to replay, and a device program where there is one."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ila_lang.text.files import FileRefused, read_at_most, read_json
from reports.certificate import MOST_BYTES, write_atomically
from reports.subjects import Refutation, Subject

from .catalogue import OWN_CLAIM, find_subject
from .errors import UsageError

DATA, PROGRAM = "counterexample-data.json", "counterexample.json"


def write_refutation(refutation: Refutation, name: str, directory: Path | None) -> list[Path]:
    """Writes a counterexample to the claim of that name; where there is no directory, to a new temporary one."""
    place = directory if directory is not None else Path(tempfile.mkdtemp(prefix="ilaverify-"))
    files = {PROGRAM: refutation.program, DATA: refutation.document}
    written = [place / f"{name}.{kind}" for kind, text in files.items() if text]
    for path, text in zip(written, filter(None, files.values()), strict=True):
        write_atomically(path, text)
    return written


def is_counterexample(path: Path) -> bool:
    """Whether a file is named as data of a counterexample."""
    return path.name.endswith(f".{DATA}")


def data_of_program(path: Path) -> Path | None:
    """Where the data of a counterexample lie whose program a file is named as; None for a file of another name."""
    name = path.name.removesuffix(f".{PROGRAM}")
    return None if name == path.name else path.with_name(f"{name}.{DATA}")


def replayed_file(path: Path) -> Refutation | str:
    """The refutation that a file's data still are of the claim that it names, or why they are none.

    Raises UsageError where that claim is not known here.
    """
    try:
        text = read_at_most(path, "a counterexample", MOST_BYTES).decode("utf-8")
        content: Any = read_json(text)
    except FileRefused as error:
        return str(error)
    except (ValueError, RecursionError) as error:
        return f"{path}: a counterexample must be JSON text: {error}"
    name = content.get("subject", content.get("mapping")) if isinstance(content, dict) else None
    if not isinstance(name, str):
        return f"{path}: a counterexample must name its claim, as subject or mapping"
    try:
        refutation = _subject(name, content).replayed(text)
    except UsageError as error:
        raise UsageError(f"{path}: {error}; {OWN_CLAIM}") from error
    except ValueError as error:
        return f"{path}: {error}"
    return (
        refutation
        if refutation is not None
        else f"{path}: both sides agree on these data, or the data are outside the claim"
    )


def _subject(name: str, content: Mapping[str, Any]) -> Subject:
    """The claim of a counterexample: one of the catalogue, or that of the programs in the document."""
    if "pair" not in content:
        return find_subject(name)
    from rewrites.claims.subjects.translation import TranslationSubject

    return TranslationSubject.of_counterexample(content)
