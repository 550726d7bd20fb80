"""Patterns: terms with variables, matched against classes and built under substitutions.

A pattern is data. The same pattern is matched in the e-graph, built there, and built as a term for the checker; the
``Maker`` says which. What a pattern requires of attributes is required again whenever it is built, so a substitution
that could not have been matched is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from .egraph import EGraph, ENode
from .explanation import Substitution
from .terms import EGraphError, Symbol, Term, identity, term

T = TypeVar("T")

Typing: TypeAlias = Callable[[str, Sequence[Hashable], tuple[tuple[str, Hashable], ...]], Hashable]
"""The type of an operator's result, from the operator, the types of its operands and its attributes."""


@dataclass(frozen=True)
class Variable:
    """Any operand; the same one wherever the variable occurs."""

    name: str


@dataclass(frozen=True)
class Bindings:
    """What attribute variables stand for, and the types of what operand variables stand for."""

    values: Mapping[str, Hashable]
    types: Mapping[str, Hashable]


@dataclass(frozen=True)
class Bound:
    """Any attribute or type for which ``where`` holds; the same one wherever the name occurs."""

    name: str
    where: Callable[[Hashable], bool] | None = None


@dataclass(frozen=True)
class Computed:
    """An attribute or type computed from what is bound; for right sides only."""

    value: Callable[[Bindings], Hashable]


@dataclass(frozen=True)
class Operator:
    """An operator on patterns. Made by ``operator``.

    ``attributes`` are all that it has, by name, or one variable for all of them together. Without a ``type``, the type
    is what the operator's typing says.
    """

    operator: str
    operands: tuple[Pattern, ...]
    attributes: tuple[tuple[str, Hashable | Bound | Computed], ...] | Bound
    type: Hashable | Bound | Computed | None


Pattern: TypeAlias = "Variable | Operator"


def operator(
    name: str,
    *operands: Pattern | str,
    attributes: Mapping[str, Hashable | Bound | Computed] | Bound | None = None,
    type: Hashable | Bound | Computed | None = None,
) -> Operator:
    """The pattern of an operator; operands given by a name are variables."""
    inner = tuple(Variable(o) if isinstance(o, str) else o for o in operands)
    frozen = attributes if isinstance(attributes, Bound) else tuple(sorted((attributes or {}).items()))
    return Operator(name, inner, frozen, type)


def variables(pattern: Pattern) -> tuple[set[str], set[str], bool]:
    """The names of its operand variables, of its attribute and type variables, and whether anything is computed."""
    if isinstance(pattern, Variable):
        return {pattern.name}, set(), False
    fields: list[object] = [pattern.type]
    fields += [pattern.attributes] if isinstance(pattern.attributes, Bound) else [v for _, v in pattern.attributes]
    operands: set[str] = set()
    values = {v.name for v in fields if isinstance(v, Bound)}
    computed = any(isinstance(v, Computed) for v in fields)
    for inner in pattern.operands:
        more, more_values, more_computed = variables(inner)
        operands, values, computed = operands | more, values | more_values, computed or more_computed
    return operands, values, computed


# Matching -------------------------------------------------------------------------------------------------------------


