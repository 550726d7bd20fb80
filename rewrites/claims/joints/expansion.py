"""The graph that an operator stands for, as a tensor term with sizes that are left open.

``expand`` is a Python function of shapes.  Here shapes are symbolic: what it does must be the same for every size, so
that a decision by a size that is not the same for all of them is refused (:class:`.instruction.Unread`).  A function
can see that a size is no number, so that the graph of each node that is compiled is compared with what was read.  An
attribute that may be any number is one that occurs nowhere else, and constants of this value are the attribute.

A step that is repeated is read once, in iteration :data:`ITERATION`, between states that are any tensors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

import numpy as np

from ir_semantics.graph import operator as graphs
from ir_semantics.graph.build import expansion
from ir_semantics.graph.ir import Attribute, Graph
from ir_semantics.graph.operator import Operator, applied, lookup
from ir_semantics.graph.types import Array, TensorType
from ir_semantics.tensors.comprehension import written
from ir_semantics.tensors.conditions import All, Condition, both, equal, le, variables_of
from ir_semantics.tensors.elements import Choice, Element, Read, Reader, subelements, substitute_element, with_operands
from ir_semantics.tensors.index import Index, IndexLike, Names, index, product, size
from ir_semantics.tensors.operators import fill
from ir_semantics.tensors.terms import Shape, Tensor, element_of, form_of, input_, make, operands_of

from .instruction import Unread

Step: TypeAlias = "tuple[Any, tuple[int, ...], Any]"
"""A node: its operator, which stands for no graph, the numbers of its operands among earlier nodes, and attributes.

An operator is its name, and an element of its result where it is none of ours: a function may see that a size is no
number."""
Structure: TypeAlias = "tuple[tuple[Step, ...], int]"
"""Nodes, inputs by position and constants by value, with nothing left to expand; and which of them is the result.

A step that is repeated is one node, with the states that it begins with as operands, before those of one iteration: its
attributes are how often, how many nodes these are, which are the states after it, and the shape of a row of results;
the states before it come first."""

MOST_STEPS, MOST_PARTS, MOST_NESTED, MOST_WRITTEN = 5_000, 5_000, 400, 1 << 16
ITERATION = "t.0"
"""The number of an iteration, as a variable that is no size."""

FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What may be raised by an operator of somebody else's."""

_undecided: list[str] = []
"""What was asked of sizes that has no answer, while ``expand`` runs: it may catch that it was refused."""
_positive: set[str] = set()
"""The sizes of which an answer, while ``expand`` runs, holds only where they are not 0."""


class Extent(Index):
    """A size as ``expand`` sees it: arithmetic is symbolic, and a comparison has one answer for all sizes, or none."""

    __hash__ = None  # type: ignore[assignment]  # a set or dictionary would compare what cannot be compared

    def __init__(self, value: IndexLike) -> None:
        super().__init__(dict(index(value).terms))

    def __eq__(self, other: object) -> bool:
        difference = _plain(self - other) if isinstance(other, Index | int) else None
        if difference is not None and difference.constant is not None:
            return bool(difference.constant == 0)
        positive = difference is not None and (_above_0(difference) or _above_0(-difference))
        if difference is None or not positive or ITERATION in difference.variables:
            _refuse(f"whether {_plain(self)} is {_plain(other)!s:.60} must not decide what an operator stands for")
        _positive.update(difference.variables)
        return False

    def _undecided(self, *_: object) -> NoReturn:
        _refuse(f"what an operator stands for must not be decided by the number {_plain(self)}")

    __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __index__ = __int__ = __float__ = _undecided
    __str__ = __repr__ = __format__ = _undecided


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "rfloordiv", "mod", "neg"):
    setattr(
        Extent,
        f"__{_name}__",
        lambda self, *others, _name=_name: Extent(getattr(Index, f"__{_name}__")(_plain(self), *map(_plain, others))),
    )


def _above_0(value: Index) -> bool:
    """Whether a number is positive wherever no size is 0, as its form shows."""
    growing = all(c > 0 for monomial, c in value.terms if monomial)
    return growing and not value.quotients and value.value(dict.fromkeys(value.variables, 1)) > 0


def _refuse(reason: str) -> NoReturn:
    _undecided.append(reason)
    raise Unread(reason)


def _plain(value: Any) -> Any:
    """What only ``expand`` sees as what it is: sizes as indices."""
    if isinstance(value, Extent):
        return Index(dict(value.terms))
    return tuple(map(_plain, value)) if isinstance(value, tuple | list) else value


def _seen(value: Any) -> Any:
    """A size as ``expand`` sees it; a number is itself."""
    plain = _plain(value)
    return plain if not isinstance(plain, Index) else Extent(plain) if plain.constant is None else plain.constant


