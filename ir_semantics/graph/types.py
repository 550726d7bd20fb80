"""Types of tensors in the graph IR: an element type and a static shape, with limits on their size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ila_lang.errors import InputError
from ir_semantics.scalars.arrays import DTYPES

Array = NDArray[Any]

MOST_ELEMENTS: Final = 1 << 28
"""Elements of the largest tensor (1 GiB of binary32). A bound of this implementation, against absurd shapes."""
MOST_RANK: Final = 32
"""Axes of a tensor. A bound of this implementation; NumPy's is 64."""


class GraphError(InputError):
    """A graph, a node or a model that the tensor IR does not have; the message names it and says what must hold."""


@dataclass(frozen=True)
class TensorType:
    """Element type (a key of ``DTYPES``: bool, int8 ... uint64, float16, float32, float64) and extents of all axes.

    Raises GraphError where the element type is unknown, an extent is negative, or a limit is exceeded.
    """

    dtype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise GraphError(
                f"the elements of a tensor must be of one of the types {', '.join(DTYPES)}, not {self.dtype}; "
                "convert the model to one of these"
            )
        if any(d < 0 for d in self.shape):
            raise GraphError(f"the extents of a tensor must not be negative, not {list(self.shape)}")
        if len(self.shape) > MOST_RANK:
            raise GraphError(f"a tensor must have at most {MOST_RANK} axes, not {len(self.shape)}")
        if self.elements > MOST_ELEMENTS:
            raise GraphError(
                f"a tensor must have at most {MOST_ELEMENTS} elements, not {self.elements} (shape {list(self.shape)}); "
                "use a smaller model or batch"
            )

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def kind(self) -> str:
        """``bool``, ``int`` (signed or not) or ``float``."""
        return {"b": "bool", "i": "int", "u": "int", "f": "float"}[np.dtype(self.dtype).kind]

    def with_shape(self, shape: Sequence[int]) -> TensorType:
        """The same element type with another shape."""
        return TensorType(self.dtype, tuple(shape))

    def with_dtype(self, dtype: str) -> TensorType:
        """The same shape with another element type."""
        return TensorType(dtype, self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def type_of(array: Array) -> TensorType:
    """The type of an array; raises GraphError for element types that the IR does not have."""
    return TensorType(str(array.dtype), tuple(array.shape))
