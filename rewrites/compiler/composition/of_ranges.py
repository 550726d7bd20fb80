"""The bound of a network for all inputs that stay inside of calibrated ranges.

An error bound goes through the graph with each element, by what an operator can make of errors at most (Lipschitz
constants, element by element), and beside it a *form* of all errors (:mod:`.forms`), which also knows lengths.  Of both
the smaller bound counts.  Element by element:

* elements that move, and sums of them: the operator itself, on errors;
* sums, maxima, minima, relu and the like: the sum, or the largest, of the operands' errors;
* products, also matrix products and convolutions: the operator on errors of one factor and magnitudes of the other;
* the logistic function and tanh: a quarter of the error, and the error; at most 1 and 2, as far as results lie apart.

Nothing is said of other operators.  On the host each operation adds its rounding: as many as an element of the result
takes.

An accelerator operator adds what rounding its operands may change, and its own bound at the ranges.  The ranges are
those of calibration times the headroom, and are about what the accelerator gets: :func:`outside` says which of them
a run leaves.  Where a layer has more than ``forms.MOST_ELEMENTS`` elements there is no form, and bounds grow with every
layer by the sums of magnitudes of its weights.

What is found is written as steps.  :mod:`.replay` checks these, with numbers of its own, so that nothing here, in
:mod:`.forms` or in :mod:`.linear` is trusted where it accepts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ir_semantics.graph import Graph, Node, TensorType
from ir_semantics.graph.build import expansion
from ir_semantics.graph.ir import integer_of, integers_of
from ir_semantics.graph.operator import lookup
from ir_semantics.graph.types import Array
from rewrites.compiler.codegen import Executed, Implementation

from .differences import Reals, Sides, Unbounded, wide
from .forms import TINY, UPWARD, Atom, Form, Matrix, Within, added, divided, fresh, identity, length_of, scaled, within
from .linear import Linear
from .steps import LAW_OF, Place, Step

_FLOAT32 = 2.0**-23
"""Above the relative error of a float32 operation, 2^-24: twice that, for what n <= _MOST_TERMS of them compound."""
_UNDERFLOW = 2.0**-149
"""Above what a float32 operation is off where its result is below the normal numbers: half the least number."""
_LARGEST = float(np.finfo(np.float32).max)
_MOST_TERMS = 1 << 22
"""n operations of error u = 2^-24 compound to less than 2 n u as long as n u <= 1/4."""


@dataclass(frozen=True)
class InRanges:
    """The bound of an output for all inputs in the ranges; None where there is none, and ``reason`` says why.

    ``declared`` is what it rests on beside proofs: nothing, where it is proved.
    """

    output: str
    bound: float | None
    reason: str = ""
    declared: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known of a value: how far it may be from the reference's, its magnitude, and a constant's reference.

    ``form`` is the difference from the reference's (None, where only ``error`` is known of it), and ``change`` what an
    accelerator's constant has beside the reference's.  A value whose elements are those of another one, and zeros, has
    as ``copies`` the matrix that makes it of that one, of which ``origin`` are the magnitudes.
    ``step`` is the number of the step that says so.
    """

    error: Reals
    most: Reals
    constant: Array | None = None
    form: Form | None = None
    change: Reals | None = None
    copies: Matrix | None = None
    origin: Reals | None = None
    step: int = -1

    def each(self, bound: Callable[[Reals], Reals]) -> Form | None:
        """A vector that is a function of the value's elements, and 0 at 0, from bounds by their magnitudes."""
        form = fresh(bound(self.most if self.origin is None else self.origin))
        if form is None or self.copies is None:
            return form
        return dict.fromkeys(form, self.copies)

    @property
    def as_form(self) -> Form | None:
        """The difference from the reference's; None where it is too large."""
        return fresh(self.error) if self.form is None else self.form

    @cached_property
    def bounds(self) -> Within:
        """Bounds of the difference from the reference's."""
        if self.form is None:
            return Within(self.error, length_of(self.error))
        known = within(self.form, self.error.shape)
        elements = np.fmin(known.elements, self.error)  # no number, where matrices are too large for float64
        return Within(elements, min(length_of(elements), known.length))


