"""What the error of a run consists of: sums that hold for any weights, whoever chose them.

Every value y of a run has a reference r.  A node with weights l for its result takes weights m for each operand, and

    l (y - r)  =  l (y - f(a))  +  l (f(a) - f(b))  +  [l (f(b) - r) - sum m (b - r')]
                  +  sum m (b - y')  +  sum m (y' - r')

is an identity in numbers: a are the operands as the operator got them, b the same with the reference's constants, y'
the operands' values, r' their references.  The last sum is what the operands' own nodes take up, with the sum of all
weights that they were given; inputs and constants have no difference.  So the first four sums of all nodes are the
whole error.  The first is an accelerator's own error, of which only what its theorem says is used, or the host's
rounding, which is known, as the second and the fourth are.  The third is what the weights miss: about 0 where m is the
transposed linear map of the operator (:mod:`.differences`).  It is computed, not derived, and its magnitude counts, so
that wrong weights make a bound larger, and never false.

All is float64.  By how much a sum of n products may be rounded is (n + 4) 2^-53 times the sum of their magnitudes
(Higham, Accuracy and Stability of Numerical Algorithms, section 3.1; 4 for differences, and for the factor itself), and
by how much what nodes add is, 2^-53 times the magnitude after each addition.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ir_semantics.graph.types import Array

from .differences import Reals

UNIT = 2.0**-53
"""The relative error of a float64 operation."""
TINY = 2.0**-1074
"""Above the error of a float64 operation whose result is below the normal numbers."""
UPWARD = 1 + 2.0**-20
"""Above the rounding of a float64 sum of up to 2^32 numbers >= 0."""


@dataclass(frozen=True, eq=False)
class Value:
    """A value of the run, and its reference: both real numbers."""

    run: Array
    reference: Array

    @property
    def apart(self) -> Reals:
        """How far they are apart, with a sign."""
        return np.asarray(self.run - self.reference, np.float64)


@dataclass(eq=False)
class Balance:
    """For each row of weights: what is ``known`` of an output's error, with its sign, and what may be ``missed``.

    ``own`` is what the operators' own errors add at most, by node, and ``centres`` what of these is known besides.
    ``held`` are weights of nodes that are not taken yet, and ``values`` what these are the weights of.
    """

    known: Reals
    missed: Reals
    held: dict[int, Reals]
    values: dict[int, Value]
    own: dict[int, Reals] = field(default_factory=dict)
    centres: dict[int, Reals] = field(default_factory=dict)

    @classmethod
    def of(cls, output: int, value: Value, weights: Reals) -> Balance:
        """Of rows of weights of an output's value."""
        zeros = np.zeros(len(weights))
        return cls(zeros, zeros, {output: weights}, {output: value})

    def take(self, number: int) -> Reals:
        """The weights of a node, all users of which were taken."""
        del self.values[number]
        return self.held.pop(number)

    def settle(self, weights: Reals, amounts: Reals) -> Reals:
        """Weighted amounts that are known."""
        settled = self._weighted(weights, amounts)
        self.known = self._sum(self.known, settled)
        return settled

    def own_error(self, number: int, weights: Reals, most: Reals, centre: Reals | None) -> None:
        """An accelerator's error of at most ``most``, or, if there is a centre, by at most that apart from it."""
        self.own[number] = _rows(np.abs(weights) * most)
        if centre is not None:
            self.centres[number] = self.settle(weights, centre)

    def miss(self, weights: Reals, most: Reals | float) -> None:
        """Amounts of at most so much that are not counted elsewhere."""
        self.missed = self.missed + _rows(np.abs(weights) * most) * UPWARD

    def pass_on(self, weights: Reals, result: Value, operands: list[tuple[int, Reals, Array, Value]]) -> None:
        """What of a result's weighted difference its operands take, and what is missed by that.

        Of each operand these are the number of its node, weights, what the operator got (with the reference's
        constants), and its value.
        """
        left = self._weighted(weights, result.apart)
        for number, part, got, value in operands:
            left = self._sum(left, -self._weighted(part, Value(got, value.reference).apart))
            if got is not value.run:
                self.settle(part, Value(got, value.run).apart)
            self._hold(number, part, value)
        self.missed = self.missed + np.abs(left) * UPWARD

    def _hold(self, number: int, weights: Reals, value: Value) -> None:
        if number in self.held:
            weights = self.held[number] + weights
            self.miss(weights, np.abs(value.apart) * UNIT)
        self.held[number], self.values[number] = weights, value

    def _sum(self, one: Reals, other: Reals) -> Reals:
        """A sum whose rounding is missed: terms of many nodes may cancel, so no slack of theirs covers it."""
        added = one + other
        self.missed = self.missed + UNIT * np.abs(added) * UPWARD
        return added

    def _weighted(self, weights: Reals, amounts: Array) -> Reals:
        """Sums of products, whose roundings are missed."""
        flat, of = weights.reshape(len(weights), -1), amounts.reshape(-1)
        self.missed = self.missed + ((of.size + 4) * UNIT * (np.abs(flat) @ np.abs(of)) + of.size * TINY) * UPWARD
        return np.asarray(flat @ of, np.float64)

    def totals(self) -> Reals:
        """The bounds of the rows."""
        return (np.abs(self.known) * UPWARD + sum(self.own.values(), np.zeros_like(self.known)) + self.missed) * UPWARD


def _rows(amounts: Reals) -> Reals:
    return np.asarray(amounts.reshape(len(amounts), -1).sum(axis=1))