@dataclass(frozen=True)
class _Type:
    """As :class:`TensorType`, with symbolic extents."""

    dtype: str
    shape: tuple[Any, ...]
    kind: str = "float"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def elements(self) -> Extent:
        return Extent(product(map(_plain, self.shape)))


@dataclass
class _Assembly:
    """Nodes as tensor terms, all of float32; composite ones are the nodes that they stand for.

    ``states`` are what rows of states lie in, without axes of one element.
    """

    states: tuple[Tensor, ...] = ()
    after: list[Tensor] = field(default_factory=list)
    requires: list[Condition] = field(default_factory=list)
    """What must hold in every iteration."""
    apart: range = range(0)
    """Nodes that only a step may use, or that it may not use."""
    nodes: list[Tensor] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    numbers: dict[Any, AnyNumber] = field(default_factory=dict)
    """Attributes that may be any number, by the constants that stand for them."""
    parts: dict[Tensor, int] = field(default_factory=dict)
    """Of how many operations an element consists, where those that occur twice count twice."""
    nested: dict[Tensor, int] = field(default_factory=dict)

    def append(self, term: Tensor, operator: Any, operands: Sequence[int], attributes: Any) -> int:
        for part in operands_of(term):
            if part not in self.parts:
                elements = subelements(written(part)[0]) if part.operands else ()
                read = [int(e.name[1:]) for e in elements if isinstance(e, Read)]
                self.parts[part] = 1 + sum(self.parts[part.operands[number]] for number in read)
                self.nested[part] = 1 + max((self.nested[o] for o in part.operands), default=0)
        if self.parts[term] > MOST_PARTS or self.nested[term] > MOST_NESTED or len(self.nodes) > MOST_STEPS:
            most = f"{MOST_PARTS} operations, {MOST_NESTED} of them nested,"
            raise Unread(f"a graph of elements with more than {most} is too large to be read")
        self.nodes.append(term)
        self.steps.append((operator, tuple(operands), attributes))
        return len(self.nodes) - 1

    def type(self, number: int) -> TensorType:
        return _Type("float32", self.shape(number))  # type: ignore[return-value]

    def shape(self, number: int) -> tuple[int, ...]:
        return tuple(map(_seen, self.nodes[number].shape))

    def constant(self, value: Array) -> int:
        if value.size != 1 or value.dtype != np.float32 or not np.isfinite(value).all():
            raise Unread("a constant must be one finite number of float32 to be read")
        if (number := self.numbers.get(constant_of(value))) is not None:
            return self.append(input_(number.attribute), "constant", (), number)
        return self.append(
            fill(Fraction(value.reshape(-1)[0].item()), *value.shape), "constant", (), constant_of(value)
        )

    def add(self, operator: str, *operands: int, **attributes: Attribute | Sequence[Attribute]) -> int:
        definition = lookup(operator)
        named: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in attributes.items()}
        if len(operands) not in definition.arity or set(named) != definition.attributes:
            raise Unread(f"{operator} must be given the operands and attributes that it has")
        values = tuple(sorted((n, _plain(v)) for n, v in named.items()))
        if definition.expand is not None:
            return self.number(definition.expand(self, operands, named))
        operands = tuple(map(self.number, operands))
        of = [self.nodes[number] for number in operands]
        meaning = _meaning(operator, [node.shape for node in of], values)
        return self.append(applied(definition, of, dict(values)), meaning, operands, values)

    def repeat(
        self, count: int, states: Sequence[int], step: graphs.Step, *, reverse: bool = False
    ) -> tuple[int, list[int]]:
        """One iteration for all, between states that are any tensors; there are no last states."""
        initial = tuple(map(self.number, states))
        if reverse or self.apart or not initial or len(initial) != len(self.states):
            raise Unread(f"a step must be repeated once, from the first to the last, with {len(self.states)} states")
        shapes, rows = [self.nodes[number].shape for number in initial], index(_plain(count))
        for shape, tensor in zip(shapes, self.states, strict=True):
            if tensor.shape != (rows, *_kept(shape, shape)):
                raise Unread(f"rows of states of the shape {[str(d) for d in shape]} must be those of {tensor}")
        first = self.states[0]
        stacked = make("rows", [first], (rows, *shapes[0]), lambda at, of, names: of[0](_kept(at, (rows, *shapes[0]))))
        header = self.append(stacked, "repeat", initial, ())
        before = [
            self.append(_before(self.nodes[number], tensor), "state", (), place)
            for place, (number, tensor) in enumerate(zip(initial, self.states, strict=True))
        ]
        self.apart = range(header, header + 1)
        result, new = step(_seen(Index({(ITERATION,): 1})), before)
        results = tuple(map(self.number, new))
        if result != results[0] or [self.nodes[number].shape for number in results] != shapes:
            raise Unread("a step must give the first of its new states, and states of the same shapes")
        for number, tensor in zip(results, self.states, strict=True):
            self.after.append(self.stepped(self.nodes[number], tensor))
        self.apart = range(header + 1, len(self.nodes))
        self.steps[header] = "repeat", initial, (rows, len(self.apart), results, (index(1), *shapes[0]))
        return header, []

    def stepped(self, term: Tensor, like: Tensor) -> Tensor:
        """The states after each iteration, as rows: a term in which the iteration is a variable."""
        inputs = {dict(t.attributes)["name"]: t for t in operands_of(term) if t.operator == "input"}
        needed = [part.requires for part in operands_of(term)]
        parts = [c for condition in needed for c in (condition.parts if isinstance(condition, All) else (condition,))]
        self.requires += [c for c in parts if ITERATION in variables_of(c)]

        def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
            places = iter(at[1:])
            element = element_of(term, [index(0) if d == index(1) else next(places) for d in term.shape], names)
            return with_operands(substitute_element(element, {ITERATION: at[0]}), dict(zip(inputs, of, strict=True)))

        fits = [c for c in parts if ITERATION not in variables_of(c)]
        return make("step", list(inputs.values()), like.shape, rule, requires=fits)

    def number(self, node: int) -> int:
        """The number of a node that is there."""
        if type(node) is not int or not 0 <= node < len(self.nodes) or node in self.apart:
            raise Unread(f"{node!s:.60} must be a node of the graph")
        return node


