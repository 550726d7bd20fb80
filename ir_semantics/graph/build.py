"""Building graphs: types are inferred and checked at once, equal nodes are one, constants are computed on demand.

The values of nodes stand here as well: a graph's constants are computed while it is built, and a composite operator
has the value of the graph that it builds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from ir_semantics.scalars.arrays import DTYPES, run_scalar
from ir_semantics.scalars.terms import Scalar
from ir_semantics.tensors.arrays import DataError, Program
from ir_semantics.tensors.comprehension import by_definition as defined
from ir_semantics.tensors.terms import Tensor

from .ir import Attribute, Attributes, Graph, Named, Node, attributes_of, digest_of, integer_of, integers_of, remembered
from .operator import NAMES, Operator, Step, lookup, meaning
from .types import Array, GraphError, TensorType, type_of
from .words import reshape

MOST_FOLDED = 1 << 24
"""Elements of the largest constant that is computed while a graph is built; larger ones are computed when it runs."""


def result_type(name: str, types: Sequence[TensorType], attributes: Named) -> TensorType:
    """The type of an operator's result; raises GraphError where operands or attributes do not fit."""
    return _result_type(name, tuple(types), attributes)


@remembered(10_000)
def _result_type(name: str, types: tuple[TensorType, ...], attributes: Named) -> TensorType:
    operator = lookup(name)
    if len(types) not in operator.arity:
        count = operator.arity.start if len(operator.arity) == 1 else f"{operator.arity.start} or more"
        raise GraphError(f"{name} must be given {count} operands, not {len(types)}")
    named = dict(attributes)
    _check_attributes(operator, named)
    _check_axes(name, types, named)
    if operator.expand is not None:
        builder = Builder()
        operands = [builder.input(f"x{i}", t) for i, t in enumerate(types)]
        return builder.type(operator.expand(builder, operands, named))
    dtype = operator.dtype(types, named)
    _check_kinds(operator, types)
    if operator.shape is not None:
        return TensorType(dtype, tuple(operator.shape(types, named)))
    extents = [d.constant for d in meaning_of(name, types, attributes).shape]
    assert None not in extents, "static operands have results of static shape"
    return TensorType(dtype, tuple(d for d in extents if d is not None))


@remembered(4096)
def meaning_of(name: str, types: tuple[TensorType, ...], attributes: Named) -> Tensor:
    """The term of an operator, which must be a tensor operator or a scalar one, on operands ``x0``, ``x1``, ..."""
    return meaning(lookup(name), types, dict(attributes))


def _check_attributes(operator: Operator, named: Attributes) -> None:
    wrong = [f"it has no {name}" for name in named if name not in operator.attributes]
    wrong += [f"{name} is missing" for name in sorted(operator.attributes) if name not in named]
    if wrong:
        names = ", ".join(sorted(operator.attributes)) or "none"
        raise GraphError(f"the attributes of {operator.name} must be {names}; {' and '.join(wrong)}")


def _check_axes(name: str, types: Sequence[TensorType], named: Attributes) -> None:
    if "shape" in named or not named.keys() & {"axis", "axes"}:
        return  # axes beside a shape, as those of a broadcast, are the result's
    axes = integers_of(named, "axes") if "axes" in named else (integer_of(named, "axis"),)
    rank = len(types[0].shape)
    if len(set(axes)) < len(axes) or not all(0 <= axis < rank for axis in axes):
        allowed = f"different numbers from 0 to {rank - 1}" if rank else "none"
        raise GraphError(
            f"the axes of {name} must be {allowed} where its operand is {types[0]}, not {', '.join(map(str, axes))}"
        )


def _check_kinds(operator: Operator, types: Sequence[TensorType]) -> None:
    first = types[0]
    if operator.scalar is not None:
        first = next((t for t in types if t.kind != "bool"), first)
    if first.kind not in operator.kinds:
        raise GraphError(
            f"{operator.name} must be given elements of kind {' or '.join(sorted(operator.kinds))}, not {first}; "
            "cast them"
        )


