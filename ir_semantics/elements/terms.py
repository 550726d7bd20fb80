"""Terms of several number formats: reads of tensors, scalar operators, choices, folds and quantified conditions.

A term is one object for equal terms, also where they differ in the names of bound variables alone.  Integers without
bound (:data:`~ir_semantics.scalars.formats.INTEGERS`) are sizes and subscripts; they are kept as normal forms of
polynomials (:mod:`ir_semantics.tensors.index`).  Data have the formats of :mod:`ir_semantics.scalars.formats`, and
operators mean what they mean there.

A quotient of integers is rounded down, and is used only where its divisor is positive: what divides requires that.

A **fold** goes over all tuples below its extents in row-major order, the last variable fastest.  It starts with a
value, and each step takes the accumulator and the variables to the next value.  Of an empty range it is that start.

Terms are made inside :func:`new_terms`, which numbers them, so that a proof has the same texts whenever it is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format, Literal
from ir_semantics.tensors.index import Index


@dataclass(frozen=True, eq=False, slots=True)
class Symbol:
    """A variable, which is what it is, not what it is called."""

    name: str
    kind: Format


@dataclass(frozen=True, eq=False, slots=True)
class Input:
    """A tensor of unknown elements; its shape may be symbolic."""

    name: str
    kind: Format
    shape: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A tensor of constants in row-major order; ``default`` stands at places that ``elements`` lacks."""

    kind: Format
    shape: tuple[int, ...]
    elements: tuple[tuple[int, str], ...]
    default: str
    values: Mapping[int, Literal] = field(compare=False, hash=False, repr=False)
    default_value: Literal = field(compare=False, hash=False, repr=False)

    def at(self, subscripts: Sequence[int]) -> Literal:
        """The element; outside of the tensor the default."""
        if not all(0 <= i < n for i, n in zip(subscripts, self.shape, strict=True)):
            return self.default_value
        place = 0
        for i, n in zip(subscripts, self.shape, strict=True):
            place = place * n + i
        return self.values.get(place, self.default_value)


Array: TypeAlias = Input | Table
Payload: TypeAlias = "Symbol | Literal | Index | Array | tuple[Symbol, ...] | str | None"


class Term:
    """A term; see the module.  ``==`` is identity.  ``symbols`` are the free ones."""

    __slots__ = ("args", "depth", "kind", "number", "op", "payload", "symbols")

    op: str
    args: tuple[Term, ...]
    kind: Format
    payload: Payload
    symbols: frozenset[Symbol]
    depth: int
    number: int

    def __bool__(self) -> bool:
        raise TypeError(f"the term {self} has no truth value; combine terms with both() and negation()")

    def __repr__(self) -> str:
        return f"<Term {self}>"

    def __str__(self) -> str:
        return text_of(self)


class _Terms:
    """The terms of one proof."""

    def __init__(self) -> None:
        self.known: dict[object, Term] = {}
        self.atoms: dict[str, Term] = {}
        self.bound: dict[tuple[int, int, Format], Symbol] = {}
        self.polynomials: dict[Term, Index] = {}
        self.rounded = False
        """Whether constants were put together to one that is not exactly what real numbers give."""


_CURRENT: ContextVar[_Terms] = ContextVar("terms of one proof")


@contextmanager
def new_terms() -> Iterator[None]:
    """Runs a block with terms of its own, numbered from 0; they must not be used with others."""
    token = _CURRENT.set(_Terms())
    try:
        yield
    finally:
        _CURRENT.reset(token)


def terms_of_proof() -> _Terms:
    """The terms that are made now; raises RuntimeError outside of :func:`new_terms`."""
    current = _CURRENT.get(None)
    if current is None:
        raise RuntimeError("terms must be made inside of new_terms()")
    return current


_NONE: frozenset[Symbol] = frozenset()


