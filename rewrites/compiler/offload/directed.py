"""Proved rules applied at chosen places, in either direction.

Read from right to left most rules apply everywhere (any matrix is its transpose transposed), and some apply again to
what they make.  So a *place* says where, and with which sizes, a rule is worth applying.  Nothing rests on that: what a
place suggests is an instance of the rule only if the rule's premise holds, which is checked wherever its sides are
built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from ir_semantics.graph.types import TensorType
from rewrites.compiler.graph_rules.tensor_rewrites import TensorRewrite, Types
from rewrites.egraph import EGraph, EGraphError, ENode, Rule, Substitution
from rewrites.egraph.pattern import Maker
from smt_encodings.claims import Equality

__all__ = ["PLACES", "Directed", "Place", "Suggestion"]

T = TypeVar("T")

Suggestion: TypeAlias = "tuple[Mapping[str, int], Mapping[str, int]]"
"""What stands for a rule's inputs, and its sizes."""


@dataclass(frozen=True)
class Place:
    """Where a rule is applied: at e-nodes of some operators, with the inputs and sizes that ``suggest`` finds there.

    ``backwards`` says that the rule is read from right to left.
    """

    operators: frozenset[str]
    suggest: Callable[[EGraph, ENode], Iterator[Suggestion]]
    backwards: bool = False


@dataclass(frozen=True)
class Directed:
    """A proved rule at the places of one kind."""

    inner: TensorRewrite
    place: Place

    @property
    def rule(self) -> Rule:
        """The rule's name with its direction, and the digest of its certificate."""
        told = ", from right to left" if self.place.backwards else ""
        return Rule(f"{self.inner.rule.name}{told}", self.inner.rule.certificate)

    @property
    def operator(self) -> str | None:
        """The operator at whose nodes instances are looked for, which need not be that of a side; None for several."""
        operators = self.place.operators
        return next(iter(operators)) if len(operators) == 1 else None

    @property
    def equality(self) -> Equality:
        """The sense in which both sides are equal."""
        return self.inner.equality

    def matches(self, egraph: EGraph, number: int) -> Iterator[Substitution[int]]:
        """The instances that the place suggests in the class of an e-node."""
        for node in egraph.nodes(number):
            if node.symbol.operator not in self.place.operators:
                continue
            for inputs, sizes in self.place.suggest(egraph, node):
                found = Substitution.of(inputs, sizes)
                try:
                    self.sides(Types(), found.moved(egraph.type_of))
                except EGraphError:
                    continue  # no instance of the rule
                yield found

    def sides(self, maker: Maker[T], substitution: Substitution[T]) -> tuple[T, T]:
        """Both sides at an instance, in the direction of reading."""
        left, right = self.inner.sides(maker, substitution)
        return (right, left) if self.place.backwards else (left, right)


# -- looking at an e-graph ------------------------------------------------------------------------------------------


def _shape(egraph: EGraph, number: int) -> tuple[int, ...]:
    of = egraph.type_of(number)
    return of.shape if isinstance(of, TensorType) else ()


def _has(egraph: EGraph, number: int, operator: str) -> bool:
    """Whether a class has a node of an operator."""
    return any(node.symbol.operator == operator for node in egraph.nodes(number))


def _pair(value: Hashable) -> tuple[int, int]:
    assert isinstance(value, tuple), "attributes of convolutions are pairs"
    first, second = value
    return first, second


@dataclass(frozen=True)
class _Convolution:
    """A two-dimensional convolution in one group, as the rules call its parts."""

    x: int
    w: int
    sizes: Mapping[str, int]
    pads: tuple[int, ...]

    @property
    def pointwise(self) -> bool:
        """Whether kernels are 1 x 1, so that every result is of one pixel."""
        return self.sizes["k"] == self.sizes["l"] == 1

    @property
    def everywhere(self) -> bool:
        """Whether strides are 1."""
        return self.sizes["s"] == self.sizes["t"] == 1


