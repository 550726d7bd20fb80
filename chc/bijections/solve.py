"""Variables as functions of others, from equations between subscripts: a guess, which may be wrong.

Equations are linear in the unknowns and in quotients that they stand in.  One that has several unknowns is read as a
number in mixed radix: ``a*T + b = v`` gives ``b = v mod T`` and ``a = v div T``.  Where b stays below T, as in every
second block, that is said of the values that have such a b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations, product

from ir_semantics.tensors.index import ZERO, Atom, Index, Quotient, index_of

MOST_DIGITS = 5
"""Digits of a number in mixed radix, at most: all their orders are tried."""
MOST_STEPS = 24
"""Equations that are used one after the other, at most."""


def solved(equations: Sequence[Index], unknowns: Mapping[str, Index], knowns: Mapping[str, Index]) -> dict[str, Index]:
    """What the equations (polynomials that are 0) say of some unknowns, in terms of what is not unknown.

    ``unknowns`` and ``knowns`` give the extents of variables: each is from 0 to its extent - 1.
    """
    extents = {**knowns, **unknowns}
    left = [_divided(_narrowed(e, extents), extents) for e in equations]
    values: dict[str, Index] = {}
    for _ in range(MOST_STEPS):
        names = {n for n in unknowns if n not in values}
        ordered = _in_order(left, names)
        new = next((s for s in (_solution(e, names, unknowns) for e in ordered) if s), None)
        new = new or next((s for s in (_eliminated(e, names) for e in ordered) if s), None)
        if not new:
            break
        for atom, value in new.items():
            if isinstance(atom, str):
                values = {n: replaced(v, {atom: value}) for n, v in values.items()}
                values[atom] = value
            left = [_divided(_narrowed(replaced(e, {atom: value}), extents), extents) for e in left]
    return values


def _in_order(equations: Sequence[Index], names: set[str]) -> list[Index]:
    """Those with unknowns, few of them first."""
    counted = [(len(parts[0]), e) for e in equations if (parts := _linear(e, names)) is not None and parts[0]]
    return [e for _, e in sorted(counted, key=lambda pair: pair[0])]


def _linear(equation: Index, names: set[str]) -> tuple[dict[Atom, Index], Index] | None:
    """Coefficients of what has unknowns in it, and the rest; None where a product has several such factors."""
    coefficients: dict[Atom, Index] = {}
    rest = ZERO
    for monomial, coefficient in equation.terms:
        own = [a for a in monomial if not _variables(a).isdisjoint(names)]
        if not own:
            rest = rest + Index({monomial: coefficient})
            continue
        if len(own) > 1:
            return None
        others = list(monomial)
        others.remove(own[0])
        coefficients[own[0]] = coefficients.get(own[0], ZERO) + Index({tuple(others): coefficient})
    return coefficients, rest


def _variables(atom: Atom) -> frozenset[str]:
    return frozenset([atom]) if isinstance(atom, str) else atom.dividend.variables | atom.divisor.variables


def _solution(equation: Index, names: set[str], extents: Mapping[str, Index]) -> dict[Atom, Index] | None:
    """The unknowns of one equation."""
    parts = _linear(equation, names)
    assert parts is not None
    coefficients, rest = parts
    if len(coefficients) == 1:
        ((atom, factor),) = coefficients.items()
        if factor.constant in (1, -1):
            return {atom: -rest if factor.constant == 1 else rest}
    if not all(isinstance(a, str) for a in coefficients) or len(coefficients) > MOST_DIGITS:
        return None
    known = {a: f for a, f in coefficients.items() if isinstance(a, str)}
    for gaps, signs, sign in product((False, True), ((1,), (1, -1)), (1, -1)):
        for order in permutations(known):
            digits = _digits([(a, known[a] * sign, extents[a]) for a in order], rest * -sign, signs, gaps)
            if digits is not None:
                return digits
    return None


def _eliminated(equation: Index, names: set[str]) -> dict[Atom, Index] | None:
    """A quotient in terms of other unknowns."""
    parts = _linear(equation, names)
    assert parts is not None
    for atom, factor in parts[0].items():
        if isinstance(atom, Quotient) and factor.constant in (1, -1):
            others = equation - factor * Index({(atom,): 1})
            return {atom: -others if factor.constant == 1 else others}
    return None


def _digits(
    weighted: Sequence[tuple[str, Index, Index]], total: Index, signs: Sequence[int], gaps: bool
) -> dict[Atom, Index] | None:
    """The digits of a total, of which the first has the least weight; None where weights are none of a number's.

    A digit with a negative weight, where ``signs`` has -1, counts downwards.  With ``gaps`` digits need not reach the
    next one's weight.
    """
    scale = None
    scales: list[Index] = []
    for _, factor, extent in weighted:
        for up in (factor * sign for sign in signs):
            if scale is None and up.constant is not None and up.constant > 0:
                break
            if scale is not None and (up == scale or (gaps and _is_multiple(up, scale))):
                break
        else:
            return None
        scales.append(up)
        if up != factor:
            total = total + up * (extent - 1)
        scale = up * extent
    values: dict[Atom, Index] = {}
    for k, (name, factor, extent) in enumerate(weighted):
        value = total // scales[k]
        if k + 1 < len(weighted):
            value = value % (scales[k + 1] // scales[k])
        values[name] = value if scales[k] == factor else extent - 1 - value
    return values


def _is_multiple(weight: Index, scale: Index) -> bool:
    """Whether a weight is a number of times another one."""
    if scale.constant == 0:
        return False
    factor = (weight // scale).constant
    return factor is not None and factor > 1 and scale * factor == weight


def replaced(value: Index, by: Mapping[Atom, Index]) -> Index:
    """The value with others for some of its atoms."""
    return value.rebuild(lambda a: by[a] if a in by else index_of(a) if isinstance(a, str) else None)


def _narrowed(value: Index, extents: Mapping[str, Index]) -> Index:
    """The value with quotients left out that are 0, as their dividends are too small."""
    return value.rebuild(lambda a: _zero(a, extents) if isinstance(a, Quotient) else index_of(a))


def _divided(value: Index, extents: Mapping[str, Index]) -> Index:
    """The value without what is a factor of all its terms, such as a size, and is likely not 0."""
    first, *others = [m for m, _ in value.terms] or [()]
    common = next((a for a in first if a not in extents and all(a in m for m in others)), None)
    if common is None:
        return value
    terms: dict[tuple[Atom, ...], int] = {}
    for monomial, coefficient in value.terms:
        place = monomial.index(common)
        terms[(*monomial[:place], *monomial[place + 1 :])] = coefficient
    return _divided(Index(terms), extents)


def _zero(quotient: Quotient, extents: Mapping[str, Index]) -> Index | None:
    return ZERO if small(quotient, extents) else None


def small(quotient: Quotient, extents: Mapping[str, Index]) -> bool:
    """Whether a dividend of variables below extents is likely below its divisor, and not negative."""
    largest = ZERO
    for monomial, coefficient in quotient.dividend.terms:
        term = Index({(): coefficient})
        for atom in monomial:
            if isinstance(atom, Quotient) or coefficient < 0:
                return False
            term = term * (extents[atom] - 1 if atom in extents else index_of(atom))
        largest = largest + term
    return all(c >= 0 for _, c in (quotient.divisor - 1 - largest).terms)
