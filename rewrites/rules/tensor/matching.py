"""Rules that give graphs the forms in which accelerators are matched: windows as rows, pads apart, gates in order.

Each wrong rule is what such a rule becomes by a slip: exchanged axes, pads on the other side, a bias along another
axis, gates whose order is not restored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chc.tensor_rules.rule import TensorRule
from ir_semantics.tensors.conditions import both, le, lt
from ir_semantics.tensors.index import product
from ir_semantics.tensors.operators import broadcast, concat, pad, reshape, slice_, transpose
from ir_semantics.tensors.reductions import conv, matmul, patches
from ir_semantics.tensors.terms import Tensor, input_

from .inputs import first, rest
from .words import (
    add,
    at_least,
    bias,
    div,
    mul,
    over_reals,
    relu,
    reordered,
    sizes,
    sub,
    wrong,
    wrong_over_reals,
    wrong_reordered,
)

N, C, H, W, O, K, L, S, T, D, E = sizes("n c h w o k l s t d e")  # noqa: E741  # the number of outputs
P, Q, R, M, U = sizes("p q r m u")
IMAGE, KERNEL, POINT = input_("x", N, C, H, W), input_("w", O, C, K, L), input_("w", O, C, 1, 1)
STRIDED: dict[str, Any] = {"strides": [S, T], "dilations": [D, E]}
PADDED: dict[str, Any] = {"pads": [(P, Q), (R, M)], **STRIDED}

EXACT = input_("x", N, C, (H - 1) * S + (K - 1) * D + 1 + R, (W - 1) * T + (L - 1) * E + 1 + M)
"""Any image: its convolution with KERNEL, STRIDED and without pads, has h x w elements, and r and m rows and columns
are left over."""
LEFT_OVER = both(at_least(1, N, C, O, K, L, H, W, S, T, D, E), lt(R, S), lt(M, T))

FROM_ONNX, TO_ONNX = (0, 2, 3, 1), (0, 3, 1, 2)
"""Gates of an LSTM from ONNX's order i, o, f, g to i, f, g, o, and back: what stands at each place."""
EXCHANGED = (1, 0, 2)
"""Gates of a GRU from ONNX's order z, r, n to r, z, n, and back."""


SHIFT = input_("b", O)
GROUPED, GROUP_KERNELS = input_("x", N, U * C, H, W), input_("w", U * O, C, K, L)
"""Images of u groups of c channels, and kernels for o results of each."""
WINDOWS = (0, 4, 5, 1, 2, 3)
"""The axes of windows [n, c, k, l, h, w] as [n, h, w, c, k, l]."""


def _rows_times_filters(windows: Tensor, w: Tensor, order: Sequence[int]) -> Tensor:
    """Windows as rows, their axes in an order, times filters as columns: [n h w, o]."""
    taps = product(w.shape[1:])
    rows = reshape(transpose(windows, order), N * H * W, taps)
    return matmul(rows, transpose(reshape(w, O, taps), [1, 0]))


def _windows_times_filters(order: Sequence[int] = WINDOWS) -> Tensor:
    return _rows_times_filters(patches(EXACT, [K, L], **STRIDED), KERNEL, order)


def _pixels_times_filters() -> Tensor:
    rows = reshape(transpose(IMAGE, [0, 2, 3, 1]), N * H * W, C)
    return matmul(rows, transpose(reshape(POINT, O, C), [1, 0]))


_LEFT, _RIGHT = input_("a", N, C), input_("b", C, O)


def _product_of_pixels() -> Tensor:
    """Rows as pixels below each other, columns as filters."""
    pixels = reshape(transpose(_LEFT, [1, 0]), 1, C, N, 1)
    filters = reshape(transpose(_RIGHT, [1, 0]), O, C, 1, 1)
    return transpose(reshape(conv(pixels, filters), O, N), [1, 0])


def _image_of(rows: Tensor) -> Tensor:
    """Rows [n h w, o] as an image [n, o, h, w]."""
    return transpose(reshape(rows, N, H, W, O), [0, 3, 1, 2])


def _of_channels(name: str) -> Tensor:
    return input_(name, U * O)


def _batch_norm(x: Tensor) -> Tensor:
    """(x - mu) / d * g + b along channels, as the operator of graphs has it."""
    shift, deviation, gain = (broadcast(_of_channels(name), x.shape, [1]) for name in ("mu", "d", "g"))
    return bias(mul(div(sub(x, shift), deviation), gain), _of_channels("b"), 1)


def _folded(mean: Tensor, exchanged: bool = False) -> Tensor:
    """The convolution with the normalisation's factors in the kernels, plus what is left."""
    gain = div(_of_channels("g"), _of_channels("d"))
    factors = reshape(transpose(reshape(gain, O, U), [1, 0]), U * O) if exchanged else gain
    kernels = mul(GROUP_KERNELS, broadcast(factors, GROUP_KERNELS.shape, [0]))
    return bias(_grouped(kernels), sub(_of_channels("b"), mul(mean, gain)), 1)


