"""What an operator of the graph IR is: its types and its meaning, each said once.

A **scalar** operator is a term over its operands' elements (:mod:`ir_semantics.scalars.terms`), on tensors of one
shape.  A **tensor** operator is a term of :mod:`ir_semantics.tensors`: an index comprehension, from which its shape
follows, and how it runs.  A **composite** operator is a graph of other operators.  A **host** operator has no meaning
but a NumPy function: its result depends on the data in ways that comprehensions do not express (sorting, writing at
indices).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from ila_lang.extensions import ExtensionError
from ir_semantics.scalars.formats import BOOLEAN, NUMBER
from ir_semantics.scalars.terms import Scalar, variables
from ir_semantics.tensors.conditions import FALSE
from ir_semantics.tensors.elements import Element, Reader, with_operands
from ir_semantics.tensors.index import Index
from ir_semantics.tensors.index import Names as IndexNames
from ir_semantics.tensors.operators import map_
from ir_semantics.tensors.terms import Tensor, element_of, input_, make, operands_of, well_formed

from .ir import Attribute, Attributes
from .types import Array, GraphError, TensorType

NAMES: Final = ("x", "y", "z")
"""Variables of scalar operators, in the order of the operands."""

Types = Sequence[TensorType]
Step = Callable[[int, list[int]], tuple[int, list[int]]]
Function = Callable[[Sequence[Array], Attributes, TensorType], Array]


class Assembly(Protocol):
    """What a composite operator is expanded in: nodes by their numbers, to which it adds others."""

    def type(self, number: int) -> TensorType:
        """The type of a node's result."""

    def shape(self, number: int) -> tuple[int, ...]:
        """The shape of a node's result."""

    def constant(self, value: Array) -> int:
        """A constant of an array's elements."""

    def add(self, operator: str, *operands: int, **attributes: Attribute | Sequence[Attribute]) -> int:
        """An operator on earlier nodes."""

    def repeat(self, count: int, states: Sequence[int], step: Step, *, reverse: bool = False) -> tuple[int, list[int]]:
        """What a step gives in each of ``count`` iterations, stacked along a new first axis, and the last states.

        The step has the number of the iteration and the states before it, and gives a node and the states after it;
        with ``reverse`` the last number comes first.
        """


@dataclass(frozen=True)
class Operator:
    """An operator: exactly one of ``scalar``, ``term``, ``expand`` and ``function`` is its meaning.

    ``attributes`` are the names of its attributes; a node has all of them and no others.
    ``kinds`` are the kinds of element (bool, int, float) of the operands that must agree in type.  ``dtype`` is the
    rule for the result's element type.
    """

    name: str
    doc: str
    arity: range
    kinds: frozenset[str]
    dtype: Callable[[Types, Attributes], str]
    scalar: Callable[[Attributes], Scalar] | None = None
    term: Callable[[Sequence[Tensor], Attributes], Tensor] | None = None
    expand: Callable[[Assembly, Sequence[int], Attributes], int] | None = None
    shape: Callable[[Types, Attributes], Sequence[int]] | None = None
    function: Function | None = None
    attributes: frozenset[str] = frozenset()

    @property
    def kind(self) -> str:
        """``scalar``, ``tensor``, ``composite`` or ``host``."""
        if self.scalar is not None:
            return "scalar"
        if self.term is not None:
            return "tensor"
        return "composite" if self.expand is not None else "host"


OPERATORS: dict[str, Operator] = {}
"""Every operator, by name."""

_KINDS: Mapping[str, frozenset[str]] = {
    "any": frozenset({"bool", "int", "float"}),
    "number": frozenset({"int", "float"}),
    "float": frozenset({"float"}),
    "int": frozenset({"int"}),
    "bool": frozenset({"bool"}),
}


_complete: list[None] = []


def complete() -> None:
    """All of our operators are there: from now on names without a dot, which are theirs, are refused."""
    _complete.append(None)


def register(operator: Operator) -> Operator:
    """Adds an operator; raises ExtensionError where the name is taken, or without a dot and so not a package's."""
    if operator.name in OPERATORS:
        raise ExtensionError(
            f"an operator's name must be its own; {operator.name} is taken: rename that of your package"
        )
    if "." not in operator.name and _complete:
        raise ExtensionError(f"an operator of a package must have a name with a dot, such as PACKAGE.{operator.name}")
    OPERATORS[operator.name] = operator
    return operator


def lookup(name: str) -> Operator:
    """The operator of that name; raises GraphError where there is none."""
    if name not in OPERATORS:
        raise GraphError(f"an operator must be one of {', '.join(sorted(OPERATORS))}, not {name}")
    return OPERATORS[name]


def _same_as_operand(types: Types, attributes: Attributes) -> str:
    return types[0].dtype


