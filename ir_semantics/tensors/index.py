"""Index arithmetic: integer polynomials with floor quotients.

An :class:`Index` is a size, a subscript or an extent: a polynomial with integer coefficients over named integer
variables and quotients ``(a) // (b)``.  Divisors must be positive; what divides states that as a condition of its own
(:class:`ir_semantics.tensors.terms.Tensor`), and evaluation raises otherwise.  Under that proviso the constructors
use two theorems: ``(m*b + r) // b = m + r // b`` and ``(x // a + r) // b = (x + r*a) // (a*b)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, TypeAlias


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

    def __bool__(self) -> bool:
        """Whether it is not 0; raises TypeError where that depends on variables."""
        if self.constant is None:
            raise TypeError(f"whether {self} is 0 depends on sizes")
        return bool(self.constant)

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
        names: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    names.add(atom)
                else:
                    names |= atom.dividend.variables | atom.divisor.variables
        return frozenset(names)

    @cached_property
    def quotients(self) -> tuple[Quotient, ...]:
        """The quotients, inner ones before those they stand in."""
        quotients: dict[Quotient, None] = {}
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, Quotient):
                    quotients |= dict.fromkeys(atom.dividend.quotients + atom.divisor.quotients)
                    quotients[atom] = None
        return tuple(quotients)

    def substitute(self, values: Mapping[str, Index]) -> Index:
        """The polynomial with variables replaced, all at once."""
        if self.variables.isdisjoint(values):
            return self
        return self.rebuild(lambda atom: values.get(atom, index_of(atom)) if isinstance(atom, str) else None)

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
        return index_of(atom)
    return _quotient(atom.dividend.rebuild(replace), atom.divisor.rebuild(replace))


@lru_cache(maxsize=100_000)
def index_of(name: str) -> Index:
    """The variable of any name; sizes have names without a dot (:func:`size`)."""
    return Index({(name,): 1})


def index(value: IndexLike) -> Index:
    """An integer as an :class:`Index`."""
    if isinstance(value, Index):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"an index must be an int or an Index, not {value!r}")
    return _number(value)


@lru_cache(maxsize=100_000)
def _number(value: int) -> Index:
    return Index({(): value})


def size(name: str) -> Index:
    """The size variable ``name``; names with a dot are those of bound variables (:class:`Names`)."""
    if not name.isascii() or not name.isidentifier():
        raise ValueError(f"a variable's name must be of letters, digits and '_', not {name!r}; rename it")
    return index_of(name)


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
    divided = coefficient > 0
    while divided:
        divided = False
        for term, c in rest.terms:
            left = _without(term, monomial)
            divides = c >= 0 or c % coefficient == 0 or len(divisor.terms) == 1  # each step must come closer to the end
            if left is not None and c // coefficient != 0 and divides:
                share = Index({left: c // coefficient})
                whole, rest, divided = whole + share, rest - share * divisor, True
                break
    if rest.constant is not None and (divisor.constant is not None or rest == ZERO):
        return whole + rest.constant // (divisor.constant or 1)
    inner = [m[0] for m, c in rest.terms if c == 1 and len(m) == 1 and isinstance(m[0], Quotient)]
    if len(inner) == 1 and isinstance(inner[0], Quotient):
        others = rest - Index({(inner[0],): 1})
        return whole + _quotient(inner[0].dividend + others * inner[0].divisor, inner[0].divisor * divisor)
    return whole + Index({(Quotient(rest, divisor),): 1})


def divisors(values: Iterable[Index]) -> list[Index]:
    """What some indices divide by, each once, inner ones before those they stand in."""
    return list(dict.fromkeys(q.divisor for value in values for q in value.quotients))


class Names:
    """Gives out fresh names of bound variables: ``k.1``, ``k.2``, ..."""

    def __init__(self) -> None:
        self._count = 0

    def fresh(self, stem: str = "k") -> str:
        """A new name; the stem must be letters."""
        if not (stem.isascii() and stem.isalpha()):
            raise ValueError(f"the stem of a bound variable must be letters, not {stem!r}")
        self._count += 1
        return f"{stem}.{self._count}"
