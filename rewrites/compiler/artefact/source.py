"""The model that was compiled, as ONNX, with its large tensors among the constants of the artefact.

``source.onnx`` names them as ONNX names external data: by file, offset and length.  So every array is stored once, and
other tools can read the model where it lies.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ir_semantics.graph.ir import digest_of
from ir_semantics.graph.types import Array

from .arrays import Data, npz_bytes, places_of
from .errors import ArtefactError

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["CONSTANTS", "SOURCE", "Source", "source_of"]

SOURCE = "source.onnx"
CONSTANTS = "constants.npz"
LEAST_BYTES = 1024
"""Smaller tensors stay in the model: naming them takes about a hundred bytes."""


@dataclass(frozen=True, eq=False)
class Source:
    """A model whose large tensors are elsewhere: among ``tensors``, by digest.

    Where it was read, ``data`` are the bytes of ``constants.npz``, and the model says where in them its tensors are;
    until it is written it says their digests.
    """

    model: bytes = field(repr=False)
    tensors: Mapping[str, Array] = field(repr=False)
    data: Data = field(default=b"", repr=False)

    def placed(self, data: Data) -> bytes:
        """The model for a ``constants.npz`` that has all its tensors.

        Raises ArtefactError where it names tensors otherwise than a model that was written.
        """
        import onnx

        if self.data and self.data == data:
            return self.model
        known = {str(place): name for name, place in places_of(self.data).items()} if self.data else {}
        places, model = places_of(data), onnx.ModelProto.FromString(self.model)
        for tensor in model.graph.initializer:
            if tensor.data_location != onnx.TensorProto.EXTERNAL:
                continue
            given = {entry.key: entry.value for entry in tensor.external_data}
            name = known.get(given.get("offset", ""), given.get("checksum", ""))
            if name not in places:
                raise ArtefactError(f"{SOURCE}: the data of the tensor {tensor.name!r:.60} must be in {CONSTANTS}")
            del tensor.external_data[:]
            told = {"location": CONSTANTS, "offset": places[name], "length": self.tensors[name].nbytes}
            for key, value in told.items():
                tensor.external_data.add(key=key, value=str(value))
        return bytes(model.SerializeToString(deterministic=True))

    @contextmanager
    def file(self) -> Iterator[Path]:
        """The model as a file with its data beside it, in a directory of its own."""
        data = self.data or npz_bytes(self.tensors)
        with tempfile.TemporaryDirectory(prefix="ilaverify-") as folder:
            path = Path(folder) / SOURCE
            path.write_bytes(self.placed(data))
            (Path(folder) / CONSTANTS).write_bytes(data)
            yield path

    def whole(self) -> bytes:
        """The model with its data inside; raises GraphError where it names other files, or places that are none."""
        from ir_semantics.onnx import read_model

        with self.file() as path:
            model = read_model(path)
        return bytes(model.SerializeToString(deterministic=True))


def source_of(model: ModelProto, constants: Mapping[str, Array]) -> Source:
    """A model as a source, whose data are inside it; they are taken out of ``model``.

    Arrays that are among ``constants``, by digest, are these.
    """
    import onnx
    from onnx import numpy_helper

    tensors: dict[str, Array] = {}
    for tensor in model.graph.initializer:
        if not tensor.HasField("raw_data") or len(tensor.raw_data) < LEAST_BYTES:
            continue
        array = np.asarray(numpy_helper.to_array(tensor))
        if array.nbytes != len(tensor.raw_data) or array.dtype.str[1:] not in _PLAIN:
            continue  # element types that NumPy has not
        digest = digest_of(array)
        tensors[digest] = constants[digest] if digest in constants else np.array(array)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=CONSTANTS)
        tensor.external_data.add(key="checksum", value=digest)
    return Source(model.SerializeToString(deterministic=True), tensors)


_PLAIN = frozenset({"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"})
