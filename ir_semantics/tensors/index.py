"""Index arithmetic: integer polynomials with floor quotients, and conditions on them.

An :class:`Index` is a size, a subscript or an extent: a polynomial with integer coefficients over named integer
variables and quotients ``(a) // (b)``.  Divisors must be positive; what divides states that as a condition of its own
(:class:`ir_semantics.tensors.terms.Tensor`), and evaluation raises otherwise.  Under that proviso the constructors and
:func:`cleared` rewrite with theorems only:

* ``(m*b + r) // b = m + r // b`` and ``(x // a + r) // b = (x + r*a) // (a*b)``;
* ``a // b + r >= 0``  iff  ``a + r*b >= 0``, and  ``r - a // b >= 0``  iff  ``r*b + b - 1 - a >= 0``.

A :data:`Condition` is a Boolean combination of ``e >= 0``, ``e == 0`` and truth values read from a Boolean tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, TypeAlias

__all__ = [
    "FALSE",
    "TRUE",
    "All",
    "AtLeastZero",
    "Condition",
    "Index",
    "IndexLike",
    "IsZero",
    "Names",
    "OneOf",
    "Quotient",
    "TruthOf",
    "both",
    "cleared",
    "either",
    "equal",
    "holds",
    "index",
    "indices_of",
    "inside",
    "le",
    "lt",
    "negation",
    "product",
    "rebuild_condition",
    "size",
    "substitute_condition",
    "variables_of",
]


@dataclass(frozen=True)
class Quotient:
    """``dividend // divisor``, rounded down."""

    dividend: Index
    divisor: Index

    @cached_property
    def key(self) -> str:
        """Text that identifies the quotient, and orders it among the atoms of a polynomial."""
        return f"({self.dividend}) // ({self.divisor})"

    def __str__(self) -> str:
        return f"({self.key})"


Atom: TypeAlias = str | Quotient
Monomial: TypeAlias = tuple[Atom, ...]


def _atom_key(atom: Atom) -> str:
    return atom if isinstance(atom, str) else atom.key


def _monomial_key(monomial: Monomial) -> tuple[int, tuple[str, ...]]:
    return -len(monomial), tuple(map(_atom_key, monomial))


