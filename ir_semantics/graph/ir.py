"""The graph IR: immutable nodes with inferred types, in an order in which operands come first.

A node has one result.  An operator with several results is one node for each, told apart by the attribute ``output``;
running them computes the operator once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, wraps
from typing import TypeAlias, TypeGuard, TypeVar

import numpy as np

from ir_semantics.tensors.index import Index

from .types import Array, GraphError, TensorType

Attribute: TypeAlias = "bool | int | float | str | tuple[Attribute, ...] | None"
Attributes: TypeAlias = Mapping[str, Attribute]
Named: TypeAlias = "tuple[tuple[str, Attribute], ...]"
"""Attributes by name, sorted."""


@dataclass(frozen=True)
class Node:
    """An operator (a key of ``OPERATORS``, or ``input`` or ``constant``) on the results of earlier nodes.

    ``operands`` are their numbers in the graph.  Attributes are sorted by name.  A constant's only attribute is the
    ``digest`` under which its graph keeps the data, an input's is its ``name``.
    """

    operator: str
    operands: tuple[int, ...]
    attributes: Named
    type: TensorType

    def attribute(self, name: str) -> Attribute:
        """The attribute of that name; raises KeyError where there is none."""
        return dict(self.attributes)[name]

    @cached_property
    def written(self) -> str:
        """The attributes as they are written: in Python -0.0 equals 0.0, and 1 and 1.0 equal True."""
        return repr(self.attributes)

    def __str__(self) -> str:
        inner = [f"%{i}" for i in self.operands]
        inner += [f"{k}={_text(v)}" for k, v in self.attributes if v not in (None, ())]
        return f"{self.type} {self.operator}({', '.join(inner)})"


def _text(value: Attribute) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    return value[:12] if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class Graph:
    """A computation: nodes, which of them are inputs and outputs by name, and the data of constants by digest.

    ``origins`` says for each node which node of the imported model it stems from, or "".
    """

    nodes: tuple[Node, ...]
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    constants: Mapping[str, Array] = field(repr=False)
    origins: tuple[str, ...] = field(repr=False)

    def constant(self, number: int) -> Array:
        """The data of the constant node of that number."""
        return self.constants[str(self.nodes[number].attribute("digest"))]

    def operators(self) -> dict[str, int]:
        """How many nodes there are of each operator, inputs and constants left out."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            if node.operator not in ("input", "constant"):
                counts[node.operator] = counts.get(node.operator, 0) + 1
        return dict(sorted(counts.items()))

    def lines(self) -> Iterator[str]:
        """The graph for people, a node a line."""
        names = {i: name for name, i in self.inputs.items()}
        for i, node in enumerate(self.nodes):
            shown = f"{node.type} input {names[i]}" if node.operator == "input" else str(node)
            yield f"%{i} = {shown}" + (f"  # {self.origins[i]}" if self.origins[i] else "")
        yield "outputs " + ", ".join(f"{name} = %{i}" for name, i in self.outputs.items())

    def __str__(self) -> str:
        return "\n".join(self.lines())


R = TypeVar("R")


def remembered(most: int) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Keeps the results of a function of operator, types, attributes and what may follow: at most ``most`` of them.

    Attributes are distinguished by how they are written (see :attr:`Node.written`).
    """

    def keeping(function: Callable[..., R]) -> Callable[..., R]:
        known = lru_cache(maxsize=most)(lambda _, *arguments: function(*arguments))

        @wraps(function)
        def result(operator: str, types: Hashable, attributes: Hashable, *more: Hashable) -> R:
            return known(repr(attributes), operator, types, attributes, *more)

        return result

    return keeping


def attributes_of(attributes: Mapping[str, Attribute | Sequence[Attribute]]) -> Named:
    """Attributes sorted by name, lists as tuples."""
    return tuple((name, _frozen(attributes[name])) for name in sorted(attributes))


def _frozen(value: Attribute | Sequence[Attribute]) -> Attribute:
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    return tuple(_frozen(v) for v in value)


def digest_of(array: Array) -> str:
    """SHA-256 over element type, shape and elements (row-major, little-endian)."""
    plain = np.ascontiguousarray(array)
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    digest = hashlib.sha256(f"{array.dtype.name}{list(array.shape)}".encode())
    digest.update(plain.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _is_integer(value: object) -> TypeGuard[int]:
    """Whether this is an integer; where an operator is read for every size, that may be a size (an Index)."""
    return isinstance(value, int | Index) and not isinstance(value, bool)


def integer_of(attributes: Attributes, name: str) -> int:
    """An attribute that must be an integer; raises GraphError otherwise."""
    value = attributes.get(name)
    if not _is_integer(value):
        raise GraphError(f"the attribute {name} must be an integer, not {value!r}")
    return value


def integers_of(attributes: Attributes, name: str) -> tuple[int, ...]:
    """An attribute that must be a list of integers; raises GraphError otherwise."""
    value = attributes.get(name)
    if not isinstance(value, tuple):
        raise GraphError(f"the attribute {name} must be a list of integers, not {value!r}")
    integers = tuple(v for v in value if _is_integer(v))
    if len(integers) != len(value):
        raise GraphError(f"the attribute {name} must be a list of integers, not {value!r}")
    return integers


def pairs_of(attributes: Attributes, name: str) -> list[tuple[int, int]]:
    """An attribute that must be a list of pairs of integers; raises GraphError otherwise."""
    value = attributes.get(name)
    pairs = []
    for pair in value if isinstance(value, tuple) else (None,):
        match pair:
            case (first, second) if _is_integer(first) and _is_integer(second):
                pairs.append((first, second))
            case _:
                raise GraphError(f"the attribute {name} must be a list of pairs of integers, not {value!r}")
    return pairs
