"""Rules on tensors as patterns over the graph IR: what a rule's sides look like as graphs of symbolic sizes.

A rule is proved about terms of :mod:`ir_semantics.tensors`.  A *pattern* is such a term in the words of the graph IR:
its operators, with attributes and shapes that depend on size variables.  From one pattern come the search for its
instances (:func:`instances`) in a graph or an e-graph, and what an instance is built of (:func:`build`).

A rule that uses what graphs do not have (a choice by subscripts, an input of truth values) has no pattern; nothing
here makes a rule apply where its proof does not: the sizes found must satisfy the rule's premise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Generic, Protocol, TypeAlias, TypeVar, cast

import numpy as np

from chc.tensor_rules.rule import TensorRule
from ir_semantics.graph.ir import Attribute, Attributes
from ir_semantics.graph.operator import NAMES, OPERATORS
from ir_semantics.graph.types import Array, TensorType
from ir_semantics.scalars.terms import Scalar
from ir_semantics.tensors.conditions import holds
from ir_semantics.tensors.elements import substitute_element
from ir_semantics.tensors.index import Index, index
from ir_semantics.tensors.operators import fill
from ir_semantics.tensors.terms import Shape, Tensor, form_of, input_, operands_of
from rewrites.claims.joints.layers import LayerRule

Symbolic: TypeAlias = "Index | bool | int | float | str | tuple[Symbolic, ...]"
"""An attribute that may depend on sizes; words and fractions are those of layers."""

Literal: TypeAlias = "Fraction | float | Index"

T = TypeVar("T")


class NoPattern(ValueError):
    """A term that the graph IR cannot express; says which operator it is."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """A node of a pattern: a graph operator on other nodes, an ``input`` with a name, or a ``literal`` scalar."""

    operator: str
    operands: tuple[Pattern, ...]
    shape: Shape
    attributes: tuple[tuple[str, Symbolic], ...] = ()
    name: str = ""
    value: Literal | None = None


@dataclass(frozen=True)
class Instance(Generic[T]):
    """Where a rule applies: its sizes, and what stands for its inputs."""

    sizes: Mapping[str, int]
    inputs: Mapping[str, T]


def sides_of(rule: TensorRule) -> tuple[Pattern, Pattern]:
    """Both sides of a rule; raises NoPattern where one has none, or where the rule speaks of its inputs' elements."""
    if rule.masks or rule.positive:
        raise NoPattern(f"{rule.name} holds for some data only")
    left, right = rule.sides if isinstance(rule, LayerRule) else (rule.left, rule.right)
    return pattern_of(left), pattern_of(right)


# -- from terms to patterns -----------------------------------------------------------------------------


def pattern_of(tensor: Tensor) -> Pattern:
    """A term as a pattern; equal operands become one node."""
    return _Lowering().pattern(tensor)


@cache
def scalar_operators() -> Mapping[str, str]:
    """The graph operators that apply one scalar operator to their operands, in their order, by that operator."""
    names: dict[str, str] = {}
    for name, operator in OPERATORS.items():
        if operator.scalar is None or operator.name == "cast":
            continue
        try:
            term = operator.scalar({})
        except KeyError:  # a term with attributes
            continue
        plain = [a.payload for a in term.args if a.op == "variable"]
        if plain == list(NAMES[: len(term.args)]) and term.args:
            names.setdefault(term.op, name)
    return names


@dataclass
class _Lowering:
    _done: dict[int, Pattern] = field(default_factory=dict)

    def pattern(self, tensor: Tensor) -> Pattern:
        if id(tensor) not in self._done:
            self._done[id(tensor)] = self._new(tensor, dict(tensor.values))
        return self._done[id(tensor)]

    def _new(self, tensor: Tensor, values: dict[str, object]) -> Pattern:
        match tensor.operator:
            case "input":
                return Pattern("input", (), tensor.shape, name=str(values["name"]))
            case "map":
                term, names = values["term"], values["names"]
                assert isinstance(term, Scalar) and isinstance(names, list)
                operands = {str(n): self.pattern(o) for n, o in zip(names, tensor.operands, strict=True)}
                return self._scalar(term, operands, tensor.shape)
            case "fill" | "number":
                value = values["value"]
                assert isinstance(value, Index | Fraction | int | float)
                return _filled(value, tensor.shape)
        operands_of = tuple(self.pattern(o) for o in tensor.operands)
        if tensor.operator == "pad" and "value" in values:
            fill = values.pop("value")
            assert isinstance(fill, Fraction | int | float)
            operands_of += (_filled(fill, ()),)
        return Pattern(tensor.operator, operands_of, tensor.shape, _attributes(tensor, operands_of, values))

    def _scalar(self, term: Scalar, operands: Mapping[str, Pattern], shape: Shape) -> Pattern:
        """A scalar term as graph operators of one scalar operator each."""
        if term.op == "variable":
            return operands[str(term.payload)]
        if term.op == "constant":
            assert isinstance(term.payload, Fraction | float)
            return _filled(term.payload, shape)
        known = scalar_operators()
        if term.op not in known:
            raise NoPattern(f"graphs have no operator for {term.op} alone")
        return Pattern(known[term.op], tuple(self._scalar(a, operands, shape) for a in term.args), shape)


