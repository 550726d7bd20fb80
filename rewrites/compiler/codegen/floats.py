"""Implementations of which the host's share is proved: programs of tensors as the graph has them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .interface import Call, Implementation, Reals, Tensors

Words = NDArray[np.uint32]


class FloatImplementation(Implementation):
    """An implementation by one call, whose program takes the bits of float32 numbers.

    Rounding them, cutting operands into parts, padding and joining are part of its mapping.  Operand ``n`` is the host
    tensor ``host_n``, the result ``host_y``.
    """

    @abstractmethod
    def _rounded(self, name: str, operand: Reals) -> Reals:
        """The numbers that the program rounds elements of an operand to, in the units of the operand."""

    def _codes(self, name: str, operand: Reals) -> Words:
        if not np.isfinite(operand).all():
            raise ValueError(f"Operand {name} must be finite numbers, not NaN or infinite; look at the inputs")
        return operand.astype(np.float32).view(np.uint32)

    def _values(self, name: str, codes: Words) -> Reals:
        return self._rounded(name, codes.view(np.float32).astype(np.float64))

    def _tensors(self, call: Call, codes: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        return {f"host_{name}": words.reshape(len(words), -1) for name, words in codes.items()}

    def _result(self, outputs: Sequence[Tensors]) -> NDArray[np.float32]:
        (tensors,) = outputs
        return tensors["host_y"].view(np.float32).reshape(-1, *self.node.type.shape)