def scalar(name: str, term: Scalar | Callable[[Attributes], Scalar], kinds: str = "float", doc: str = "") -> Operator:
    """Registers a scalar operator; its result is Boolean where the term is, else of the operands' type."""
    build = term if callable(term) else lambda attributes: term
    sample = build(ones := _Ones())
    formats = variables(sample)
    arity = len(formats)
    if set(formats) != set(NAMES[:arity]):
        raise ValueError(f"the variables of {name} must be {', '.join(NAMES[:arity])}, not {', '.join(formats)}")

    def dtype(types: Types, attributes: Attributes) -> str:
        for variable_name, type_ in zip(NAMES, types, strict=False):
            if formats[variable_name] == BOOLEAN and type_.kind != "bool":
                raise GraphError(f"the operand {variable_name} of {name} must be of Booleans, not {type_}")
        numbers = [t.dtype for variable_name, t in zip(NAMES, types, strict=False) if formats[variable_name] == NUMBER]
        if len(set(numbers)) > 1:
            raise GraphError(f"the operands of {name} must be of one type, not {', '.join(map(str, types))}")
        return "bool" if sample.format == BOOLEAN else numbers[0]

    description = doc or f"{sample} for every element."
    count = range(arity, arity + 1)
    return register(Operator(name, description, count, _KINDS[kinds], dtype, scalar=build, attributes=frozenset(ones)))


class _Ones(dict[str, float]):
    """Attributes that are all 1, for looking at a term's form; it has those that were looked up."""

    def __missing__(self, key: str) -> float:
        self[key] = 1.0
        return 1.0


def tensor(
    name: str,
    definition: Callable[..., Tensor],
    *,
    arity: int | range = 1,
    kinds: str = "any",
    attributes: Mapping[str, Callable[[Attributes, str], object]] = MappingProxyType({}),
    doc: str,
    dtype: Callable[[Types, Attributes], str] = _same_as_operand,
) -> Operator:
    """Registers a tensor operator: a function of tensors, and of attributes as keyword arguments.

    ``attributes`` says how each is read, such as :func:`~ir_semantics.graph.ir.integers_of`.
    """

    def term(operands: Sequence[Tensor], values: Attributes) -> Tensor:
        return definition(*operands, **{key: read(values, key) for key, read in attributes.items()})

    named = frozenset(attributes)
    return register(Operator(name, doc, _count(arity), _KINDS[kinds], dtype, term=term, attributes=named))


def _count(arity: int | range) -> range:
    return arity if isinstance(arity, range) else range(arity, arity + 1)


def composite(
    name: str,
    expand: Callable[[Assembly, Sequence[int], Attributes], int],
    *,
    arity: int | range = 1,
    kinds: str = "float",
    attributes: str = "",
) -> Operator:
    """Registers a composite operator, whose type is that of its graph; ``attributes`` are names, spaces in between.

    Its doc is the first line of the function's.
    """
    doc = (expand.__doc__ or "").strip().splitlines()[0]
    named = frozenset(attributes.split())
    kind = _KINDS[kinds]
    return register(Operator(name, doc, _count(arity), kind, _same_as_operand, expand=expand, attributes=named))


def host(
    name: str,
    function: Function,
    shape: Callable[[Types, Attributes], Sequence[int]],
    *,
    arity: int | range = 1,
    kinds: str = "any",
    attributes: str = "",
    doc: str,
    dtype: Callable[[Types, Attributes], str] = _same_as_operand,
) -> Operator:
    """Registers a host operator, with attributes as for a composite."""
    named = frozenset(attributes.split())
    return register(
        Operator(name, doc, _count(arity), _KINDS[kinds], dtype, shape=shape, function=function, attributes=named)
    )


def applied(operator: Operator, operands: Sequence[Tensor], attributes: Attributes) -> Tensor:
    """A scalar or tensor operator on terms; raises GraphError for operators that are no such term.

    A package's definition sees inputs, as where graphs are run: what its operands are made of is none of its business.
    """
    if operator.scalar is not None:
        return map_(operator.scalar(attributes), **dict(zip(NAMES, operands, strict=False)))
    if operator.term is None:
        kind = operator.kind
        raise GraphError(f"{operator.name} must be an index comprehension to be a term; it is a {kind} operator")
    if "." not in operator.name:
        return operator.term(operands, attributes)
    inputs = [f"x{i}" for i in range(len(operands))]
    term = operator.term([input_(name, *o.shape) for name, o in zip(inputs, operands, strict=True)], attributes)

    def rule(at: Sequence[Index], of: Sequence[Reader], names: IndexNames) -> Element:
        return with_operands(element_of(term, at, names), dict(zip(inputs, of, strict=True)))

    return make(operator.name, operands, term.shape, rule, requires=[well_formed(term)], **dict(term.values))


def meaning(operator: Operator, types: Types, attributes: Attributes) -> Tensor:
    """A scalar or tensor operator as a term over inputs ``x0``, ``x1``, ... of the given types.

    Raises GraphError where the operands do not fit, and for operators that are no such term.
    """
    operands = [input_(f"x{i}", *t.shape) for i, t in enumerate(types)]
    shapes = ", ".join(map(str, types))
    try:
        if operator.scalar is not None and any(t.shape != types[0].shape for t in types):
            raise ValueError("their shapes differ")
        result = operator.term(operands, attributes) if operator.term else applied(operator, operands, attributes)
    except (ValueError, ZeroDivisionError, IndexError) as error:
        if isinstance(error, GraphError):
            raise
        raise GraphError(f"{operator.name} must be given operands that fit, not {shapes}: {error}") from error
    if any(t.requires == FALSE for t in operands_of(result)):
        shown = ", ".join(f"{k}={v}" for k, v in attributes.items())
        raise GraphError(
            f"{operator.name} must be given operands that fit, not {shapes}{f' with {shown}' * bool(shown)}"
        )
    return result
