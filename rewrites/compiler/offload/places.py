"""Where rules on products and convolutions are applied, and which of them several accelerators need.

Each group has rules on tensors by the places where they are applied; None is everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from chc.tensor_rules.rule import TensorRule
from ir_semantics.graph.types import TensorType
from rewrites.egraph import EGraph, ENode
from rewrites.rules.tensor.convolution import STRIDED_PIXELS
from rewrites.rules.tensor.groups import GROUP_PAIRS, GROUPS_IN_PARTS
from rewrites.rules.tensor.matching import (
    BIAS_AFTER_RESHAPE,
    BIASED_CONVOLUTION_AS_PRODUCT,
    BIASED_PIXELS_AS_PRODUCT,
    CHANNELS_BROADCAST,
    CONVOLUTION_AS_PRODUCT,
    CONVOLUTION_PADS,
    NORMALISATION_INTO_BIASED_CONVOLUTION,
    NORMALISATION_INTO_CONVOLUTION,
    PIXELS_AS_PRODUCT,
    PRODUCT_AS_PIXELS,
    RELU_AFTER_RESHAPE,
    RELU_OF_ROWS,
    SUMS_COMMUTE,
    TRANSPOSED_TWICE,
)
from rewrites.rules.tensor.products import BATCH_AS_ONE_PRODUCT, BATCH_OF_ONE, BATCHES_IN_PARTS

from .directed import Place, Suggestion


def shape_of(egraph: EGraph, number: int) -> tuple[int, ...]:
    """The shape of a class of tensors."""
    of = egraph.type_of(number)
    return of.shape if isinstance(of, TensorType) else ()


def has(egraph: EGraph, number: int, operator: str) -> bool:
    """Whether a class has a node of an operator."""
    return any(node.symbol.operator == operator for node in egraph.nodes(number))


def at(operator: str, suggest: Callable[[EGraph, ENode], Iterator[Suggestion]], backwards: bool = False) -> Place:
    """A place at the e-nodes of one operator."""
    return Place(frozenset({operator}), suggest, backwards)


def _pair(value: Hashable) -> tuple[int, int]:
    assert isinstance(value, tuple), "attributes of convolutions are pairs"
    first, second = value
    return first, second


@dataclass(frozen=True)
class _Convolution:
    """A two-dimensional convolution, as the rules call its parts."""

    x: int
    w: int
    sizes: Mapping[str, int]
    pads: tuple[int, ...]

    def instance(self, **groups: int) -> Suggestion:
        """Inputs and sizes of rules on convolutions with pads."""
        return {"x": self.x, "w": self.w}, {**self.sizes, **dict(zip("pqrm", self.pads, strict=True)), **groups}

    @property
    def pointwise(self) -> bool:
        """Whether kernels are 1 x 1, so that every result is of one pixel."""
        return self.sizes["k"] == self.sizes["l"] == 1

    @property
    def everywhere(self) -> bool:
        """Whether strides are 1."""
        return self.sizes["s"] == self.sizes["t"] == 1


def _any_convolution(egraph: EGraph, node: ENode) -> tuple[_Convolution, int] | None:
    """What a node is, if it is a two-dimensional convolution, and in how many groups: o outputs of c channels each."""
    attributes = dict(node.symbol.attributes)
    x, w = node.operands
    image, kernel = shape_of(egraph, x), shape_of(egraph, w)
    groups = attributes.get("groups")
    if node.symbol.operator != "conv" or len(image) != 4 or not isinstance(groups, int):
        return None
    (s, t), (d, e) = _pair(attributes["strides"]), _pair(attributes["dilations"])
    pads = attributes["pads"]
    assert isinstance(pads, tuple), "pads are pairs"
    n, _, h, wide = image
    o, c, k, rows = kernel
    sizes = {"n": n, "c": c, "h": h, "w": wide, "o": o // groups, "k": k, "l": rows, "s": s, "t": t, "d": d, "e": e}
    return _Convolution(x, w, sizes, tuple(p for pair in pads for p in pair)), groups


def _convolution(egraph: EGraph, node: ENode) -> _Convolution | None:
    """What a node is, if it is such a convolution."""
    found = _any_convolution(egraph, node)
    return found[0] if found is not None and found[1] == 1 else None


def _weights(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """The right operand of a product of matrices, if it is no transpose yet."""
    w = node.operands[1]
    shape = shape_of(egraph, w)
    if len(shape) == 2 and not has(egraph, w, "transpose"):
        yield {"x": w}, {"n": shape[0], "c": shape[1]}


def _padded(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """A convolution with pads."""
    conv = _convolution(egraph, node)
    if conv is not None and any(conv.pads):
        yield conv.instance()


def _normalised(egraph: EGraph, number: int) -> bool:
    """Whether a class is used by a batch normalisation, and by the difference that this begins with, alone."""
    users = {user.symbol.operator for user in egraph.users(number)}
    return "batch_norm" in users and users <= {"batch_norm", "sub"}


def _vectors(egraph: EGraph, node: ENode) -> Iterator[int]:
    """Vectors along the channels that are added, if a node is a sum of something and such a vector."""
    for vector in egraph.nodes(node.operands[1]) if node.symbol.operator == "add" else ():
        if vector.symbol.operator == "broadcast" and dict(vector.symbol.attributes)["axes"] == (1,):
            yield vector.operands[0]


def _in_groups(egraph: EGraph, node: ENode) -> tuple[_Convolution, int] | None:
    """A convolution in several groups, unless its normalisation goes into its kernels first."""
    found, users = _any_convolution(egraph, node), list(egraph.users(node.number))
    if found is None or found[1] == 1 or _normalised(egraph, node.number):
        return None
    biased = users and all(any(_vectors(egraph, u)) and _normalised(egraph, u.number) for u in users)
    return None if biased else found


def _paired(channels: int) -> Callable[[EGraph, ENode], Iterator[Suggestion]]:
    """A convolution in pairs of groups of so many channels."""

    def suggest(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
        found = _in_groups(egraph, node)
        if found is not None and found[1] % 2 == 0 and found[0].sizes["c"] == channels:
            inputs, sizes = found[0].instance(g=found[1] // 2)
            yield inputs, {name: size for name, size in sizes.items() if name != "c"}  # which the rule says

    return suggest


def _halved(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """A convolution in groups that are not joined in pairs: they are many in number, or large."""
    found = _in_groups(egraph, node)
    if found is not None and (found[1] % 2 or found[0].sizes["c"] not in GROUP_PAIRS):
        first = found[1] // 2
        yield found[0].instance(u=first, g=found[1] - first)


def unbiased(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """A product of a matrix and a transposed one."""
    a, b = node.operands
    left, right = shape_of(egraph, a), shape_of(egraph, b)
    if len(left) == len(right) == 2 and has(egraph, b, "transpose"):
        yield {"a": a, "b": b}, {"n": left[0], "k": left[1], "m": right[1]}


def _windows_of(egraph: EGraph, node: ENode) -> tuple[dict[str, int], dict[str, int]] | None:
    """A convolution without pads that is not of pixels alone: results h x w, and what is left over."""
    conv = _convolution(egraph, node)
    if conv is None or any(conv.pads) or conv.pointwise:
        return None
    sizes = dict(conv.sizes)
    height, width = shape_of(egraph, node.number)[2:]
    sizes["r"] = sizes["h"] - ((height - 1) * sizes["s"] + (sizes["k"] - 1) * sizes["d"] + 1)
    sizes["m"] = sizes["w"] - ((width - 1) * sizes["t"] + (sizes["l"] - 1) * sizes["e"] + 1)
    sizes["h"], sizes["w"] = height, width
    return {"x": conv.x, "w": conv.w}, sizes


def _windows(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    suggestion = _windows_of(egraph, node)
    if suggestion is not None:
        yield suggestion


def _pixels_of(egraph: EGraph, node: ENode) -> tuple[dict[str, int], dict[str, int]] | None:
    """A convolution of pixels alone, at every pixel."""
    conv = _convolution(egraph, node)
    if conv is None or any(conv.pads) or not conv.pointwise or not conv.everywhere:
        return None
    return {"x": conv.x, "w": conv.w}, {name: conv.sizes[name] for name in "nchwo"}


def _pixels(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    suggestion = _pixels_of(egraph, node)
    if suggestion is not None:
        yield suggestion


def _batches(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """Several products, each of which has a right side of its own."""
    a, b = node.operands
    shape = shape_of(egraph, a)
    if len(shape) == 3 and shape[0] > 1 and not has(egraph, b, "broadcast"):
        h, n, k = shape
        yield {"a": a, "b": b}, {"h": h, "n": n, "k": k, "m": shape_of(egraph, b)[2], "q": h // 2}


def _single(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """One product with an axis for batches."""
    a, b = node.operands
    shape = shape_of(egraph, a)
    if len(shape) == 3 and shape[0] == 1:
        yield {"a": a, "b": b}, {"n": shape[1], "k": shape[2], "m": shape_of(egraph, b)[2]}


def _biased(
    inner: Callable[[EGraph, ENode], tuple[dict[str, int], dict[str, int]] | None],
) -> Callable[[EGraph, ENode], Iterator[Suggestion]]:
    """A sum of such a convolution and a vector along the channels."""

    def suggest(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
        convolutions = node.operands[0]
        if len(shape_of(egraph, convolutions)) != 4:
            return
        for conv in egraph.nodes(convolutions):
            suggestion = inner(egraph, conv) if conv.symbol.operator == "conv" else None
            for vector in _vectors(egraph, node) if suggestion is not None else ():
                assert suggestion is not None
                yield {**suggestion[0], "b": vector}, suggestion[1]

    return suggest


def _strided_pixels(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """A convolution of every s-th pixel alone."""
    conv = _convolution(egraph, node)
    if conv is not None and not any(conv.pads) and conv.pointwise and not conv.everywhere:
        yield {"x": conv.x, "w": conv.w}, {name: conv.sizes[name] for name in "nchwost"}


def of_convolution(egraph: EGraph, node: ENode) -> bool:
    """Whether a batch normalisation is that of a convolution, with or without a bias."""
    x = node.operands[0]
    sums = (n for n in egraph.nodes(x) if n.symbol.operator == "add")
    return has(egraph, x, "conv") or any(has(egraph, o, "conv") for n in sums for o in n.operands)


def _no_windows(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """A product of two matrices whose rows are no windows or pixels of an image, which are of a convolution already."""
    a, b = node.operands
    shape = shape_of(egraph, a)
    laid = (t for n in egraph.nodes(a) if n.symbol.operator == "reshape" for t in egraph.nodes(n.operands[0]))
    image = any(_permutation(t) in ((0, 2, 3, 1), (0, 4, 5, 1, 2, 3)) for t in laid)
    if len(shape) == 2 and not image:
        yield {"a": a, "b": b}, {"n": shape[0], "c": shape[1], "o": shape_of(egraph, b)[1]}


def _permutation(node: ENode) -> Hashable:
    return dict(node.symbol.attributes).get("permutation")


WEIGHTS: Final = {TRANSPOSED_TWICE: at("matmul", _weights, backwards=True)}
"""The right operand of a product as a transpose."""
PADS: Final = {CONVOLUTION_PADS: at("conv", _padded)}
"""Pads by the host."""
GROUPS: Final[Mapping[TensorRule, Place]] = {
    **{rule: at("conv", _paired(channels)) for channels, rule in GROUP_PAIRS.items()},
    GROUPS_IN_PARTS: at("conv", _halved),
}
"""Groups as convolutions of their own: small ones together, with zeros, as multipliers stand in rows of 16."""
BATCHES: Final[Mapping[TensorRule, Place | None]] = {
    BATCH_AS_ONE_PRODUCT: None,
    BATCHES_IN_PARTS: at("matmul", _batches),
    BATCH_OF_ONE: at("matmul", _single),
}
"""Batches of products as products of two matrices."""
PRODUCTS: Final[Mapping[TensorRule, Place | None]] = {
    **PADS,
    **GROUPS,
    CONVOLUTION_AS_PRODUCT: at("conv", _windows),
    PIXELS_AS_PRODUCT: at("conv", _pixels),
    STRIDED_PIXELS: at("conv", _strided_pixels),
    **BATCHES,
}
"""Convolutions, and batches of products, as products of two matrices."""
CONVOLVED_PRODUCTS: Final[Mapping[TensorRule, Place | None]] = {
    **BATCHES,
    PRODUCT_AS_PIXELS: at("matmul", _no_windows),
}
"""Products of matrices as convolutions by 1 x 1."""
BIASED_PRODUCTS: Final = {
    BIASED_CONVOLUTION_AS_PRODUCT: at("add", _biased(_windows_of)),
    BIASED_PIXELS_AS_PRODUCT: at("add", _biased(_pixels_of)),
}
"""Convolutions with bias as products with bias."""


def _of_features(egraph: EGraph, number: int) -> bool:
    """Whether a class is broadcast to all rows."""
    last = len(shape_of(egraph, number)) - 1
    broadcasts = (n for n in egraph.nodes(number) if n.symbol.operator == "broadcast")
    axes = (dict(n.symbol.attributes)["axes"] for n in broadcasts)
    return any(isinstance(of, tuple) and of[-1:] == (last,) for of in axes)


def first_broadcast(egraph: EGraph, node: ENode) -> Iterator[Suggestion]:
    """A sum or product whose first operand is broadcast and whose second is not, or not to all rows as the first is."""
    x, y = node.operands
    last = _of_features(egraph, x) and not _of_features(egraph, y)
    if has(egraph, x, "broadcast") and (last or not has(egraph, y, "broadcast")):
        yield {"x": x, "y": y}, dict(zip("nchw", shape_of(egraph, x), strict=False))


DENSE_LAYERS: Final[Mapping[TensorRule, Place | None]] = {
    **BIASED_PRODUCTS,
    **dict.fromkeys(BIAS_AFTER_RESHAPE.values()),
    RELU_AFTER_RESHAPE: None,
    RELU_OF_ROWS: None,
    **dict.fromkeys(SUMS_COMMUTE.values(), at("add", first_broadcast)),
}
"""Products with bias and relu behind each other."""
NORMALISATION: Final = dict.fromkeys(
    (NORMALISATION_INTO_CONVOLUTION, NORMALISATION_INTO_BIASED_CONVOLUTION, CHANNELS_BROADCAST)
)
"""Batch normalisation into the convolution before it; with the definition of batch normalisation, see unfolding."""
