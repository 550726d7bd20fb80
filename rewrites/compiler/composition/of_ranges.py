"""The bound of a network for all inputs that stay inside of calibrated ranges.

An error bound goes through the graph with each element, by what an operator can make of errors at most (Lipschitz
constants, element by element):

* elements that move, and sums of them: the operator itself, on errors;
* sums, maxima, minima, relu and the like: the sum, or the largest, of the operands' errors;
* products with constants, also matrix products and convolutions: the operator on errors and magnitudes of constants;
* the logistic function and tanh: a quarter of the error, and the error.

Of two computed numbers no product is bounded, and nothing is said of other operators.

An accelerator operator adds what rounding its operands may change, and its own bound at the ranges.  The ranges are
those of calibration times the headroom, and are about what the accelerator gets: :func:`outside` says which of them
a run leaves.  Signs are not known, so bounds grow with every layer by the sums of magnitudes of its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ir_semantics.graph import Graph, Node, TensorType
from ir_semantics.graph.build import expansion
from ir_semantics.graph.operator import lookup
from ir_semantics.graph.types import Array
from rewrites.compiler.codegen import Executed, Implementation

from .differences import Reals, Sides, Unbounded, wide

UPWARD = 1 + 2.0**-18
"""Above float64's roundings of a sum of up to 2^34 numbers >= 0."""
_FLOAT32 = 2.0**-23
"""Above what a float32 operation on the host is off, relative to the magnitudes of what it adds up."""

_ALIKE = frozenset({"broadcast", "reshape", "transpose", "slice", "concat", "pad", "reverse", "gather", "patches"})
_SUMS = frozenset({"reduce_sum", "mean", "cumsum", "avg_pool"})
_CHOICES = frozenset({"reduce_max", "max_pool", "relu", "neg", "abs", "maximum", "minimum"})
_PRODUCTS = frozenset({"mul", "matmul", "conv"})
_SLOPES = {"sigmoid": 0.25, "tanh": 1.0}


@dataclass(frozen=True)
class InRanges:
    """The bound of an output for all inputs in the ranges; None where there is none, and ``reason`` says why."""

    output: str
    bound: float | None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known of a value: how far it may be from the reference's, its magnitude, and a constant's reference."""

    error: Reals
    most: Reals
    constant: Array | None = None


def ranges_of(calibrated: Mapping[str, float], implementation: Implementation) -> dict[str, float]:
    """Calibrated ranges of a node, times the headroom."""
    return {name: float(value) * implementation.options.margin for name, value in calibrated.items()}


def outside(implementation: Implementation, executed: Executed, ranges: Mapping[str, float]) -> list[str]:
    """The ranges that a run of a node leaves, by what the accelerator got and gave; what was cut has left its own."""
    cut = [name for name in executed.saturated if name not in implementation.constants]
    got = [executed.quantised[name] for name in implementation.operands]
    seen = implementation.observe(implementation.node, got, np.asarray(executed.value, np.float64))
    return cut + [name for name, magnitude in seen.items() if not magnitude <= ranges[name]]


def in_ranges(
    graph: Graph, implementations: Mapping[int, Implementation], calibration: Mapping[int, Mapping[str, float]]
) -> list[InRanges]:
    """The bounds of all outputs that are real numbers, for runs that leave no range (:func:`outside`)."""
    known, reason = dict[int, _Known](), ""
    for number, node in enumerate(graph.nodes):
        operands = [known[i] for i in node.operands]
        try:
            if node.operator == "constant":
                known[number] = _constant(graph.constant(number))
            elif node.operator == "input":
                known[number] = _Known(np.zeros(node.type.shape), np.full(node.type.shape, np.inf))
            elif number in implementations:
                ranges = ranges_of(calibration[number], implementations[number])
                known[number] = _accelerated(implementations[number], ranges, operands)
            else:
                known[number] = _passed(node, [graph.nodes[i].type for i in node.operands], operands, _FLOAT32)
        except Unbounded as error:
            reason = f"node {number}: {error}"
            break
    outputs = {name: i for name, i in graph.outputs.items() if graph.nodes[i].type.kind == "float"}
    if reason:
        return [InRanges(name, None, reason) for name in outputs]
    return [InRanges(name, float(known[i].error.max(initial=0.0)) * UPWARD) for name, i in outputs.items()]


def _constant(value: Array) -> _Known:
    numbers = wide(value)
    return _Known(np.zeros(numbers.shape), np.abs(numbers) if numbers.dtype.kind == "f" else numbers, numbers)


def _accelerated(of: Implementation, ranges: Mapping[str, float], operands: Sequence[_Known]) -> _Known:
    """Roundings of operands, the exact operator on them, and the accelerator's own error."""
    bounds = of.bounds_in(ranges)
    if bounds.on_quantised is None:
        raise Unbounded(f"{of.node.operator} has no bound for these ranges: {bounds.reason}")
    got = []
    for name, operand in zip(of.operands, operands, strict=True):
        if operand.constant is None:
            change = of.rounding(name, ranges[name])
            got.append(_Known(operand.error + change, np.minimum(operand.most + change, ranges[name])))
        else:
            rounded = of.constant_of(name)
            got.append(_Known(np.abs(rounded - operand.constant), np.abs(rounded), operand.constant))
    exact = _passed(of.node, of.types, got, 0.0)
    # float32 rounds the number that the accelerator gave, which the theorem is about, by nothing: it has 24 bits
    return _Known(exact.error + bounds.on_quantised, exact.most + bounds.on_quantised)


