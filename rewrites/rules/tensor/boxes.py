"""Rules that compute a box of an operator's result from boxes of its operands, so that these fit an accelerator.

Which boxes these are is one function for each operator, of integers and of sizes alike: rules are proved of it for
every size, and what the host puts into an accelerator's tensors is compared with it.  A box may end beyond its tensor,
and has zeros there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from chc.tensor_rules.rule import TensorRule
from ir_semantics.scalars.terms import Scalar, exp, relu, variable
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
RISING, FALLING = exp(variable("x")), exp(-variable("x"))
ACTIVATIONS: dict[str, tuple[str, Scalar]] = {
    "none": ("a dense layer", variable("x")),
    "relu": ("relu of a dense layer", relu(variable("x"))),
    "sigmoid": ("the logistic function of a dense layer", 1 / (1 + exp(-variable("x")))),
    "tanh": ("the hyperbolic tangent of a dense layer", (RISING - FALLING) / (RISING + FALLING)),
}
"""By name, as :mod:`ir_semantics.graph` calls them."""


def box_of(x: Tensor, box: Sequence[Span[Index]], behind: Sequence[IndexLike] = (), value: Value = 0) -> Tensor:
    """A box of a tensor, which has so many elements of ``value`` behind it along each axis."""
    filled = pad(x, [0] * x.rank, behind, value) if behind else x
    return slice_(filled, [first for first, _ in box], [end for _, end in box])


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


def operands(rows: Span[Index], outputs: Span[Index], value: Value = 0) -> tuple[Tensor, Tensor, Tensor]:
    """The boxes of a dense layer's operands."""
    boxes = dense_boxes(rows, outputs, (NONE, INPUTS))
    return (
        box_of(MATRIX, boxes["x"], [ROWS, ZEROS], value),
        box_of(WEIGHTS, boxes["w"], [OUTPUTS, ZEROS], value),
        box_of(BIAS, boxes["b"], [OUTPUTS], value),
    )


X, V, B = operands((ROW, ROW + ROWS), (FIRST, FIRST + OUTPUTS))
PRODUCT_IN_BOXES = TensorRule(
    "a box of a product of matrices",
    some(product(MATRIX, WEIGHTS)),
    computed(product(X, V)),
    COMPUTED,
    equality=Equality.OVER_REALS,
)
DENSE_IN_BOXES = {
    activation: TensorRule(
        f"a box of {name}",
        some(map_(term, x=dense(MATRIX, WEIGHTS, BIAS))),
        computed(map_(term, x=dense(X, V, B))),
        COMPUTED,
        equality=Equality.OVER_REALS,
    )
    for activation, (name, term) in ACTIVATIONS.items()
}
"""By activation."""

WHOLE = conv(IMAGES, KERNELS, strides=[S, P])
BOX = slice_(WHOLE, [IMAGE, FIRST, ROW, 0], [IMAGE_END, END, ROW_END, WHOLE.shape[3]])
PARTS = convolution_boxes(
    ((IMAGE, IMAGE_END), (FIRST, END), (ROW, ROW_END)), S, ((NONE, C), (NONE, K), (NONE, T), (NONE, W))
)
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
    return conv(x, box_of(KERNELS, PARTS["w"]), strides=[S, P])


CONVOLUTION_IN_BOXES = TensorRule("a box of a convolution", BOX, part(box_of(IMAGES, PARTS["x"])), WITHIN)

_VALID = [PRODUCT_IN_BOXES, *DENSE_IN_BOXES.values(), CONVOLUTION_IN_BOXES]

_FIRST_ROW, _LAST = PARTS["x"][2]
_ONES = operands((ROW, ROW + ROWS), (FIRST, FIRST + OUTPUTS), 1)
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
