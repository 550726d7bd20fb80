"""Reading untrusted ONNX files: bounded, and from the model's own folder only.

Nothing is written.  Memory is bounded by the size of the files that are read: sizes that a file announces are compared
with the bytes that are there before anything is allocated.
"""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_semantics.graph.types import MOST_ELEMENTS, MOST_RANK, Array, GraphError

from .dtypes import dtype_of, name_of

if TYPE_CHECKING:
    from onnx import AttributeProto, ModelProto, TensorProto

MOST_BYTES = (1 << 31) - 1
"""Bytes of a model with its external data: the most that protocol buffers can hold."""


def read_model(path: str | Path) -> ModelProto:
    """A model with its external data inside; see the module for what is refused.

    Raises GraphError for files that are missing, too large, no ONNX model, or that refer to data outside their folder.
    """
    import onnx
    from google.protobuf.message import DecodeError

    source = Path(path)
    data = _bytes(source, 0, None, f"the model {source}", MOST_BYTES)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise GraphError(f"the model {source} must be an ONNX file; it is cut off or of another format") from error
    if not model.HasField("graph"):
        raise GraphError(f"the model {source} must have a graph; it is empty or of another format")
    left = MOST_BYTES - len(data)
    for tensor in _tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            left -= _load_external(tensor, source.parent, left)
    return model


def _tensors(model: ModelProto) -> list[TensorProto]:
    """Every tensor of a model: initializers and attributes, those of branches and functions included."""
    tensors: list[TensorProto] = []
    graphs, nodes = [model.graph], [n for f in model.functions for n in f.node]
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            tensors += graph.initializer
            nodes += graph.node
            continue
        for attribute in nodes.pop().attribute:
            tensors += [attribute.t] if attribute.HasField("t") else []
            tensors += attribute.tensors
            graphs += [attribute.g] if attribute.HasField("g") else []
            graphs += attribute.graphs
    return tensors


def _load_external(tensor: TensorProto, folder: Path, left: int) -> int:
    """Moves a tensor's external data into it; gives the number of bytes."""
    what = f"the external data of the tensor {tensor.name}"
    place = {entry.key: entry.value for entry in tensor.external_data}
    if set(place) - {"location", "offset", "length", "checksum"} or "location" not in place:
        raise GraphError(f"{what} must be given by location, offset and length, not by {', '.join(place) or 'nothing'}")
    expected = _expected_bytes(tensor)
    offset, length = (_natural(place, key, default, what) for key, default in (("offset", 0), ("length", expected)))
    if length != expected:
        raise GraphError(f"{what} must have {expected} bytes for its type and shape, not {length}; correct the model")
    path = _inside(folder, place["location"], what)
    if path.is_file() and path.stat().st_nlink > 1:
        raise GraphError(f"{what} must be a file with one name, not with hard links, as {path} has; copy it")
    tensor.raw_data = _bytes(path, offset, length, what, left)
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    return length


def _natural(place: dict[str, str], key: str, default: int, what: str) -> int:
    text = place.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise GraphError(f"{what} must have a natural number as its {key}, not {text!r}")
    return int(text)


def _inside(folder: Path, location: str, what: str) -> Path:
    """The path of a file below the folder, reached without leaving it and without symbolic links."""
    relative = PurePosixPath(location)
    if not location or "\\" in location or "\0" in location or relative.is_absolute() or ".." in relative.parts:
        raise GraphError(f"{what} must lie in the model's folder, at a relative path without '..', not at {location!r}")
    path = folder
    for part in relative.parts:
        path = path / part
        if path.is_symlink():
            raise GraphError(f"{what} must not be reached through a symbolic link, as {location!r} is; copy the file")
    return path


def _bytes(path: Path, offset: int, length: int | None, what: str, most: int) -> bytes:
    """Bytes of a regular file; raises GraphError where they are not there or too many."""
    file_of = what if str(path) in what else f"{what}, {path},"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise GraphError(f"{file_of} must be a readable file: {error.strerror}") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise GraphError(f"{file_of} must be a regular file")
    with os.fdopen(descriptor, "rb") as file:
        size = status.st_size - offset if length is None else length
        if size > most:
            raise GraphError(f"{what} must have at most {most} bytes, not {size}; models of 2 GiB are not read")
        if size < 0 or offset + size > status.st_size:
            raise GraphError(f"{what} must lie inside the file {path}: {offset} + {size} bytes of {status.st_size}")
        file.seek(offset)
        data = file.read(size)
    if len(data) != size:
        raise GraphError(
            f"{what} must have {size} bytes, not {len(data)}; the file {path} was cut off while it was read"
        )
    return data


# -- tensors -------------------------------------------------------------------------------------------------


