"""Candidates for maps between index spaces: where must the other side's bound variables be, for bodies to be equal?

Two products are equal if they read the same elements.  This gives equations between subscripts, and solving them for
the bound variables of one side gives a map.  A candidate is only a suggestion; nothing rests on how it was found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from chc.bijections.solve import solved
from ir_semantics.tensors.conditions import All, AtLeastZero, Condition, both, inside, substitute_condition
from ir_semantics.tensors.elements import Read
from ir_semantics.tensors.index import Index, index

from .normal_forms.normal import (
    Atom,
    Extremum,
    Family,
    Group,
    IntegerAtom,
    Member,
    Opaque,
    OrderedSum,
    Powers,
    Value,
    head,
)

Equation = tuple[Index, Index]
Map = dict[str, Index]
COMMUTATIVE = frozenset({"add", "mul"})
MOST_ALIGNMENTS = 12
MOST_WITNESSES = 48


def pairings(left: Powers, right: Powers) -> Iterator[list[tuple[Atom, Atom]]]:
    """Ways to pair the factors of two products such that heads and exponents agree."""
    groups: dict[tuple[object, ...], tuple[list[Atom], list[Atom]]] = {}
    for side, powers in enumerate((left, right)):
        for atom, n in powers:
            groups.setdefault((head(atom), n), ([], []))[side].append(atom)
    if any(len(a) != len(b) for a, b in groups.values()):
        return
    orders = [[list(zip(a, p, strict=True)) for p in itertools.permutations(b)] for a, b in groups.values()]
    for combination in itertools.islice(itertools.product(*orders), MOST_ALIGNMENTS):
        yield [pair for part in combination for pair in part]


def alignments(left: Family | Member, right: Family | Member) -> list[list[Equation]]:
    """Lists of equations between subscripts, each of which would make the bodies read the same elements."""
    if isinstance(left, Member) and isinstance(right, Member):
        equations = _of_values(left.value, right.value)
    elif isinstance(left, Family) and isinstance(right, Family):
        equations = _of_families(left, right)
    else:
        raise TypeError("two families or two members must be aligned")
    return equations[:MOST_ALIGNMENTS]


def _of_families(left: Family, right: Family) -> list[list[Equation]]:
    if left.coefficient != right.coefficient:
        return []
    equations = []
    for pairs in pairings(left.powers, right.powers):
        choices = [_of_atoms(a, b) for a, b in pairs]
        for combination in itertools.islice(itertools.product(*choices), MOST_ALIGNMENTS):
            equations.append([e for part in combination for e in part])
    return equations


def _of_values(left: Value, right: Value) -> list[list[Equation]]:
    if len(left) != len(right) or len(left) > 4:
        return [[]]
    equations = []
    for order in itertools.permutations(right):
        choices = [_of_families(a, b) for a, b in zip(left, order, strict=True)]
        for combination in itertools.islice(itertools.product(*choices), MOST_ALIGNMENTS):
            equations.append([e for part in combination for e in part])
    return equations


def _of_atoms(left: Atom, right: Atom) -> list[list[Equation]]:
    match left, right:
        case Read(_, a), Read(_, b) if len(a) == len(b):
            return [list(zip(a, b, strict=True))]
        case IntegerAtom(a), IntegerAtom(b):
            return [[(a, b)]]
        case Opaque(_, a), Opaque(_, b) if len(a) == len(b):
            equations = []
            for order in [b, b[::-1]] if left.op in COMMUTATIVE else [b]:
                choices = [_of_values(x, y) for x, y in zip(a, order, strict=True)]
                equations += [[e for part in c for e in part] for c in itertools.islice(itertools.product(*choices), 4)]
            return equations
        case Extremum(_, a), Extremum(_, b) if len(a) == len(b) == 1:
            return _of_values(a[0].value, b[0].value)
        case Group(a), Group(b):
            return _of_values(a, b)
        case OrderedSum(_, _, a), OrderedSum(_, _, b):
            return _of_values(a, b)
    return [[]]


def bound_inside(item: Family | Member) -> frozenset[str]:
    """Variables that are bound by what stands inside an item's factors."""
    names: set[str] = set()

    def visit_value(value: Value) -> None:
        for f in value:
            names.update(v for v, _ in f.bound)
            for atom, _ in f.powers:
                visit(atom)

    def visit(atom: Atom) -> None:
        match atom:
            case Opaque(_, args):
                for a in args:
                    visit_value(a)
            case Extremum(_, members):
                for m in members:
                    names.update(v for v, _ in m.bound)
                    visit_value(m.value)
            case Group(value):
                visit_value(value)
            case OrderedSum(variable, _, value):
                names.add(variable)
                visit_value(value)

    if isinstance(item, Member):
        visit_value(item.value)
    else:
        for atom, _ in item.powers:
            visit(atom)
    return frozenset(names)


