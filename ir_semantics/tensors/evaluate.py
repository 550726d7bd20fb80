"""Tensor terms on data: each operator's element expression, compiled to Python and run for every subscript.

Nothing about an operator is repeated here: the text that runs is printed from the expression that proofs use.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .comprehension import written
from .conditions import FALSE, All, AtLeastZero, Condition, IsZero, OneOf, TruthOf, holds
from .elements import BINARY, Apply, Choice, Element, IndexValue, Number, Read, Reduce
from .index import Index
from .numbers import Numbers, Reals
from .terms import Tensor, operands_of

Data = Mapping[str, NDArray[Any]]


class IllFormed(ValueError):
    """A term is not well formed at the given sizes."""


def shape_at(tensor: Tensor, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape at given sizes."""
    return tuple(d.value(sizes) for d in tensor.shape)


def evaluate(
    tensor: Tensor, sizes: Mapping[str, int], inputs: Data, numbers: Numbers | None = None
) -> NDArray[np.object_]:
    """The tensor at given sizes on given inputs (arrays of numbers of the interpretation, by default exact reals).

    Raises IllFormed where an operator's conditions do not hold, and ValueError where an input's shape does not fit.
    """
    domain = numbers if numbers is not None else Reals()
    done: dict[int, NDArray[np.object_]] = {}
    for term in operands_of(tensor):
        if not _well_formed(term, sizes):
            chosen = ", ".join(f"{name} = {value}" for name, value in sizes.items()) or "any sizes"
            if term.requires == FALSE:
                raise IllFormed(f"{term.operator} does not fit its operands at {chosen}")
            raise IllFormed(f"{term.operator} needs {term.requires}, which is false at {chosen}")
        extents = shape_at(term, sizes)
        if term.operator == "input":
            name = dict(term.attributes)["name"]
            array = np.asarray(inputs[name], dtype=object)
            if array.shape != extents:
                raise ValueError(f"the input {name} must have the shape {extents} at these sizes, not {array.shape}")
            done[id(term)] = array
            continue
        run = _compiled(term, [done[id(o)] for o in term.operands], sizes, inputs, domain)
        result = np.empty(extents, dtype=object)
        for at in itertools.product(*map(range, extents)):
            result[at] = run(*at)
        done[id(term)] = result
    return done[id(tensor)]


def _well_formed(term: Tensor, sizes: Mapping[str, int]) -> bool:
    try:
        return holds(term.requires, sizes)
    except ZeroDivisionError:
        return False


def _compiled(
    term: Tensor, operands: Sequence[NDArray[np.object_]], sizes: Mapping[str, int], inputs: Data, numbers: Numbers
) -> Callable[..., Any]:
    """The operator's element as a Python function of the subscripts."""
    element, subscripts, _ = written(term)
    writer = _Writer(numbers, dict(sizes))
    body = writer.element(element)
    arguments = ", ".join(writer.name(s) for s in subscripts)
    scope = writer.scope | {f"read_{j}": _reading(f"operand {j} of {term.operator}", a) for j, a in enumerate(operands)}
    scope |= {f"truth_{name}": _reading(name, np.asarray(a, dtype=object)) for name, a in inputs.items()}
    compiled: Callable[..., Any] = eval(f"lambda {arguments}: {body}", scope)
    return compiled


def _reading(what: str, array: NDArray[np.object_]) -> Callable[..., Any]:
    def read(*at: int) -> Any:
        if any(not 0 <= i < d for i, d in zip(at, array.shape, strict=True)):
            raise IndexError(f"{what} has the shape {array.shape} and is read at {at}")
        return array[at]

    return read


@dataclass
class _Writer:
    """Prints elements as Python expressions; ``scope`` is what they refer to."""

    numbers: Numbers
    sizes: dict[str, int]

    def __post_init__(self) -> None:
        self.scope: dict[str, Any] = {"div": _floor, "apply": self.numbers.apply, "integer": self.numbers.integer}
        self.scope |= {"fold": self._fold}

    def name(self, variable: str) -> str:
        return "v_" + variable.replace(".", "_d").replace("'", "_q")

    def index(self, value: Index) -> str:
        terms = []
        for monomial, coefficient in value.terms:
            factors = [str(coefficient)]
            for atom in monomial:
                if isinstance(atom, str):
                    factors.append(str(self.sizes[atom]) if atom in self.sizes else self.name(atom))
                else:
                    factors.append(f"div({self.index(atom.dividend)}, {self.index(atom.divisor)})")
            terms.append("*".join(factors if len(factors) == 1 or coefficient != 1 else factors[1:]))
        return f"({' + '.join(terms)})" if terms else "0"

    def condition(self, condition: Condition) -> str:
        match condition:
            case AtLeastZero(value):
                return f"({self.index(value)} >= 0)"
            case IsZero(value):
                return f"({self.index(value)} == 0)"
            case TruthOf(name, at, positive):
                return f"(bool(truth_{name}({', '.join(map(self.index, at))})) is {positive})"
            case All(parts):
                return "(" + " and ".join(map(self.condition, parts)) + ")" if parts else "True"
            case OneOf(parts):
                return "(" + " or ".join(map(self.condition, parts)) + ")" if parts else "False"

    def element(self, element: Element) -> str:
        match element:
            case Read(name, at):
                return f"read_{name[1:]}({', '.join(map(self.index, at))})"
            case Number(value):
                key = f"literal_{len(self.scope)}"
                self.scope[key] = self.numbers.literal(value)
                return key
            case IndexValue(value):
                return f"integer({self.index(value)})"
            case Apply("select", (condition, yes, no)):  # what is not chosen need not have a value
                chosen = f"apply('select', [{self.element(condition)}, True, False])"
                return f"({self.element(yes)} if {chosen} else {self.element(no)})"
            case Apply(op, args):
                return f"apply({op!r}, [{', '.join(map(self.element, args))}])"
            case Choice(condition, yes, no):
                return f"({self.element(yes)} if {self.condition(condition)} else {self.element(no)})"
            case Reduce(op, variable, extent, body):
                inner = f"lambda {self.name(variable)}: {self.element(body)}"
                return f"fold({op!r}, {self.index(extent)}, {inner})"

    def _fold(self, op: str, extent: int, body: Callable[[int], Any]) -> Any:
        if extent <= 0:
            unit = {"sum": 0, "max": float("-inf"), "min": float("inf")}[op]
            return self.numbers.literal(unit) if isinstance(unit, float) else self.numbers.integer(unit)
        total = body(0)
        for i in range(1, extent):
            total = self.numbers.apply(BINARY[op], [total, body(i)])
        return total


def _floor(dividend: int, divisor: int) -> int:
    if divisor <= 0:
        raise ZeroDivisionError(f"a divisor must be positive, not {divisor}")
    return dividend // divisor