def _kept(places: Sequence[Index], shape: Shape) -> list[Index]:
    """Extents or subscripts without those of axes of one element."""
    return [place for place, extent in zip(places, shape, strict=True) if extent != index(1)]


def _before(initial: Tensor, rows: Tensor) -> Tensor:
    """The state before an iteration."""

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        iteration = Index({(ITERATION,): 1})
        return Choice(equal(iteration, 0), of[0](at), of[1]([iteration - 1, *_kept(at, initial.shape)]))

    return make("state", [initial, rows], initial.shape, rule)


def _meaning(operator: str, shapes: Sequence[Sequence[IndexLike]], attributes: Sequence[tuple[str, Any]]) -> Any:
    if "." not in operator:
        return operator
    term = applied(lookup(operator), [input_(f"x{i}", *s) for i, s in enumerate(shapes)], dict(attributes))
    return (operator, *form_of(term))


@dataclass(frozen=True)
class AnyNumber:
    """The value of an attribute that may be any number of float32."""

    attribute: str


@dataclass(frozen=True)
class Expanded:
    """What an operator stands for, as a term and node by node, at all sizes that satisfy ``premise``.

    Where it repeats a step, the term is one of rows of states, ``after`` are these rows after each iteration, as
    functions of those before it, and ``requires`` must hold in every iteration.
    """

    term: Tensor
    structure: Structure
    premise: Condition
    after: tuple[Tensor, ...] = ()
    requires: tuple[Condition, ...] = ()


def expanded(
    operator: Operator,
    operands: Sequence[Tensor],
    attributes: Mapping[str, Attribute | Index],
    numbers: Collection[str] = (),
    states: Sequence[Tensor] = (),
) -> Expanded:
    """What an operator stands for; raises Unread where this is not one for all sizes but 0.

    ``numbers`` are attributes that may be any number of float32: inputs without axes, of their names.  ``states`` are
    what rows of the states of its step lie in.
    """
    names = {*attributes, *numbers}
    if operator.expand is None or len(operands) not in operator.arity or names != operator.attributes:
        raise Unread(f"{operator.name} must be a composite operator of these operands and attributes")
    assembly = _Assembly(tuple(states))
    inputs = [assembly.append(operand, "input", (), i) for i, operand in enumerate(operands)]
    named = {name: _seen(value) for name, value in attributes.items()}
    for place, name in enumerate(sorted(numbers)):
        named[name] = 1.0 + (2 * place + 1) * 2.0**-20  # a number of float32 that nobody writes
        assembly.numbers[constant_of(np.asarray(named[name], "float32"))] = AnyNumber(name)
    _undecided.clear()
    _positive.clear()
    try:
        result = assembly.number(operator.expand(assembly, inputs, named))
    except Unread:
        raise
    except FAULTS as error:
        raise Unread(f"what {operator.name} stands for cannot be read: {error}") from error
    if _undecided:
        raise Unread(_undecided[0])
    if len(assembly.after) != len(states):
        raise Unread(f"what {operator.name} stands for must repeat a step")
    premise, structure = both(*(le(1, size(name)) for name in sorted(_positive))), (tuple(assembly.steps), result)
    requires = tuple(dict.fromkeys(assembly.requires))
    return Expanded(assembly.nodes[result], structure, premise, tuple(assembly.after), requires)


