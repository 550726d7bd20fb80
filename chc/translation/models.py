"""Models as inputs: where a solver says that a goal does not follow, its values are tried as inputs of both functions.

A model is a hint and no more.  It has values for what the question is about (sizes, numbers, subscripts, elements that
are read), and makes up what folds, calls and operators without a meaning there give.  Evaluation decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ir_semantics.elements.evaluate import Budget, Evaluation
from ir_semantics.elements.terms import Input, Symbol, Term, variable_of
from ir_semantics.scalars.floats import decode
from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format, Value
from ir_semantics.scalars.machine import MACHINE_FAMILIES, from_code
from ir_semantics.scalars.terms import NotInterpreted

from .counterexample import Counterexample
from .encode import Question
from .runs import STEPS, Runs

ALL, ONE = 10 * STEPS, 2 * STEPS
"""Evaluation steps of all models of a proof, and of one."""
LAST = (1 << 63) - 1
"""The last number of type index."""


class Refuted(Exception):
    """A model's values are a counterexample."""

    def __init__(self, counterexample: Counterexample) -> None:
        super().__init__(str(counterexample))
        self.counterexample = counterexample


@dataclass
class Models:
    """Tries models; what is compared first is at ``place``: a result's number, or MEMORY, and subscripts.

    ``sizes`` are those that questions have as numbers.
    """

    search: Runs
    place: tuple[int, Sequence[Term]] = (0, ())
    sizes: Mapping[Symbol, int] = field(default_factory=dict)
    _left: int = ALL
    _seen: set[str] = field(default_factory=set)

    def tried(self, asked: Question, model: Mapping[str, int]) -> None:
        """Evaluates both functions on a model's values; raises Refuted where they differ."""
        values = values_of(asked, model)
        numbers = {t for t in self.search.arguments.scalars if t.kind == INTEGERS}
        for more in (0, 1):  # a conversion of 2^32 may be any word in a model, and is 0, that of 2^32 + 1 is not
            inputs = self._inputs({t: min(v + more, LAST) if t in numbers else v for t, v in values.items()})
            if inputs is not None and self._left > 0 and repr(inputs) not in self._seen:
                self._seen.add(repr(inputs))
                self._try(inputs)

    def _try(self, inputs: Counterexample) -> None:
        budget = Budget(min(ONE, self._left))
        self._left -= budget.steps
        found = self.search.replayed(inputs, budget)
        self._left += max(0, budget.steps)
        if found is not None:
            raise Refuted(found)

    def _inputs(self, values: Mapping[Term, Value]) -> Counterexample | None:
        """Inputs in which what the model does not say is small; None where a subscript has no value."""
        arguments = self.search.arguments
        arrays: dict[Input, dict[tuple[int, ...], Value]] = {a: {} for a in arguments.all_arrays}
        here = {**self.sizes, **{variable_of(t): v for t, v in values.items() if t.op == "symbol"}}
        sizes = {variable_of(t): int(here.get(variable_of(t), 2)) for t in arguments.sizes}
        scalars = {variable_of(t): here.get(variable_of(t), _small(t.kind)) for t in arguments.scalars}
        known = {**here, **sizes, **scalars}
        budget = Budget(STEPS)

        def number(term: Term) -> int:
            symbols = {s: known.get(s, _small(s.kind)) for s in term.symbols}
            return Evaluation(symbols, lambda a, _: _small(a.kind), budget, known=dict(values)).integer(term)

        try:
            for term, value in values.items():
                if term.op == "read" and isinstance(term.payload, Input) and term.payload in arrays:
                    arrays[term.payload][tuple(map(number, term.args))] = value
            at = (self.place[0], *map(number, self.place[1]))
        except NotInterpreted:
            return None
        elements = {a.name: {p: v for p, v in e.items() if min(p, default=0) >= 0} for a, e in arrays.items()}
        return Counterexample(
            {s.name: v for s, v in sizes.items()}, {s.name: v for s, v in scalars.items()}, elements, "", "", "", at
        )


def values_of(asked: Question, model: Mapping[str, int]) -> dict[Term, Value]:
    """What a model says of terms of the formats that it has values of; codes of abstract floats are none."""
    values = {
        term: _value(model[name], term.kind)
        for name, term in asked.variables.items()
        if name in model and (term.kind.family in ("int", *MACHINE_FAMILIES) or asked.has_floats)
    }
    return {t: v for t, v in values.items() if t.kind != INTEGERS or -LAST <= v <= LAST}


def _value(code: int, kind: Format) -> Value:
    if kind == BOOLEAN:
        return bool(code)
    if kind.family == "float":
        return decode(code, kind)
    return code if kind == INTEGERS else from_code(code, kind)


def _small(kind: Format) -> Value:
    return False if kind == BOOLEAN else 0.0 if kind.family == "float" else 0