@dataclass(frozen=True, eq=False)
class _Writer:
    """Writes the steps about a place, for :mod:`.replay`."""

    steps: list[Step]
    place: Place = ()

    def at(self, *inside: int | str) -> _Writer:
        """What writes the steps about a place inside of this one."""
        return replace(self, place=(*self.place, *inside))

    def write(self, law: str, known: _Known, of: Sequence[_Known], given: float | None = None) -> _Known:
        """A step that says what is known, of what other steps say."""
        self.steps.append(Step(law, self.place, tuple(k.step for k in of), _largest(known.error), given))
        return replace(known, step=len(self.steps) - 1)


def _largest(errors: Reals) -> float:
    """Above the largest error."""
    return float(errors.max(initial=0.0)) * UPWARD + TINY


def ranges_of(calibrated: Mapping[str, float], implementation: Implementation) -> dict[str, float]:
    """Calibrated ranges of a node, times the headroom."""
    return {name: float(value) * implementation.options.margin for name, value in calibrated.items()}


def outside(implementation: Implementation, executed: Executed, ranges: Mapping[str, float]) -> list[str]:
    """The ranges that a run of a node leaves, by what the accelerator got and gave; what was cut has left its own."""
    cut = [name for name in executed.saturated if name not in implementation.constants]
    got = [executed.quantised[name] for name in implementation.operands]
    seen = implementation.observe(implementation.node, got, np.asarray(executed.value, np.float64))
    return cut + [name for name, magnitude in seen.items() if not magnitude <= ranges[name]]


@np.errstate(over="ignore", invalid="ignore")
def in_ranges(
    graph: Graph,
    implementations: Mapping[int, Implementation],
    calibration: Mapping[int, Mapping[str, float]],
    steps: list[Step] | None = None,
) -> list[InRanges]:
    """The bounds of all outputs that are real numbers, for runs that leave no range (:func:`outside`).

    What is appended to ``steps`` says how they follow.
    """
    known, reason, kept = dict[int, _Known](), "", set(graph.outputs.values())
    last = {i: number for number, node in enumerate(graph.nodes) for i in node.operands}
    written = _Writer([] if steps is None else steps)
    for number, node in enumerate(graph.nodes):
        operands, at = [known[i] for i in node.operands], written.at(number)
        try:
            if node.operator == "constant":
                known[number] = at.write("constant", _constant(graph.constant(number)), ())
            elif node.operator == "input":
                given = _Known(np.zeros(node.type.shape), np.full(node.type.shape, np.inf), None, {})
                known[number] = at.write("input", given, ())
            elif number in implementations:
                ranges = ranges_of(calibration[number], implementations[number])
                known[number] = _accelerated(implementations[number], ranges, operands, at)
            else:
                types = [graph.nodes[i].type for i in node.operands]
                known[number] = _passed(node, types, operands, _FLOAT32, at)
        except Unbounded as error:
            reason = f"node {number}: {error}"
            break
        for i in set(node.operands) - kept:  # forms are large
            if last[i] == number:
                del known[i]
    outputs = {name: i for name, i in graph.outputs.items() if graph.nodes[i].type.kind == "float"}
    if reason:
        return [InRanges(name, None, reason) for name in outputs]
    bounds = []
    for name, i in outputs.items():
        of = replace(known[i], error=known[i].bounds.elements)
        written.at(name).write("output", of, [known[i]])
        bounds.append(InRanges(name, _largest(of.error)))
    return bounds


def _constant(value: Array) -> _Known:
    numbers = wide(value)
    return _Known(np.zeros(numbers.shape), np.abs(numbers) if numbers.dtype.kind == "f" else numbers, numbers, {})


