"""Constants that are another array in another form: they are not stored but derived when a compiled model is read.

Importing transposes weights, for example.  Which of the model's tensors a constant is, and in which form, is recorded;
the derived array must have the constant's digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import numpy as np

from ir_semantics.graph.ir import digest_of
from ir_semantics.graph.types import MOST_ELEMENTS, MOST_RANK, Array

from .errors import ArtefactError, field, items, natural, text

LEAST_BYTES = 1024
"""Smaller constants are stored as they are."""


def shared_json(constants: Mapping[str, Array], tensors: Mapping[str, Array]) -> dict[str, Any]:
    """The constants that are one of ``tensors``, reshaped and (matrices) perhaps transposed, by digest.

    Each is the digest of the tensor, the shape before transposition, and whether it is transposed.
    """
    by_size: dict[tuple[str, int], list[str]] = {}
    for digest, tensor in tensors.items():
        by_size.setdefault((tensor.dtype.str, tensor.size), []).append(digest)
    forms: dict[str, Any] = {}
    for digest, constant in constants.items():
        if digest in tensors or constant.nbytes < LEAST_BYTES:
            continue
        candidates = by_size.get((constant.dtype.str, constant.size), ())
        form = _form(constant, ((name, tensors[name]) for name in candidates))
        if form is not None:
            forms[digest] = form
    return forms


def _form(constant: Array, tensors: Iterable[tuple[str, Array]]) -> list[Any] | None:
    plain = _bits(constant)
    for name, tensor in tensors:
        if np.array_equal(_bits(tensor).reshape(constant.shape), plain):
            return [name, list(constant.shape), False]
        if constant.ndim == 2 and np.array_equal(_bits(tensor).reshape(constant.shape[::-1]).T, plain):
            return [name, list(constant.shape[::-1]), True]
    return None


def _bits(array: Array) -> Array:
    """The array as unsigned integers: NaN is equal to itself, and -0.0 is not 0.0."""
    return array if array.dtype == bool else array.view(f"u{array.dtype.itemsize}")


def shared_value(where: str, value: object, stored: Mapping[str, Array]) -> dict[str, Array]:
    """The constants of :func:`shared_json`, from the arrays that are stored.

    Raises ArtefactError for what it does not write, and where a constant does not have its digest.
    """
    constants: dict[str, Array] = {}
    for digest, form in field(where, value, dict, "an object of constants").items():
        place = f"{where}: {digest[:12]}"
        parts = items(place, form)
        if len(parts) != 3 or type(parts[2]) is not bool or digest in stored:
            raise ArtefactError(f"{place} must be an array as one that is stored: digest, shape, transposed")
        name = text(place, parts[0])
        extents = items(place, parts[1])
        shape = [natural(place, extent, MOST_ELEMENTS + 1) for extent in extents[: MOST_RANK + 1]]
        if name not in stored or len(shape) > MOST_RANK or prod(shape) != stored[name].size:
            raise ArtefactError(f"{place} must be an array that is stored, in a shape of as many elements")
        array = stored[name].reshape(shape)
        array = array.T if parts[2] else array
        if digest_of(array) != digest:
            raise ArtefactError(f"{place} must have the digest that it goes by; it is another array")
        constants[digest] = array
    return constants
