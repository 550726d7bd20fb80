"""Rules that compute a box of an operator's result from boxes of its operands, so that these fit an accelerator.

A rule has these boxes as indices of its sizes, so that they are compared, in numbers, with what the host puts into an
accelerator's tensors.  Which they are is one function for each operator, of integers and of sizes alike.  A box may end
beyond its tensor, and has zeros there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from chc.tensor_rules.rule import TensorRule
from ir_semantics.graph.elementwise import SIGMOID
from ir_semantics.scalars.terms import Scalar, apply, relu, variable
from ir_semantics.tensors.conditions import both, equal, le
from ir_semantics.tensors.index import Index, IndexLike
from ir_semantics.tensors.operators import Value, map_, pad, slice_, transpose
from ir_semantics.tensors.reductions import conv, matmul
from ir_semantics.tensors.terms import Tensor, input_
from smt_encodings.claims import Equality

from .words import at_least, bias, sizes, wrong, wrong_over_reals

Extent = TypeVar("Extent", int, Index)
Span = tuple[Extent, Extent]
"""The first index along an axis, and the one after the last."""
Box: TypeAlias = "tuple[Span[Index], ...]"
"""Of every axis."""


def dense_boxes(rows: Span[Extent], outputs: Span[Extent], inputs: Span[Extent]) -> dict[str, tuple[Span[Extent], ...]]:
    """Of x, w and b, for rows and outputs of x w^T + b; ``inputs`` are all, and zeros behind them."""
    return {"x": (rows, inputs), "w": (outputs, inputs), "b": (outputs,)}


def convolution_boxes(
    result: tuple[Span[Extent], Span[Extent], Span[Extent]],
    stride: Extent,
    whole: tuple[Span[Extent], Span[Extent], Span[Extent], Span[Extent]],
) -> dict[str, tuple[Span[Extent], ...]]:
    """Of x and w, for images, filters and rows of a convolution with a stride along the height, in all its columns.

    ``whole`` are channels, rows and columns of the kernel, and columns of x.
    """
    images, filters, (first, end) = result
    channels, down, across, columns = whole
    rows = first * stride, (end - 1) * stride + down[1]
    return {"x": (images, channels, rows, columns), "w": (filters, channels, down, across)}


def block_boxes(blocks: int, rows: Extent, others: Sequence[Span[Extent]]) -> Iterator[tuple[Span[Extent], ...]]:
    """The boxes of blocks of so many rows that are stacked, with these spans of other axes."""
    for j in range(blocks):
        box = list(others)
        box.insert(0, (rows * j, rows * (j + 1)))
        yield tuple(box)


# -- the rules -------------------------------------------------------------------------------------------------------

N, C, H, W, K, T, S, P, OUT = sizes("n c h w k t s p o")
ROW, ROW_END, FIRST, END, IMAGE, IMAGE_END = sizes("row row_end first end image image_end")
ROWS, OUTPUTS, ZEROS = sizes("rows outputs zeros")
NONE, INPUTS = C - C, C + ZEROS
MATRIX, WEIGHTS, BIAS = input_("x", N, C), input_("w", OUT, C), input_("b", OUT)
IMAGES, KERNELS = input_("x", N, C, H, W), input_("w", OUT, C, K, T)
SOME = both(le(ROW, ROW_END), le(ROW_END, N), le(FIRST, END), le(END, OUT))
"""Rows and outputs of a dense layer."""
COMPUTED = both(SOME, le(ROW_END, ROW + ROWS), le(END, FIRST + OUTPUTS))
"""They are among those that are computed, which may be more, and end beyond the result."""
ACTIVATIONS: dict[str, tuple[str, Scalar]] = {
    "none": ("a dense layer", variable("x")),
    "relu": ("relu of a dense layer", relu(variable("x"))),
    "sigmoid": ("the logistic function of a dense layer", SIGMOID),
    "tanh": ("the hyperbolic tangent of a dense layer", apply("tanh", variable("x"))),
}
"""By name, as :mod:`ir_semantics.graph` calls them."""


def box_of(x: Tensor, box: Sequence[Span[Index]], behind: Sequence[IndexLike] = (), value: Value = 0) -> Tensor:
    """A box of a tensor, which has so many elements of ``value`` behind it along each axis."""
    filled = pad(x, [0] * x.rank, behind, value) if behind else x
    return slice_(filled, [first for first, _ in box], [end for _, end in box])


def _nothing(*operands: Tensor) -> Tensor:
    raise ValueError("a rule of boxes must say of what")


@dataclass(frozen=True, eq=False)
class BoxRule(TensorRule):
    """The rule of :func:`in_boxes`."""

    of: Callable[..., Tensor] = _nothing
    operands: tuple[Tensor, ...] = ()
    boxes: tuple[Box, ...] = ()
    behind: tuple[Sequence[IndexLike], ...] = ()
    attributes: Mapping[str, str | Index] = field(default_factory=dict)

    @cached_property
    def whole(self) -> Tensor:
        """Of the operands."""
        return self.of(*self.operands)

    @cached_property
    def computed(self) -> Tensor:
        """Of their boxes."""
        boxes = zip(self.operands, self.boxes, self.behind, strict=False)
        return self.of(*(box_of(x, box, behind) for x, box, behind in boxes))

    @cached_property
    def sides(self) -> tuple[Tensor, Tensor]:
        """What is equal: the box of the result, and the beginning of what is computed of boxes."""
        kept = self.boxes[-1]
        first, extents = [0] * len(kept), [end - first for first, end in kept]
        return box_of(self.whole, kept), slice_(self.computed, first, extents)


def in_boxes(
    name: str,
    of: Callable[..., Tensor],
    operands: Sequence[Tensor],
    boxes: Sequence[Box],
    behind: Sequence[Sequence[IndexLike]],
    **more: Any,
) -> BoxRule:
    """The rule that a box of the result ``of`` operands begins what is computed ``of`` boxes of them.

    ``operands`` are inputs whose extents are sizes, ``boxes`` those of each, with so many zeros ``behind`` the operand,
    and last that of the result.  ``attributes`` are, by name, those of accelerators' operators that are this: values,
    or sizes of the rule.  ``more`` is as of rules.
    """
    unmade = BoxRule(name, operands[0], operands[0], of=of, operands=(*operands,), boxes=(*boxes,), behind=(*behind,))
    left, right = unmade.sides
    return replace(unmade, left=left, right=right, **more)


def product(x: Tensor, w: Tensor) -> Tensor:
    """x w^T."""
    return matmul(x, transpose(w, [1, 0]))


def dense(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """x w^T + b."""
    return bias(product(x, w), b, 1)


def some(of: Tensor) -> Tensor:
    """Some rows and outputs."""
    return slice_(of, [ROW, FIRST], [ROW_END, END])


def computed(of: Tensor) -> Tensor:
    """As many, of those that were computed."""
    return slice_(of, [0, 0], [ROW_END - ROW, END - FIRST])


GIVEN = (ROW, ROW + ROWS), (FIRST, FIRST + OUTPUTS)
LAYER = MATRIX, WEIGHTS, BIAS
BEHIND = [ROWS, ZEROS], [OUTPUTS, ZEROS], [OUTPUTS]


def layer_boxes(rows: Span[Index], outputs: Span[Index]) -> tuple[Box, ...]:
    """The boxes of a dense layer's operands."""
    return tuple(dense_boxes(rows, outputs, (NONE, INPUTS)).values())


