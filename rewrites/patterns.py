"""Rules on tensors as patterns over the graph IR: what a rule's sides look like as graphs of symbolic sizes.

A rule is proved about terms of :mod:`ir_semantics.tensors`.  A *pattern* is such a term in the words of the graph IR:
its operators, with attributes and shapes that depend on size variables.  From one pattern come the search for its
instances in a graph (:func:`match`) and the graph of an instance (:func:`build`).

A rule that uses what graphs do not have (a choice by subscripts, an input of truth values) has no pattern; nothing
here makes a rule apply where its proof does not: the sizes found must satisfy the rule's premise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import numpy as np

from ir_semantics.graph.build import Builder
from ir_semantics.graph.ir import Attribute, Node
from ir_semantics.graph.operator import NAMES, OPERATORS
from ir_semantics.graph.types import Array
from ir_semantics.scalars import Scalar
from ir_semantics.tensors.conditions import holds
from ir_semantics.tensors.index import Index, index
from ir_semantics.tensors.terms import Shape, Tensor

from .tensor_rule import TensorRule

__all__ = ["Instance", "Literal", "NoPattern", "Pattern", "Symbolic", "build", "match", "pattern_of", "sides_of"]

Symbolic: TypeAlias = "Index | bool | int | tuple[Symbolic, ...]"
"""An attribute that may depend on sizes."""

Literal: TypeAlias = "Fraction | float | Index"


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
class Instance:
    """Where a rule applies: its sizes, and the graph nodes that stand for its inputs."""

    sizes: Mapping[str, int]
    inputs: Mapping[str, int]


def sides_of(rule: TensorRule) -> tuple[Pattern, Pattern]:
    """Both sides of a rule; raises NoPattern where one has none, or where the rule speaks of its inputs' elements."""
    if rule.masks or rule.positive:
        raise NoPattern(f"{rule.name} holds for some data only")
    return pattern_of(rule.left), pattern_of(rule.right)


# -- from terms to patterns -----------------------------------------------------------------------------


def pattern_of(tensor: Tensor) -> Pattern:
    """A term as a pattern; equal operands become one node."""
    return _Lowering().pattern(tensor)


@cache
def _scalar_operators() -> Mapping[str, str]:
    """The graph operators that apply one scalar operator to their operands, in their order."""
    found: dict[str, str] = {}
    for name, operator in OPERATORS.items():
        if operator.scalar is None or operator.name == "cast":
            continue
        try:
            term = operator.scalar({})
        except KeyError:  # a term with attributes
            continue
        plain = [a.payload for a in term.args if a.op == "variable"]
        if plain == list(NAMES[: len(term.args)]) and term.args:
            found.setdefault(term.op, name)
    return found


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
        return Pattern(tensor.operator, operands_of, tensor.shape, _attributes(tensor, values))

    def _scalar(self, term: Scalar, operands: Mapping[str, Pattern], shape: Shape) -> Pattern:
        """A scalar term as graph operators of one scalar operator each."""
        if term.op == "variable":
            return operands[str(term.payload)]
        if term.op == "constant":
            assert isinstance(term.payload, Fraction | float)
            return _filled(term.payload, shape)
        known = _scalar_operators()
        if term.op not in known:
            raise NoPattern(f"graphs have no operator for {term.op} alone")
        return Pattern(known[term.op], tuple(self._scalar(a, operands, shape) for a in term.args), shape)


def _filled(value: Literal | int, shape: Shape) -> Pattern:
    scalar = Pattern("literal", (), (), value=Fraction(value) if isinstance(value, int) else value)
    return scalar if not shape else Pattern("broadcast", (scalar,), shape, (("axes", ()), ("shape", shape)))


def _attributes(tensor: Tensor, values: dict[str, object]) -> tuple[tuple[str, Symbolic], ...]:
    """The attributes of the graph operator of that name; raises NoPattern where it has no such operator."""
    operator = OPERATORS.get(tensor.operator)
    if operator is None or operator.term is None:
        raise NoPattern(f"graphs have no operator {tensor.operator}")
    rank = tensor.operands[0].rank if tensor.operands else 0
    if tensor.operator in ("conv", "max_pool", "avg_pool"):
        values.setdefault("dilations", [1] * (rank - 2))
    if tensor.operator == "conv":
        values.pop("kernel")
        if values.pop("correlate") is not True:
            raise NoPattern("graphs have no convolution with a reversed kernel")
    if tensor.operator == "max_pool" and "outside" in values:
        raise NoPattern("graphs have no maximum pooling with a number outside")
    if tensor.operator.startswith("reduce_") and values.pop("initial") != "none":
        raise NoPattern("graphs have no reduction with an initial number")
    return tuple(sorted((name, _symbolic(value)) for name, value in values.items()))


def _symbolic(value: object) -> Symbolic:
    if isinstance(value, Index | bool | int):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_symbolic(v) for v in value)
    raise NoPattern(f"an attribute of a pattern must be made of sizes, not {value!r}")


# -- instances ------------------------------------------------------------------------------------------


def match(
    rule: TensorRule,
    left: Pattern,
    nodes: Callable[[int], Node],
    root: int,
    literal: Callable[[int], Array | None],
    chosen: Mapping[str, int] | None = None,
) -> Instance | None:
    """The instance of ``left`` whose value is the node ``root``, with sizes that satisfy the rule's premise.

    ``nodes`` gives the node of a number, ``literal`` the value of a node that is a constant scalar.  ``chosen`` are
    sizes that a graph does not determine, such as where to cut a tensor in two.
    """
    attempt = _Matching(nodes, literal, dict(chosen or {}))
    if not attempt.node(left, root) or not attempt.settled(rule.sizes):
        return None
    try:
        fits = holds(rule.premise, attempt.sizes)
    except ZeroDivisionError:
        return None
    return Instance(attempt.sizes, attempt.inputs) if fits else None