def make(op: str, args: tuple[Term, ...], kind: Format, payload: Payload = None) -> Term:
    """The one term of an operator, operands, a format and what else tells it from others; nothing is simplified."""
    table = terms_of_proof()
    distinguished = repr(payload) if isinstance(payload, float) else payload  # -0.0 == 0.0, and nan != nan
    key = (op, args, kind, distinguished)
    term = table.known.get(key)
    if term is None:
        term = object.__new__(Term)
        term.op, term.args, term.kind, term.payload = op, args, kind, payload
        term.number = len(table.known)
        bound: frozenset[Symbol] = frozenset(payload) if isinstance(payload, tuple) else _NONE
        own = frozenset([payload]) if isinstance(payload, Symbol) else _NONE
        term.symbols = own.union(*(a.symbols for a in args)) - bound
        term.depth = max((a.depth for a in args), default=0) + bool(bound)
        table.known[key] = term
    return term


# -- leaves ----------------------------------------------------------------------------------------------


def symbol(variable: Symbol) -> Term:
    """A variable as a term."""
    return make("symbol", (), variable.kind, variable)


def variable_of(term: Term) -> Symbol:
    """The variable that a term is."""
    assert isinstance(term.payload, Symbol)
    return term.payload


def fresh(name: str, kind: Format) -> Term:
    """A new variable."""
    return symbol(Symbol(name, kind))


def constant(value: Literal | int | bool, kind: Format) -> Term:
    """A constant of a format, which must have the number; -0.0, infinities and NaN are floats."""
    if isinstance(value, float):
        if value == value and value not in (float("inf"), float("-inf")) and (value != 0 or str(value) == "0.0"):
            value = Fraction(value)
    else:
        value = Fraction(value)
    return make("constant", (), kind, value)


def number(value: int) -> Term:
    """An integer."""
    return constant(value, INTEGERS)


def truth(value: bool) -> Term:
    """A truth value."""
    return constant(int(value), BOOLEAN)


def literal(term: Term) -> Literal | None:
    """The value of a constant, else None."""
    return term.payload if term.op == "constant" and isinstance(term.payload, Fraction | float) else None


def integer_value(term: Term) -> int | None:
    """The value of a constant integer, else None."""
    value = literal(term)
    return int(value) if value is not None and term.kind == INTEGERS else None


def is_true(term: Term) -> bool:
    """Whether a condition is the constant true."""
    return term is truth(True)


def is_false(term: Term) -> bool:
    """Whether a condition is the constant false."""
    return term is truth(False)


def table(kind: Format, shape: Sequence[int], values: Mapping[int, Literal], default: Literal) -> Table:
    """A tensor of constants; ``values`` by place in row-major order."""
    kept = {place: v for place, v in sorted(values.items()) if repr(v) != repr(default)}
    elements = tuple((place, repr(v)) for place, v in kept.items())
    return Table(kind, tuple(shape), elements, repr(default), kept, default)


def read(array: Array, at: Sequence[Term]) -> Term:
    """The element at subscripts, which must be inside of the tensor wherever it matters."""
    if isinstance(array, Table):
        if not array.elements:
            return constant(array.default_value, array.kind)
        places = [integer_value(i) for i in at]
        known = [p for p in places if p is not None]
        if len(known) == len(places):
            return constant(array.at(known), array.kind)
    return make("read", tuple(at), array.kind, array)


def call(name: str, kind: Format, *args: Term) -> Term:
    """An application of a function that a program names, and of which nothing is known but that it is one."""
    return make("call", args, kind, name)


def function(name: str, kind: Format, *args: Term) -> Term:
    """An application of a function of which nothing is known but its name, its format and that it is one."""
    return make("function", args, kind, name)


def text_of(term: Term) -> str:
    """A term for people."""
    match term.op:
        case "symbol":
            return variable_of(term).name
        case "constant":
            return str(bool(term.payload)).lower() if term.kind == BOOLEAN else str(term.payload)
        case "polynomial":
            assert isinstance(term.payload, Index)
            text = str(term.payload)
            for a in term.args:
                text = text.replace(f"t.{a.number:07}", text_of(a))
            return text
        case "read":
            name = term.payload.name if isinstance(term.payload, Input) else "constant"
            return f"{name}[{', '.join(map(text_of, term.args))}]"
        case "cast":
            return f"{term.kind}({text_of(term.args[0])})"
    bound = f"{', '.join(s.name for s in term.payload)}: " if isinstance(term.payload, tuple) else ""
    return f"{term.op}({bound}{', '.join(map(text_of, term.args))})"
