"""Tensor terms: an operator on tensors with symbolic shapes.

A :class:`Tensor` says what an operator means once: its shape, the conditions under which it is well formed, and the
value of its element at any subscripts, as an expression over elements of its operands (:mod:`.elements`).  Running it
on data (:mod:`.evaluate`) and comparing it with another term for every size both start from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from .conditions import FALSE, Condition, both, le
from .elements import Element, Number, Read, Reader, Rule
from .index import Index, IndexLike, Names, index, index_of, size
from .notation import notation

Shape = tuple[Index, ...]


_OWN = ("ir_semantics.", "rewrites.claims.joints.", "chc.tensor_rules.")
"""Modules whose tensor terms are ilaverify's own."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """A term: an operator, its operands and attributes, and what follows from them.

    ``requires`` are the operator's own conditions on sizes; ``rule`` gives the element at subscripts that lie inside
    ``shape``, and reads operands only inside their shapes provided that ``requires`` holds.  ``attributes`` are texts
    for people and digests, ``values`` the same attributes as they were given.

    Names without a dot are those of our operators: what another package makes must not be called, and taken for, one.
    """

    operator: str
    operands: tuple[Tensor, ...]
    attributes: tuple[tuple[str, str], ...]
    shape: Shape
    requires: Condition
    rule: Rule = field(repr=False)
    values: tuple[tuple[str, object], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        module = str(getattr(self.rule, "__module__", ""))
        if "." not in self.operator and not module.startswith(_OWN):
            raise ValueError(
                f"an operator of the module {module} must have a name with a dot, such as {module}.{self.operator}; "
                f"{self.operator} without one is of ilaverify"
            )

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __str__(self) -> str:
        return notation(self)


def shape(dimensions: Sequence[IndexLike]) -> Shape:
    """Dimensions as a shape."""
    return tuple(map(index, dimensions))


def make(
    operator: str,
    operands: Sequence[Tensor],
    dimensions: Sequence[IndexLike],
    rule: Rule,
    *,
    requires: Sequence[Condition] = (),
    **attributes: object,
) -> Tensor:
    """A term; its dimensions must not be negative, besides what ``requires`` says."""
    extents = shape(dimensions)
    condition = both(*requires, *(le(0, d) for d in extents))
    named = tuple((name, _text(value)) for name, value in attributes.items())
    return Tensor(operator, tuple(operands), named, extents, condition, rule, tuple(attributes.items()))


def _text(value: object) -> str:
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return str(value)


def require_axes(what: str, x: Tensor, axes: Sequence[int]) -> None:
    """Raises ValueError unless ``axes`` are different numbers of axes of ``x``, counted from 0."""
    if any(type(a) is not int or not 0 <= a < x.rank for a in axes) or len(set(axes)) != len(axes):
        numbers = f"different numbers from 0 to {x.rank - 1}" if x.rank else "none"
        raise ValueError(f"the axes of {what} of {x} must be {numbers}, not {', '.join(map(repr, axes))}")


def input_(name: str, *dimensions: IndexLike) -> Tensor:
    """A tensor of any data; without dimensions, a scalar."""

    size(name)  # which refuses what is no name

    def rule(at: Sequence[Index], _: Sequence[Reader], __: Names) -> Element:
        return Read(name, tuple(at))

    return make("input", (), dimensions, rule, name=name, shape=shape(dimensions))


def element_of(tensor: Tensor, at: Sequence[Index], names: Names) -> Element:
    """The element at subscripts as an expression over the inputs; 0 where no sizes make the operator well formed."""
    if tensor.requires == FALSE:
        return Number(Fraction(0))

    def reader(operand: Tensor) -> Reader:
        def read(inner: Sequence[Index]) -> Element:
            if len(inner) != operand.rank:
                raise ValueError(f"{operand} must be read at {operand.rank} subscripts, not {len(inner)}")
            return element_of(operand, inner, names)

        return read

    return tensor.rule(at, [reader(o) for o in tensor.operands], names)


def any_element(tensor: Tensor) -> Element:
    """The element at any subscripts, in names that are the same for all tensors."""
    names = Names()
    return element_of(tensor, [index_of(names.fresh("o")) for _ in tensor.shape], names)


def form_of(tensor: Tensor) -> tuple[Shape, Element]:
    """The shape, and the element at any subscripts: those of two tensors are equal if they have one form."""
    return tensor.shape, any_element(tensor)


def operands_of(*roots: Tensor) -> Iterator[Tensor]:
    """Every tensor below the roots, and these, each once, operands first."""
    seen: set[int] = set()

    def walk(tensor: Tensor) -> Iterator[Tensor]:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            for operand in tensor.operands:
                yield from walk(operand)
            yield tensor

    for root in roots:
        yield from walk(root)


def well_formed(*roots: Tensor) -> Condition:
    """The condition on sizes under which every operator of the terms is well formed."""
    return both(*(t.requires for t in operands_of(*roots)))