@dataclass
class _Matching:
    nodes: Callable[[int], Node]
    literal: Callable[[int], Array | None]
    sizes: dict[str, int] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)
    _open: list[tuple[Index, int]] = field(default_factory=list)
    _met: dict[int, int] = field(default_factory=dict)

    def node(self, pattern: Pattern, number: int) -> bool:
        """Whether a node fits a pattern, as far as sizes are known; others are settled later."""
        if id(pattern) in self._met:
            return self._met[id(pattern)] == number
        self._met[id(pattern)] = number
        node = self.nodes(number)
        if len(node.type.shape) != len(pattern.shape):
            return False
        if not all(self._equal(d, n) for d, n in zip(pattern.shape, node.type.shape, strict=True)):
            return False
        if pattern.operator == "input":
            return self.inputs.setdefault(pattern.name, number) == number
        if pattern.operator == "literal":
            return self._literal(pattern.value, number)
        if node.operator != pattern.operator or len(node.operands) != len(pattern.operands):
            return False
        given = {name: value for name, value in node.attributes if value is not None}
        wanted = dict(pattern.attributes)
        if given.keys() - wanted.keys() or not all(self._equal(v, given.get(n)) for n, v in wanted.items()):
            return False
        return all(self.node(p, n) for p, n in zip(pattern.operands, node.operands, strict=True))

    def _literal(self, value: Literal | None, number: int) -> bool:
        found = self.literal(number)
        if found is None or found.shape != ():
            return False
        if isinstance(value, Index):
            return float(found).is_integer() and self._equal(value, int(found))
        if isinstance(value, float):
            return bool(np.array_equal(found, value)) and bool(np.signbit(found)) == bool(np.signbit(value))
        return value is not None and Fraction(float(found)) == value

    def _equal(self, value: Symbolic, given: Attribute) -> bool:
        if isinstance(value, tuple):
            fits = isinstance(given, tuple) and len(given) == len(value)
            return fits and all(self._equal(v, g) for v, g in zip(value, given, strict=True))  # type: ignore[arg-type]
        if isinstance(value, bool):
            return given is value or (given is None and not value)
        if isinstance(given, bool) or not isinstance(given, int):
            return False
        polynomial = index(value)
        name = polynomial.variable
        if name is not None:
            return self.sizes.setdefault(name, given) == given
        self._open.append((polynomial, given))
        return True

    def settled(self, sizes: Sequence[str]) -> bool:
        """Whether every size is known, and every polynomial has its value; one unknown in it is solved for."""
        waiting = self._open
        while waiting:
            left = []
            for polynomial, value in waiting:
                unknown = polynomial.variables - self.sizes.keys()
                if not unknown:
                    if _value(polynomial, self.sizes) != value:
                        return False
                elif len(unknown) > 1 or not self._solve(polynomial, value, *unknown):
                    left.append((polynomial, value))
            if len(left) == len(waiting):
                return False
            waiting = left
        return all(name in self.sizes for name in sizes)

    def _solve(self, polynomial: Index, value: int, name: str) -> bool:
        """Finds the one unknown of a polynomial that is linear in it; the polynomial is looked at again."""
        known = {n: index(v) for n, v in self.sizes.items()}
        rest = polynomial.substitute(known)
        start, one = (rest.substitute({name: index(n)}).constant for n in (0, 1))
        if start is None or one is None or one == start:
            return False
        slope = one - start
        linear = index(start) + index(slope) * Index({(name,): 1})
        if rest != linear or (value - start) % slope:
            return False
        self.sizes[name] = (value - start) // slope
        self._open.append((polynomial, value))
        return True


def _value(polynomial: Index, sizes: Mapping[str, int]) -> int | None:
    try:
        return polynomial.value(sizes)
    except ZeroDivisionError:
        return None


def build(pattern: Pattern, instance: Instance, builder: Builder, dtype: str) -> int:
    """The pattern's graph at an instance; literals get the element type ``dtype``."""
    done: dict[int, int] = {}
    for node in _postorder(pattern):
        if node.operator == "input":
            done[id(node)] = instance.inputs[node.name]
        elif node.operator == "literal":
            value = node.value.value(instance.sizes) if isinstance(node.value, Index) else node.value
            assert value is not None
            done[id(node)] = builder.constant(np.array(float(value), dtype))
        else:
            attributes = {name: _concrete(v, instance.sizes) for name, v in node.attributes}
            done[id(node)] = builder.add(node.operator, *(done[id(o)] for o in node.operands), **attributes)
    return done[id(pattern)]


def _concrete(value: Symbolic, sizes: Mapping[str, int]) -> Attribute:
    if isinstance(value, tuple):
        return tuple(_concrete(v, sizes) for v in value)
    return value.value(sizes) if isinstance(value, Index) else value


def _postorder(root: Pattern) -> Iterator[Pattern]:
    seen: set[int] = set()

    def walk(pattern: Pattern) -> Iterator[Pattern]:
        if id(pattern) not in seen:
            seen.add(id(pattern))
            for operand in pattern.operands:
                yield from walk(operand)
            yield pattern

    return walk(root)