def _accelerated(
    of: Implementation, ranges: Mapping[str, float], operands: Sequence[_Known], written: _Writer
) -> _Known:
    """Roundings of operands, the exact operator on them, and the accelerator's own error."""
    bounds = of.bounds_in(ranges)
    if bounds.on_quantised is None:
        raise Unbounded(f"{of.node.operator} has no bound for these ranges: {bounds.reason}")
    got = []
    for name, operand in zip(of.operands, operands, strict=True):
        at = written.at(name)
        if operand.constant is None:
            change = of.rounding(name, ranges[name])
            most = np.minimum(operand.most + change, ranges[name])
            moved = _off(operand, change, most, operand.each(partial(np.full_like, fill_value=change)))
            origin = None if operand.origin is None else np.minimum(operand.origin + change, ranges[name])
            moved = replace(moved, copies=operand.copies, origin=origin)
            got.append(at.write("operand", moved, [operand], change))
        else:
            rounded = of.constant_of(name)
            apart: Reals = rounded - operand.constant
            none: Form | None = None if apart.any() else {}
            changed = _Known(np.abs(apart), np.abs(rounded), operand.constant, none, apart)
            got.append(at.write("operand", changed, [operand]))
    exact = _passed(of.node, of.types, got, 0.0, written)
    # float32 rounds the number that the accelerator gave, which the theorem is about, by nothing: it has 24 bits
    result = _off(exact, bounds.on_quantised, exact.most + bounds.on_quantised)
    return written.write("own", result, [exact], bounds.on_quantised)


def _off(known: _Known, by: Reals | float, most: Reals, form: Form | None = None) -> _Known:
    """A value that may be off by so much more, of which a form may be known."""
    error = known.error + by
    extra = fresh(np.broadcast_to(np.asarray(by, np.float64), error.shape)) if form is None else form
    return _Known(error, most, None, None if known.form is None or extra is None else added(known.form, extra))


@dataclass(frozen=True, eq=False)
class _Operation:
    """An operator on what is known of its operands, with ``rounding`` for each number that it computes; 0 is exact."""

    node: Node
    types: Sequence[TensorType]
    operands: Sequence[_Known]
    rounding: float

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.node.operator

    @property
    def errors(self) -> list[Reals]:
        """How far each operand may be off."""
        return [k.error for k in self.operands]

    @property
    def mosts(self) -> list[Reals]:
        """The magnitudes of operands."""
        return [k.most for k in self.operands]

    def run(self, arrays: Sequence[Array]) -> Reals:
        """The exact operator on other operands."""
        return np.asarray(Sides(self.node, self.types, (), ()).run(arrays), np.float64)

    @property
    def linear(self) -> Linear:
        """The operator, for what it does with matrices."""
        return Linear(self.node, self.types)

    def sloped(self, most: float) -> Form | None:
        """Of a function of one operand with slopes in [0, most]: half of the most, and an atom within that."""
        (operand,) = self.operands
        if operand.form is None:
            return None
        kept, bounds, half = divided(operand.form, operand.error.shape), operand.bounds, most / 2
        elements, length = bounds.elements + kept.small.elements, bounds.length + kept.small.length
        atom = fresh(elements * half * UPWARD, length * half * UPWARD)
        return None if atom is None else added(scaled(kept.large, half), atom)

    def rounded(self, exact: _Known, times: int) -> _Known:
        """A result, each element of which comes from so many operations of numbers that add up to its ``most``."""
        most = exact.most
        if not self.rounding:
            return exact
        if self.node.type.dtype not in ("float32", "float64"):
            raise Unbounded(f"no rule says how the host rounds {self.name} of {self.node.type.dtype}")
        if not np.isfinite(most).all():
            raise Unbounded(f"{self.name} rounds numbers on the host of which no range is known")
        if times > _MOST_TERMS:
            raise Unbounded(f"{self.name} rounds {times:,} times on the host, and at most {_MOST_TERMS:,} are counted")
        if (most * (2 * times + 2)).max(initial=0.0) > _LARGEST:  # also of a mean's sum
            raise Unbounded(f"{self.name} may leave the range of float32 on the host")
        off = times * (self.rounding * most + _UNDERFLOW)
        return _off(exact, off, most + off)


def _passed(
    node: Node, types: Sequence[TensorType], operands: Sequence[_Known], rounding: float, written: _Writer
) -> _Known:
    """What an operator makes of errors.  Raises Unbounded where no finite error is known."""
    if lookup(node.operator).expand is not None:
        return _composite(node, types, operands, rounding, written)
    if node.type.kind != "float":
        constants = [k.constant for k in operands if k.constant is not None and not k.error.any()]
        if len(constants) < len(operands):
            raise Unbounded(f"{node.operator} gives no real numbers")
        return written.write("constant", _constant(Sides(node, types, (), ()).run(constants)), operands)
    rule = _RULES.get(node.operator)
    if rule is None:
        raise Unbounded(f"no rule says what errors become in {node.operator}")
    if node.operator not in _LINEAR:
        operands = [_settled(k, written) for k in operands]
    known = rule(_Operation(node, types, operands, rounding))
    # of nothing, an extremum is an infinity and a mean is no number: neither is an error
    if not ((known.error >= 0) & (known.error < np.inf)).all() or not (known.most >= 0).all():
        raise Unbounded(f"{node.operator} has elements of which no finite error is known")
    return written.write(LAW_OF[node.operator], known, operands)


