"""The vocabulary of rules on tensors: element-wise operators, and sizes by name."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from chc.tensor_rules.rule import Kind, TensorRule
from ir_semantics.scalars.terms import clamp, maximum, variable
from ir_semantics.scalars.terms import relu as scalar_relu
from ir_semantics.tensors.conditions import Condition, both, le
from ir_semantics.tensors.index import Index, size
from ir_semantics.tensors.operators import broadcast, map_
from ir_semantics.tensors.terms import Tensor
from smt_encodings.claims import Equality

_X, _Y = variable("x"), variable("y")

REALS, ORDER = Equality.OVER_REALS, Equality.UP_TO_REDUCTION_ORDER
over_reals, reordered = partial(TensorRule, equality=REALS), partial(TensorRule, equality=ORDER)
"""Rules on real numbers, and rules whose sides have the same sums in another order."""
wrong, repaired = partial(TensorRule, kind=Kind.WRONG), partial(TensorRule, kind=Kind.REPAIRED)
"""Rules that look right and are wrong, and their repairs."""
wrong_over_reals, wrong_reordered = partial(wrong, equality=REALS), partial(wrong, equality=ORDER)
repaired_over_reals = partial(repaired, equality=REALS)


def sizes(names: str) -> list[Index]:
    """Size variables, their names separated by spaces."""
    return [size(name) for name in names.split()]


def at_least(least: int, *values: Index) -> Condition:
    """Every value is at least ``least``."""
    return both(*(le(least, value) for value in values))


def add(x: Tensor, y: Tensor) -> Tensor:
    """x + y."""
    return map_(_X + _Y, x=x, y=y)


def sub(x: Tensor, y: Tensor) -> Tensor:
    """x - y."""
    return map_(_X - _Y, x=x, y=y)


def mul(x: Tensor, y: Tensor) -> Tensor:
    """x * y."""
    return map_(_X * _Y, x=x, y=y)


def div(x: Tensor, y: Tensor) -> Tensor:
    """x / y."""
    return map_(_X / _Y, x=x, y=y)


def largest(x: Tensor, y: Tensor) -> Tensor:
    """maximum(x, y)."""
    return map_(maximum(_X, _Y), x=x, y=y)


def relu(x: Tensor) -> Tensor:
    """maximum(x, 0)."""
    return map_(scalar_relu(_X), x=x)


def clip(x: Tensor, low: Fraction | int, high: Fraction | int) -> Tensor:
    """minimum(maximum(x, low), high)."""
    return map_(clamp(_X, low, high), x=x)


def scale(x: Tensor, factor: Tensor | Fraction | int) -> Tensor:
    """Every element times a number or a scalar tensor."""
    if isinstance(factor, Tensor):
        return mul(x, broadcast(factor, x.shape, []))
    return map_(_X * factor, x=x)


def bias(x: Tensor, b: Tensor, axis: int) -> Tensor:
    """x plus a vector along ``axis``."""
    return add(x, broadcast(b, x.shape, [axis]))
