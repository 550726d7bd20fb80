"""The graph that an operator stands for, as a tensor term with sizes that are left open.

``expand`` is a Python function of shapes.  Here shapes are symbolic: what it does must be the same for every size, so
that a decision by a size that is not the same for all of them is refused (:class:`.instruction.Unread`).  A function
can see that a size is no number, so that the graph of each node that is compiled is compared with what was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

import numpy as np

from ir_semantics.graph.ir import Attribute, Graph
from ir_semantics.graph.operator import NAMES, Operator, lookup
from ir_semantics.graph.types import Array, TensorType
from ir_semantics.tensors.index import Index, IndexLike, index, product
from ir_semantics.tensors.operators import fill, map_
from ir_semantics.tensors.terms import Tensor

from .instruction import Unread

Structure: TypeAlias = "tuple[Any, ...]"
"""A node: its operator, the structures of its operands, and attributes; inputs by position, constants by value."""

FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What may be raised by an operator of somebody else's."""

_undecided: list[str] = []
"""What was asked of sizes that has no answer, while ``expand`` runs: it may catch that it was refused."""


class Extent(Index):
    """A size as ``expand`` sees it: arithmetic is symbolic, and a comparison has one answer for all sizes, or none."""

    __hash__ = None  # type: ignore[assignment]  # a set or dictionary would compare what cannot be compared

    def __init__(self, value: IndexLike) -> None:
        super().__init__(dict(index(value).terms))

    def __eq__(self, other: object) -> bool:
        difference = _plain(self - other).constant if isinstance(other, Index | int) else None
        if difference is None:
            _refuse(f"whether {_plain(self)} is {_plain(other)!s:.60} must not decide what an operator stands for")
        return bool(difference == 0)

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
    found = _plain(value)
    return found if not isinstance(found, Index) else Extent(found) if found.constant is None else found.constant


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
    """Nodes as tensor terms, all of float32, and as structures."""

    nodes: list[Tensor] = field(default_factory=list)
    structures: list[Structure] = field(default_factory=list)

    def append(self, term: Tensor, structure: Structure) -> int:
        self.nodes.append(term)
        self.structures.append(structure)
        return len(self.nodes) - 1

    def type(self, number: int) -> TensorType:
        return _Type("float32", self.shape(number))  # type: ignore[return-value]

    def shape(self, number: int) -> tuple[int, ...]:
        return tuple(map(_seen, self.nodes[number].shape))

    def constant(self, value: Array) -> int:
        if value.size != 1 or value.dtype != np.float32 or not np.isfinite(value).all():
            raise Unread("a constant must be one finite number of float32 to be read")
        return self.append(fill(Fraction(value.reshape(-1)[0].item()), *value.shape), _constant(value))

    def add(self, operator: str, *operands: int, **attributes: Attribute | Sequence[Attribute]) -> int:
        found = lookup(operator)
        named: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in attributes.items()}
        if len(operands) not in found.arity or set(named) != found.attributes:
            raise Unread(f"{operator} must be given the operands and attributes that it has")
        given = tuple(sorted((n, _plain(v)) for n, v in named.items()))
        structure = operator, tuple(self.structures[number] for number in operands), given
        if found.expand is not None:
            return self.append(self.nodes[found.expand(self, operands, named)], structure)
        of = [self.nodes[number] for number in operands]
        if found.scalar is not None:
            return self.append(map_(found.scalar(dict(given)), **dict(zip(NAMES, of, strict=False))), structure)
        if found.term is None:
            raise Unread(f"{operator} is a {found.kind} operator, which is no tensor term")
        return self.append(found.term(of, dict(given)), structure)


def expanded(
    operator: Operator, operands: Sequence[Tensor], attributes: Mapping[str, Attribute | Index]
) -> tuple[Tensor, Structure]:
    """What an operator stands for, as a term and node by node; raises Unread where this is not one for all sizes."""
    if operator.expand is None or len(operands) not in operator.arity or set(attributes) != operator.attributes:
        raise Unread(f"{operator.name} must be a composite operator of these operands and attributes")
    assembly = _Assembly()
    numbers = [assembly.append(operand, ("input", i)) for i, operand in enumerate(operands)]
    named = {name: _seen(value) for name, value in attributes.items()}
    _undecided.clear()
    try:
        result = operator.expand(assembly, numbers, named)
    except Unread:
        raise
    except FAULTS as error:
        raise Unread(f"what {operator.name} stands for cannot be read: {error}") from error
    if _undecided:
        raise Unread(_undecided[0])
    return assembly.nodes[result], assembly.structures[result]


def _constant(value: Array) -> Structure:
    return "constant", str(value.dtype), tuple(map(int, value.shape)), value.tobytes()


def structure_of(graph: Graph) -> Structure:
    """The structure of the output ``y`` of a graph."""
    places = {number: place for place, number in enumerate(graph.inputs.values())}
    structures: list[Structure] = []
    for number, node in enumerate(graph.nodes):
        if node.operator == "input":
            structures.append(("input", places[number]))
        elif node.operator == "constant":
            structures.append(_constant(graph.constants[str(dict(node.attributes)["digest"])]))
        else:
            operands = tuple(structures[o] for o in node.operands)
            structures.append((node.operator, operands, tuple(sorted(node.attributes))))
    return structures[graph.outputs["y"]]


def valued(structure: Any, sizes: Mapping[str, int]) -> Any:
    """A structure at sizes."""
    if isinstance(structure, Index):
        return structure.value(sizes)
    return tuple(valued(part, sizes) for part in structure) if isinstance(structure, tuple) else structure
