"""``flexasr.layer_norm``: the unit that normalises rows of the global buffer.

There must be a multiple of 16 features, because the mean is over all of them; nothing is cut into parts.

Tensors go to the accelerator as x 2^-s.  Layer normalisation does not see the scale of x but in epsilon: LN(x 2^-s)
with epsilon 2^-2s is LN(x) with epsilon.  Its result is that of gamma 2^-t and beta 2^-t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from accel_models.flexasr.layout import LANES
from accel_models.flexasr.quantise import largest
from ila_lang.mapping import SizeError
from ir_semantics.graph import Node, TensorType
from ir_semantics.tensors.index import size
from rewrites.bounds.kernel.constants import LEAST_RADICAND
from rewrites.claims.theorems import applied
from rewrites.compiler.codegen.bounding import bounds_of, operand_error
from rewrites.compiler.codegen.formats import check_scale, greatest, range_of, rounded_up
from rewrites.compiler.codegen.interface import Bounds, Call, CannotOffload, Executed, Options, Ranges, Reals
from rewrites.compiler.codegen.parts import require_elements
from rewrites.mappings.flexasr.claims import LAYER_NORM
from rewrites.rules.tensor.scales import Scaling, U, V

from .adaptive import AdaptiveCodes, AdaptiveFloats, adaptive_bias


class LayerNorm(AdaptiveFloats):
    """``flexasr.layer_norm``.

    Its quantisation: ``bias_x`` (of x and the result), ``bias_gamma``, ``bias_beta``, ``scale_x`` and ``scale_y``.
    Ranges: ``x``, ``gamma``, ``beta`` and ``y``.
    """

    operands: ClassVar[tuple[str, ...]] = ("x", "gamma", "beta")
    scalings: ClassVar[tuple[Scaling, ...]] = (
        Scaling({"x": U, "gamma": V, "beta": V, "y": V}, None, {"epsilon": size("epsilon")}),
    )

    @staticmethod
    def split(node: Node, types: Sequence[TensorType]) -> dict[str, int]:
        """The mapping's sizes; raises CannotOffload where rows or their features do not fit, and on a large epsilon."""
        rows, features = types[0].shape
        require_elements(node, "FlexASR", rows, features)
        if features % LANES:
            raise CannotOffload(
                f"flexasr.layer_norm has {features} features, which must be a multiple of 16: padding would change "
                "the mean"
            )
        epsilon = node.attribute("epsilon")
        if not isinstance(epsilon, float | int) or not 0 <= epsilon <= MOST_EPSILON:
            raise CannotOffload(
                f"flexasr.layer_norm has the epsilon {epsilon}, and FlexASR adds none: beyond 1e-5 nothing is proved"
            )
        try:
            return LAYER_NORM.mapping.sizes_for(types[0].shape)
        except SizeError as error:
            raise CannotOffload(f"flexasr.layer_norm does not fit, and it is not split. {error}") from error

    def _calls(self) -> Sequence[Call]:
        sizes = self.split(self.node, self.types)
        for scale, what in (("scale_x", "x"), ("scale_y", "the result")):
            check_scale(self.quantisation[scale], what)
        rows, features = ((0, extent) for extent in self.types[0].shape)
        biases = {name: self.quantisation[name] for name in ("bias_x", "bias_beta", "bias_gamma")}
        row = {"gamma": (features,), "beta": (features,)}
        parts = {"x": (rows, features), **row, "y": (rows, features)}
        return [Call(LAYER_NORM, {**sizes, **biases}, parts)]

    @staticmethod
    def observe(node: Node, operands: Sequence[Reals], result: Reals) -> Ranges:
        """The ranges of a run on the host."""
        named = zip(("x", "gamma", "beta"), operands, strict=True)
        return {name: greatest(values) for name, values in named} | {
            "y": greatest(result),
            "features": float(operands[0].shape[1]),
        }

    @staticmethod
    def choose(node: Node, ranges: Ranges, options: Options) -> dict[str, int]:
        """The quantisation for these ranges.

        Sums of 16 elements and of their squares wrap at 32, those of a row at 512: below sqrt(2), and below
        sqrt(32 / vectors), neither does whatever the data.  Small x is moved up as far as epsilon allows.
        """
        r = {name: range_of(ranges, name) for name in ("x", "gamma", "beta", "y")}
        margin, vectors = options.margin, ranges["features"] / LANES
        scale_x = scale_y = 0
        if not options.as_published and r["x"]:
            limit = min(math.sqrt(2.0), math.sqrt(32.0 / vectors), 32.0 / vectors)
            while r["x"] * margin * 2.0**-scale_x >= limit:
                scale_x += 1
            epsilon = float(node.attribute("epsilon"))  # type: ignore[arg-type]
            while r["x"] * margin * 2.0 ** (1 - scale_x) < limit and epsilon * 4.0 ** (1 - scale_x) <= MOST_EPSILON:
                scale_x -= 1
        x = r["x"] * 2.0**-scale_x
        bias_x = adaptive_bias(max(x, 0.0 if not options.as_published else r["y"]), options, margin)
        if not options.as_published:
            reached = max(r["y"] * margin, r["beta"], r["gamma"])
            while reached * 2.0**-scale_y > largest(bias_x):
                scale_y += 1
        return {
            "bias_x": bias_x,
            "bias_gamma": adaptive_bias(r["gamma"] * 2.0**-scale_y, options),
            "bias_beta": adaptive_bias(r["beta"] * 2.0**-scale_y, options),
            "scale_x": scale_x,
            "scale_y": scale_y,
        }

    def _format(self, name: str) -> AdaptiveCodes:
        q = self.quantisation
        bias = "bias_x" if name == "y" else f"bias_{name}"
        return AdaptiveCodes(q[bias], q["scale_x" if name == "x" else "scale_y"])

    def cut(self, executed: Executed, exact: Reals) -> int:
        """Results beyond their format."""
        return self._format("y").beyond(exact)

    def bounds(self, executed: Executed) -> Bounds:
        """The bound of layer normalisation, plus what rounding the operands may change (:func:`norm_change`)."""
        epsilon = float(np.float32(self.node.attribute("epsilon")))  # type: ignore[arg-type]  # as in the node's graph
        x, gamma, beta = (self._quantised(name, executed.given[name]) for name in self.operands)
        scale = self._format("x").scale
        inner = epsilon * 4.0**-scale
        if inner > MOST_EPSILON:
            reason = f"epsilon is {inner} for x times 2^{-scale}; beyond 1e-5 nothing is proved"
            return Bounds(None, None, reason)
        if x.values.var(axis=1).min() + inner <= float(LEAST_RADICAND):  # no condition of the theorem can hold
            return Bounds(None, None, "a row's variance is so small that the inverse root may wrap")
        bound = applied.layer_norm(x, gamma, beta, inner).whole()
        return bounds_of(bound, norm_change(executed, epsilon), self._format("y").scale)