def _grouped(kernels: Tensor) -> Tensor:
    return conv(GROUPED, kernels, groups=U, **PADDED)


def _in_order(x: Tensor, order: Sequence[int]) -> Tensor:
    """The gates along the first axis, h elements each, in another order."""
    rest = list(x.shape[1:])
    return concat(0, *(slice_(x, [j * H, *[0] * len(rest)], [(j + 1) * H, *rest]) for j in order))


VECTOR, _GATES, _ROWS, _PIXELS = input_("x", N), input_("x", 4 * H, C), input_("x", N * M, C), input_("x", N * H * W, O)

_WRONG = [
    wrong_reordered(
        "convolution as windows times filters, taps in another order",
        conv(EXACT, KERNEL, **STRIDED),
        _image_of(_windows_times_filters((0, 4, 5, 2, 3, 1))),
        LEFT_OVER,
    ),
    wrong_reordered(
        "convolution as windows times filters, stride ignored",
        conv(EXACT, KERNEL, **STRIDED),
        _image_of(
            _rows_times_filters(
                slice_(patches(EXACT, [K, L], dilations=[D, E]), [0] * 6, [N, C, K, L, H, W]), KERNEL, WINDOWS
            )
        ),
        LEFT_OVER,
    ),
    wrong_reordered(
        "1 x 1 convolution as pixels times filters without a transposition",
        conv(IMAGE, POINT),
        reshape(_pixels_times_filters(), N, O, H, W),
        at_least(1, N, C, H, W, O),
    ),
    wrong_over_reals(
        "a product of matrices as a 1 x 1 convolution without a transposition of rows",
        matmul(input_("a", C, C), _RIGHT),
        transpose(
            reshape(conv(reshape(input_("a", C, C), 1, C, C, 1), reshape(transpose(_RIGHT, [1, 0]), O, C, 1, 1)), O, C),
            [1, 0],
        ),
        at_least(1, C, O),
    ),
    wrong_over_reals(
        "pads of a convolution on the other side",
        conv(IMAGE, KERNEL, **PADDED),
        conv(pad(IMAGE, [0, 0, Q, M], [0, 0, P, R]), KERNEL, **STRIDED),
    ),
    wrong(
        "bias after a reshape along the wrong axis",
        bias(reshape(input_("x", N * M, M), N, M, M), input_("b", M), 1),
        reshape(bias(input_("x", N * M, M), input_("b", M), 1), N, M, M),
        at_least(1, N, M),
    ),
    wrong(
        "four gates from ONNX's order twice", _in_order(_in_order(_GATES, FROM_ONNX), FROM_ONNX), _GATES, at_least(1, H)
    ),
    wrong(
        "a cyclic permutation twice",
        transpose(transpose(input_("x", N, N, N), [1, 2, 0]), [1, 2, 0]),
        input_("x", N, N, N),
    ),
    wrong("two parts of a vector exchanged", concat(0, rest(VECTOR, Q), first(VECTOR, Q)), VECTOR, le(Q, N)),
    wrong("a difference commutes", sub(IMAGE, input_("y", N, C, H, W)), sub(input_("y", N, C, H, W), IMAGE)),
    wrong_over_reals(
        "batch normalisation into a convolution, factors in the order of results before groups",
        _batch_norm(_grouped(GROUP_KERNELS)),
        _folded(_of_channels("mu"), exchanged=True),
        at_least(1, N, C, O, U, H, W),
    ),
]


def _commutes(rank: int, what: str = "sum", of: Callable[[Tensor, Tensor], Tensor] = add) -> TensorRule:
    x, y = (input_(name, *[N, C, H, W][:rank]) for name in "xy")
    return TensorRule(f"a {what} of rank {rank} commutes", of(x, y), of(y, x))


def _restored(name: str, gates: Tensor, order: Sequence[int], back: Sequence[int]) -> TensorRule:
    """Gates of h rows each, put in an order and put back."""
    return TensorRule(name, _in_order(_in_order(gates, order), back), gates, at_least(1, H))