def witnesses(
    equations: Sequence[Equation],
    item: Family | Member,
    other: Family | Member,
    forbidden: frozenset[str],
) -> list[Map]:
    """Values of the bound variables of ``item`` for which the left subscripts of equations may equal the right ones.

    Bound variables of ``item`` stand in the right subscripts, those of ``other`` in the left ones.  No value mentions a
    forbidden variable.
    """
    unknowns, guard = item.bound, item.guard
    partners = {v: w for (v, _), (w, _) in zip(item.bound, other.bound, strict=False)}
    usable = [a - b for a, b in equations if not (a.variables | b.variables) & forbidden]
    extents = dict(unknowns)
    maps: dict[tuple[tuple[str, Index], ...], Map] = {}
    found = itertools.islice(_solve(usable, extents, guard, partners, {}), 4 * MOST_WITNESSES)
    for values in itertools.chain(_in_digits(usable, extents, dict(other.bound)), found):
        if any(value.variables & (forbidden | extents.keys()) for value in values.values()):
            continue
        maps.setdefault(tuple(sorted(values.items(), key=lambda p: p[0])), values)
    return list(maps.values())[:MOST_WITNESSES]


def maps_into(member: Member, others: Sequence[Member]) -> Iterator[tuple[int, Map]]:
    """Maps from points of a member to those of the others, by their positions."""
    for position, other in enumerate(others):
        hidden = bound_inside(member) | bound_inside(other)
        for equations in alignments(member, other):
            yield from ((position, forward) for forward in witnesses(equations, other, member, hidden))


def within(item: Family | Member, values: Map) -> Condition:
    """That an item has a point at given values of its bound variables."""
    ranges = [inside(values[v], extent.substitute(values)) for v, extent in item.bound]
    return both(*ranges, substitute_condition(item.guard, values))


def _in_digits(equations: Sequence[Index], unknowns: Map, knowns: Map) -> list[Map]:
    """The solution with numbers read in mixed radix, if there is one for all unknowns."""
    try:
        values = solved(equations, unknowns, knowns)
    except ZeroDivisionError:
        return []
    return [values] if values.keys() == unknowns.keys() else []


def _linear(equation: Index, variable: str) -> tuple[Index, Index] | None:
    """Coefficient of a variable and the rest, where the equation is linear in it."""
    coefficient: dict[tuple[object, ...], int] = {}
    rest: dict[tuple[object, ...], int] = {}
    for monomial, c in equation.terms:
        if variable in monomial:
            left = list(monomial)
            left.remove(variable)
            coefficient[tuple(left)] = c
        else:
            rest[monomial] = c
    factor, others = Index(coefficient), Index(rest)  # type: ignore[arg-type]
    if variable in factor.variables or variable in others.variables or not factor.terms:
        return None
    return factor, others


def _solve(
    equations: Sequence[Index],
    unknowns: Mapping[str, Index],
    guard: Condition,
    partners: Mapping[str, str],
    known: Map,
) -> Iterator[Map]:
    open_ = [v for v in unknowns if v not in known]
    if not open_:
        yield known
        return
    variable, candidates = _candidates(equations, open_, unknowns, guard, partners)
    for value in dict.fromkeys(candidates):
        if variable in value.variables:
            continue
        step = {variable: value}
        extended = {v: e.substitute(step) for v, e in known.items()} | step
        yield from _solve(
            [e.substitute(step) for e in equations],
            {v: e.substitute(step) for v, e in unknowns.items()},
            guard,
            partners,
            extended,
        )


def _candidates(
    equations: Sequence[Index],
    open_: Sequence[str],
    unknowns: Mapping[str, Index],
    guard: Condition,
    partners: Mapping[str, str],
) -> tuple[str, list[Index]]:
    """The next unknown to choose, and values for it."""
    shared: list[tuple[str, Index, Index, list[str]]] = []
    exact: dict[str, list[Index]] = {}
    for equation in equations:
        present = [v for v in open_ if v in equation.variables]
        for variable in present:
            if (parts := _linear(equation, variable)) is None:
                continue
            factor, rest = parts
            if len(present) == 1:
                if factor.constant in (1, -1):
                    exact.setdefault(variable, []).append(-rest * factor)
                    continue
                shared.insert(0, (variable, factor, rest, []))
            else:
                shared.append((variable, factor, rest, [v for v in present if v != variable]))
    if exact:
        return next(iter(exact.items()))
    alone = [s for s in shared if not s[3]]
    if alone:
        variable, factor, rest, _ = alone[0]
        return variable, [_divided(-rest, factor)]
    together = sorted(shared, key=lambda s: s[1].constant in (1, -1))
    if together:
        variable, factor, rest, others = together[0]
        low = rest.substitute({v: index(0) for v in others})
        high = rest.substitute({v: unknowns[v] - 1 for v in others})
        middle = _divided(-low, factor)
        return variable, [
            middle,
            middle - 1,
            index(0),
            unknowns[variable] - 1,
            _divided(-high, factor),
            _divided(-high, factor) + 1,
        ]
    variable = open_[0]
    partner = [Index({(partners[variable],): 1})] if variable in partners else []
    return variable, [*partner, index(0), unknowns[variable] - 1, *_edges(guard, variable)]


def _divided(dividend: Index, divisor: Index) -> Index:
    if divisor.terms[0][1] < 0:
        dividend, divisor = -dividend, -divisor
    return dividend // divisor


def _edges(guard: Condition, variable: str) -> list[Index]:
    """Where the inequalities of a guard begin to hold for a variable."""
    edges = []
    for part in guard.parts if isinstance(guard, All) else (guard,):
        if isinstance(part, AtLeastZero) and (parts := _linear(part.value, variable)) is not None:
            factor, rest = parts
            if factor.constant in (1, -1):
                edges.append(-rest * factor)
    return edges
