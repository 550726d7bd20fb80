"""How a difference of operands becomes a difference of results, for every operator of the graph IR.

An operator is evaluated twice, on *actual* operands a and on *reference* operands r.  A linear map M with
f(a) - f(r) = M (a - r) follows from both evaluations; nothing is approximated:

* elements that move (and fills): the operator on the elements' positions says where each goes;
* sums: M is the operator itself;
* products, also matrix products and convolutions: a b - r s = a (b - s) + (a - r) s;
* scalar operators: one operand after the other, the quotient of both differences (0 where operands are equal);
* extrema: with a_i the one of a and r_j that of r, (a_j - r_j) <= a_i - r_j <= (a_i - r_i), so that the difference
  is a weighted mean of two of the operands'.

Only the transpose of M is computed, applied to weights of results (one row of weights for each number that is asked
for), in float64.  Nothing here is trusted: what weights are off by is counted where they are used (:mod:`.balance`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ir_semantics.graph import Node, TensorType
from ir_semantics.graph.build import expansion, run_node
from ir_semantics.graph.ir import integer_of, integers_of
from ir_semantics.graph.operator import lookup
from ir_semantics.graph.types import Array

Reals = NDArray[np.float64]


class Unbounded(ValueError):
    """No bound can be composed; the message says why."""


Pull = Callable[[Reals], "list[Reals | None]"]
"""From weights [K, *shape of the result] to those of each operand; None of operands that are the same on both sides."""


@dataclass(frozen=True, eq=False)
class Sides:
    """An operator with both sides' operands, and the types that operands have in the graph."""

    node: Node
    types: Sequence[TensorType]
    actual: Sequence[Array]
    reference: Sequence[Array]

    @cached_property
    def changed(self) -> list[bool]:
        """Which operands differ."""
        pairs = zip(self.actual, self.reference, strict=True)
        return [a is not r and not np.array_equal(a, r) for a, r in pairs]

    def run(self, operands: Sequence[Array]) -> Array:
        """The result on other operands, in float64."""
        node = self.node
        if lookup(node.operator).expand is not None:
            return _composite(replace(self, actual=operands, reference=operands)).actual
        if node.operator == "cast" and node.type.kind == "float":  # its rounding is no part of the exact operator
            return np.asarray(operands[0], np.float64)
        kind = node.type.with_dtype("float64") if node.type.kind == "float" else node.type
        with np.errstate(all="ignore"):
            return run_node(Node(node.operator, node.operands, node.attributes, kind), operands)


@dataclass(frozen=True, eq=False)
class Difference:
    """An operator on actual and on reference operands, and its linear map, transposed."""

    actual: Array
    reference: Array
    pull: Pull


def difference(of: Sides) -> Difference:
    """The difference of a node's results.

    Raises Unbounded where an operator has no rule, or where operands that are no real numbers differ.
    """
    node, operator = of.node, lookup(of.node.operator)
    for place, (a, differs) in enumerate(zip(of.actual, of.changed, strict=True)):
        if differs and a.dtype.kind != "f":
            raise Unbounded(f"operand {place} of {node.operator} is no real number, and differs from the reference's")
    if not any(of.changed):
        result = of.run(of.actual)
        return Difference(result, result, lambda weights: [None] * len(of.changed))
    if operator.expand is not None:
        return _composite(of)
    if node.operator == "cast" and node.type.kind == "float":
        return Difference(of.actual[0], of.reference[0], lambda weights: [weights])
    if operator.scalar is not None:
        return _scalar(of)
    rule = _RULES.get(node.operator)
    if rule is None:
        raise Unbounded(f"no rule says how differences pass through {node.operator}")
    return Difference(of.run(of.actual), of.run(of.reference), rule(of))