def _filled(value: Literal | int, shape: Shape) -> Pattern:
    scalar = Pattern("literal", (), (), value=Fraction(value) if isinstance(value, int) else value)
    return scalar if not shape else Pattern("broadcast", (scalar,), shape, (("axes", ()), ("shape", shape)))


def _attributes(
    tensor: Tensor, operands: Sequence[Pattern], values: dict[str, object]
) -> tuple[tuple[str, Symbolic], ...]:
    """The attributes of the graph operator of that name; raises NoPattern where it has no such operator."""
    operator = OPERATORS.get(tensor.operator)
    if operator is not None and operator.expand is not None:
        return tuple(sorted((name, cast(Symbolic, value)) for name, value in values.items()))
    if operator is None or operator.term is None:
        raise NoPattern(f"graphs have no operator {tensor.operator}")
    attributes = {name: _symbolic(value) for name, value in values.items() if name in operator.attributes}
    if "dilations" in operator.attributes:  # which terms do not show where they are 1
        attributes.setdefault("dilations", (1,) * (len(operands[0].shape) - 2))
    inputs = [_operand(j, o) for j, o in enumerate(operands)]
    term = operator.term(inputs, cast(Attributes, attributes))
    meant = dict(term.attributes)
    other = [f"{name} = {value}" for name, value in tensor.attributes if name in values and meant.get(name) != value]
    if other:
        raise NoPattern(f"graphs have no {tensor.operator} with {' and '.join(other)}")
    own = replace(tensor, operands=tuple(inputs[: len(tensor.operands)]))
    if form_of(own) != form_of(term):
        raise NoPattern(f"the operator {tensor.operator} of graphs has other elements than the rule's")
    return tuple(sorted(attributes.items()))


def _operand(number: int, pattern: Pattern) -> Tensor:
    """What stands for an operand of a term: an input, or the number that it is."""
    if pattern.operator == "literal" and isinstance(pattern.value, Fraction | float):
        return fill(pattern.value)
    return input_(f"x{number}", *pattern.shape)


def _same_at(tensor: Tensor, sizes: Mapping[str, int]) -> bool:
    """Whether the graph operator of that name is at sizes what the term is: a package's may decide by numbers."""
    operator = OPERATORS[tensor.operator]
    assert operator.term is not None, "there is a pattern"
    values = {n: _concrete(_symbolic(v), sizes) for n, v in tensor.values if n in operator.attributes}
    at = {name: index(value) for name, value in sizes.items()}
    shapes = [tuple(extent.substitute(at) for extent in o.shape) for o in tensor.operands]
    inputs = [input_(f"x{j}", *shape) for j, shape in enumerate(shapes)]
    own = replace(tensor, operands=tuple(input_(f"x{j}", *o.shape) for j, o in enumerate(tensor.operands)))
    shape, element = form_of(own)
    here = tuple(extent.substitute(at) for extent in shape), substitute_element(element, at)
    return here == form_of(operator.term(inputs, cast(Attributes, values)))


def _symbolic(value: object) -> Symbolic:
    if isinstance(value, Index | bool | int):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_symbolic(v) for v in value)
    raise NoPattern(f"an attribute of a pattern must be made of sizes, not {value!r}")


# -- instances ------------------------------------------------------------------------------------------


