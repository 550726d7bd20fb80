"""The bound of a network on a run: what its operators' bounds leave of the distance from the reference.

The reference is the graph on the same inputs in float64.  On one run all operands are known, of the accelerators and of
the reference.  So it is known by which linear map a difference in front of an operator becomes one behind it
(:mod:`.differences`).  With weights l of results, the transposed maps give weights of all that went before, and

    l (y - r)  =  sum over operators of  l_v (rounding of its operands + its own error)  +  what weights miss.

Roundings of operands, and those of the host, are known with their signs.  Of an accelerator's own error only what its
theorem says at these operands is taken: a bound, or where that is known, a number with a sign.  That the sum is the
whole error does not rest on the maps: :mod:`.balance` adds it up, with what they miss.

Another input has another bound: this one says how much of an error the operators' bounds explain, and whose they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ir_semantics.graph import Graph
from ir_semantics.graph.build import expansion
from ir_semantics.graph.operator import lookup
from ir_semantics.graph.types import Array
from rewrites.compiler.codegen import Bounds, Executed, Implementation

from .balance import UNIT, UPWARD, Balance, Value
from .differences import Difference, Reals, Sides, Unbounded, constant, difference, wide

MOST_ROWS = 32
"""Elements of an output that a bound is composed for; of larger outputs those that are furthest off."""
MOST_ELEMENTS = 1 << 24
"""Elements of all values of a graph for which bounds are composed: they are kept, twice."""
_LINEAR = frozenset(
    {
        "matmul",
        "conv",
        "add",
        "mean",
        "reduce_sum",
        "avg_pool",
        "relu",
        "maximum",
        "reduce_max",
        "max_pool",
        "broadcast",
    }
    | {"reshape", "transpose", "slice", "concat", "pad", "reverse", "gather", "patches", "input", "constant"}
)
"""Sums of products, and what does not enlarge their roundings: on magnitudes each is what its numbers add up to."""
_LIBRARY = 2.0**-40
"""What is taken for the relative error of other operators in float64: declared, not proved."""


@dataclass(frozen=True)
class OwnError:
    """What an accelerator's own error adds to an output: its node, the most, and with a sign what is known besides."""

    node: int
    most: float
    known: float = 0.0

    @property
    def size(self) -> float:
        """The most that it adds, with either sign."""
        return abs(self.known) + self.most


@dataclass(frozen=True)
class Composed:
    """The bound of an output on a run, beside its largest ``error`` against the reference in float64.

    Both are None where there is no bound, and ``reason`` says why.  The bound is the largest one of ``elements`` of the
    output, those that are furthest off; ``inside`` says whether each of them is within its own.  At the element of the
    bound, ``known`` is what roundings add that are known with their signs, and ``own`` what operators add, the largest
    first.  Of several runs it is the bound of ``sample``, and ``error`` that of ``error_sample``.
    ``missed`` is what weights and float64 may miss, and ``declared`` what the bound rests on beside proved bounds of
    operators.
    """

    output: str
    error: float | None = None
    bound: float | None = None
    elements: int = 0
    inside: bool | None = None
    reason: str = ""
    known: float = 0.0
    own: tuple[OwnError, ...] = ()
    declared: tuple[str, ...] = ()
    sample: int = 0
    error_sample: int = 0
    missed: float = 0.0

    @property
    def factor(self) -> float | None:
        """How many times the error the bound is; None without one, and where there is no error."""
        return self.bound / self.error if self.bound is not None and self.error else None

    def joined(self, later: Composed) -> Composed:
        """The output in these runs and in later ones: the largest bound, and the largest error, of any of them."""
        if self.bound is None or later.bound is None:
            return self if self.bound is None else later
        assert self.error is not None and later.error is not None, "there are bounds"
        worse = later if later.bound > self.bound else self
        further = later if later.error > self.error else self
        inside = bool(self.inside and later.inside)
        declared = tuple(dict.fromkeys(self.declared + later.declared))
        at = further.error_sample
        return replace(worse, error=further.error, error_sample=at, inside=inside, declared=declared)

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Composed:
        """What ``asdict`` was given; raises TypeError or KeyError where it is none."""
        own = tuple(OwnError(**part) for part in entries["own"])
        return cls(**entries | {"own": own, "declared": tuple(entries["declared"])})


@dataclass(eq=False)
class _Step:
    """A node: its difference on what it ``got``, with the reference's constants, and what else the run adds.

    ``exact`` is the operator on what it got, in float64 up to ``evaluated``.  Parts of the result are ``known``: what
    constants changed, and what the host rounded.  An accelerator's error is at most ``own``, or so far from a
    ``centre``.
    """

    difference: Difference
    got: list[Array]
    exact: Array
    known: list[Reals] = field(default_factory=list)
    own: Reals | None = None
    centre: Reals | None = None
    evaluated: Reals | float = 0.0


