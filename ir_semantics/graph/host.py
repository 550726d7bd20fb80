"""Host operators: results that depend on the data in ways that index comprehensions do not express.

They run on the host, with NumPy; nothing is proved about them.  Sources: the ONNX operator specification.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .ir import Attributes
from .operator import Types, host
from .types import Array, GraphError, TensorType

Operands = Sequence[Array]


def _axis(attributes: Attributes) -> int:
    value = attributes["axis"]
    assert isinstance(value, int)
    return value


def _top_k_shape(types: Types, attributes: Attributes) -> Sequence[int]:
    k, axis = attributes["k"], _axis(attributes)
    assert isinstance(k, int)
    if not 0 <= k <= types[0].shape[axis]:
        raise GraphError(f"top_k must be given k in 0 .. {types[0].shape[axis]}, the extent of the axis, not {k}")
    return [k if j == axis else d for j, d in enumerate(types[0].shape)]


def _top_k(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    """Of equal elements the first comes first."""
    axis, x = _axis(attributes), of[0]
    if attributes["largest"]:
        order = np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    chosen = np.take(order, np.arange(result.shape[axis]), axis=axis)
    return chosen.astype(np.int64) if attributes["output"] else np.take_along_axis(x, chosen, axis)


def _checked(indices: Array, extent: int, what: str) -> Array:
    wrapped = np.where(indices < 0, indices + extent, indices)
    if wrapped.size and not (wrapped.min() >= 0 and wrapped.max() < extent):
        raise GraphError(f"the indices of {what} must be in {-extent} .. {extent - 1}; correct the model's input")
    return wrapped.astype(np.int64)


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _check_reduction(attributes: Attributes) -> None:
    if attributes["reduction"] not in ("none", *_COMBINE):
        raise GraphError(f"a reduction must be none, {', '.join(_COMBINE)}, not {attributes['reduction']}")


def _write(target: Array, at: tuple[Any, ...], values: Array, reduction: object) -> None:
    if reduction == "none":
        target[at] = values
    else:
        getattr(_COMBINE[str(reduction)], "at")(target, at, values)  # noqa: B009  # a method of every ufunc


def _scatter_elements(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    target, axis = of[0].copy(), _axis(attributes)
    grid: list[Any] = list(np.indices(of[1].shape, sparse=True))
    grid[axis] = _checked(of[1], target.shape[axis], "scatter_elements")
    _write(target, tuple(grid), of[2], attributes["reduction"])
    return target


def _scatter_elements_shape(types: Types, attributes: Attributes) -> Sequence[int]:
    _check_reduction(attributes)
    if (
        types[1].shape != types[2].shape
        or types[1].kind != "int"
        or types[2].dtype != types[0].dtype
        or types[1].rank != types[0].rank
    ):
        raise GraphError(
            "scatter_elements must be given indices and updates of one shape and the data's rank, not "
            f"{types[1]} and {types[2]}"
        )
    return types[0].shape


def _scatter_nd(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    target = of[0].copy()
    columns = [_checked(of[1][..., j], target.shape[j], "scatter_nd") for j in range(of[1].shape[-1])]
    _write(target, tuple(columns), of[2], attributes["reduction"])
    return target


def _scatter_nd_shape(types: Types, attributes: Attributes) -> Sequence[int]:
    data, indices, updates = (t.shape for t in types)
    _check_reduction(attributes)
    if types[1].kind != "int" or types[2].dtype != types[0].dtype:
        raise GraphError(f"scatter_nd must be given integers as indices and updates of its data's type, not {types[1]}")
    if not indices or indices[-1] > len(data) or updates != (*indices[:-1], *data[indices[-1] :]):
        raise GraphError(f"scatter_nd must be given updates that fit its indices, not {types[1]} and {types[2]}")
    return data


def _gather_nd(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    batch = attributes["batch"]
    assert isinstance(batch, int)
    data, indices = of
    depth = indices.shape[-1]
    columns = [_checked(indices[..., j], data.shape[batch + j], "gather_nd") for j in range(depth)]
    rank = indices.ndim - 1
    grid = [np.arange(d).reshape([-1 if a == j else 1 for a in range(rank)]) for j, d in enumerate(data.shape[:batch])]
    return np.asarray(data[(*grid, *columns)]).reshape(result.shape)


def _gather_nd_shape(types: Types, attributes: Attributes) -> Sequence[int]:
    batch = attributes["batch"]
    assert isinstance(batch, int)
    data, indices = types[0].shape, types[1].shape
    fits = bool(indices) and 0 <= batch < min(len(indices), len(data)) and data[:batch] == indices[:batch]
    if not fits or types[1].kind != "int" or not 1 <= indices[-1] <= len(data) - batch:
        raise GraphError(f"gather_nd must be given indices that fit its data, not {types[1]} and {types[0]}")
    return (*indices[:-1], *data[batch + indices[-1] :])


def _reverse_sequence_shape(types: Types, attributes: Attributes) -> Sequence[int]:
    batch, time = attributes["batch"], attributes["time"]
    if {batch, time} != {0, 1} or types[0].rank < 2 or types[1].kind != "int":
        raise GraphError(f"reverse_sequence must be given sequences and their lengths, not {types[0]} and {types[1]}")
    if types[1].shape != (types[0].shape[int(str(batch))],):
        raise GraphError(f"reverse_sequence must be given a length for each sequence, not {types[1]} for {types[0]}")
    return types[0].shape


def _reverse_sequence(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    batch, time = attributes["batch"], attributes["time"]
    assert isinstance(batch, int) and isinstance(time, int)
    x = np.moveaxis(of[0], (batch, time), (0, 1))
    y = x.copy()
    if of[1].size and not (of[1].min() >= 0 and of[1].max() <= x.shape[1]):
        raise GraphError(f"the lengths of sequences must be in 0 .. {x.shape[1]}; correct the model's input")
    for j, length in enumerate(of[1]):
        y[j, :length] = x[j, :length][::-1]
    return np.moveaxis(y, (0, 1), (batch, time))


def _determinant(of: Operands, attributes: Attributes, result: TensorType) -> Array:
    return np.asarray(np.linalg.det(of[0]), of[0].dtype)


def _determinant_shape(types: Types, attributes: Attributes) -> Sequence[int]:
    if types[0].rank < 2 or types[0].shape[-1] != types[0].shape[-2]:
        raise GraphError(f"determinant must be given square matrices, not {types[0]}")
    return types[0].shape[:-2]


def _data_dtype(types: Types, attributes: Attributes) -> str:
    return "int64" if attributes["output"] else types[0].dtype


HOST = (
    host(
        "top_k",
        _top_k,
        _top_k_shape,
        kinds="number",
        dtype=_data_dtype,
        attributes="k axis largest output",
        doc="The k largest or smallest, sorted.",
    ),
    host(
        "scatter_elements",
        _scatter_elements,
        _scatter_elements_shape,
        arity=3,
        attributes="axis reduction",
        doc="The data with updates written (or added, ...) where indices replace the subscript along an axis.",
    ),
    host(
        "scatter_nd",
        _scatter_nd,
        _scatter_nd_shape,
        arity=3,
        attributes="reduction",
        doc="The data with slices written at index tuples.",
    ),
    host(
        "gather_nd",
        _gather_nd,
        _gather_nd_shape,
        arity=2,
        attributes="batch",
        doc="The slices of the data at index tuples.",
    ),
    host(
        "reverse_sequence",
        _reverse_sequence,
        _reverse_sequence_shape,
        arity=2,
        attributes="batch time",
        doc="Sequences in opposite order up to their lengths.",
    ),
    host("determinant", _determinant, _determinant_shape, kinds="float", doc="The determinants of matrices."),
)
"""The host operators."""
