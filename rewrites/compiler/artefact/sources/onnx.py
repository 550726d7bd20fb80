"""Models in ONNX: the model that was compiled, with its large tensors among the constants of the artefact.

``source.onnx`` names them as ONNX names external data: by file, offset and length.  So every array is stored once, and
other tools can read the model in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ir_semantics.graph.ir import Graph, digest_of
from ir_semantics.graph.types import Array
from rewrites.compiler.artefact.arrays import Data, places_of
from rewrites.compiler.artefact.errors import ArtefactError

from .front_end import CONSTANTS, FrontEnd, Source

if TYPE_CHECKING:
    from onnx import ModelProto

SOURCE = "source.onnx"
LEAST_BYTES = 1024
"""Smaller tensors stay in the model: naming them takes about a hundred bytes."""


class OnnxSource(Source):
    """A model whose large tensors are elsewhere.

    One that was read from an artefact names its tensors by offset in ``constants.npz``, one not yet written by digest.
    """

    def placed(self, data: Data) -> bytes:
        """The model for a ``constants.npz`` that has all its tensors.

        Raises ArtefactError where it names tensors in another way than artefacts do.
        """
        import onnx

        if self.data and self.data == data:
            return self.model
        known = {str(place): name for name, place in places_of(self.data).items()} if self.data else {}
        places, model = places_of(data), onnx.ModelProto.FromString(self.model)
        for tensor in model.graph.initializer:
            if tensor.data_location != onnx.TensorProto.EXTERNAL:
                continue
            entries = {entry.key: entry.value for entry in tensor.external_data}
            name = known.get(entries.get("offset", ""), entries.get("checksum", ""))
            if name not in places:
                raise ArtefactError(f"{SOURCE}: the data of the tensor {tensor.name!r:.60} must be in {CONSTANTS}")
            del tensor.external_data[:]
            reference = {"location": CONSTANTS, "offset": places[name], "length": self.tensors[name].nbytes}
            for key, value in reference.items():
                tensor.external_data.add(key=key, value=str(value))
        return bytes(model.SerializeToString(deterministic=True))

    def as_onnx(self) -> bytes:
        """The model with its data inside; raises GraphError where it names other files, or invalid places."""
        from ir_semantics.onnx import read_model

        with self.file(SOURCE) as path:
            model = read_model(path)
        return bytes(model.SerializeToString(deterministic=True))


def _read(path: Path, dimensions: Mapping[str, int]) -> tuple[Graph, Source]:
    from ir_semantics.onnx import import_model, read_model

    model = read_model(path)
    graph = import_model(model, dimensions=dimensions)
    return graph, _source_of(model, graph.constants)


def _source_of(model: ModelProto, constants: Mapping[str, Array]) -> OnnxSource:
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
            continue  # element types that NumPy lacks
        digest = digest_of(array)
        tensors[digest] = constants[digest] if digest in constants else np.array(array)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=CONSTANTS)
        tensor.external_data.add(key="checksum", value=digest)
    return OnnxSource(model.SerializeToString(deterministic=True), tensors)


_PLAIN = frozenset({"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"})

FRONT_END = FrontEnd("onnx", (".onnx",), _read, OnnxSource, ("onnx",))
