"""Operands as AdaptivFloat codes: what FlexASR's operators have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from accel_models.flexasr.quantise import Quantised
from rewrites.compiler.codegen.formats import beyond_adaptive, quantise_scaled, unscale
from rewrites.compiler.codegen.interface import Implementation, Reals

__all__ = ["AdaptiveImplementation"]


class AdaptiveImplementation(Implementation):
    """An implementation whose operands are AdaptivFloat codes, each of a bias and a scale of its own."""

    @abstractmethod
    def _format(self, name: str) -> tuple[int, int]:
        """The AdaptivFloat bias of an operand, and its scale (:mod:`rewrites.compiler.codegen.formats`)."""

    def _codes(self, name: str, operand: Reals) -> Quantised:
        return quantise_scaled(operand, *self._format(name))

    def _joined(self, parts: Sequence[Quantised], shape: tuple[int, ...]) -> Quantised:
        return Quantised(np.concatenate([part.codes for part in parts]).reshape(shape), parts[0].bias)

    def _values(self, name: str, codes: Quantised) -> Reals:
        return unscale(codes.values, self._format(name)[1])

    def _beyond(self, name: str, operand: Reals) -> int:
        return beyond_adaptive(operand, *self._format(name))
