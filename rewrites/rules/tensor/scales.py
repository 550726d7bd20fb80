"""Rules by which scales cancel out: an operator of scaled operands is its result, scaled.

The host multiplies operands by powers of two, so that an accelerator's formats hold them, and its result by another
one.  A rule is about any positive numbers u and v in their place, over the reals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import mul as times
from typing import Final

from chc.tensor_rules.rule import TensorRule
from ir_semantics.scalars.terms import Scalar, variable
from ir_semantics.tensors.conditions import le
from ir_semantics.tensors.index import Index, index
from ir_semantics.tensors.operators import broadcast, map_
from ir_semantics.tensors.terms import Tensor, input_
from smt_encodings.claims import Equality

from . import boxes
from .boxes import ACTIVATIONS, IMAGES, KERNELS, LAYER, MATRIX, WEIGHTS, convolved, product
from .words import div, mul, sizes, wrong_over_reals

U, V = sizes("u v")
"""Exponents: a tensor of the exponent 2 U - V is multiplied by u u / v."""
NONE: Final = index(0)
RESULT: Final = "y"
"""The result's name among exponents."""


def scaled(x: Tensor, exponent: Index) -> Tensor:
    """A tensor times what stands for the power of two with this exponent, a sum of multiples of U and V."""
    above, below = (_power(exponent if sign > 0 else -exponent) for sign in (1, -1))
    for combined, factor in ((mul, above), (div, below)):
        x = x if factor is None else combined(x, broadcast(factor, x.shape, []))
    return x


def _power(exponent: Index) -> Tensor | None:
    """The part of it with positive multiples; None where there is none."""
    counts = {str(name): count for (name,), count in exponent.terms if count > 0}
    if not counts:
        return None
    factors: list[Scalar] = [variable(name) for name, count in counts.items() for _ in range(count)]
    return map_(reduce(times, factors), **{name: input_(name) for name in counts})


def _nothing(*operands: Tensor) -> Tensor:
    raise ValueError("a rule of scales must say of what")


@dataclass(frozen=True, eq=False)
class ScaleRule(TensorRule):
    """The rule of :func:`scaling`."""

    of: Callable[..., Tensor] = _nothing
    operands: tuple[Tensor, ...] = ()
    exponents: Mapping[str, Index] = field(default_factory=dict)
    attributes: Mapping[str, str | Index] = field(default_factory=dict)

    @cached_property
    def whole(self) -> Tensor:
        """Of the operands as they are."""
        return self.of(*self.operands)

    @cached_property
    def sides(self) -> tuple[Tensor, Tensor]:
        """What is equal: the operator, and what it is of scaled operands, scaled back."""
        *own, result = self.exponents.values()
        of_scaled = self.of(*(scaled(x, exponent) for x, exponent in zip(self.operands, own, strict=True)))
        return self.whole, scaled(of_scaled, -result)


@dataclass(frozen=True, eq=False)
class Scaling:
    """How the exponents of the powers of two depend on each other by which operands and the result are scaled.

    They are so by name of the operand, the result's last, for operators with these ``attributes``, of which sizes may
    have any value.  ``rule`` says that they cancel out; without one that is tested, not proved.
    """

    exponents: Mapping[str, Index]
    rule: TensorRule | None
    attributes: Mapping[str, str | Index] = field(default_factory=dict)

    def fits(self, attributes: Mapping[str, object]) -> bool:
        """Whether it is about operators with these attributes."""
        fixed = {name: value for name, value in self.attributes.items() if not isinstance(value, Index)}
        return attributes.keys() == self.attributes.keys() and fixed.items() <= attributes.items()


def scaling(
    name: str,
    of: Callable[..., Tensor],
    operands: Sequence[Tensor],
    exponents: Mapping[str, Index],
    attributes: Mapping[str, str | Index] | None = None,
) -> Scaling:
    """The scaling of an operator that is ``of`` these inputs, with its rule."""
    attributes = attributes or {}
    positive = frozenset(name for exponent in exponents.values() for name in exponent.variables)
    unmade = ScaleRule(
        name,
        operands[0],
        operands[0],
        equality=Equality.OVER_REALS,
        of=of,
        operands=(*operands,),
        exponents=exponents,
        attributes=attributes,
    )
    left, right = unmade.sides
    return Scaling(exponents, replace(unmade, left=left, right=right, positive=positive), attributes)


LINEAR: Final = {"x": U, "w": V, "b": U + V, RESULT: U + V}
"""Of a dense layer, also with relu: the sum has the unit of products."""
BEFORE_FUNCTION: Final = {"x": U, "w": -U, "b": NONE, RESULT: NONE}
"""Of a layer with another function, which must get the sum as it is."""
PRODUCT: Final = {"x": U, "w": V, RESULT: U + V}

SCALED_DENSE: Final = {
    activation: scaling(
        f"scales of {name}",
        boxes.layer(term),
        LAYER,
        LINEAR if activation in ("none", "relu") else BEFORE_FUNCTION,
        {"activation": activation},
    )
    for activation, (name, term) in ACTIVATIONS.items()
}
"""Scaled dense layers, by activation."""
SCALED_PRODUCT: Final = scaling("scales of a product of matrices", product, (MATRIX, WEIGHTS), PRODUCT)
SCALED_CONVOLUTION: Final = scaling(
    "scales of a convolution", convolved, (IMAGES, KERNELS), PRODUCT, {"stride_h": boxes.S, "stride_w": boxes.P}
)

_SCALINGS = SCALED_PRODUCT, *SCALED_DENSE.values(), SCALED_CONVOLUTION


def _wrong(name: str, activation: str, exponents: Mapping[str, Index], note: str) -> TensorRule:
    *_, term = ACTIVATIONS[activation]
    rule = scaling(name, boxes.layer(term), LAYER, exponents).rule
    assert rule is not None
    return wrong_over_reals(name, rule.left, rule.right, le(1, boxes.C), positive=rule.positive, note=note)


_WRONG = [
    _wrong(
        "scales of a dense layer with a bias as it is",
        "none",
        {**LINEAR, "b": NONE},
        "the bias is added to products, which are scaled twice",
    ),
    _wrong(
        "scales of the hyperbolic tangent of a dense layer as of relu",
        "tanh",
        LINEAR,
        "only relu is that of what is scaled",
    ),
]

RULES = (*_WRONG, *(each.rule for each in _SCALINGS if each.rule is not None))
"""All rules of this module."""