@dataclass(eq=False)
class RunBound:
    """Takes the nodes of a run in order, then composes.  What prevents a bound is kept as ``reason``."""

    graph: Graph
    implementations: Mapping[int, Implementation]
    reason: str = ""
    steps: dict[int, _Step] = field(default_factory=dict)
    values: dict[int, Array] = field(default_factory=dict)
    declared: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        elements = sum(node.type.elements for node in self.graph.nodes)
        if elements > MOST_ELEMENTS:
            self.reason = f"the network has {elements:,} values, and bounds are composed for at most {MOST_ELEMENTS:,}"

    def take(self, number: int, value: Array, executed: Executed | None, bounds: Bounds | None) -> None:
        """A node's value, the accelerator's record of it, and its bounds."""
        if self.reason:
            return
        try:
            self._take(number, wide(value), executed, bounds)
        except Unbounded as error:
            self.reason = f"node {number}: {error}"
        if self.reason:
            self.steps.clear()
            self.values.clear()

    def _take(self, number: int, value: Array, executed: Executed | None, bounds: Bounds | None) -> None:
        node = self.graph.nodes[number]
        self.values[number] = value
        if node.operator in ("input", "constant"):
            self.steps[number] = _Step(constant(value), [], value)
            return
        given = [self.values[i] for i in node.operands]
        actual = given
        if executed is not None:
            assert bounds is not None, "an accelerator's result comes with what is known of it"
            actual = [executed.quantised[name] for name in self.implementations[number].operands]
            if bounds.on_quantised is None:
                raise Unbounded(f"{node.operator} has no bound: {bounds.reason}")
            if not bounds.theorem:
                self.declared[f"the bound of {node.operator}"] = None
            if bounds.declared:
                self.declared[bounds.declared] = None
        types = [self.graph.nodes[i].type for i in node.operands]
        reference = [self.steps[i].difference.reference for i in node.operands]
        fixed = [self.graph.nodes[i].operator == "constant" for i in node.operands]
        got = [r if of_constant else a for a, r, of_constant in zip(actual, reference, fixed, strict=True)]
        of = difference(Sides(node, types, got, reference))
        step = self.steps[number] = _Step(of, got, of.actual)
        if any(a is not g for a, g in zip(actual, got, strict=True)):
            step.exact = Sides(node, types, actual, reference).run(actual)
            step.known.append(_apart(node.operator, step.exact, of.actual))
        if executed is not None:
            assert bounds is not None and bounds.on_quantised is not None
            step.own = np.asarray(bounds.on_quantised) if bounds.elements is None else bounds.elements
            if bounds.centre is not None:
                step.own, step.centre = bounds.radius, bounds.centre
            step.evaluated = self._evaluated(Sides(node, types, actual, reference), step.exact)
        elif value.dtype.kind == "f":
            step.known.append(_apart(node.operator, value, step.exact))
        elif not np.array_equal(value, of.reference):
            raise Unbounded(f"{node.operator} decides otherwise than in the reference")

    def _evaluated(self, of: Sides, exact: Array) -> Reals | float:
        """How far the exact result may be from the one in float64."""
        expanded = lookup(of.node.operator).expand is not None
        graph = expansion(of.node.operator, tuple(of.types), of.node.attributes) if expanded else None
        names = {of.node.operator} if graph is None else {inner.operator for inner in graph.nodes}
        if names <= _LINEAR:
            terms = sum(operand.size for operand in of.actual) + 8
            return terms * UNIT * of.run([np.abs(operand) for operand in of.actual]) * UPWARD
        self.declared[f"float64 of {of.node.operator}"] = None
        return _LIBRARY * (1 + np.abs(exact))

    def composed(self) -> list[Composed]:
        """The bounds of all outputs that are real numbers."""
        return [
            self._output(name, number)
            for name, number in self.graph.outputs.items()
            if self.graph.nodes[number].type.kind == "float"
        ]

    def _output(self, name: str, number: int) -> Composed:
        if self.reason:
            return Composed(name, reason=self.reason)
        with np.errstate(invalid="ignore"):
            errors = np.abs(self.values[number] - self.steps[number].difference.reference).reshape(-1)
        if not np.isfinite(errors).all():
            return Composed(name, reason="the output, or its reference, has NaN or an infinity")
        if not errors.size:
            return Composed(name, 0.0, 0.0, 0, True)
        furthest = np.argsort(-errors, kind="stable")[:MOST_ROWS]
        weights = np.zeros((len(furthest), errors.size))
        weights[np.arange(len(furthest)), furthest] = 1.0
        balance = self._balanced(number, weights.reshape(-1, *self.values[number].shape))
        totals = balance.totals()
        if not np.isfinite(totals).all():
            return Composed(name, reason="numbers on the way are not finite")
        worst = int(totals.argmax())
        zeros = np.zeros_like(totals)
        own = [
            OwnError(i, float(m[worst]), float(balance.centres.get(i, zeros)[worst])) for i, m in balance.own.items()
        ]
        return Composed(
            name,
            error=float(errors.max()),
            bound=float(totals[worst]),
            elements=len(furthest),
            inside=bool((errors[furthest] <= totals).all()),
            known=float(balance.known[worst]),
            own=tuple(sorted(own, key=lambda part: -part.size)),
            declared=tuple(self.declared),
            missed=float(balance.missed[worst]),
        )

    def _balanced(self, output: int, weights: Reals) -> Balance:
        """What the weighted differences of an output consist of."""
        balance = Balance.of(output, self._value(output), weights)
        for number in sorted(self.steps, reverse=True):
            if number not in balance.held:
                continue
            step, of_result = self.steps[number], balance.take(number)
            for amounts in step.known:
                balance.settle(of_result, amounts)
            if step.own is not None:
                balance.own_error(number, of_result, step.own, step.centre)
                balance.miss(of_result, step.evaluated)
            operands = self.graph.nodes[number].operands
            pulled = zip(operands, step.difference.pull(of_result), step.got, strict=False)
            passed = [(i, part, got, self._value(i)) for i, part, got in pulled if part is not None]
            balance.pass_on(of_result, Value(step.difference.actual, step.difference.reference), passed)
        return balance

    def _value(self, number: int) -> Value:
        return Value(self.values[number], self.steps[number].difference.reference)


def _apart(operator: str, value: Array, other: Array) -> Reals:
    with np.errstate(invalid="ignore"):
        apart = np.asarray(value - other, np.float64)
    if not np.isfinite(apart).all():
        raise Unbounded(f"{operator} has values that are not finite")
    return apart