def _settled(of: _Known, written: _Writer) -> _Known:
    """The same, with what its form says of elements."""
    if of.form is None:
        return of
    settled = replace(of, error=of.bounds.elements)
    if of.step < 0:
        return settled
    return replace(written, place=written.steps[of.step].place).write("form", settled, [of])


def _moved(of: _Operation) -> _Known:
    """Errors go where elements go."""
    at = [k.constant if t.kind != "float" else None for k, t in zip(of.operands, of.types, strict=True)]
    if any(a is None and t.kind != "float" for a, t in zip(at, of.types, strict=True)):
        raise Unbounded(f"indices of {of.name} are no constants")

    def moved(parts: Sequence[Array]) -> Reals:
        return of.run([p if a is None else a for p, a in zip(parts, at, strict=True)])

    fixed = [k.constant for k in of.operands if k.constant is not None]
    error, most = moved(of.errors), moved(of.mosts)
    if len(fixed) == len(of.operands):
        changes = [np.zeros(k.error.shape) if k.change is None else k.change for k in of.operands]
        return _Known(error, most, of.run(fixed), None, moved(changes) if error.any() else None)
    moved_form = of.linear.moved([k.as_form for k in of.operands], at)
    return replace(_Known(error, most, None, moved_form), **_copies(of, at))


def _copies(of: _Operation, at: Sequence[Array | None]) -> dict[str, Any]:
    """Of what a moved value has copies, where it has them of one value, and zeros."""
    value, *others = of.operands
    if any(k.constant is None for k in others) or (of.name == "pad" and others and others[0].most.any()):
        return {}
    origin = value.most if value.origin is None else value.origin
    copies = identity(value.most.shape) if value.copies is None else value.copies
    if copies is None or of.name == "concat" or not np.isfinite(origin).all():
        return {}
    moved = of.linear.moved([{_ANY: copies}, *({} for _ in others)], at)
    return {} if moved is None else {"copies": moved[_ANY], "origin": origin}


_ANY = Atom(np.ones(1), 1.0)
"""Stands for what is multiplied."""


def _along_axes(of: _Operation) -> _Known:
    """Sums and means along axes: an addition for each element but one, and a division."""
    terms = math.prod(of.types[0].shape[axis] for axis in integers_of(dict(of.node.attributes), "axes"))
    form = of.linear.along_axes(of.operands[0].as_form, terms)
    return of.rounded(_Known(of.run(of.errors), of.run(of.mosts), None, form), terms)


def _so_far(of: _Operation) -> _Known:
    """Sums of all elements so far: the last one is of the whole axis."""
    terms = of.types[0].shape[integer_of(dict(of.node.attributes), "axis")]
    return of.rounded(_Known(of.run(of.errors), of.run(of.mosts)), terms)


def _of_windows(of: _Operation) -> _Known:
    """Means of windows, which may overlap: as many operations as a window has elements."""
    terms = math.prod(integers_of(dict(of.node.attributes), "kernel"))
    return of.rounded(_Known(of.run(of.errors), of.run(of.mosts)), terms)


def _added(of: _Operation) -> _Known:
    """Sums and differences of two operands."""
    first, second = (k.as_form for k in of.operands)
    form = None
    if first is not None and second is not None and of.types[0].shape == of.types[1].shape:
        form = added(first, second if of.name == "add" else scaled(second, -1.0))
    return of.rounded(_Known(np.add(*of.errors), np.add(*of.mosts), None, form), 1)


def _one_of(of: _Operation) -> _Known:
    """Operators that move by no more than the operand that moves most, element by element."""
    error = np.maximum.reduce(of.errors)
    form = of.sloped(1.0) if of.name == "relu" else None
    return _Known(error, np.maximum.reduce(of.mosts), None, form)