def wide(array: Array) -> Array:
    """Floats as float64."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def constant(value: Array) -> Difference:
    """What is the same on both sides, and has no operands."""
    return Difference(value, value, lambda weights: [])


def _composite(of: Sides) -> Difference:
    """The operators that a composite one stands for, one after the other."""
    graph = expansion(of.node.operator, tuple(of.types), of.node.attributes)
    inputs = [graph.inputs[f"x{i}"] for i in range(len(of.types))]
    done: dict[int, Difference] = {}
    for i, inner in enumerate(graph.nodes):
        if inner.operator == "input":
            place = inputs.index(i)
            done[i] = Difference(of.actual[place], of.reference[place], lambda weights: [])
        elif inner.operator == "constant":
            done[i] = constant(wide(graph.constant(i)))
        else:
            operands = [done[j] for j in inner.operands]
            types = [graph.nodes[j].type for j in inner.operands]
            done[i] = difference(Sides(inner, types, [d.actual for d in operands], [d.reference for d in operands]))
    result = graph.outputs["y"]

    def pull(weights: Reals) -> list[Reals | None]:
        held: dict[int, Reals] = {result: weights}
        for i in reversed(range(len(graph.nodes))):
            if i in held and i not in inputs:
                pulled = done[i].pull(held.pop(i))
                for j, more in zip(graph.nodes[i].operands, pulled, strict=False):
                    if more is not None:
                        held[j] = held[j] + more if j in held else more
        return [held.get(i) for i in inputs]

    return Difference(done[result].actual, done[result].reference, pull)


# -- scalar operators ----------------------------------------------------------------------------------------


def _scalar(of: Sides) -> Difference:
    """Secants: operands become the reference's one after the other."""
    name, mixed, values = of.node.operator, list(of.actual), [of.run(of.actual)]
    secants: list[Reals | None] = []
    for place, (a, r) in enumerate(zip(of.actual, of.reference, strict=True)):
        mixed[place] = r
        values.append(of.run(mixed))
        if a.dtype.kind != "f" or values[0].dtype.kind != "f":
            secants.append(None)
            continue
        with np.errstate(all="ignore"):
            secant = np.where(a == r, 0.0, (values[-2] - values[-1]) / (a - r))
        if not np.isfinite(secant).all():
            raise Unbounded(f"{name} has no finite slope between the run and the reference")
        secants.append(secant)
    if values[0].dtype.kind != "f":
        return Difference(values[0], values[-1], lambda weights: [None] * len(secants))
    return Difference(
        values[0], values[-1], lambda weights: [None if secant is None else weights * secant for secant in secants]
    )


# -- tensor operators ----------------------------------------------------------------------------------------


def _moved(of: Sides) -> Pull:
    """Elements go where the operator puts their positions; position 0 is of none."""
    positions, ends = list[Array](), [1]
    for array in of.actual:
        real = array.dtype.kind == "f"
        ends.append(ends[-1] + (array.size if real else 0))
        positions.append(np.arange(*ends[-2:], dtype=np.float64).reshape(array.shape) if real else array)
    sources = of.run(positions).astype(np.int64).reshape(-1)

    def pull(weights: Reals) -> list[Reals | None]:
        every = _scattered(weights, sources, ends[-1])
        return [
            every[:, first:last].reshape(len(weights), *array.shape) if differs else None
            for array, differs, first, last in zip(of.actual, of.changed, ends[:-1], ends[1:], strict=True)
        ]

    return pull


def _scattered(weights: Reals, positions: NDArray[np.int64], size: int) -> Reals:
    """For each row and position the sum of its weights."""
    rows = len(weights)
    places = (np.arange(rows)[:, None] * size + positions).reshape(-1)
    return np.asarray(np.bincount(places, weights.reshape(-1), rows * size), np.float64).reshape(rows, size)


def _summed(of: Sides) -> Pull:
    """Sums and means along axes."""
    (a,), axes = of.actual, sorted(integers_of(dict(of.node.attributes), "axes"))
    scale = 1 / int(np.prod([a.shape[axis] for axis in axes])) if of.node.operator == "mean" else 1.0

    def pull(weights: Reals) -> list[Reals | None]:
        kept = np.expand_dims(weights, tuple(axis + 1 for axis in axes)) * scale
        return [np.broadcast_to(kept, (len(weights), *a.shape))]

    return pull


def _product(of: Sides) -> Pull:
    """Matrix products: a b - r s = (a - r) s + a (b - s)."""
    a, s = of.actual[0], of.reference[1]

    def pull(weights: Reals) -> list[Reals | None]:
        first, second = of.changed
        return [
            weights @ np.swapaxes(s, -1, -2) if first else None,
            np.swapaxes(a, -1, -2) @ weights if second else None,
        ]

    return pull


def _windows(of: Sides, kernel: Sequence[int], image: Array) -> Array:
    """The windows of an image [batch, channels, kernel axes ..., output axes ...], zeros outside."""
    attributes = {**dict(of.node.attributes), "kernel": tuple(kernel)}
    named = tuple((name, attributes[name]) for name in ("dilations", "kernel", "pads", "strides"))
    shape = (*image.shape[:2], *kernel, *of.node.type.shape[2:])
    return run_node(Node("patches", (0,), named, TensorType("float64", shape)), [image])


def _positions(image: Array) -> Array:
    """The positions of elements, from 1 on."""
    return np.arange(1, image.size + 1, dtype=np.float64).reshape(image.shape)