def matches(pattern: Pattern, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
    """The substitutions under which the class of an e-node has the pattern's term; each once, up to equality."""
    seen: set[Hashable] = set()
    for operands, values in _match(pattern, egraph, number, {}, {}):
        substitution = Substitution.of(operands, values)
        key = (
            tuple((name, egraph.find(o)) for name, o in substitution.operands),
            tuple((name, identity(v)) for name, v in substitution.values),
        )
        if key not in seen:
            seen.add(key)
            yield substitution


_Matched: TypeAlias = "tuple[dict[str, int], dict[str, Hashable]]"


def _match(
    pattern: Pattern, egraph: EGraph, number: int, operands: dict[str, int], values: dict[str, Hashable]
) -> Iterator[_Matched]:
    if isinstance(pattern, Variable):
        known = operands.get(pattern.name)
        if known is None:
            yield {**operands, pattern.name: number}, values
        elif egraph.find(known) == egraph.find(number):
            yield operands, values
        return
    for node in egraph.nodes(number):
        if node.symbol.operator == pattern.operator and len(node.operands) == len(pattern.operands):
            bound = _fields(pattern, node, values)
            if bound is not None:
                yield from _match_all(pattern.operands, egraph, node.operands, operands, bound)


def _match_all(
    patterns: Sequence[Pattern],
    egraph: EGraph,
    numbers: Sequence[int],
    operands: dict[str, int],
    values: dict[str, Hashable],
) -> Iterator[_Matched]:
    if not patterns:
        yield operands, values
        return
    for inner, bound in _match(patterns[0], egraph, numbers[0], operands, values):
        yield from _match_all(patterns[1:], egraph, numbers[1:], inner, bound)


def _fields(pattern: Operator, node: ENode, values: dict[str, Hashable]) -> dict[str, Hashable] | None:
    """The values with those of a node's attributes and type, or None where they do not match."""
    pairs: list[tuple[object, Hashable]] = []
    if pattern.type is not None:
        pairs.append((pattern.type, node.symbol.type))
    if isinstance(pattern.attributes, Bound):
        pairs.append((pattern.attributes, node.symbol.attributes))
    else:
        if [name for name, _ in pattern.attributes] != [name for name, _ in node.symbol.attributes]:
            return None
        attributes = (value for _, value in node.symbol.attributes)
        pairs += zip((expected for _, expected in pattern.attributes), attributes, strict=True)
    bound = dict(values)
    for expected, value in pairs:
        if isinstance(expected, Bound):
            if expected.name in bound and identity(bound[expected.name]) != identity(value):
                return None
            if expected.where is not None and not expected.where(value):
                return None
            bound[expected.name] = value
        elif identity(expected) != identity(value):
            return None
    return bound


# Building -------------------------------------------------------------------------------------------------------------


class Maker(Protocol[T]):
    """What patterns are built of: terms, or e-nodes by number."""

    def add(self, symbol: Symbol, operands: Sequence[T]) -> T:
        """A symbol applied to operands."""
        ...

    def type_of(self, number: T) -> Hashable:
        """The type of an operand."""
        ...


class TermMaker:
    """Builds terms."""

    def add(self, symbol: Symbol, operands: Sequence[Term]) -> Term:
        """The term of a symbol applied to terms."""
        return term(symbol, operands)

    def type_of(self, number: Term) -> Hashable:
        """The type of a term."""
        return number.symbol.type


class Missing(EGraphError):
    """What is looked up is not in the e-graph."""


class Lookup:
    """Builds nothing: finds the classes of what is in the e-graph, and raises Missing for what is not."""

    def __init__(self, egraph: EGraph) -> None:
        self._egraph = egraph

    def add(self, symbol: Symbol, operands: Sequence[int]) -> int:
        """The class of a symbol applied to classes."""
        number = self._egraph.lookup(symbol, operands)
        if number is None:
            raise Missing(f"{symbol} must be in the e-graph")
        return number

    def type_of(self, number: int) -> Hashable:
        """The type of a class."""
        return self._egraph.type_of(number)


def build(pattern: Pattern, maker: Maker[T], typing: Typing, substitution: Substitution[T]) -> T:
    """The pattern under a substitution; raises EGraphError where a variable is missing or ``where`` does not hold."""
    operands = dict(substitution.operands)
    values = dict(substitution.values)
    bindings = Bindings(values, {name: maker.type_of(o) for name, o in operands.items()})

    def field(part: object) -> Hashable:
        if isinstance(part, Bound):
            if part.name not in values:
                raise EGraphError(f"a substitution must have a value for {part.name}; it has none")
            if part.where is not None and not part.where(values[part.name]):
                raise EGraphError(f"{part.name} must be as its pattern says, not {values[part.name]!r}")
            return values[part.name]
        return part.value(bindings) if isinstance(part, Computed) else part

    def built(at: Pattern) -> T:
        if isinstance(at, Variable):
            if at.name not in operands:
                raise EGraphError(f"a substitution must have an operand for {at.name}; it has none")
            return operands[at.name]
        inner = [built(o) for o in at.operands]
        if isinstance(at.attributes, Bound):
            attributes = field(at.attributes)
            if not isinstance(attributes, tuple) or not all(isinstance(p, tuple) and len(p) == 2 for p in attributes):
                raise EGraphError(f"{at.attributes.name} must be a list of attributes, not {attributes!r}")
        else:
            attributes = tuple((name, field(value)) for name, value in at.attributes)
        if at.type is None:
            type_ = typing(at.operator, [maker.type_of(o) for o in inner], attributes)
        else:
            type_ = field(at.type)
        return maker.add(Symbol(at.operator, attributes, type_), inner)

    return built(pattern)