MOST_COMPUTED = 1 << 26
"""Elements of all constants together that are computed while a graph is built."""

MOST_PROGRAMS = 4096
"""Operators with attributes and operands' types for which the way to run them is kept."""
_programs: dict[Hashable, Program] = {}

MOST_NODES = 1 << 16
"""Nodes of a graph; a bound of this implementation, against layers of absurdly many steps."""


class Builder:
    """A graph under construction; nodes are named by their numbers."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._numbers: dict[tuple[Node, str], int] = {}
        self._constants: dict[str, Array] = {}
        self._inputs: dict[str, int] = {}
        self._origins: list[str] = []
        self.origin = ""
        """What nodes that are added now stem from."""

    def type(self, number: int) -> TensorType:
        """The type of a node's result."""
        return self._nodes[number].type

    def shape(self, number: int) -> tuple[int, ...]:
        """The shape of a node's result."""
        return self._nodes[number].type.shape

    def node(self, number: int) -> Node:
        """The node of a number."""
        return self._nodes[number]

    def input(self, name: str, of: TensorType) -> int:
        """A new input; raises GraphError where the name is taken."""
        if name in self._inputs:
            raise GraphError(f"the inputs of a graph must have different names; {name} occurs twice")
        self._inputs[name] = self._append(Node("input", (), (("name", name),), of))
        return self._inputs[name]

    def constant(self, value: Array) -> int:
        """A constant of an array's elements; changing the array later does not change it."""
        kept = isinstance(value, np.ndarray) and value.flags.c_contiguous and not value.flags.writeable
        array = value if kept else np.array(value, copy=True, order="C")
        array.flags.writeable = False
        return self._keep(array, digest_of(array))

    def _keep(self, array: Array, digest: str) -> int:
        self._constants.setdefault(digest, array)
        return self._append(Node("constant", (), (("digest", digest),), type_of(array)))

    def add(self, operator: str, *operands: int, **attributes: Attribute | Sequence[Attribute]) -> int:
        """An operator on earlier nodes; a node that is there already is taken."""
        frozen = attributes_of(attributes)
        of = result_type(operator, [self.type(i) for i in operands], frozen)
        return self._append(Node(operator, operands, frozen, of))

    def repeat(self, count: int, states: Sequence[int], step: Step, *, reverse: bool = False) -> tuple[int, list[int]]:
        """As :meth:`~.operator.Assembly.repeat`: iterations are written out one by one."""
        after, results = list(states), dict[int, int]()
        for number in range(count)[::-1] if reverse else range(count):
            results[number], after = step(number, after)
        rows = [reshape(self, results[number], (1, *self.shape(results[number]))) for number in range(count)]
        return self.add("concat", *rows, axis=0), after

    def _append(self, node: Node) -> int:
        key = node, repr(node.attributes)  # -0.0 and 1 are equal to 0.0 and True, and other attributes
        known = self._numbers.get(key)
        if known is None:
            if len(self._nodes) >= MOST_NODES:
                raise GraphError(
                    f"a graph must have at most {MOST_NODES} nodes; use a smaller model or fewer timesteps"
                )
            known = self._numbers[key] = len(self._nodes)
            self._nodes.append(node)
            self._origins.append(self.origin)
        return known

    def value(self, number: int) -> Array | None:
        """The result of a node that depends on constants only; None for others and for very large ones."""
        needed = self._below(number)
        computed = 0
        for i in needed:
            node = self._nodes[i]
            computed += node.type.elements if node.operator not in ("constant", "broadcast") else 0
            if node.operator == "input" or (node.operator != "constant" and node.type.elements > MOST_FOLDED):
                return None
        if computed > MOST_COMPUTED:
            return None
        return dict(evaluate(self._nodes, needed, self._constants, {}, run_node))[number]

    def inputs_below(self, number: int) -> list[str]:
        """The names of the inputs that a node depends on."""
        return [
            str(self._nodes[i].attribute("name")) for i in self._below(number) if self._nodes[i].operator == "input"
        ]

    def _below(self, number: int) -> list[int]:
        needed: set[int] = set()
        stack = [number]
        while stack:
            i = stack.pop()
            if i not in needed:
                needed.add(i)
                stack += self._nodes[i].operands
        return sorted(needed)

    def graph(self, outputs: Mapping[str, int]) -> Graph:
        """The graph of the nodes that outputs depend on, and of all inputs, with constants computed.

        What is computed from constants becomes a constant where something that is none uses it, apart from
        broadcasts: these stay, since rules speak of what is broadcast.
        """
        live = sorted({i for o in outputs.values() for i in self._below(o)} | set(self._inputs.values()))
        fixed: set[int] = set()
        computed = 0
        for i in live:
            node = self._nodes[i]
            size = 0 if node.operator == "broadcast" else node.type.elements
            small = node.type.elements <= MOST_FOLDED and computed + size <= MOST_COMPUTED and node.operator != "input"
            if node.operator == "constant":
                fixed.add(i)
            elif small and all(j in fixed for j in node.operands):
                fixed.add(i)
                computed += size
        used = {j for i in live if i not in fixed for j in self._nodes[i].operands} | set(outputs.values())
        replaced: dict[int, int] = {}
        result = Builder()
        for i in live:
            if i not in fixed:
                node = self._nodes[i]
                for j in node.operands:
                    self._copy_fixed(j, fixed, replaced, result)
                result.origin = self._origins[i]
                moved = Node(node.operator, tuple(replaced[j] for j in node.operands), node.attributes, node.type)
                replaced[i] = result._append(moved)
        for j in sorted(used & fixed):
            self._copy_fixed(j, fixed, replaced, result)
        result._inputs = {name: replaced[i] for name, i in self._inputs.items()}
        return Graph(
            tuple(result._nodes),
            result._inputs,
            {name: replaced[i] for name, i in outputs.items()},
            result._constants,
            tuple(result._origins),
        )

    def _copy_fixed(self, number: int, fixed: set[int], replaced: dict[int, int], result: Builder) -> None:
        if number in replaced or number not in fixed:
            return
        node = self._nodes[number]
        result.origin = self._origins[number]
        if node.operator == "constant":
            digest = str(node.attribute("digest"))
            replaced[number] = result._keep(self._constants[digest], digest)
        elif node.operator == "broadcast" and node.operands[0] in fixed:
            self._copy_fixed(node.operands[0], fixed, replaced, result)
            result.origin = self._origins[number]
            moved = Node(node.operator, (replaced[node.operands[0]],), node.attributes, node.type)
            replaced[number] = result._append(moved)
        else:
            value = self.value(number)
            assert value is not None, "what depends on small constants only has a value"
            replaced[number] = result.constant(value)