def _extremum(of: _Operation) -> _Known:
    """Extrema of several elements, also minima: they move by no more than the one that moves most."""
    if of.name == "reduce_min":
        of = replace(of, node=replace(of.node, operator="reduce_max"))
    return _Known(of.run(of.errors), of.run(of.mosts))


def _squashed(of: _Operation) -> _Known:
    """The logistic function and tanh, which stay within 1; their float32 is within two operations' error of 1."""
    slope, apart = {"sigmoid": (0.25, 1.0), "tanh": (1.0, 2.0)}[of.name]
    error = np.minimum(of.errors[0] * slope, apart)
    return of.rounded(_Known(error, np.ones(error.shape), None, of.sloped(slope)), 2)


def _scaled(of: _Operation) -> _Known:
    """Products of elements."""
    return _product(of, 1)


def _matrices(of: _Operation) -> _Known:
    """Products of matrices."""
    return _product(of, of.types[0].shape[-1])


def _convolution(of: _Operation) -> _Known:
    """Convolutions: a product for each element of a filter."""
    return _product(of, math.prod(of.types[1].shape[1:]))


def _product(of: _Operation, terms: int) -> _Known:
    """Products a b where the reference has r s: a b - r s = (a - r) s + a (b - s).

    A constant's reference is known.  Of other operands s is within b and its error.
    """
    places = [place for place, k in enumerate(of.operands) if k.constant is not None]
    fixed = places[-1] if places else 1
    other, own = of.operands[1 - fixed], of.operands[fixed]
    reference = own.most + own.error if own.constant is None else np.abs(own.constant)

    def run(x: Reals, y: Reals) -> Reals:
        return of.run([y, x] if fixed == 0 else [x, y])

    known = bool(np.isfinite(other.most).all() and np.isfinite(own.most).all())
    if not known and (own.error.any() or own.constant is None):
        raise Unbounded(f"{of.name} is of numbers of which no range is known")
    error = run(other.error, reference)
    if own.error.any():
        error = error + run(other.most, own.error)
    most = run(other.most, own.most) if known else np.full(error.shape, np.inf)
    form = None
    if own.constant is not None and (own.change is not None or not own.error.any()):
        form = of.linear.product(fixed, own.constant, other.as_form)
        if form is not None and own.change is not None and own.error.any():
            weights = of.linear.product(fixed, own.change, other.each(lambda most: most))
            form = None if weights is None else added(form, weights)
    return of.rounded(_Known(error, most, None, form), terms)


_LINEAR = frozenset(
    {"broadcast", "reshape", "transpose", "slice", "concat", "pad", "reverse", "gather", "gather_elements", "patches"}
    | {"reduce_sum", "mean", "add", "sub", "mul", "matmul", "conv"}
)
"""What keeps forms."""
_RULES: Mapping[str, Callable[[_Operation], _Known]] = {
    **dict.fromkeys(("broadcast", "reshape", "transpose", "slice", "concat", "pad", "reverse"), _moved),
    **dict.fromkeys(("gather", "gather_elements", "patches"), _moved),
    **dict.fromkeys(("reduce_sum", "mean"), _along_axes),
    "cumsum": _so_far,
    "avg_pool": _of_windows,
    **dict.fromkeys(("add", "sub"), _added),
    **dict.fromkeys(("relu", "neg", "abs", "maximum", "minimum", "clamp"), _one_of),
    **dict.fromkeys(("reduce_max", "reduce_min", "max_pool"), _extremum),
    **dict.fromkeys(("sigmoid", "tanh"), _squashed),
    "mul": _scaled,
    "matmul": _matrices,
    "conv": _convolution,
}
"""The rules of operators, by their meaning; other operators, composite ones apart, have no bound."""


def _composite(
    node: Node, types: Sequence[TensorType], operands: Sequence[_Known], rounding: float, written: _Writer
) -> _Known:
    graph = expansion(node.operator, tuple(types), node.attributes)
    known = {graph.inputs[f"x{i}"]: k for i, k in enumerate(operands)}
    for i, inner in enumerate(graph.nodes):
        at = written.at(i)
        if inner.operator == "constant":
            known[i] = at.write("constant", _constant(graph.constant(i)), ())
        elif inner.operator != "input":
            of = [known[j] for j in inner.operands]
            known[i] = _passed(inner, [graph.nodes[j].type for j in inner.operands], of, rounding, at)
    return known[graph.outputs["y"]]