def operands(rows: Span[Index], outputs: Span[Index], value: Value = 0) -> list[Tensor]:
    """These boxes, with ``value`` behind the operands."""
    boxes = layer_boxes(rows, outputs)
    return [box_of(x, box, behind, value) for x, box, behind in zip(LAYER, boxes, BEHIND, strict=True)]


def _layer_in_boxes(name: str, of: Callable[..., Tensor], count: int, attributes: Mapping[str, str]) -> BoxRule:
    boxes = (*layer_boxes(*GIVEN)[:count], ((ROW, ROW_END), (FIRST, END)))
    more = {"domain": COMPUTED, "equality": Equality.OVER_REALS, "attributes": attributes}
    return in_boxes(name, of, LAYER[:count], boxes, BEHIND[:count], **more)


def layer(term: Scalar) -> Callable[..., Tensor]:
    """A function of a dense layer, of x, w and b."""
    return lambda x, w, b: map_(term, x=dense(x, w, b))


PRODUCT_IN_BOXES = _layer_in_boxes("a box of a product of matrices", product, 2, {})
DENSE_IN_BOXES = {
    activation: _layer_in_boxes(f"a box of {name}", layer(term), 3, {"activation": activation})
    for activation, (name, term) in ACTIVATIONS.items()
}
"""By activation."""


