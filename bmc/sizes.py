"""Sizes inside a mapping's domain, sampled from its conditions: corners first, then at random.

They are found by a solver's models of the conditions and by moves from one model to the next, not from the shapes that
the mapping's author samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pysmt.shortcuts as smt
from pysmt.utils import quote

from ila_lang import BvSort
from ila_lang.mapping import TensorMapping
from smt_encodings.environment import fresh_symbols
from smt_encodings.expressions.bits import BitEncoding, variable_text
from smt_encodings.printer import script
from smt_encodings.runs import Point, Points
from smt_encodings.sizes import points_of
from smt_encodings.solvers import z3 as solver_z3

BOUNDS = (1, 2, 8, 64, 1024, None)
"""Models are sought in which no size is larger than this, one bound after the other."""
SECONDS, PATIENCE = 1.0, 5.0
"""For each question to the solver, as it counts them, so that every machine finds the same sizes."""
MOST_QUESTIONS = 12


class SizeSampler:
    """Points of a mapping's size domain at which the output has an element."""

    def __init__(self, mapping: TensorMapping) -> None:
        self.mapping = mapping
        self.points = points_of(mapping)
        with fresh_symbols():
            encoding = BitEncoding()
            nonempty = [extent > 0 for extent in (mapping.rows, mapping.columns)]
            conditions = [encoding.term(c) for c in (*(c for _, c in mapping.domain), *nonempty)]
            sizes = [encoding.term(v) for v in mapping.parameters.values()]
            # every size is declared, whether or not a condition speaks of it
            conditions.append(smt.And([smt.Equals(size, size) for size in sizes]))
            self._text = script(conditions).replace("(check-sat)\n", "")
            self._symbols = {name: variable_text(v) for name, v in mapping.parameters.items()}
        self._questions = 0

    def smallest(self) -> Point | None:
        """Sizes of which none can be made smaller alone; None where the solver knows none."""
        point = self._model({})
        return None if point is None else self.points.lowered(point)

    def above(self, sizes: Point, name: str) -> Point | None:
        """With the next larger value of one size; the others change only where they have to."""
        point = self.points.above(sizes, name)
        if point is None and (larger := [v for v in self.points.corners[name] if v > sizes[name]]):
            model = self._model({name: larger[0]})
            point = None if model is None else self.points.lowered(model, name)
        return point

    def _model(self, fixed: Mapping[str, int]) -> Point | None:
        """Sizes of which some are given, and the others are as small as the bounds that are tried say."""
        for bound in BOUNDS:
            if self._questions >= MOST_QUESTIONS:
                return None
            self._questions += 1
            lines = []
            for name, variable in self.mapping.parameters.items():
                symbol, width = quote(self._symbols[name]), variable.width
                if name in fixed:
                    lines.append(f"(assert (= {symbol} (_ bv{fixed[name]} {width})))")
                elif bound is not None:
                    lines.append(f"(assert (bvule {symbol} (_ bv{min(bound, (1 << width) - 1)} {width})))")
            script = "\n".join([self._text, *lines, "(check-sat)\n"])
            answer = solver_z3.check(script, SECONDS, PATIENCE, alone=solver_z3.FIRST_ATTEMPT)
            if answer.status == "sat":
                point = {name: answer.model.get(symbol, 0) for name, symbol in self._symbols.items()}
                if self.points.inside(point):
                    return point
        return None


def ends(mapping: TensorMapping, sizes: Point) -> dict[str, Iterator[Point]]:
    """For each size the points at which it alone is at the end of a range, smallest first, and the others are small.

    The ranges are those of registers' widths first, then of every power of two and literal.
    """
    points = points_of(mapping)
    least = points.lowered(dict(sizes))
    states = [*mapping.device.ila.states.values(), *mapping.ir.ila.states.values()]
    widths = {state.width for state in states if isinstance(state.sort, BvSort)}
    first = {end for width in widths for end in ((1 << width) - 1, 1 << width)}
    return {name: _alone(points, least, name, first) for name in least}


def _alone(points: Points, least: Point, name: str, first: set[int]) -> Iterator[Point]:
    larger = [value for value in points.corners[name] if value > least[name]]
    for value in sorted(larger, key=lambda value: (value not in first, value)):
        if points.inside(point := least | {name: value}):
            yield point