SUMS_COMMUTE = {rank: _commutes(rank) for rank in (2, 3, 4)}
PRODUCTS_COMMUTE = {rank: _commutes(rank, "product", mul) for rank in (2, 3, 4)}
"""By rank."""
CONVOLUTION_PADS = over_reals(
    "pads of a convolution as a pad with zeros",
    conv(IMAGE, KERNEL, **PADDED),
    conv(pad(IMAGE, [0, 0, P, R], [0, 0, Q, M]), KERNEL, **STRIDED),
)
CONVOLUTION_AS_PRODUCT = reordered(
    "convolution as windows times filters",
    conv(EXACT, KERNEL, **STRIDED),
    _image_of(_windows_times_filters()),
    LEFT_OVER,
)
BIASED_CONVOLUTION_AS_PRODUCT = reordered(
    "convolution with bias as windows times filters with bias",
    bias(conv(EXACT, KERNEL, **STRIDED), SHIFT, 1),
    _image_of(bias(_windows_times_filters(), SHIFT, 1)),
    LEFT_OVER,
)
PIXELS_AS_PRODUCT = reordered(
    "1 x 1 convolution as pixels times filters",
    conv(IMAGE, POINT),
    _image_of(_pixels_times_filters()),
    at_least(1, N, C, H, W, O),
)
BIASED_PIXELS_AS_PRODUCT = reordered(
    "1 x 1 convolution with bias as pixels times filters with bias",
    bias(conv(IMAGE, POINT), SHIFT, 1),
    _image_of(bias(_pixels_times_filters(), SHIFT, 1)),
    at_least(1, N, C, H, W, O),
)
PRODUCT_AS_PIXELS = reordered(
    "a product of matrices as a 1 x 1 convolution", matmul(_LEFT, _RIGHT), _product_of_pixels(), at_least(1, N, C, O)
)
NORMALISATION_INTO_CONVOLUTION = over_reals(
    "batch normalisation as networks have it into a convolution",
    _batch_norm(_grouped(GROUP_KERNELS)),
    _folded(_of_channels("mu")),
    at_least(1, N, C, O, U, H, W),
)
NORMALISATION_INTO_BIASED_CONVOLUTION = over_reals(
    "batch normalisation as networks have it into a convolution with bias",
    _batch_norm(bias(_grouped(GROUP_KERNELS), _of_channels("v"), 1)),
    _folded(sub(_of_channels("mu"), _of_channels("v"))),
    at_least(1, N, C, O, U, H, W),
)
BIAS_AFTER_RESHAPE = {
    len(shape): TensorRule(
        f"bias after a reshape{more}",
        bias(reshape(input_("x", product(shape[:-1]), C), *shape), input_("b", C), len(shape) - 1),
        reshape(bias(input_("x", product(shape[:-1]), C), input_("b", C), 1), *shape),
        at_least(1, *shape),
    )
    for shape, more in (((N, M, C), ""), ((N, M, K, C), " to rank 4"))
}
"""By rank."""
CHANNELS_BROADCAST = TensorRule(
    "channels of one image, broadcast",
    broadcast(input_("x", 1, C), [1, C, H, W], [0, 1]),
    broadcast(reshape(input_("x", 1, C), C), [1, C, H, W], [1]),
    at_least(1, C),
)
RELU_AFTER_RESHAPE = TensorRule(
    "relu after a reshape of rows", relu(reshape(_ROWS, N, M, C)), reshape(relu(_ROWS), N, M, C), at_least(1, N, M, C)
)
RELU_OF_ROWS = TensorRule(
    "relu of rows as an image", relu(_image_of(_PIXELS)), _image_of(relu(_PIXELS)), at_least(1, N, H, W, O)
)
TRANSPOSED_TWICE = TensorRule(
    "transposed twice", transpose(transpose(input_("x", N, C), [1, 0]), [1, 0]), input_("x", N, C)
)
LSTM_GATES = _restored("four gates from ONNX's order and back", _GATES, FROM_ONNX, TO_ONNX)
LSTM_BIASES = _restored("biases of four gates from ONNX's order and back", input_("x", 4 * H), FROM_ONNX, TO_ONNX)
GRU_GATES = _restored("first two of three gates exchanged and back", input_("x", 3 * H, C), EXCHANGED, EXCHANGED)
GRU_BIASES = _restored(
    "biases of the first two of three gates exchanged and back", input_("x", 3 * H), EXCHANGED, EXCHANGED
)
VECTOR_IN_PARTS = TensorRule("a vector in two parts", concat(0, first(VECTOR, Q), rest(VECTOR, Q)), VECTOR, le(Q, N))
AXIS_DROPPED = TensorRule(
    "an axis of size 1 dropped and back",
    reshape(reshape(input_("x", N, 1, C), N, C), N, 1, C),
    input_("x", N, 1, C),
    at_least(1, N, C),
)

_VALID = [
    CONVOLUTION_PADS,
    CONVOLUTION_AS_PRODUCT,
    BIASED_CONVOLUTION_AS_PRODUCT,
    PIXELS_AS_PRODUCT,
    BIASED_PIXELS_AS_PRODUCT,
    PRODUCT_AS_PIXELS,
    NORMALISATION_INTO_CONVOLUTION,
    NORMALISATION_INTO_CONVOLUTION.converse,
    NORMALISATION_INTO_BIASED_CONVOLUTION,
    NORMALISATION_INTO_BIASED_CONVOLUTION.converse,
    *BIAS_AFTER_RESHAPE.values(),
    CHANNELS_BROADCAST,
    RELU_AFTER_RESHAPE,
    RELU_OF_ROWS,
    TRANSPOSED_TWICE,
    LSTM_GATES,
    LSTM_BIASES,
    GRU_GATES,
    GRU_BIASES,
    VECTOR_IN_PARTS,
    AXIS_DROPPED,
    *SUMS_COMMUTE.values(),
    *PRODUCTS_COMMUTE.values(),
]

RULES = (*_WRONG, *_VALID)
"""All rules of this module."""
