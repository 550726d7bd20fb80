"""One ONNX node under conversion: its operands, attributes and what can be asked of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ir_semantics.graph import words
from ir_semantics.graph.build import Builder
from ir_semantics.graph.ir import Attribute
from ir_semantics.graph.types import Array, GraphError, TensorType


class Unsupported(GraphError):
    """A node that the tensor IR does not have; the message names the node."""


class NeedsConstant(Unsupported):
    """An operand whose value decides shapes, and which depends on inputs of the model: ``inputs`` are their names."""

    def __init__(self, message: str, inputs: Sequence[str]) -> None:
        super().__init__(message)
        self.inputs = tuple(inputs)


@dataclass
class Call:
    """A node: ``operands`` are numbers of the builder's nodes, None where an optional one is absent."""

    b: Builder
    operator: str
    where: str
    operands: Sequence[int | None]
    attributes: Mapping[str, Any]
    opset: int
    outputs: Sequence[bool]
    used: set[str] = field(default_factory=set)

    def fail(self, what: str) -> Unsupported:
        """An error about this node."""
        return Unsupported(f"{self.where}: {what}")

    # -- operands ----------------------------------------------------------------------------------------

    def has(self, position: int) -> bool:
        """Whether an operand is given."""
        return position < len(self.operands) and self.operands[position] is not None

    def operand(self, position: int) -> int:
        """An operand's number; raises Unsupported where it is absent."""
        value = self.operands[position] if position < len(self.operands) else None
        if value is None:
            raise self.fail(f"input number {position} must be given; correct the model")
        return value

    def all(self) -> list[int]:
        """All operands, none of which may be absent."""
        return [self.operand(i) for i in range(len(self.operands))]

    def shape(self, position: int = 0) -> tuple[int, ...]:
        """The shape of an operand."""
        return self.b.shape(self.operand(position))

    def dtype(self, position: int = 0) -> str:
        """The element type of an operand."""
        return self.b.type(self.operand(position)).dtype

    def kind(self, position: int = 0) -> str:
        """The kind of an operand's elements: bool, int or float."""
        return self.b.type(self.operand(position)).kind

    def image(self) -> tuple[int, int, int, int]:
        """The shape of the first operand, which must be [batch, channels, height, width]."""
        shape = self.shape()
        if len(shape) != 4:
            raise self.fail(f"the input must be [batch, channels, height, width], not of the shape {list(shape)}")
        return shape[0], shape[1], shape[2], shape[3]

    def static(self, position: int, what: str) -> Array:
        """The value of an operand that must be constant; raises NeedsConstant where it depends on inputs."""
        return self.value_of(self.operand(position), what)

    def value_of(self, number: int, what: str) -> Array:
        """The value of a node that must be constant; raises NeedsConstant where it depends on inputs."""
        value = self.b.value(number)
        if value is None:
            inputs = self.b.inputs_below(number)
            raise NeedsConstant(
                f"{self.where}: {what} must be constant and of moderate size, since shapes are static; "
                + (
                    f"it depends on the input {', '.join(inputs)}: give its value when importing"
                    if inputs
                    else "shrink it"
                ),
                inputs,
            )
        return value

    def static_ints(self, position: int, what: str) -> list[int]:
        """The integers of an operand that must be constant."""
        value = self.static(position, what)
        if value.dtype.kind not in "iu":
            raise self.fail(f"{what} must be integers, not {value.dtype}")
        return [int(v) for v in value.reshape(-1)]

    def listed(self, name: str, since: int) -> list[int] | None:
        """Integers that are an attribute before an opset, and the second operand since; None where they are absent."""
        if self.opset < since:
            return self.integers(name)
        return self.static_ints(1, f"the {name}") if self.has(1) else None

    def static_number(self, position: int, what: str) -> Any:
        """The one element of an operand that must be constant."""
        value = self.static(position, what)
        if value.size != 1:
            raise self.fail(f"{what} must be one element, not {value.size}")
        return value.reshape(())[()]

    def static_floats(self, position: int, what: str) -> list[float]:
        """The finite numbers of an operand that must be constant."""
        value = self.static(position, what)
        if not np.isfinite(value.astype(np.float64)).all():
            raise self.fail(f"{what} must be finite numbers")
        return [float(v) for v in value.reshape(-1)]

    # -- attributes --------------------------------------------------------------------------------------

    def raw(self, name: str, default: Any, kinds: tuple[type, ...]) -> Any:
        """An attribute; raises Unsupported where it has another type."""
        self.used.add(name)
        value = self.attributes.get(name, default)
        if value is not default and not isinstance(value, kinds):
            raise self.fail(f"the attribute {name} must be of the type {kinds[0].__name__}, not {value!r}")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute; without a default it must be given."""
        value = self.raw(name, default, (int,))
        if value is None:
            raise self.fail(f"the attribute {name} must be given")
        return int(value)

    def real(self, name: str, default: float) -> float:
        """A float attribute."""
        value = float(self.raw(name, default, (float, int)))
        if not math.isfinite(value):
            raise self.fail(f"the attribute {name} must be finite, not {value}")
        return value

    def text(self, name: str, default: str) -> str:
        """A string attribute."""
        return str(self.raw(name, default, (str,)))

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int] | None:
        """A list of integers, or the default."""
        value = self.raw(name, default, (list,))
        if value is None:
            return None
        if any(not isinstance(v, int) for v in value):
            raise self.fail(f"the attribute {name} must be a list of integers, not {value!r}")
        return [int(v) for v in value]

    def items(self, name: str, default: Sequence[Any]) -> list[Any]:
        """A list of strings or floats."""
        return list(self.raw(name, default, (list,)))

    def ignore(self, *names: str) -> None:
        """Attributes that do not change the result here."""
        self.used |= set(names)

    def axis(self, value: int, rank: int) -> int:
        """An axis counted from 0; raises Unsupported outside of -rank .. rank - 1."""
        if not -rank <= value < rank:
            raise self.fail(f"an axis must be in {-rank} .. {rank - 1}, not {value}")
        return value + rank if value < 0 else value

    def axes(self, values: Sequence[int], rank: int) -> list[int]:
        """Different axes counted from 0."""
        axes = [self.axis(int(v), rank) for v in values]
        if len(set(axes)) != len(axes):
            raise self.fail(f"axes must be different, not {list(values)}")
        return axes

    # -- building ----------------------------------------------------------------------------------------

    def add(self, operator: str, *operands: int, **attributes: Attribute | Sequence[Attribute]) -> int:
        """An operator of the IR."""
        return self.b.add(operator, *operands, **attributes)

    def apply(self, operator: str, *operands: int, **attributes: Attribute) -> int:
        """A scalar operator with broadcasting."""
        return words.apply(self.b, operator, *operands, **attributes)

    def literal(self, value: float, dtype: str | None = None) -> int:
        """A scalar constant, of the first operand's type by default."""
        return words.literal(self.b, value, dtype or self.dtype())

    def room(self, *shape: int) -> None:
        """Raises GraphError where a tensor of that shape would be too large; asked before it is made."""
        TensorType("bool", shape)

    def constant(self, value: Any, dtype: str | None = None) -> int:
        """A constant."""
        return self.b.constant(np.asarray(value, dtype=dtype))

    def cast(self, x: int, dtype: str) -> int:
        """The value in another type."""
        return x if self.b.type(x).dtype == dtype else self.b.add("cast", x, to=dtype)


