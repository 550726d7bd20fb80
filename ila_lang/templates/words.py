"""The inputs of a fragment's commands as bits that are known and elements of host tensors.

A term for an input is taken apart into *pieces*, each with the place of its lowest bit: a value that sizes and counters
decide, or a whole element of a host tensor at an index that they decide.  Either may stand under a condition that they
decide.  Data enter a command in no other way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.language.build import true
from ila_lang.language.expr import Expr, postorder
from ila_lang.language.fragment import Fragment
from ila_lang.language.ops import WIDEST
from ila_lang.language.sorts import BOOL, BvSort, MemSort

from .sites import Site, evaluate, refuse

#: Widths of elements that may be moved, in bits.
ELEMENT_BITS = (8, 16, 32)


@dataclass(frozen=True, eq=False)
class Elements:
    """Elements of a host tensor in an input of a site's commands.

    Command ``commands[i]`` has ``run`` elements of ``bits`` bits, from number ``first[i]`` of the tensor on, in the
    input's bytes from ``byte`` on.
    """

    tensor: str
    bits: int
    byte: int
    run: int
    commands: NDArray[np.int64]
    first: NDArray[np.int64]


@dataclass(frozen=True)
class _Piece:
    """Bits of an input from ``low`` on: ``term`` where ``condition`` holds, else 0."""

    low: int
    term: Expr
    condition: Expr

    @property
    def is_element(self) -> bool:
        return self.term.op == "load"


def row_of_input(variable: Expr) -> int:
    """The bytes that an input takes in a column: a power of two from 8 on for numbers, whole bytes for wider ones."""
    if variable.sort == BOOL:
        return 1
    return 8 if variable.width <= WIDEST else (variable.width + 7) // 8


def words_of(fragment: Fragment, site: Site, name: str, term: Expr) -> tuple[NDArray[np.uint8], list[Elements]]:
    """An input of a site's commands: its known bits, as rows of bytes, and its elements.

    There is one row for all commands where they do not differ.  Raises InstanceError where a term is neither.
    """
    where = f"Input {name} of {site.name}"
    row = row_of_input(term)
    pieces = list(_pieces(fragment, where, site, term, 0, true))
    known = [p for p in pieces if not p.is_element]
    moved = [p for p in pieces if p.is_element]
    if term.sort == BOOL and moved:
        raise refuse(fragment, where, "be known before the program runs", "an element of a host tensor")
    needed = [*(p.term for p in known), *(p.condition for p in pieces), *(p.term.args[1] for p in moved)]
    values = iter(evaluate(fragment, where, needed, site))
    terms = [next(values) for _ in known]
    conditions = dict(zip(map(id, pieces), values, strict=False))
    base = _packed([(p.low, p.term, v, conditions[id(p)]) for p, v in zip(known, terms, strict=True)], row, site.size)
    numbers = dict(zip(map(id, moved), values, strict=True))
    return base, list(_elements(site, moved, conditions, numbers, row))


def _pieces(fragment: Fragment, where: str, site: Site, term: Expr, low: int, condition: Expr) -> Iterator[_Piece]:
    nodes = postorder([term])
    has_data = any(isinstance(n.sort, MemSort) or (n.op == "var" and n not in site.counters) for n in nodes)
    if not has_data and not (isinstance(term.sort, BvSort) and any(_wide(n) for n in nodes)):
        yield _Piece(low, term, condition)
        return
    match term.op, term.args:
        case "const", _:  # of more bits than a number may have
            for at in range(0, term.width if term.value else 0, WIDEST):
                yield _Piece(low + at, term[min(at + WIDEST, term.width) - 1 : at], condition)
        case "concat", (high, rest):
            yield from _pieces(fragment, where, site, rest, low, condition)
            yield from _pieces(fragment, where, site, high, low + rest.width, condition)
        case "zext", (value,):
            yield from _pieces(fragment, where, site, value, low, condition)
        case "ite", (test, then, otherwise):
            yield from _pieces(fragment, where, site, then, low, condition & test)
            yield from _pieces(fragment, where, site, otherwise, low, condition & ~test)
        case "load", (memory, _) if any(memory is tensor for tensor in fragment.tensors.values()):
            if term.width not in ELEMENT_BITS or low % term.width:
                actual = f"{term.width} bits of {memory.describe()} at bit {low}"
                raise refuse(fragment, where, "hold whole elements of 8, 16 or 32 bits, aligned to their size", actual)
            yield _Piece(low, term, condition)
        case _:
            what = "wide term" if not has_data else "data"
            must = "be made of known numbers and whole elements of host tensors, side by side or chosen by a condition"
            raise refuse(fragment, where, must, f"{what} in {term.describe()}")


def _wide(node: Expr) -> bool:
    return isinstance(node.sort, BvSort) and node.width > WIDEST


def _packed(pieces: Sequence[tuple[int, Expr, Any, Any]], row: int, size: int) -> NDArray[np.uint8]:
    """Rows of bytes with the known pieces; a single row where all are constants."""
    varies = any(v.strides[0] or c.strides[0] for _, _, v, c in pieces) and size > 1
    words = np.zeros((size if varies else 1, -(-row // 8)), "<u8")
    for low, term, values, condition in pieces:
        if not varies:
            values, condition = values[:1], condition[:1]
        bits = values.astype(np.uint64)
        if not condition.all():
            bits = np.where(condition, bits, np.uint64(0))
        word, shift = divmod(low, 64)
        words[:, word] |= bits << np.uint64(shift)
        if term.sort != BOOL and shift + term.width > 64:
            words[:, word + 1] |= bits >> np.uint64(64 - shift)
    return words.view(np.uint8)[:, :row]


def _elements(
    site: Site, moved: Sequence[_Piece], conditions: dict[int, Any], numbers: dict[int, Any], row: int
) -> Iterator[Elements]:
    """The elements of the pieces; those that fill the input with consecutive elements of a tensor as whole rows."""
    ordered = sorted(moved, key=lambda p: p.low)
    if ordered and all(bool(conditions[id(p)].all()) for p in ordered):
        first = ordered[0]
        tensor, bits = first.term.args[0], first.term.width
        start = numbers[id(first)]
        if len(ordered) * bits == 8 * row and all(
            p.term.args[0] is tensor and p.low == bits * lane and bool((numbers[id(p)] - lane == start).all())
            for lane, p in enumerate(ordered)
        ):
            yield Elements(tensor.name, bits, 0, len(ordered), site.commands, start)
            return
    for piece in ordered:
        condition = conditions[id(piece)]
        if condition.any():
            tensor, number = piece.term.args[0], numbers[id(piece)]
            commands = site.commands if condition.all() else site.commands[condition]
            yield Elements(tensor.name, piece.term.width, piece.low // 8, 1, commands, number[condition])