class View(Protocol):
    """Where instances are looked for: a graph, in which a number is one node, or an e-graph, in which it is a class."""

    def nodes(self, number: int) -> Iterable[Found]:
        """What computes the value of a number."""
        ...

    def same(self, one: int, other: int) -> bool:
        """Whether two numbers are the same value."""
        ...


@dataclass(frozen=True)
class Found:
    """One node: its operator, operands, attributes and type; the ``scalar`` that it is, if it is a constant one."""

    operator: str
    operands: Sequence[int]
    attributes: Sequence[tuple[str, Attribute]]
    type: TensorType
    scalar: Array | None = None


@dataclass(frozen=True)
class _State:
    """What is known of an instance: sizes, inputs, polynomials with their values, and the numbers of pattern nodes."""

    sizes: Mapping[str, int]
    inputs: Mapping[str, int] = field(default_factory=dict)
    open: tuple[tuple[Index, int], ...] = ()
    met: Mapping[int, int] = field(default_factory=dict)


def instances(
    rule: TensorRule, left: Pattern, view: View, root: int, chosen: Mapping[str, int] | None = None
) -> Iterator[Instance[int]]:
    """The instances of ``left`` whose value is ``root``, with sizes that satisfy the rule's premise.

    ``chosen`` are sizes that a graph does not determine, such as where to cut a tensor in two.
    """
    for state in _matched(left, root, view, _State(dict(chosen or {}))):
        sizes = _settled(state, rule.sizes)
        if sizes is not None and fits(rule, sizes):
            yield Instance(sizes, dict(state.inputs))


def fits(rule: TensorRule, sizes: Mapping[str, int]) -> bool:
    """Whether sizes satisfy a rule's premise, and operators of packages are what was proved there."""
    try:
        if set(sizes) != set(rule.sizes) or not holds(rule.premise, sizes):
            return False
        return all(_same_at(t, sizes) for t in operands_of(rule.left, rule.right) if "." in t.operator)
    except ZeroDivisionError:
        return False


def _matched(pattern: Pattern, number: int, view: View, state: _State) -> Iterator[_State]:
    """The ways in which a number's value is a pattern's, as far as sizes are known; others are settled later."""
    known = state.met.get(id(pattern))
    if known is not None:
        if view.same(known, number):
            yield state
        return
    state = replace(state, met={**state.met, id(pattern): number})
    for node in view.nodes(number):
        if pattern.operator not in ("input", "literal", node.operator) or len(node.type.shape) != len(pattern.shape):
            continue
        extended = _equal(pattern.shape, node.type.shape, state)
        if extended is None:
            continue
        if pattern.operator == "input":
            taken = extended.inputs.get(pattern.name)
            if taken is None or view.same(taken, number):
                yield replace(extended, inputs={**extended.inputs, pattern.name: number if taken is None else taken})
            return  # another node of the class is the same input
        if pattern.operator == "literal":
            extended = _literal(pattern.value, node.scalar, extended)
            if extended is not None:
                yield extended
            continue
        if len(node.operands) != len(pattern.operands):
            continue
        attributes = {name: value for name, value in node.attributes if value is not None}
        required = dict(pattern.attributes)
        if attributes.keys() - required.keys():
            continue
        for name, value in required.items():
            extended = _equal(value, attributes.get(name), extended) if extended is not None else None
        if extended is not None:
            yield from _all_matched(pattern.operands, node.operands, view, extended)


def _all_matched(patterns: Sequence[Pattern], numbers: Sequence[int], view: View, state: _State) -> Iterator[_State]:
    if not patterns:
        yield state
        return
    for extended in _matched(patterns[0], numbers[0], view, state):
        yield from _all_matched(patterns[1:], numbers[1:], view, extended)


def _literal(value: Literal | None, scalar: Array | None, state: _State) -> _State | None:
    if scalar is None or scalar.shape != ():
        return None
    if isinstance(value, Index):
        whole = float(scalar).is_integer() and is_number(scalar, Fraction(int(scalar)))  # -0.0 is no size
        return _equal(value, int(scalar), state) if whole else None
    return state if value is not None and is_number(scalar, value) else None


def is_number(scalar: Array, value: Fraction | float) -> bool:
    """Whether a scalar is a number: -0.0, infinities and NaN are given as floats, all other numbers as fractions."""
    if isinstance(value, float):
        return bool(np.array_equal(scalar, value)) and bool(np.signbit(scalar)) == bool(np.signbit(value))
    plain = bool(np.isfinite(scalar)) and not (scalar == 0 and np.signbit(scalar))
    return plain and Fraction(float(scalar)) == value