Convert = Callable[[Call], "int | Sequence[int | None]"]


@dataclass(frozen=True)
class Converter:
    """How an ONNX operator becomes operators of the IR; ``note`` says what of it is not supported."""

    operator: str
    convert: Convert
    note: str = ""


WIDE = frozenset(
    {f"Reduce{n}" for n in ("L1", "L2", "LogSum", "LogSumExp", "Mean", "Prod", "Sum", "SumSquare")}
    | {"Sigmoid", "Softplus", "Softsign", "Mish", "HardSwish", "HardSigmoid", "Gelu", "Swish", "Elu", "Celu", "Selu"}
    | {
        "MatMul",
        "Gemm",
        "Einsum",
        "Conv",
        "ConvTranspose",
        "AveragePool",
        "LpPool",
        "GlobalAveragePool",
        "GlobalLpPool",
    }
    | {"LogSoftmax", "BatchNormalization", "InstanceNormalization", "LpNormalization", "LRN"}
    | {"MeanVarianceNormalization", "LSTM", "GRU", "RNN", "CumSum", "CumProd", "Mean", "Sum", "Resize", "Upsample"}
)
"""Operators of several roundings.  On binary16 they are computed in binary32, and results are rounded once.

Softmax is not among them: its function in the ONNX specification rounds after each step, and its converter likewise.
"""

CONVERTERS: dict[str, Converter] = {}
"""The converters of the default domain, by operator."""


def converts(*operators: str, note: str = "") -> Callable[[Convert], Convert]:
    """Registers a function as the converter of operators."""

    def add(function: Convert) -> Convert:
        for operator in operators:
            if operator in CONVERTERS:
                raise ValueError(f"an operator must have one converter; {operator} has two")
            CONVERTERS[operator] = Converter(operator, function, note)
        return function

    return add