def constant_of(value: Array) -> Any:
    """A constant as an attribute of its step."""
    return str(value.dtype), tuple(map(int, value.shape)), value.tobytes()


def structure_of(graph: Graph) -> Structure:
    """The structure of the output ``y`` of a graph, composite nodes expanded at the shapes of their operands."""
    steps: list[Step] = [("input", (), i) for i in range(len(graph.inputs))]
    result = _flattened(graph, dict(zip(graph.inputs.values(), range(len(steps)), strict=True)), steps)
    return tuple(steps), result


def _flattened(graph: Graph, done: dict[int, int], steps: list[Step]) -> int:
    """Appends the nodes of a graph of which the inputs are done, and gives the number of its output."""
    for number, node in enumerate(graph.nodes):
        if number in done:
            continue
        operands = tuple(done[o] for o in node.operands)
        if node.operator != "constant" and lookup(node.operator).expand is not None:
            inner = expansion(node.operator, tuple(graph.nodes[o].type for o in node.operands), node.attributes)
            inputs = {inner.inputs[f"x{i}"]: operand for i, operand in enumerate(operands)}
            done[number] = _flattened(inner, inputs, steps)
            continue
        constant = node.operator == "constant"
        attributes = constant_of(graph.constant(number)) if constant else tuple(sorted(node.attributes))
        shapes = [graph.nodes[o].type.shape for o in node.operands]
        steps.append((_meaning(node.operator, shapes, attributes), operands, attributes))
        done[number] = len(steps) - 1
        if len(steps) > MOST_WRITTEN:
            raise ValueError(f"a graph of more than {MOST_WRITTEN} nodes is too large to be compared")
    return done[graph.outputs["y"]]


def written_out(structure: Structure, sizes: Mapping[Any, Any]) -> Structure:
    """A structure at sizes, with iterations one by one."""
    steps, last = structure
    written: list[Step] = []
    numbers: dict[int, int] = {}

    def write(operator: Any, operands: tuple[int, ...], attributes: Any, at: Mapping[Any, Any]) -> int:
        if len(written) > MOST_WRITTEN:
            raise Unread(f"a graph of more than {MOST_WRITTEN} nodes is too large to be compared")
        written.append((valued(operator, at), operands, valued(attributes, at)))
        return len(written) - 1

    number = 0
    while number < len(steps):
        operator, operands, attributes = steps[number]
        of = tuple(numbers[o] for o in operands)
        if operator != "repeat":
            numbers[number] = write(operator, of, attributes, sizes)
            number += 1
            continue
        count, nodes, after, shape = attributes
        rows: list[int] = []
        for iteration in range(count.value(sizes)):
            for each, (operator, operands, attributes) in enumerate(steps[number + 1 : number + 1 + nodes], number + 1):
                if operator == "state":
                    numbers[each] = of[attributes]
                else:
                    inner = tuple(numbers[o] for o in operands)
                    numbers[each] = write(operator, inner, attributes, {**sizes, ITERATION: iteration})
            of = tuple(numbers[o] for o in after)
            rows.append(write("reshape", of[:1], (("shape", shape),), sizes))
        numbers[number] = write("concat", tuple(rows), (("axis", 0),), sizes)
        number += 1 + nodes
    return tuple(written), numbers[last]


def same(read: Structure, other: Structure, sizes: Mapping[Any, Any]) -> bool:
    """Whether two structures are one graph, in which equal nodes are one and unused ones are none.

    That is at sizes, and at values of the attributes that may be any number.
    """
    known: dict[Any, int] = {}  # by nodes of both, so that the same number is the same graph

    def result(structure: Structure) -> int:
        steps, last = structure
        needed = {last}
        for number in range(last, -1, -1):
            needed |= set(steps[number][1]) if number in needed else set()
        numbers: dict[int, int] = {}
        for number in sorted(needed):
            operator, operands, attributes = steps[number]
            key = operator, tuple(numbers[o] for o in operands), attributes
            numbers[number] = known.setdefault(key, len(known))
        return numbers[last]

    return result(written_out(read, sizes)) == result(written_out(other, sizes))


def valued(part: Any, sizes: Mapping[Any, Any]) -> Any:
    """An attribute or an element, or a tuple of such, at sizes, and at values of attributes by these."""
    if isinstance(part, AnyNumber):
        return sizes[part]
    if isinstance(part, Index):
        return part.value(sizes)
    if isinstance(part, Element):
        return substitute_element(part, {n: index(value) for n, value in sizes.items() if isinstance(n, str)})
    return tuple(valued(each, sizes) for each in part) if isinstance(part, tuple) else part