def _convolution(egraph: EGraph, node: ENode) -> _Convolution | None:
    """What a node is, if it is such a convolution."""
    attributes = dict(node.symbol.attributes)
    x, w = node.operands
    image, kernel = _shape(egraph, x), _shape(egraph, w)
    if node.symbol.operator != "conv" or len(image) != 4 or attributes["groups"] != 1:
        return None
    (s, t), (d, e) = _pair(attributes["strides"]), _pair(attributes["dilations"])
    pads = attributes["pads"]
    assert isinstance(pads, tuple), "pads are pairs"
    n, c, h, wide = image
    o, _, k, rows = kernel
    sizes = {"n": n, "c": c, "h": h, "w": wide, "o": o, "k": k, "l": rows, "s": s, "t": t, "d": d, "e": e}
    return _Convolution(x, w, sizes, tuple(p for pair in pads for p in pair))


# -- places ---------------------------------------------------------------------------------------------------------


def _weights(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """The right operand of a product of matrices, if it is no transpose yet."""
    w = node.operands[1]
    shape = _shape(egraph, w)
    if len(shape) == 2 and not _has(egraph, w, "transpose"):
        yield {"x": w}, {"n": shape[0], "c": shape[1]}


def _unbiased(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """A product of a matrix and a transposed one."""
    a, b = node.operands
    left, right = _shape(egraph, a), _shape(egraph, b)
    if len(left) == len(right) == 2 and _has(egraph, b, "transpose"):
        yield {"a": a, "b": b}, {"n": left[0], "k": left[1], "m": right[1]}


def _first_broadcast(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """A sum whose first operand is broadcast and whose second is not."""
    x, y = node.operands
    if _has(egraph, x, "broadcast") and not _has(egraph, y, "broadcast"):
        yield {"x": x, "y": y}, dict(zip("nchw", _shape(egraph, x), strict=False))


def _padded(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """A convolution with pads."""
    found = _convolution(egraph, node)
    if found is not None and any(found.pads):
        yield {"x": found.x, "w": found.w}, {**found.sizes, **dict(zip("pqrm", found.pads, strict=True))}


def _windows_of(egraph: EGraph, node: ENode) -> tuple[dict[str, int], dict[str, int]] | None:
    """A convolution without pads that is not of pixels alone: results h x w, and what is left over."""
    found = _convolution(egraph, node)
    if found is None or any(found.pads) or found.pointwise:
        return None
    sizes = dict(found.sizes)
    height, width = _shape(egraph, node.number)[2:]
    sizes["r"] = sizes["h"] - ((height - 1) * sizes["s"] + (sizes["k"] - 1) * sizes["d"] + 1)
    sizes["m"] = sizes["w"] - ((width - 1) * sizes["t"] + (sizes["l"] - 1) * sizes["e"] + 1)
    sizes["h"], sizes["w"] = height, width
    return {"x": found.x, "w": found.w}, sizes


def _windows(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    found = _windows_of(egraph, node)
    if found is not None:
        yield found


def _pixels_of(egraph: EGraph, node: ENode) -> tuple[dict[str, int], dict[str, int]] | None:
    """A convolution of pixels alone, at every pixel."""
    found = _convolution(egraph, node)
    if found is None or any(found.pads) or not found.pointwise or not found.everywhere:
        return None
    return {"x": found.x, "w": found.w}, {name: found.sizes[name] for name in "nchwo"}


def _pixels(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    found = _pixels_of(egraph, node)
    if found is not None:
        yield found


def _biased(
    inner: Callable[[EGraph, ENode], tuple[dict[str, int], dict[str, int]] | None],
) -> Callable[[EGraph, ENode], Iterator[Suggestion]]:
    """A sum of such a convolution and a vector along the channels."""

    def suggest(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
        convolutions, vectors = node.operands
        if len(_shape(egraph, convolutions)) != 4:
            return
        for conv in egraph.nodes(convolutions):
            found = inner(egraph, conv) if conv.symbol.operator == "conv" else None
            for vector in egraph.nodes(vectors) if found is not None else ():
                if vector.symbol.operator == "broadcast" and dict(vector.symbol.attributes)["axes"] == (1,):
                    assert found is not None
                    yield {**found[0], "b": vector.operands[0]}, found[1]

    return suggest


def _strided_pixels(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """A convolution of every s-th pixel alone."""
    found = _convolution(egraph, node)
    if found is not None and not any(found.pads) and found.pointwise and not found.everywhere:
        yield {"x": found.x, "w": found.w}, {name: found.sizes[name] for name in "nchwost"}


def _one_sequence(egraph: EGraph, node: ENode) -> bool:
    """Whether a recurrent layer has a batch of 1 and no lengths."""
    return _shape(egraph, node.operands[0])[1:2] == (1,) and dict(node.symbol.attributes)["lengths"] is False


def _sequence(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """The input and the result of a recurrent layer with a batch of 1."""
    for number in (node.operands[0], node.number) if _one_sequence(egraph, node) else ():
        shape = _shape(egraph, number)
        if len(shape) == 3:
            yield {"x": number}, {"n": shape[0], "c": shape[2]}


def _gates(count: int) -> Callable[[EGraph, ENode], Iterator[Suggestion]]:
    """The weights of a recurrent layer."""

    def suggest(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
        for number in node.operands[1:3] if _one_sequence(egraph, node) else ():
            rows, columns = _shape(egraph, number)
            yield {"x": number}, {"h": rows // count, "c": columns}

    return suggest


def _both_biases(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """The biases of a recurrent layer: those beside the input, then those beside the state."""
    if _one_sequence(egraph, node):
        (both,) = _shape(egraph, node.operands[3])
        yield {"x": node.operands[3]}, {"n": both, "q": both // 2}


def _gates_of_biases(count: int) -> Callable[[EGraph, ENode], Iterator[Suggestion]]:
    """The two halves of the biases of a recurrent layer, once they are apart."""

    def suggest(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
        for joined in egraph.nodes(node.operands[3]) if _one_sequence(egraph, node) else ():
            if joined.symbol.operator == "concat" and len(joined.operands) == 2:
                for part in joined.operands:
                    yield {"x": part}, {"h": math.prod(_shape(egraph, part)) // count}

    return suggest


_LAYERS = frozenset({"lstm", "gru", "rnn"})


def _at(operator: str, suggest: Callable[[EGraph, ENode], Iterator[Suggestion]], backwards: bool = False) -> Place:
    return Place(frozenset({operator}), suggest, backwards)


PLACES: Final[Mapping[str, Place]] = {
    "transposed twice": _at("matmul", _weights, backwards=True),
    "a bias of zeros": _at("matmul", _unbiased, backwards=True),
    **{f"a sum of rank {rank} commutes": _at("add", _first_broadcast) for rank in (2, 3, 4)},
    "pads of a convolution as a pad with zeros": _at("conv", _padded),
    "convolution as windows times filters": _at("conv", _windows),
    "convolution with bias as windows times filters with bias": _at("add", _biased(_windows_of)),
    "1 x 1 convolution as pixels times filters": _at("conv", _pixels),
    "1 x 1 convolution with bias as pixels times filters with bias": _at("add", _biased(_pixels_of)),
    "1 x 1 convolution with a stride as subsampling": _at("conv", _strided_pixels),
    "an axis of size 1 dropped and back": Place(_LAYERS, _sequence, backwards=True),
    "four gates from ONNX's order and back": _at("lstm", _gates(4), backwards=True),
    "biases of four gates from ONNX's order and back": _at("lstm", _gates_of_biases(4), backwards=True),
    "first two of three gates exchanged and back": _at("gru", _gates(3), backwards=True),
    "biases of the first two of three gates exchanged and back": _at("gru", _gates_of_biases(3), backwards=True),
    "a vector in two parts": Place(_LAYERS, _both_biases, backwards=True),
}
"""Where rules are applied, by their names in :mod:`rewrites.rules.tensor.catalogue`."""