class Index:
    """A polynomial over integer variables and quotients; equal where the normal forms are the same.

    >>> i, n = size("i"), size("n")
    >>> print((i * n + n) // n, (2 * i + 5) % 2, i // n // 2)
    i + 1 1 ((i) // (2*n))
    """

    __slots__ = ("__dict__", "_hash", "terms")
    terms: tuple[tuple[Monomial, int], ...]

    def __init__(self, coefficients: Mapping[Monomial, int]) -> None:
        kept = [(m, c) for m, c in coefficients.items() if c]
        self.terms = tuple(sorted(kept, key=lambda t: _monomial_key(t[0])))
        self._hash = hash(self.terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: IndexLike) -> Index:
        total = dict(self.terms)
        for monomial, coefficient in index(other).terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return Index(total)

    __radd__ = __add__

    def __neg__(self) -> Index:
        return Index({m: -c for m, c in self.terms})

    def __sub__(self, other: IndexLike) -> Index:
        return self + -index(other)

    def __rsub__(self, other: IndexLike) -> Index:
        return index(other) + -self

    def __mul__(self, other: IndexLike) -> Index:
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in index(other).terms:
                monomial = tuple(sorted(left + right, key=_atom_key))
                total[monomial] = total.get(monomial, 0) + a * b
        return Index(total)

    __rmul__ = __mul__

    def __floordiv__(self, other: IndexLike) -> Index:
        return _quotient(self, index(other))

    def __rfloordiv__(self, other: IndexLike) -> Index:
        return _quotient(index(other), self)

    def __mod__(self, other: IndexLike) -> Index:
        return self - index(other) * (self // other)

    @property
    def constant(self) -> int | None:
        """The value, where it does not depend on variables."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () else None

    @property
    def variable(self) -> str | None:
        """The name, where this is a variable and nothing else."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            atom = self.terms[0][0][0]
            return atom if isinstance(atom, str) else None
        return None

    @cached_property
    def variables(self) -> frozenset[str]:
        """The variables, those inside quotients included."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    found |= atom.dividend.variables | atom.divisor.variables
        return frozenset(found)

    @cached_property
    def quotients(self) -> tuple[Quotient, ...]:
        """The quotients, inner ones before those they stand in."""
        found: dict[Quotient, None] = {}
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, Quotient):
                    found |= dict.fromkeys(atom.dividend.quotients + atom.divisor.quotients)
                    found[atom] = None
        return tuple(found)

    def substitute(self, values: Mapping[str, Index]) -> Index:
        """The polynomial with variables replaced, all at once."""
        if self.variables.isdisjoint(values):
            return self
        return self.rebuild(lambda atom: values.get(atom, _variable(atom)) if isinstance(atom, str) else None)

    def rebuild(self, replace: Callable[[Atom], Index | None]) -> Index:
        """The polynomial with atoms replaced; where ``replace`` gives None for a quotient, its parts are rebuilt."""
        total = ZERO
        for monomial, coefficient in self.terms:
            term = Index({(): coefficient})
            for atom in monomial:
                term = term * _rebuilt(atom, replace)
            total = total + term
        return total

    def value(self, values: Mapping[str, int]) -> int:
        """The integer at given values of all variables; raises ZeroDivisionError where a divisor is not positive."""
        total = 0
        for monomial, coefficient in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    coefficient *= values[atom]
                else:
                    divisor = atom.divisor.value(values)
                    if divisor <= 0:
                        raise ZeroDivisionError(f"the divisor of {atom.key} must be positive, not {divisor}")
                    coefficient *= atom.dividend.value(values) // divisor
            total += coefficient
        return total

    @cached_property
    def _text(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for monomial, coefficient in self.terms:
            factors = [str(a) for a in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {'*'.join(factors)}" if text else f"{'-' if sign == '-' else ''}{'*'.join(factors)}"
        return text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Index({self})"


IndexLike: TypeAlias = Index | int

ZERO: Final = Index({})


def _rebuilt(atom: Atom, replace: Callable[[Atom], Index | None]) -> Index:
    new = replace(atom)
    if new is not None:
        return new
    if isinstance(atom, str):
        return _variable(atom)
    return _quotient(atom.dividend.rebuild(replace), atom.divisor.rebuild(replace))


@lru_cache(maxsize=100_000)
def _variable(name: str) -> Index:
    return Index({(name,): 1})


def index(value: IndexLike) -> Index:
    """An integer as an :class:`Index`."""
    if isinstance(value, Index):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"an index must be an int or an Index, not {value!r}")
    return Index({(): value})


def size(name: str) -> Index:
    """The integer variable ``name``."""
    if not name or not all(c.isalnum() or c in "_.'" for c in name):
        raise ValueError(f"a variable's name must be of letters, digits, '_', '.' and \"'\", not {name!r}; rename it")
    return _variable(name)


def product(factors: Iterable[IndexLike]) -> Index:
    """The product of any number of factors."""
    total = index(1)
    for factor in factors:
        total = total * factor
    return total


def _lead(polynomial: Index) -> tuple[Monomial, int]:
    """The term that comes first: one of highest degree."""
    return polynomial.terms[0]


def _without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    """The monomial divided by another one; None where that leaves no monomial."""
    rest = list(monomial)
    for atom in factor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _quotient(dividend: Index, divisor: Index) -> Index:
    if divisor.constant is not None:
        if divisor.constant <= 0:
            raise ZeroDivisionError(f"a divisor must be positive, not {divisor}")
        if divisor.constant == 1:
            return dividend
        if dividend.constant is not None:
            return index(dividend.constant // divisor.constant)
    monomial, coefficient = _lead(divisor)
    whole = ZERO
    rest = dividend
    found = coefficient > 0
    while found:
        found = False
        for term, c in rest.terms:
            left = _without(term, monomial)
            divides = c >= 0 or c % coefficient == 0 or len(divisor.terms) == 1  # each step must come closer to the end
            if left is not None and c // coefficient != 0 and divides:
                share = Index({left: c // coefficient})
                whole, rest, found = whole + share, rest - share * divisor, True
                break
    if rest == ZERO:
        return whole
    inner = [m[0] for m, c in rest.terms if c == 1 and len(m) == 1 and isinstance(m[0], Quotient)]
    if len(inner) == 1 and isinstance(inner[0], Quotient):
        others = rest - Index({(inner[0],): 1})
        return whole + _quotient(inner[0].dividend + others * inner[0].divisor, inner[0].divisor * divisor)
    return whole + Index({(Quotient(rest, divisor),): 1})


class Names:
    """Gives out names of bound variables that nobody else has: ``k.1``, ``k.2``, ..."""

    def __init__(self) -> None:
        self._count = 0

    def fresh(self, stem: str = "k") -> str:
        """A new name."""
        self._count += 1
        return f"{stem}.{self._count}"


@dataclass(frozen=True)
class AtLeastZero:
    """``value >= 0``."""

    value: Index

    def __str__(self) -> str:
        positive = Index({m: c for m, c in self.value.terms if c > 0})
        return f"{positive - self.value} <= {positive}"


@dataclass(frozen=True)
class IsZero:
    """``value == 0``."""

    value: Index

    def __str__(self) -> str:
        positive = Index({m: c for m, c in self.value.terms if c > 0})
        return f"{positive} = {positive - self.value}"


@dataclass(frozen=True)
class TruthOf:
    """The element of a Boolean tensor, or (``wanted`` False) its negation."""

    name: str
    at: tuple[Index, ...]
    wanted: bool = True

    def __str__(self) -> str:
        return f"{'' if self.wanted else 'not '}{self.name}[{', '.join(map(str, self.at))}]"


@dataclass(frozen=True)
class All:
    """All of the parts hold."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(f"({p})" if isinstance(p, OneOf) else str(p) for p in self.parts) or "true"


@dataclass(frozen=True)
class OneOf:
    """At least one of the parts holds."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(f"({p})" if isinstance(p, All) else str(p) for p in self.parts) or "false"


Condition: TypeAlias = AtLeastZero | IsZero | TruthOf | All | OneOf

TRUE: Final = All(())
FALSE: Final = OneOf(())


def _at_least_zero(value: Index) -> Condition:
    if value.constant is not None:
        return TRUE if value.constant >= 0 else FALSE
    return AtLeastZero(value)


def cleared(condition: Condition) -> Condition:
    """The condition without quotients by which an inequality is linear; divisors must be positive."""
    match condition:
        case AtLeastZero(value):
            for monomial, coefficient in value.terms:
                if len(monomial) == 1 and isinstance(monomial[0], Quotient) and abs(coefficient) == 1:
                    quotient = monomial[0]
                    rest = value - Index({monomial: coefficient})
                    if coefficient == 1:
                        return cleared(_at_least_zero(quotient.dividend + rest * quotient.divisor))
                    return cleared(_at_least_zero((rest + 1) * quotient.divisor - 1 - quotient.dividend))
            return condition
        case All(parts):
            return both(*map(cleared, parts))
        case OneOf(parts):
            return either(*map(cleared, parts))
    return condition


def le(left: IndexLike, right: IndexLike) -> Condition:
    """``left <= right``."""
    return _at_least_zero(index(right) - index(left))


def lt(left: IndexLike, right: IndexLike) -> Condition:
    """``left < right``."""
    return _at_least_zero(index(right) - index(left) - 1)


def equal(left: IndexLike, right: IndexLike) -> Condition:
    """``left == right``."""
    value = index(left) - index(right)
    if value.constant is not None:
        return TRUE if value.constant == 0 else FALSE
    return IsZero(value)


def inside(value: IndexLike, extent: IndexLike) -> Condition:
    """``0 <= value < extent``."""
    return both(le(0, value), lt(value, extent))


def both(*parts: Condition) -> Condition:
    """The conjunction."""
    flat: dict[Condition, None] = {}
    for part in parts:
        flat |= dict.fromkeys(part.parts if isinstance(part, All) else (part,))
    if FALSE in flat:
        return FALSE
    return next(iter(flat)) if len(flat) == 1 else All(tuple(flat))


def either(*parts: Condition) -> Condition:
    """The disjunction."""
    flat: dict[Condition, None] = {}
    for part in parts:
        flat |= dict.fromkeys(part.parts if isinstance(part, OneOf) else (part,))
    if TRUE in flat:
        return TRUE
    return next(iter(flat)) if len(flat) == 1 else OneOf(tuple(flat))


def negation(condition: Condition) -> Condition:
    """The negation, pushed inwards."""
    match condition:
        case AtLeastZero(value):
            return _at_least_zero(-value - 1)
        case IsZero(value):
            return either(_at_least_zero(value - 1), _at_least_zero(-value - 1))
        case TruthOf(name, at, wanted):
            return TruthOf(name, at, not wanted)
        case All(parts):
            return either(*map(negation, parts))
        case OneOf(parts):
            return both(*map(negation, parts))


def rebuild_condition(condition: Condition, rebuild: Callable[[Index], Index]) -> Condition:
    """The condition with every index replaced."""
    match condition:
        case AtLeastZero(value):
            return _at_least_zero(rebuild(value))
        case IsZero(value):
            return equal(rebuild(value), 0)
        case TruthOf(name, at, wanted):
            return TruthOf(name, tuple(map(rebuild, at)), wanted)
        case All(parts):
            return both(*(rebuild_condition(p, rebuild) for p in parts))
        case OneOf(parts):
            return either(*(rebuild_condition(p, rebuild) for p in parts))


def substitute_condition(condition: Condition, values: Mapping[str, Index]) -> Condition:
    """The condition with variables replaced, all at once."""
    return rebuild_condition(condition, lambda i: i.substitute(values))


def indices_of(condition: Condition) -> list[Index]:
    """The index expressions that a condition compares or reads at."""
    match condition:
        case AtLeastZero(value) | IsZero(value):
            return [value]
        case TruthOf(_, at, _):
            return list(at)
        case All(parts) | OneOf(parts):
            return [i for p in parts for i in indices_of(p)]


def variables_of(condition: Condition) -> frozenset[str]:
    """The integer variables of a condition."""
    return frozenset().union(*(i.variables for i in indices_of(condition)))


def holds(
    condition: Condition, values: Mapping[str, int], truth: Callable[[str, Sequence[int]], bool] | None = None
) -> bool:
    """The truth value at given values of all variables; ``truth`` reads Boolean tensors."""
    match condition:
        case AtLeastZero(value):
            return value.value(values) >= 0
        case IsZero(value):
            return value.value(values) == 0
        case TruthOf(name, at, wanted):
            if truth is None:
                raise ValueError(f"the Boolean tensor {name} must be given where {condition} is evaluated")
            return truth(name, [i.value(values) for i in at]) is wanted
        case All(parts):
            return all(holds(p, values, truth) for p in parts)
        case OneOf(parts):
            return any(holds(p, values, truth) for p in parts)
