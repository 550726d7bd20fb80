"""The bound of a network on a run: what its operators' bounds leave of the distance from the reference.

The reference is the graph on the same inputs in float64.  On one run all operands are known, of the accelerators and of
the reference.  So it is known by which linear map a difference in front of an operator becomes one behind it
(:mod:`.differences`).  With weights l of results, the transposed maps give weights of all that went before, and

    l (y - r)  =  sum over operators of  l_v (rounding of its operands + its own error)  +  roundings of float64.

Roundings of operands, and those of the host, are known with their signs.  Of an accelerator's own error only its
theorem's bound is taken.

Another input has another bound: this one says how much of an error the operators' bounds explain, and whose they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ir_semantics.graph import Graph
from ir_semantics.graph.types import Array
from rewrites.compiler.codegen import Bounds, Executed, Implementation

from .differences import UPWARD, Difference, Ledger, Reals, Sides, Unbounded, apart, constant, difference, hold, wide

MOST_ROWS = 32
"""Elements of an output that a bound is composed for; of larger outputs those that are furthest off."""
MOST_ELEMENTS = 1 << 24
"""Elements of all values of a graph for which bounds are composed: they are kept, twice."""
COMPOSITION = "how operators' errors compose"
"""What every bound of a network rests on: :mod:`.differences`, which is derived by hand."""


@dataclass(frozen=True)
class OwnError:
    """What an accelerator operator's own error may add to an output: its node's number, and the most it adds."""

    node: int
    most: float


@dataclass(frozen=True)
class Composed:
    """The bound of an output on a run, beside its largest ``error`` against the reference in float64.

    Both are None where there is no bound, and ``reason`` says why.  The bound is the largest one of ``elements`` of the
    output, those that are furthest off; ``inside`` says whether each of them is within its own.  At the element of the
    bound, ``known`` is what roundings of operands and of the host add, with their signs, and ``own`` what operators may
    add, the largest first.  Of several runs it is the bound of ``sample``, and ``error`` that of ``error_sample``.
    ``declared`` is what the bound rests on beside proved bounds of operators.
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
    """A node: its difference, and what the run adds to it in operands and in the result, beside its own bound."""

    difference: Difference
    rounded: list[Reals | None]
    added: Reals | None
    own: Reals | None = None


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
            self.steps[number] = _Step(constant(value), [], None)
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
        of = difference(Sides(node, types, actual, reference, fixed))
        rounded = [None if a is g else a - g for a, g in zip(actual, given, strict=True)]
        if executed is not None:
            assert bounds is not None and bounds.on_quantised is not None
            own = np.asarray(bounds.on_quantised) if bounds.elements is None else bounds.elements
            self.steps[number] = _Step(of, rounded, None, own)
        elif value.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                added = value - of.actual
            if not np.isfinite(added).all():
                raise Unbounded(f"{node.operator} has values that are not finite")
            self.steps[number] = _Step(of, rounded, added)
        elif np.array_equal(value, of.reference):
            self.steps[number] = _Step(of, rounded, None)
        else:
            raise Unbounded(f"{node.operator} decides otherwise than in the reference")

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
        ledger = Ledger.of(len(furthest))
        own = self._sources(number, weights.reshape(-1, *self.values[number].shape), ledger)
        known = ledger.known
        totals = np.abs(known) + sum(own.values(), np.zeros(len(furthest))) * UPWARD + ledger.slack
        if not np.isfinite(totals).all():
            return Composed(name, reason="numbers on the way are not finite")
        worst = int(totals.argmax())
        parts = sorted((OwnError(i, float(most[worst])) for i, most in own.items()), key=lambda part: -part.most)
        inside = bool((errors[furthest] <= totals * UPWARD).all())
        declared = (COMPOSITION, *self.declared, *(f"float64 of {operator}" for operator in sorted(ledger.declared)))
        bound = float(totals[worst]) * UPWARD
        return Composed(
            name, float(errors.max()), bound, len(furthest), inside, "", float(known[worst]), tuple(parts), declared
        )

    def _sources(self, output: int, weights: Reals, ledger: Ledger) -> dict[int, Reals]:
        """By node the most that own errors add, for every row of weights; the ledger gets all else."""
        own = dict[int, Reals]()
        held = {output: weights}
        for number in sorted(self.steps, reverse=True):
            if number not in held:
                continue
            step, of_result = self.steps[number], held.pop(number)
            if step.added is not None:
                ledger.settle(of_result, step.added)
            if step.own is not None:
                own[number] = (np.abs(of_result) * step.own).reshape(len(of_result), -1).sum(axis=1)
            pulled = step.difference.pull(of_result, ledger)
            for part, rounded in zip(pulled, step.rounded, strict=False):
                if part is not None and rounded is not None:
                    ledger.settle(part, rounded)
            for operand, part in zip(self.graph.nodes[number].operands, pulled, strict=False):
                reference = self.steps[operand].difference.reference
                hold(held, operand, part, apart(self.values[operand], reference), ledger)
        return own