def norm_change(executed: Executed, epsilon: float) -> float:
    """What rounding x, gamma and beta may change in a layer normalisation n gamma + beta with n = c / s.

    With e the largest change of an element: distances c from the mean change by at most 2 e, for each the element and
    the mean by e.  The deviation sqrt(variance) is a seminorm of x, so it changes by at most that of the differences,
    which is at most e; and s = sqrt(variance + epsilon) by no more.  So |n' - n| <= 2 e / s' + |c| e / (s s').

    Float64 rounds distances from the mean by less than 2^-47 of the largest element (a mean of at most 4080 numbers).
    From s >= 2^-10 of that element on, that is less than the margin of :func:`~.formats.rounded_up`; below, the change
    is infinite.
    """
    x, quantised = executed.given["x"], executed.quantised["x"]
    e = operand_error(executed, "x")
    s = np.sqrt(x.var(axis=1) + epsilon)
    other = np.sqrt(quantised.var(axis=1) + epsilon)
    least = 2.0**-10 * max(greatest(x), greatest(quantised))
    if not (s.min() > least and other.min() > least):
        return math.inf
    centred = np.abs(x - x.mean(axis=1, keepdims=True)).max(axis=1)
    moved = rounded_up(float(np.max(2 * e / other + centred * e / (s * other))))
    normal = rounded_up(float(np.max(centred / s)))
    gamma = greatest(executed.quantised["gamma"])
    return rounded_up(gamma * moved + normal * operand_error(executed, "gamma") + operand_error(executed, "beta"))


MOST_EPSILON = 1e-5
"""What a layer normalisation may add to the variance: the proved bound counts it as an error of the variance."""