# -- values ---------------------------------------------------------------------------------------------


def evaluate(
    nodes: Sequence[Node],
    needed: Sequence[int],
    constants: Mapping[str, Array],
    inputs: Mapping[int, Array],
    run: Callable[[Node, Sequence[Array]], Array],
) -> Iterator[tuple[int, Array]]:
    """The numbers and results of the needed nodes, of which all operands must be needed too, in their order.

    ``inputs`` are values by number; ``run`` gives a node's result from its operands', as :func:`run_node` does.
    """
    last = {j: i for i in needed for j in nodes[i].operands}
    values: dict[int, Array] = {}
    for i in needed:
        node = nodes[i]
        if node.operator == "input":
            values[i] = inputs[i]
        elif node.operator == "constant":
            values[i] = constants[str(node.attribute("digest"))]
        else:
            values[i] = run(node, [values[j] for j in node.operands])
        yield i, values[i]
        for j in node.operands:
            if last[j] == i:
                values.pop(j, None)


_NAMES = {np.dtype(name): name for name in DTYPES}
"""NumPy makes the name of a type anew each time that it is asked for."""


def run_node(node: Node, operands: Sequence[Array], *, by_definition: bool = False) -> Array:
    """The result of one node on its operands' values; see :func:`ir_semantics.graph.run.run`."""
    operator = lookup(node.operator)
    if operator.scalar is not None:
        result = run_elements(operator.scalar(dict(node.attributes)), operands)
        if result.shape != node.type.shape or any(result is o for o in operands):
            result = np.broadcast_to(result, node.type.shape)
    elif operator.expand is not None:
        graph = expansion(node.operator, _types(operands), node.attributes)
        result = run_expansion(graph, graph.constants, operands, partial(run_node, by_definition=by_definition))
    elif operator.term is not None:
        result = _run_tensor(node, operands, by_definition)
    else:
        assert operator.function is not None, "an operator has a meaning"
        with np.errstate(all="ignore"):
            result = np.asarray(operator.function(operands, dict(node.attributes), node.type))
    if result.dtype != np.dtype(node.type.dtype) or result.shape != node.type.shape:
        raise GraphError(
            f"{node.operator} must give {node.type}, not {result.dtype}{list(result.shape)}; this is a bug"
        )
    return result