def _passed(node: Node, types: Sequence[TensorType], operands: Sequence[_Known], rounding: float) -> _Known:
    """What an operator makes of errors, with ``rounding`` for each number that it adds."""
    name, operator = node.operator, lookup(node.operator)
    if operator.expand is not None:
        return _composite(node, types, operands, rounding)
    sides = Sides(node, types, (), ())
    if node.type.kind != "float":
        constants = [k.constant for k in operands if k.constant is not None and not k.error.any()]
        if len(constants) < len(operands):
            raise Unbounded(f"{name} gives no real numbers")
        return _constant(sides.run(constants))

    def run(arrays: Sequence[Array]) -> Reals:
        return np.asarray(sides.run(arrays), np.float64)

    errors, mosts = [k.error for k in operands], [k.most for k in operands]
    if name in _ALIKE:
        at = [k.constant if t.kind != "float" else None for k, t in zip(operands, types, strict=True)]
        if any(a is None and t.kind != "float" for a, t in zip(at, types, strict=True)):
            raise Unbounded(f"indices of {name} are no constants")
        moved, sizes = (run([p if a is None else a for p, a in zip(of, at, strict=True)]) for of in (errors, mosts))
        fixed = [k.constant for k in operands if k.constant is not None]
        return _Known(moved, sizes, run(fixed) if len(fixed) == len(operands) else None)
    if name in _SUMS:
        terms = operands[0].error.size // max(node.type.elements, 1) if name != "cumsum" else operands[0].error.size
        return _rounded(run(errors), run(mosts), rounding * (terms + 1), name)
    if name in _CHOICES or name in ("add", "sub"):
        together = np.add if name in ("add", "sub") else np.maximum
        if len(operands) > 1:
            error, most = together(*errors), together(*mosts)
        elif node.type.shape == operands[0].error.shape:
            error, most = errors[0], mosts[0]
        else:
            error, most = run(errors), run(mosts)
        return _rounded(error, most, rounding if name in ("add", "sub") else 0.0, name)
    if name in _SLOPES:
        return _Known(errors[0] * _SLOPES[name] + 2 * rounding, np.ones(errors[0].shape))
    if name in _PRODUCTS:
        return _product(name, run, operands, rounding)
    raise Unbounded(f"no rule says what errors become in {name}")


def _rounded(error: Reals, most: Reals, rounding: float, name: str) -> _Known:
    """With the rounding of a result of these magnitudes."""
    if rounding and not np.isfinite(most).all():
        raise Unbounded(f"{name} rounds numbers on the host of which no range is known")
    return _Known(error + rounding * most if rounding else error, most)


def _product(name: str, run: Callable[[Sequence[Array]], Reals], operands: Sequence[_Known], rounding: float) -> _Known:
    """Products with a constant c, in whose place the accelerator has c': a c' - r c = (a - r) c + a (c' - c)."""
    places = [place for place, k in enumerate(operands) if k.constant is not None]
    if not places:
        raise Unbounded(f"{name} is of two computed operands, and their magnitudes are not kept")
    fixed = places[-1]
    other, c = operands[1 - fixed], operands[fixed]
    assert c.constant is not None, "it is a constant"

    def of(x: Reals, y: Reals) -> Reals:
        return run([y, x] if fixed == 0 else [x, y])

    error = of(other.error, np.abs(c.constant))
    if c.error.any():
        if not np.isfinite(other.most).all():
            raise Unbounded(f"{name} is of numbers of which no range is known")
        error = error + of(other.most, c.error)
    most = of(other.most, c.most) if np.isfinite(other.most).all() else np.full(error.shape, np.inf)
    terms = c.error.size if name != "mul" else 1
    return _rounded(error, most, rounding * terms, name)


def _composite(node: Node, types: Sequence[TensorType], operands: Sequence[_Known], rounding: float) -> _Known:
    graph = expansion(node.operator, tuple(types), node.attributes)
    known = {graph.inputs[f"x{i}"]: k for i, k in enumerate(operands)}
    for i, inner in enumerate(graph.nodes):
        if inner.operator == "constant":
            known[i] = _constant(graph.constant(i))
        elif inner.operator != "input":
            of = [known[j] for j in inner.operands]
            known[i] = _passed(inner, [graph.nodes[j].type for j in inner.operands], of, rounding)
    return known[graph.outputs["y"]]