def _shape(tensor: TensorProto, what: str) -> tuple[int, ...]:
    shape = tuple(tensor.dims)
    if len(shape) > MOST_RANK or any(d < 0 for d in shape):
        raise GraphError(f"{what} must have at most {MOST_RANK} axes of natural extents, not {list(shape)[:40]}")
    if math.prod(shape) > MOST_ELEMENTS:
        raise GraphError(
            f"{what} must have at most {MOST_ELEMENTS} elements, not {math.prod(shape)}; use a smaller model"
        )
    return shape


def _expected_bytes(tensor: TensorProto) -> int:
    what = f"the tensor {tensor.name}"
    return math.prod(_shape(tensor, what)) * np.dtype(_dtype(tensor, what)).itemsize


def _dtype(tensor: TensorProto, what: str) -> str:
    dtype = dtype_of(tensor.data_type)
    if dtype is None:
        raise GraphError(
            f"{what} must have elements of a type that the IR has, not {name_of(tensor.data_type)}; convert the model"
        )
    return dtype


# The field of TensorProto that holds each type where raw_data is not used.
_FIELDS = {
    "float32": "float_data",
    "float64": "double_data",
    "int64": "int64_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
}


def tensor_value(tensor: TensorProto, what: str) -> Array:
    """The array of a tensor; raises GraphError where type, shape and data do not fit together."""
    import onnx

    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise GraphError(f"{what} must hold its data, which is external; read the model from its file")
    if tensor.HasField("segment"):
        raise GraphError(f"{what} must not be cut into segments; convert the model")
    shape, dtype = _shape(tensor, what), _dtype(tensor, what)
    kind, elements = np.dtype(dtype), math.prod(shape)
    if tensor.HasField("raw_data"):
        data, size = tensor.raw_data, elements * kind.itemsize
        if len(data) != size:
            raise GraphError(
                f"{what} must have {size} bytes for {dtype}{list(shape)}, not {len(data)}; it is cut off or wrong"
            )
        if kind.kind == "b":
            return np.asarray(np.frombuffer(data, np.uint8).reshape(shape) != 0)
        return np.frombuffer(data, kind.newbyteorder("<")).astype(kind, copy=False).reshape(shape)
    values = getattr(tensor, _FIELDS.get(dtype, "int32_data"))
    if len(values) != elements:
        raise GraphError(
            f"{what} must have {elements} elements for {dtype}{list(shape)}, not {len(values)}; correct the model"
        )
    if kind.kind == "f" and dtype == "float16":
        return np.array(values, np.uint16).view(np.float16).reshape(shape)
    array = np.array(values, np.float64 if kind.kind == "f" else object)
    if kind.kind != "f" and elements:
        limits = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
        if not limits[0] <= min(values) <= max(values) <= limits[1]:
            raise GraphError(f"{what} must have elements of the type {dtype}, not {min(values)} .. {max(values)}")
    return array.astype(kind).reshape(shape)


def attribute_value(attribute: AttributeProto, where: str) -> Any:
    """An attribute's value: int, float, str, array, graph, or a list of these; raises GraphError for other types."""
    from onnx import AttributeProto as Kind

    what = f"{where}: the attribute {attribute.name}"
    match attribute.type:
        case Kind.INT:
            return int(attribute.i)
        case Kind.FLOAT:
            return float(attribute.f)
        case Kind.STRING:
            return _text(attribute.s, what)
        case Kind.INTS:
            return [int(v) for v in attribute.ints]
        case Kind.FLOATS:
            return [float(v) for v in attribute.floats]
        case Kind.STRINGS:
            return [_text(v, what) for v in attribute.strings]
        case Kind.TENSOR:
            return tensor_value(attribute.t, what)
        case Kind.GRAPH:
            return attribute.g
    raise GraphError(f"{what} must be a number, a text, a tensor, a graph or a list of the former; correct the model")


def _text(value: bytes, what: str) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise GraphError(f"{what} must be UTF-8 text; correct the model") from error


# -- structure -----------------------------------------------------------------------------------------------


def check_structure(model: ModelProto) -> None:
    """The checker of the onnx package, after what it would read without bounds; raises GraphError."""
    from onnx import TensorProto, checker

    graph = model.graph
    for tensor in _tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            raise GraphError(
                f"the tensor {tensor.name} must hold its data, which is external; read the model from its file"
            )
    for values, what in ((graph.input, "inputs"), (graph.output, "outputs")):
        names = [v.name for v in values]
        if len(set(names)) != len(names):
            raise GraphError(f"the {what} of a model must have different names; correct the model")
        for value in values:
            if value.type.WhichOneof("value") == "tensor_type" and not value.type.tensor_type.HasField("shape"):
                raise GraphError(
                    f"the {what} of a model must have shapes, and {value.name} has none; let "
                    "onnx.shape_inference.infer_shapes write them into the model"
                )
    try:
        checker.check_model(model)
    except checker.ValidationError as error:
        reason = next(iter(str(error).splitlines()), "it gives no reason")
        raise GraphError(f"the model must pass the checker of the onnx package: {reason}") from error
    except ValueError as error:
        raise GraphError(f"the model must be smaller than 2 GiB to be checked: {error}") from error