def _equal(value: Symbolic, attribute: Attribute, state: _State) -> _State | None:
    """The state in which an attribute has a value, None where it cannot."""
    if isinstance(value, tuple):
        if not isinstance(attribute, tuple) or len(attribute) != len(value):
            return None
        extended: _State | None = state
        for v, g in zip(value, attribute, strict=True):
            extended = _equal(v, g, extended) if extended is not None else None
        return extended
    if isinstance(value, bool):
        return state if attribute is value or (attribute is None and not value) else None
    if isinstance(value, float | str):
        return state if type(attribute) is type(value) and attribute == value else None
    if isinstance(attribute, bool) or not isinstance(attribute, int):
        return None
    polynomial = index(value)
    name = polynomial.variable
    if name is None:
        return replace(state, open=(*state.open, (polynomial, attribute)))
    if name in state.sizes:
        return state if state.sizes[name] == attribute else None
    return replace(state, sizes={**state.sizes, name: attribute})


def _settled(state: _State, names: Sequence[str]) -> dict[str, int] | None:
    """The sizes, where every one is known and every polynomial has its value; one unknown in it is solved for."""
    sizes, waiting = dict(state.sizes), list(state.open)
    while waiting:
        left = []
        for polynomial, value in waiting:
            unknown = polynomial.variables - sizes.keys()
            if len(unknown) == 1:
                (name,) = unknown
                solved = _solved(polynomial, value, name, sizes)
                if solved is not None:
                    sizes[name] = solved
                    unknown = frozenset()
            if unknown:
                left.append((polynomial, value))
            elif _value(polynomial, sizes) != value:
                return None
        if len(left) == len(waiting):
            return None
        waiting = left
    return sizes if all(name in sizes for name in names) else None


def _solved(polynomial: Index, value: int, name: str, sizes: Mapping[str, int]) -> int | None:
    """The one unknown of a polynomial that is linear in it."""
    rest = polynomial.substitute({n: index(v) for n, v in sizes.items()})
    start, one = (rest.substitute({name: index(n)}).constant for n in (0, 1))
    if start is None or one is None or one == start:
        return None
    slope = one - start
    if rest != index(start) + index(slope) * Index({(name,): 1}) or (value - start) % slope:
        return None
    return (value - start) // slope


def _value(polynomial: Index, sizes: Mapping[str, int]) -> int | None:
    try:
        return polynomial.value(sizes)
    except ZeroDivisionError:
        return None


# -- what instances are built of -----------------------------------------------------------------------


def build(
    pattern: Pattern,
    instance: Instance[T],
    add: Callable[[str, Sequence[T], Mapping[str, Attribute]], T],
    constant: Callable[[Fraction | float | int], T],
) -> T:
    """The pattern's value at an instance: ``add`` applies an operator, ``constant`` makes a scalar."""
    done: dict[int, T] = {}
    for node in _postorder(pattern):
        if node.operator == "input":
            done[id(node)] = instance.inputs[node.name]
        elif node.operator == "literal":
            value = node.value.value(instance.sizes) if isinstance(node.value, Index) else node.value
            assert value is not None
            done[id(node)] = constant(value)
        else:
            attributes = {name: _concrete(v, instance.sizes) for name, v in node.attributes}
            done[id(node)] = add(node.operator, [done[id(o)] for o in node.operands], attributes)
    return done[id(pattern)]


def _concrete(value: Symbolic, sizes: Mapping[str, int]) -> Attribute:
    if isinstance(value, tuple):
        return tuple(_concrete(v, sizes) for v in value)
    return value.value(sizes) if isinstance(value, Index) else value


def inputs_of(*patterns: Pattern) -> dict[str, Shape]:
    """The shapes of the inputs by name."""
    return {node.name: node.shape for pattern in patterns for node in _postorder(pattern) if node.operator == "input"}


def _postorder(root: Pattern) -> Iterator[Pattern]:
    seen: set[int] = set()

    def walk(pattern: Pattern) -> Iterator[Pattern]:
        if id(pattern) not in seen:
            seen.add(id(pattern))
            for operand in pattern.operands:
                yield from walk(operand)
            yield pattern

    return walk(root)
