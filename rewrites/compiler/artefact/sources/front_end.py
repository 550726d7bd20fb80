"""The door for front ends: what reads models of one format, under the entry-point group ``ilaverify.frontends``.

A front end is trusted as its package is: it defines what a file means.  A compiled model names
it and keeps the file, which is read again when the model is checked.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ila_lang.extensions import Door, ExtensionError
from ir_semantics.graph.ir import Graph
from ir_semantics.graph.types import Array
from rewrites.compiler.artefact.arrays import Data, npz_bytes
from rewrites.compiler.artefact.errors import ArtefactError

__all__ = ["CONSTANTS", "FRONT_ENDS", "FrontEnd", "Source", "front_end_of"]

CONSTANTS = "constants.npz"


@dataclass(frozen=True, eq=False)
class Source:
    """A model's file as it is kept.

    A subclass may keep large tensors elsewhere: among ``tensors``, by digest, which are in a ``constants.npz`` next to
    the file.  For a source that was read, ``data`` are the bytes of that.
    """

    model: bytes = field(repr=False)
    tensors: Mapping[str, Array] = field(default_factory=dict, repr=False)
    data: Data = field(default=b"", repr=False)

    def placed(self, data: Data) -> bytes:
        """The file for a ``constants.npz`` that has all tensors; raises ArtefactError where that cannot be."""
        return self.model

    def as_onnx(self) -> bytes:
        """The model in ONNX, for other runtimes; raises ArtefactError where it was none."""
        raise ArtefactError("to run in a runtime of ONNX, the model must be one of ONNX; take the reference host")

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        """The model as a file of this name, with its data next to it, in a directory of its own."""
        data = self.data or npz_bytes(self.tensors)
        with tempfile.TemporaryDirectory(prefix="ilaverify-") as folder:
            path = Path(folder) / name
            path.write_bytes(self.placed(data))
            (Path(folder) / CONSTANTS).write_bytes(data)
            yield path


@dataclass(frozen=True)
class FrontEnd:
    """The reader of models in files with some ``suffixes``; files in compiled models have the first.

    ``read(path, dimensions)`` gives the graph, whose symbolic extents are bound by name, and the source; it raises
    GraphError where the file is no such model.  ``kept`` is the source from what a compiled model holds: its file, the
    arrays by digest and the bytes of ``constants.npz``.  ``packages`` are distributions whose versions are recorded.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, Mapping[str, int]], tuple[Graph, Source]]
    kept: Callable[[bytes, Mapping[str, Array], Data], Source] = Source
    packages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.suffixes or not all(re.fullmatch(r"\.[a-z0-9]{1,16}", suffix) for suffix in self.suffixes):
            raise ValueError(f"suffixes of a front end must be like .onnx, not {self.suffixes!r:.60}")

    @property
    def file_name(self) -> str:
        """The name of the model's file in a compiled model."""
        return f"source{self.suffixes[0]}"

    def read_again(self, source: Source, dimensions: Mapping[str, int]) -> Graph:
        """The graph of a stored model."""
        with source.file(self.file_name) as path:
            return self.read(path, dimensions)[0]


FRONT_ENDS: Final = Door("ilaverify.frontends", FrontEnd)
"""All front ends that are installed."""


def front_end_of(path: Path) -> FrontEnd:
    """The front end for a file, by its suffix; raises ArtefactError for none, ExtensionError for more than one."""
    known = {suffix: f.name for f in FRONT_ENDS.all().values() for suffix in f.suffixes}
    readers = [f for f in FRONT_ENDS.all().values() if path.suffix.lower() in f.suffixes]
    if not readers:
        suffixes = ", ".join(f"{suffix} ({name})" for suffix, name in known.items())
        raise ArtefactError(f"a model must be a file with one of the suffixes {suffixes}, not {path.suffix!r:.30}")
    if len(readers) > 1:
        both = " and ".join(f"{f.name} of {FRONT_ENDS.origin(f.name)}" for f in readers)
        raise ExtensionError(f"files {path.suffix} are read by {both}; remove one")
    return readers[0]