def run_elements(term: Scalar, operands: Sequence[Array]) -> Array:
    """A scalar operator on arrays of one shape, or that broadcast."""
    number = next((_NAMES[o.dtype] for o in operands if o.dtype.kind != "b"), "bool")
    return run_scalar(term, dict(zip(NAMES, operands, strict=False)), number)


def _run_tensor(node: Node, operands: Sequence[Array], by_definition: bool) -> Array:
    if by_definition:
        return defined(meaning_of(node.operator, _types(operands), node.attributes), operands, node.type.dtype)
    key = node.operator, node.written, node.type.dtype, *((o.dtype, o.shape) for o in operands)
    program = _programs.get(key)
    if program is None:
        if len(_programs) >= MOST_PROGRAMS:
            _programs.clear()
        term = meaning_of(node.operator, _types(operands), node.attributes)
        program = _programs[key] = Program(term, len(operands), node.type.dtype)
    try:
        return program(operands)
    except DataError as error:
        raise GraphError(str(error)) from error


def _types(operands: Sequence[Array]) -> tuple[TensorType, ...]:
    return tuple(TensorType(str(o.dtype), o.shape) for o in operands)


def run_expansion(
    graph: Graph,
    constants: Mapping[str, Array],
    operands: Sequence[Array],
    run: Callable[[Node, Sequence[Array]], Array],
) -> Array:
    """The result of a composite operator, which stands for the graph, as :func:`evaluate` has it."""
    inputs = {graph.inputs[f"x{i}"]: o for i, o in enumerate(operands)}
    results = evaluate(graph.nodes, range(len(graph.nodes)), constants, inputs, run)
    return next(value for i, value in results if i == graph.outputs["y"])


@remembered(256)
def expansion(name: str, types: tuple[TensorType, ...], attributes: Named) -> Graph:
    """What a composite operator stands for: a graph from inputs ``x0``, ``x1``, ... to the output ``y``."""
    expand: Callable[..., int] | None = lookup(name).expand
    if expand is None:
        raise GraphError(f"{name} is no composite operator")
    builder = Builder()
    operands = [builder.input(f"x{i}", t) for i, t in enumerate(types)]
    return builder.graph({"y": expand(builder, operands, dict(attributes))})


def nodes_within(
    operator: str, types: tuple[TensorType, ...], attributes: Named
) -> Iterator[tuple[Node, tuple[TensorType, ...]]]:
    """The nodes that a composite stands for, with the types of their operands; those of constants alone left out."""
    graph = expansion(operator, types, attributes)
    fixed: set[int] = set()
    for number, node in enumerate(graph.nodes):
        if node.operator == "constant" or (node.operands and fixed.issuperset(node.operands)):
            fixed.add(number)
        elif node.operator != "input":
            yield node, tuple(graph.nodes[o].type for o in node.operands)