def _convolution(of: Sides) -> Pull:
    """The product of filters with windows of the images: a b - r s = (a - r) s + a (b - s)."""
    groups, (x, w), s = integer_of(dict(of.node.attributes), "groups"), of.actual, of.reference[1]
    images, filters, outputs = len(x), len(w) // groups, int(np.prod(of.node.type.shape[2:]))
    inner, kernel = w[0].size, w.shape[2:]

    def pull(weights: Reals) -> list[Reals | None]:
        pulled: list[Reals | None] = [None, None]
        by_group = weights.reshape(len(weights), images, groups, filters, outputs)
        if of.changed[0]:
            taps = np.swapaxes(s.reshape(groups, filters, inner), 1, 2) @ by_group
            sources = _windows(of, kernel, _positions(x)).astype(np.int64).reshape(-1)
            pulled[0] = _scattered(taps, sources, x.size + 1)[:, 1:].reshape(len(weights), *x.shape)
        if of.changed[1]:
            seen = _windows(of, kernel, x).reshape(images, groups, inner, outputs)
            pulled[1] = (by_group @ np.swapaxes(seen, -1, -2)).sum(axis=1).reshape(len(weights), *w.shape)
        return pulled

    return pull


def _members(of: Sides) -> NDArray[np.int64]:
    """For each result of a pooling or of an extremum along axes, the positions of what it is of; 0 is none."""
    attributes, x = dict(of.node.attributes), of.actual[0]
    if "kernel" in attributes:
        kernel = integers_of(attributes, "kernel")
        axes, moved = list(range(2, 2 + len(kernel))), _windows(of, kernel, _positions(x))
    else:
        axes, moved = sorted(integers_of(attributes, "axes")), _positions(x)
    kept = [axis for axis in range(moved.ndim) if axis not in axes]
    return np.transpose(moved, kept + axes).astype(np.int64).reshape(of.node.type.elements, -1)


def _extremum(of: Sides) -> Pull:
    """Maxima and minima along axes, and maxima of windows."""
    members, (a,), (r,) = _members(of), of.actual, of.reference
    sign = -1.0 if of.node.operator == "reduce_min" else 1.0
    flat_a, flat_r = (np.concatenate([[-np.inf], sign * side.reshape(-1)]) for side in (a, r))
    row = np.arange(len(members))
    i, j = (members[row, flat[members].argmax(axis=1)] for flat in (flat_a, flat_r))
    high, low, moved = flat_a[i] - flat_r[i], flat_a[j] - flat_r[j], flat_a[i] - flat_r[j]
    with np.errstate(all="ignore"):
        share = np.where(high > low, np.clip((moved - low) / (high - low), 0, 1), 1.0)
    sources = np.concatenate([i, j])

    def pull(weights: Reals) -> list[Reals | None]:
        flat = weights.reshape(len(weights), -1)
        both = np.concatenate([flat * share, flat * (1 - share)], axis=1)
        return [_scattered(both, sources, a.size + 1)[:, 1:].reshape(len(weights), *a.shape)]

    return pull


def _averaged(of: Sides) -> Pull:
    """Means of windows."""
    members, (a,) = _members(of), of.actual
    most = members.shape[1]
    counted = most if of.node.attribute("count_include_pad") else (members > 0).sum(axis=1, keepdims=True)
    share = np.broadcast_to(1 / np.asarray(counted, np.float64), members.shape)

    def pull(weights: Reals) -> list[Reals | None]:
        spread = weights.reshape(len(weights), -1, 1) * share
        return [_scattered(spread, members.reshape(-1), a.size + 1)[:, 1:].reshape(len(weights), *a.shape)]

    return pull


def _cumulated(of: Sides) -> Pull:
    """Sums of all elements so far: the transposed map sums up from the end."""
    axis = integer_of(dict(of.node.attributes), "axis")
    return lambda weights: [np.flip(np.cumsum(np.flip(weights, axis + 1), axis + 1), axis + 1)]


_RULES: Mapping[str, Callable[[Sides], Pull]] = {
    **dict.fromkeys(("broadcast", "reshape", "transpose", "slice", "concat", "pad", "reverse"), _moved),
    **dict.fromkeys(("gather", "gather_elements", "patches"), _moved),
    **dict.fromkeys(("reduce_sum", "mean"), _summed),
    "cumsum": _cumulated,
    "matmul": _product,
    "conv": _convolution,
    **dict.fromkeys(("reduce_max", "reduce_min", "max_pool"), _extremum),
    "avg_pool": _averaged,
}
"""The rules of tensor operators."""