def convolved(x: Tensor, w: Tensor) -> Tensor:
    """The convolution with strides."""
    return conv(x, w, strides=[S, P])


WHOLE = convolved(IMAGES, KERNELS)
RESULT = (IMAGE, IMAGE_END), (FIRST, END), (ROW, ROW_END)
PARTS = convolution_boxes(RESULT, S, ((NONE, C), (NONE, K), (NONE, T), (NONE, W)))
WITHIN = both(
    le(IMAGE, IMAGE_END),
    le(IMAGE_END, N),
    le(FIRST, END),
    le(END, OUT),
    le(ROW + 1, ROW_END),
    le(ROW_END, WHOLE.shape[2]),
)


def part(x: Tensor) -> Tensor:
    """The convolution of a part of the images with the filters of a box."""
    return convolved(x, box_of(KERNELS, PARTS["w"]))


CONVOLUTION_IN_BOXES = in_boxes(
    "a box of a convolution",
    convolved,
    (IMAGES, KERNELS),
    (PARTS["x"], PARTS["w"], (*RESULT, (NONE, WHOLE.shape[3]))),
    ((), ()),
    domain=WITHIN,
    attributes={"stride_h": S, "stride_w": P},
)
BOX = CONVOLUTION_IN_BOXES.left

_VALID = [PRODUCT_IN_BOXES, *DENSE_IN_BOXES.values(), CONVOLUTION_IN_BOXES]

X, V, _ = operands(*GIVEN)
_FIRST_ROW, _LAST = PARTS["x"][2]
_ONES = operands(*GIVEN, 1)
_EXCHANGED = operands((FIRST, FIRST + ROWS), (ROW, ROW + OUTPUTS))


_APART = both(WITHIN, at_least(1, C, ROW, IMAGE_END - IMAGE, END - FIRST), at_least(2, S))


def _rows(first: Index, end: Index) -> tuple[Span[Index], ...]:
    images, channels, _, columns = PARTS["x"]
    return images, channels, (first, end), columns


_WRONG = [
    wrong(
        "a box of a convolution from the row of the result",
        BOX,
        part(box_of(IMAGES, _rows(ROW, _LAST - _FIRST_ROW + ROW))),
        _APART,
        note="it begins at row s r of the image",
    ),
    wrong(
        "a box of a convolution with a halo that is a row short",
        BOX,
        part(pad(box_of(IMAGES, _rows(_FIRST_ROW, _LAST - 1)), [0] * 4, [0, 0, 1, 0])),
        WITHIN,
        note="the row of zeros was one of the image",
    ),
    wrong_over_reals(
        "a box of a dense layer with the first bias",
        some(dense(MATRIX, WEIGHTS, BIAS)),
        computed(dense(X, V, box_of(BIAS, [(NONE, OUTPUTS)], [OUTPUTS]))),
        COMPUTED,
        note="outputs of another part have their own",
    ),
    wrong_over_reals(
        "a box of a product of matrices with rows and outputs exchanged",
        some(product(MATRIX, WEIGHTS)),
        computed(product(*_EXCHANGED[:2])),
        both(COMPUTED, equal(ROWS, OUTPUTS), equal(N, OUT)),
    ),
    wrong_over_reals(
        "a box of a product of matrices with ones behind the operands",
        some(product(MATRIX, WEIGHTS)),
        computed(product(*_ONES[:2])),
        COMPUTED,
        note="beyond the inputs there must be zeros",
    ),
]

RULES = (*_WRONG, *_VALID)
"""All rules of this module."""
