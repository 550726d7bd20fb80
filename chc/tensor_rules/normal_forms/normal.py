"""Normal forms of element expressions: a bag of families of products.

A :class:`Family` stands for ``coefficient * product of powers of atoms`` for every value of its bound variables within
their extents for which its guard holds; a :data:`Value` is the sum of everything in its families.  Which laws lead from
an element to its value depends on the equality notion (:class:`Laws`):

* ``RING`` (over the reals): commutative rings, 1/x as a power, exp(a + b) = exp(a) exp(b), extrema;
* ``MONOID`` (up to reduction order): addition is commutative and associative, products commute;
* ``EXACT`` (bit by bit): only maximum and minimum are commutative, associative and idempotent; sums keep their order.

A choice by a condition on indices becomes two families with opposite guards, an element outside a guard the unit of
its reduction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from ir_semantics.tensors.conditions import TRUE, Condition, both, indices_of, substitute_condition
from ir_semantics.tensors.elements import Read
from ir_semantics.tensors.index import Index


class Laws(Enum):
    """Which laws of arithmetic a proof may use."""

    RING = "over_reals"
    MONOID = "up_to_reduction_order"
    EXACT = "bit_exact"


@dataclass(frozen=True)
class Literal:
    """A literal that is no coefficient; equal literals are the same value, and -0.0 is not 0."""

    value: Fraction | float = field(compare=False)
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", repr(self.value))

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class IntegerAtom:
    """A size, or a quotient of sizes, as a number."""

    value: Index

    def __str__(self) -> str:
        return f"number({self.value})"


@dataclass(frozen=True)
class Opaque:
    """A scalar function of which nothing is known but that it is one."""

    op: str
    args: tuple[Value, ...]

    def __str__(self) -> str:
        return f"{self.op}({', '.join(map(_value_text, self.args))})"


@dataclass(frozen=True)
class Member:
    """Candidates for an extremum: a value for every value of the bound variables for which the guard holds."""

    bound: tuple[tuple[str, Index], ...]
    guard: Condition
    value: Value

    def __str__(self) -> str:
        return _family_text(self.bound, self.guard, _value_text(self.value))


@dataclass(frozen=True)
class Extremum:
    """The maximum or minimum of everything in its members; of nothing, -inf or inf."""

    op: str
    members: tuple[Member, ...]

    def __str__(self) -> str:
        return f"{self.op}{{{', '.join(map(str, self.members))}}}"


@dataclass(frozen=True)
class Group:
    """A sum as one factor."""

    value: Value

    def __str__(self) -> str:
        return f"({_value_text(self.value)})"


@dataclass(frozen=True)
class OrderedSum:
    """A sum in increasing order of its variable."""

    variable: str
    extent: Index
    value: Value

    def __str__(self) -> str:
        return f"sum in order({self.variable} < {self.extent}: {_value_text(self.value)})"


Atom: TypeAlias = Read | Literal | IntegerAtom | Opaque | Extremum | Group | OrderedSum
Powers: TypeAlias = tuple[tuple[Atom, int], ...]


@dataclass(frozen=True)
class Family:
    """``coefficient * product of powers`` for every value of the bound variables for which the guard holds."""

    bound: tuple[tuple[str, Index], ...]
    guard: Condition
    coefficient: Fraction
    powers: Powers

    def __str__(self) -> str:
        factors = [str(a) if n == 1 else f"{a}^{n}" for a, n in self.powers]
        if self.coefficient != 1 or not factors:
            factors.insert(0, str(self.coefficient))
        return _family_text(self.bound, self.guard, " * ".join(factors))

    @cached_property
    def simple(self) -> bool:
        """Whether it is one product, always there."""
        return not self.bound and self.guard == TRUE


Value: TypeAlias = tuple[Family, ...]


def _value_text(value: Value) -> str:
    return " + ".join(map(str, value)) or "0"


def _family_text(bound: Sequence[tuple[str, Index]], guard: Condition, body: str) -> str:
    if not bound and guard == TRUE:
        return body
    ranges = ", ".join(f"{v} < {e}" for v, e in bound)
    return f"[{'; '.join(filter(None, [ranges, str(guard) if guard != TRUE else '']))}: {body}]"


def family(coefficient: Fraction | int, powers: Mapping[Atom, int], guard: Condition = TRUE) -> Family:
    """A family without bound variables; powers of 0 disappear."""
    kept = sorted(((a, n) for a, n in powers.items() if n), key=lambda p: str(p[0]))
    return Family((), guard, Fraction(coefficient), tuple(kept))


def one_atom(atom: Atom) -> Value:
    """An atom as a value."""
    return (family(1, {atom: 1}),)


def times(left: Family, right: Family) -> Family:
    """The product of two families, whose bound variables must differ."""
    powers = dict(left.powers)
    for atom, n in right.powers:
        powers[atom] = powers.get(atom, 0) + n
    plain = family(left.coefficient * right.coefficient, powers)
    return Family(left.bound + right.bound, both(left.guard, right.guard), plain.coefficient, plain.powers)


def merged(families: Iterable[Family]) -> Value:
    """Equal products once, with the sum of their coefficients: a law of rings."""
    coefficients: dict[tuple[tuple[tuple[str, Index], ...], Condition, Powers], Fraction] = {}
    for f in families:
        key = (f.bound, f.guard, f.powers)
        coefficients[key] = coefficients.get(key, Fraction(0)) + f.coefficient
    return tuple(Family(bound, guard, c, powers) for (bound, guard, powers), c in coefficients.items() if c)


def head(atom: Atom) -> tuple[str, ...]:
    """What two atoms must share to be equal at some subscripts."""
    match atom:
        case Read(name, _):
            return ("read", name)
        case Literal(value):
            return ("literal", str(value))
        case IntegerAtom():
            return ("integer",)
        case Opaque(op, _):
            return ("opaque", op)
        case Extremum(op, _):
            return ("extremum", op)
        case Group():
            return ("group",)
        case OrderedSum():
            return ("ordered",)


def substitute_atom(atom: Atom, values: Mapping[str, Index]) -> Atom:
    """The atom with index variables replaced."""
    match atom:
        case Read(name, at):
            return Read(name, tuple(i.substitute(values) for i in at))
        case Literal():
            return atom
        case IntegerAtom(value):
            return IntegerAtom(value.substitute(values))
        case Opaque(op, args):
            return Opaque(op, tuple(substitute_value(a, values) for a in args))
        case Extremum(op, members):
            return Extremum(op, tuple(substitute_member(m, values) for m in members))
        case Group(value):
            return Group(substitute_value(value, values))
        case OrderedSum(variable, extent, value):
            return OrderedSum(variable, extent.substitute(values), substitute_value(value, values))


def substitute_family(family: Family, values: Mapping[str, Index]) -> Family:
    """The family with free index variables replaced."""
    bound = tuple((v, e.substitute(values)) for v, e in family.bound)
    powers: dict[Atom, int] = {}
    for atom, n in family.powers:
        new = substitute_atom(atom, values)
        powers[new] = powers.get(new, 0) + n
    kept = tuple((a, n) for a, n in powers.items() if n)  # in the order that they had
    return Family(bound, substitute_condition(family.guard, values), family.coefficient, kept)


def substitute_value(value: Value, values: Mapping[str, Index]) -> Value:
    """The value with free index variables replaced."""
    return tuple(substitute_family(f, values) for f in value)


def substitute_member(member: Member, values: Mapping[str, Index]) -> Member:
    """The member with free index variables replaced."""
    bound = tuple((v, e.substitute(values)) for v, e in member.bound)
    return Member(bound, substitute_condition(member.guard, values), substitute_value(member.value, values))


def variables_in(item: Atom | Family | Member) -> frozenset[str]:
    """The index variables that occur, bound ones included."""
    return frozenset().union(*(i.variables for i in indices_in(item)))


def indices_in(item: Atom | Family | Member) -> list[Index]:
    """Every index expression that occurs, extents included."""
    match item:
        case Read(_, at):
            return list(at)
        case Literal():
            return []
        case IntegerAtom(value):
            return [value]
        case Opaque(_, args):
            return [i for a in args for f in a for i in indices_in(f)]
        case Extremum(_, members):
            return [i for m in members for i in indices_in(m)]
        case Group(value):
            return [i for f in value for i in indices_in(f)]
        case OrderedSum(_, extent, value):
            return [extent, *(i for f in value for i in indices_in(f))]
        case Family(bound, guard, _, powers):
            return [*(e for _, e in bound), *indices_of(guard), *(i for a, _ in powers for i in indices_in(a))]
        case Member(bound, guard, value):
            return [*(e for _, e in bound), *indices_of(guard), *(i for f in value for i in indices_in(f))]
