"""Terms: operators with attributes and a type, applied to terms. Equal terms are one object.

A term is shared wherever it occurs, so comparing two terms costs nothing and a network of 200 residual blocks, which as
a tree has more than 2^200 nodes, is a few hundred objects.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Iterator
from typing import Final
from weakref import WeakValueDictionary


class EGraphError(ValueError):
    """A wrong use of the e-graph, or a proof that is none; the message says what must hold and what was given."""


def identity(value: Hashable) -> Hashable:
    """A key that distinguishes attribute values: 0.0 from -0.0, and 1 from 1.0 and True, which are equal in Python."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, tuple):
        return ("tuple", *map(identity, value))
    return (type(value).__name__, value)


class Symbol:
    """What a node does apart from its operands: operator, attributes (sorted by name) and type of the result.

    Two symbols are equal if operators, attributes and types are; attributes are compared with their Python types, and
    floating-point numbers by their bits. Raises EGraphError where an attribute occurs twice.
    """

    __slots__ = ("_hash", "_key", "attributes", "operator", "type")

    def __init__(self, operator: str, attributes: Iterable[tuple[str, Hashable]], type: Hashable) -> None:
        self.operator: Final = operator
        self.attributes: Final = tuple(sorted(attributes, key=lambda pair: pair[0]))
        self.type: Final = type
        names = [name for name, _ in self.attributes]
        if len(set(names)) != len(names):
            raise EGraphError(f"the attributes of {operator} must have different names, not {', '.join(names)}")
        self._key: Final = (operator, tuple((name, identity(v)) for name, v in self.attributes), identity(type))
        self._hash: Final = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Symbol) and self._hash == other._hash and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        inner = ", ".join(f"{name}={value}" for name, value in self.attributes)
        return f"{self.operator}[{inner}]" if inner else self.operator

    def __repr__(self) -> str:
        return f"Symbol({self.operator!r}, {self.attributes!r}, {self.type!r})"


class Term:
    """A symbol applied to terms. Made by ``term``; equality is identity."""

    __slots__ = ("__weakref__", "operands", "symbol")

    symbol: Symbol
    operands: tuple[Term, ...]

    def __init__(self) -> None:
        raise EGraphError("terms must be made by the function term, which makes equal terms one object")

    def below(self) -> Iterator[Term]:
        """All terms in this one, itself included, each once and after its operands."""
        done: set[Term] = set()
        stack = [(self, False)]
        while stack:
            at, ready = stack.pop()
            if at in done:
                continue
            if ready:
                done.add(at)
                yield at
            else:
                stack.append((at, True))
                stack += [(operand, False) for operand in reversed(at.operands)]

    def __str__(self) -> str:
        numbers: dict[Term, int] = {}
        lines = []
        for number, at in enumerate(self.below()):
            numbers[at] = number
            lines.append(f"%{number} = {at.symbol}({', '.join(f'%{numbers[o]}' for o in at.operands)})")
        return "; ".join(lines)

    __repr__ = __str__


_TERMS: WeakValueDictionary[tuple[Symbol, tuple[Term, ...]], Term] = WeakValueDictionary()


def term(symbol: Symbol, operands: Iterable[Term] = ()) -> Term:
    """The term of a symbol applied to terms."""
    key = (symbol, tuple(operands))
    known = _TERMS.get(key)
    if known is None:
        known = Term.__new__(Term)
        known.symbol, known.operands = key
        _TERMS[key] = known
    return known
