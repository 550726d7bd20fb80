"""Rules on data movement: reshape, transpose, slice, pad, concat, reverse; wrong ones, repairs and valid ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from chc.tensor_rules.rule import Kind, TensorRule
from ir_semantics.tensors.conditions import le, lt
from ir_semantics.tensors.operators import (
    broadcast,
    concat,
    fill,
    pad,
    reshape,
    reverse,
    slice_,
    transpose,
    upsample,
    where,
)
from ir_semantics.tensors.terms import Tensor, input_

from .words import add, at_least, largest, relu, sizes

__all__ = ["RULES", "compositions"]

N, C, H, W, K, S, P, Q, T = sizes("n c h w k s p q t")
VECTOR, MATRIX, CUBE, IMAGE = input_("x", N), input_("x", N, C), input_("x", N, C, H), input_("x", N, C, H, W)
OTHER, FULL = input_("y", N, Q), at_least(1, N, C, H, W)


def _odds(x: Tensor) -> Tensor:
    """x[1::2]."""
    return slice_(x, [1], [x.shape[0]], [2])


def _to_depth(x: Tensor) -> Tensor:
    """Blocks of t x t elements as one axis."""
    blocks = reshape(x, N, T, C, T)
    return reshape(transpose(blocks, [0, 2, 1, 3]), N, C, T * T)


def _to_space(x: Tensor) -> Tensor:
    """The inverse of the above."""
    return reshape(transpose(reshape(x, N, C, T, T), [0, 2, 1, 3]), N * T, C * T)


_WRONG = [
    TensorRule(
        "reshape of a transpose as a reshape",
        "reshape(transpose(x)) = reshape(x)",
        reshape(transpose(MATRIX, [1, 0]), C * N),
        reshape(MATRIX, C * N),
        Kind.WRONG,
        at_least(1, N, C),
        row="L9",
    ),
    TensorRule(
        "permutation (0, 2, 3, 1) as exchange of the last two axes",
        "permute(x, 0, 2, 3, 1) = transpose(x, -2, -1)",
        transpose(IMAGE, [0, 2, 3, 1]),
        transpose(IMAGE, [0, 1, 3, 2]),
        Kind.WRONG,
        FULL,
        row="L13",
    ),
    TensorRule(
        "permutation (0, 2, 3, 1) as exchange of the last two axes, all of one size",
        "permute(x, 0, 2, 3, 1) = transpose(x, -2, -1) for axes of one size",
        transpose(input_("x", N, C, C, C), [0, 2, 3, 1]),
        transpose(input_("x", N, C, C, C), [0, 1, 3, 2]),
        Kind.WRONG,
        row="L13",
        note="shapes agree here, and the data are wrong",
    ),
    TensorRule(
        "odd elements twice from 2",
        "x[1::2][1::2] = x[2::4]",
        _odds(_odds(VECTOR)),
        slice_(VECTOR, [2], [N], [4]),
        Kind.WRONG,
        le(4, N),
        row="L15",
    ),
    TensorRule(
        "transpose before a reshape dropped",
        "reshape(transpose(x, 0, 2, 1)) = reshape(x)",
        reshape(transpose(CUBE, [0, 2, 1]), N, H * C),
        reshape(CUBE, N, H * C),
        Kind.WRONG,
        at_least(1, N, C, H),
        row="L33",
    ),
    TensorRule(
        "transposes compose as q[p]",
        "transpose(transpose(x, p), q) = transpose(x, q[p]) for p = (1, 2, 0), q = (0, 2, 1)",
        transpose(transpose(CUBE, [1, 2, 0]), [0, 2, 1]),
        transpose(CUBE, [2, 1, 0]),
        Kind.WRONG,
        at_least(1, N, C, H),
    ),
    TensorRule(
        "concat commutes",
        "concat(x, y) = concat(y, x)",
        concat(1, MATRIX, OTHER),
        concat(1, OTHER, MATRIX),
        Kind.WRONG,
        at_least(1, N),
    ),
    TensorRule(
        "reverse of concat without exchange",
        "reverse(concat(x, y)) = concat(reverse(x), reverse(y))",
        reverse(concat(1, MATRIX, OTHER), 1),
        concat(1, reverse(MATRIX, 1), reverse(OTHER, 1)),
        Kind.WRONG,
        at_least(1, N),
    ),
    TensorRule(
        "pads of two values merge",
        "pad(pad(x, p, 1), q, 0) = pad(x, p + q, 0)",
        pad(pad(VECTOR, [P], [0], 1), [Q], [0], 0),
        pad(VECTOR, [P + Q], [0], 0),
        Kind.WRONG,
    ),
    TensorRule(
        "slice of a pad as the pad of a smaller amount",
        "pad(x, p)[q:] = pad(x, p - q) for any q",
        slice_(pad(VECTOR, [P], [0]), [Q], [P + N]),
        pad(VECTOR, [P - Q], [0]),
        Kind.WRONG,
    ),
    TensorRule(
        "every s-th element of the reverse as the reverse of every s-th",
        "reverse(x)[::s] = reverse(x[::s])",
        slice_(reverse(VECTOR, 0), [0], [N], [S]),
        reverse(slice_(VECTOR, [0], [N], [S]), 0),
        Kind.WRONG,
        at_least(1, N),
    ),
    TensorRule(
        "reshape of concat along the second axis",
        "reshape(concat(x, y; columns), flat) = concat(reshape(x, flat), reshape(y, flat))",
        reshape(concat(1, MATRIX, OTHER), N * (C + Q)),
        concat(0, reshape(MATRIX, N * C), reshape(OTHER, N * Q)),
        Kind.WRONG,
        at_least(1, N, C, Q),
    ),
    TensorRule(
        "relu before a pad with a negative value",
        "relu(pad(x, -1)) = pad(relu(x), -1)",
        relu(pad(VECTOR, [P], [P], -1)),
        pad(relu(VECTOR), [P], [P], -1),
        Kind.WRONG,
    ),
    TensorRule(
        "two reshapes through a transpose cancel",
        "reshape(reshape(x, [c, n]), [n, c]) = transpose(x) for square x",
        reshape(reshape(input_("x", N, N), N * N), N, N),
        transpose(input_("x", N, N), [1, 0]),
        Kind.WRONG,
        at_least(1, N),
    ),
    TensorRule(
        "upsampling by tiling",
        "upsample(x, 2) = concat(x, x)",
        upsample(VECTOR, [2]),
        concat(0, VECTOR, VECTOR),
        Kind.WRONG,
    ),
]

_REPAIRED = [
    TensorRule(
        "odd elements twice",
        "x[1::2][1::2] = x[3::4]",
        _odds(_odds(VECTOR)),
        slice_(VECTOR, [3], [N], [4]),
        Kind.REPAIRED,
        le(3, N),
        row="L15",
        note="also the valid control; x[1::2] of fewer than 3 elements has no element number 1",
    ),
    TensorRule(
        "reshape of a transpose of one row",
        "reshape(transpose(x)) = reshape(x) for x of one row",
        reshape(transpose(input_("x", 1, C), [1, 0]), C),
        reshape(input_("x", 1, C), C),
        Kind.REPAIRED,
        at_least(1, C),
        row="L9",
        note="an axis of size 1 may move anywhere",
    ),
    TensorRule(
        "permutation (0, 2, 3, 1) as two exchanges",
        "permute(x, 0, 2, 3, 1) = transpose(transpose(x, -3, -2), -2, -1)",
        transpose(IMAGE, [0, 2, 3, 1]),
        transpose(transpose(IMAGE, [0, 2, 1, 3]), [0, 1, 3, 2]),
        Kind.REPAIRED,
        row="L13",
    ),
    TensorRule(
        "transpose of an axis of size 1 before a reshape",
        "reshape(transpose(x, 0, 2, 1)) = reshape(x) for x of one channel",
        reshape(transpose(input_("x", N, 1, H), [0, 2, 1]), N, H),
        reshape(input_("x", N, 1, H), N, H),
        Kind.REPAIRED,
        at_least(1, N, H),
        row="L33",
    ),
]


def composition(p: Sequence[int], q: Sequence[int]) -> TensorRule:
    """transpose(transpose(x, p), q) = transpose(x, p[q]) for two permutations of a rank."""
    x = input_("x", *sizes("a b c d e")[: len(p)])
    composed = [p[j] for j in q]
    return TensorRule(
        f"transposes {tuple(p)} and {tuple(q)}",
        f"transpose(transpose(x, {tuple(p)}), {tuple(q)}) = transpose(x, {tuple(composed)})",
        transpose(transpose(x, p), q),
        transpose(x, composed),
        Kind.VALID,
        row="6.9",
    )


def compositions(rank: int) -> list[TensorRule]:
    """That rule for all permutations of a rank."""
    return [composition(p, q) for p, q in itertools.product(itertools.permutations(range(rank)), repeat=2)]


_VALID = [
    *compositions(2),
    *(composition((0, 2, 1), q) for q in ((1, 0, 2), (1, 2, 0), (2, 0, 1))),
    composition((0, 2, 3, 1), (0, 3, 1, 2)),
    TensorRule("reverse twice", "reverse(reverse(x)) = x", reverse(reverse(MATRIX, 1), 1), MATRIX, Kind.VALID),
    TensorRule(
        "reshape twice",
        "reshape(reshape(x)) = reshape(x)",
        reshape(reshape(CUBE, N * C, H), N, C * H),
        reshape(CUBE, N, C * H),
        Kind.VALID,
        at_least(1, N, C, H),
    ),
    TensorRule(
        "reshape back",
        "reshape(reshape(x, flat), shape of x) = x",
        reshape(reshape(IMAGE, N * C * H * W), N, C, H, W),
        IMAGE,
        Kind.VALID,
        FULL,
    ),
    TensorRule(
        "an axis of size 1 through reshape",
        "reshape(x, [n, 1, c]) = broadcast of x along the new axis",
        reshape(MATRIX, N, 1, C),
        broadcast(MATRIX, [N, 1, C], [0, 2]),
        Kind.VALID,
        at_least(1, C),
    ),
    TensorRule(
        "transpose through a reshape that keeps blocks",
        "reshape(transpose(x, 1, 0, 2), [c, n h]) = transpose of blocks",
        reshape(transpose(reshape(input_("x", N, C * H), N, C, H), [1, 0, 2]), C, N, H),
        transpose(reshape(input_("x", N, C * H), N, C, H), [1, 0, 2]),
        Kind.VALID,
        at_least(1, N, C, H),
    ),
    TensorRule(
        "slice of a transpose",
        "transpose(x)[q:t] = transpose(x[:, q:t])",
        slice_(transpose(MATRIX, [1, 0]), [Q, 0], [T, N], [S, 1]),
        transpose(slice_(MATRIX, [0, Q], [N, T], [1, S]), [1, 0]),
        Kind.VALID,
    ),
    TensorRule(
        "slice of a slice",
        "x[p:][q:t:s] = x[p+q:p+t:s]",
        slice_(slice_(VECTOR, [P], [N]), [Q], [T], [S]),
        slice_(VECTOR, [P + Q], [P + T], [S]),
        Kind.VALID,
    ),
    TensorRule(
        "strides of slices multiply",
        "x[::s][::t] = x[::s t]",
        slice_(slice_(VECTOR, [0], [N], [S]), [0], [(N + S - 1) // S], [T]),
        slice_(VECTOR, [0], [N], [S * T]),
        Kind.VALID,
    ),
    TensorRule(
        "pad of a transpose",
        "pad(transpose(x), p, q) = transpose(pad(x, q, p))",
        pad(transpose(MATRIX, [1, 0]), [P, 0], [0, Q]),
        transpose(pad(MATRIX, [0, P], [Q, 0]), [1, 0]),
        Kind.VALID,
    ),
    TensorRule(
        "pads of one value merge",
        "pad(pad(x, p, v), q, v) = pad(x, p + q, v)",
        pad(pad(VECTOR, [P], [S], input_("v")), [Q], [T], input_("v")),
        pad(VECTOR, [P + Q], [S + T], input_("v")),
        Kind.VALID,
    ),
    TensorRule(
        "slice undoes pad",
        "pad(x, p, q)[p:p+n] = x",
        slice_(pad(VECTOR, [P], [Q]), [P], [P + N]),
        VECTOR,
        Kind.VALID,
    ),
    TensorRule(
        "slice of a pad inside the pad",
        "pad(x, p)[q:] = pad(x, p - q) for q <= p",
        slice_(pad(VECTOR, [P], [0]), [Q], [P + N]),
        pad(VECTOR, [P - Q], [0]),
        Kind.VALID,
        le(Q, P),
    ),
    TensorRule(
        "slice of a pad beyond the pad",
        "pad(x, p)[q:] = x[q-p:] for q >= p",
        slice_(pad(VECTOR, [P], [0]), [Q], [P + N]),
        slice_(VECTOR, [Q - P], [N]),
        Kind.VALID,
        le(P, Q),
    ),
    TensorRule(
        "pad as concat",
        "pad(x, p, q) = concat(zeros, x, zeros)",
        pad(VECTOR, [P], [Q]),
        concat(0, fill(0, P), VECTOR, fill(0, Q)),
        Kind.VALID,
    ),
    TensorRule(
        "concat of neighbouring slices",
        "concat(x[:q], x[q:]) = x",
        concat(1, slice_(MATRIX, [0, 0], [N, Q]), slice_(MATRIX, [0, Q], [N, C])),
        MATRIX,
        Kind.VALID,
        le(Q, C),
    ),
    TensorRule(
        "slice of concat in the first part",
        "concat(x, y)[:q] = x[:q]",
        slice_(concat(0, VECTOR, input_("y", T)), [0], [Q]),
        slice_(VECTOR, [0], [Q]),
        Kind.VALID,
        le(Q, N),
    ),
    TensorRule(
        "slice of concat in the second part",
        "concat(x, y)[n:] = y",
        slice_(concat(0, VECTOR, input_("y", T)), [N], [N + T]),
        input_("y", T),
        Kind.VALID,
    ),
    TensorRule(
        "concat associates",
        "concat(concat(x, y), z) = concat(x, concat(y, z))",
        concat(0, concat(0, VECTOR, input_("y", T)), input_("z", K)),
        concat(0, VECTOR, concat(0, input_("y", T), input_("z", K))),
        Kind.VALID,
    ),
    TensorRule(
        "transpose of concat",
        "transpose(concat(x, y; columns)) = concat(transpose(x), transpose(y); rows)",
        transpose(concat(1, MATRIX, OTHER), [1, 0]),
        concat(0, transpose(MATRIX, [1, 0]), transpose(OTHER, [1, 0])),
        Kind.VALID,
    ),
    TensorRule(
        "reverse of concat",
        "reverse(concat(x, y)) = concat(reverse(y), reverse(x))",
        reverse(concat(1, MATRIX, OTHER), 1),
        concat(1, reverse(OTHER, 1), reverse(MATRIX, 1)),
        Kind.VALID,
    ),
    TensorRule(
        "flatten of concat along the first axis",
        "reshape(concat(x, y; rows), flat) = concat(reshape(x, flat), reshape(y, flat))",
        reshape(concat(0, MATRIX, input_("y", Q, C)), (N + Q) * C),
        concat(0, reshape(MATRIX, N * C), reshape(input_("y", Q, C), Q * C)),
        Kind.VALID,
        at_least(1, C),
    ),
    TensorRule(
        "element-wise of concat",
        "concat(x, y) + concat(z, v) = concat(x + z, y + v)",
        add(concat(1, MATRIX, OTHER), concat(1, input_("z", N, C), input_("v", N, Q))),
        concat(1, add(MATRIX, input_("z", N, C)), add(OTHER, input_("v", N, Q))),
        Kind.VALID,
    ),
    TensorRule(
        "element-wise of transpose",
        "transpose(x) + transpose(y) = transpose(x + y)",
        add(transpose(MATRIX, [1, 0]), transpose(input_("y", N, C), [1, 0])),
        transpose(add(MATRIX, input_("y", N, C)), [1, 0]),
        Kind.VALID,
    ),
    TensorRule(
        "relu of a reshape",
        "relu(reshape(x)) = reshape(relu(x))",
        relu(reshape(CUBE, N, C * H)),
        reshape(relu(CUBE), N, C * H),
        Kind.VALID,
        at_least(1, N, C, H),
    ),
    TensorRule(
        "relu of a slice",
        "relu(x[q:t:s]) = relu(x)[q:t:s]",
        relu(slice_(VECTOR, [Q], [T], [S])),
        slice_(relu(VECTOR), [Q], [T], [S]),
        Kind.VALID,
    ),
    TensorRule(
        "relu of a pad with zeros",
        "relu(pad(x, 0)) = pad(relu(x), 0)",
        relu(pad(VECTOR, [P], [Q])),
        pad(relu(VECTOR), [P], [Q]),
        Kind.VALID,
    ),
    TensorRule(
        "relu twice",
        "relu(relu(x)) = relu(x)",
        relu(relu(MATRIX)),
        relu(MATRIX),
        Kind.VALID,
    ),
    TensorRule(
        "maximum commutes and is idempotent",
        "maximum(x, maximum(y, x)) = maximum(x, y)",
        largest(MATRIX, largest(input_("y", N, C), MATRIX)),
        largest(MATRIX, input_("y", N, C)),
        Kind.VALID,
    ),
    TensorRule(
        "subsampling undoes upsampling",
        "upsample(x, s)[::s] = x",
        slice_(upsample(VECTOR, [S]), [0], [N * S], [S]),
        VECTOR,
        Kind.VALID,
    ),
    TensorRule(
        "upsampling twice",
        "upsample(upsample(x, s), t) = upsample(x, s t)",
        upsample(upsample(VECTOR, [S]), [T]),
        upsample(VECTOR, [S * T]),
        Kind.VALID,
    ),
    TensorRule(
        "upsampling as broadcast and reshape",
        "upsample(x, s) = reshape(broadcast(x, [n, s]), n s)",
        upsample(VECTOR, [S]),
        reshape(broadcast(VECTOR, [N, S], [0]), N * S),
        Kind.VALID,
        at_least(1, N),
    ),
    TensorRule(
        "reverse of a slice",
        "reverse(x)[q:t] = reverse(x[n-t:n-q])",
        slice_(reverse(VECTOR, 0), [Q], [T]),
        reverse(slice_(VECTOR, [N - T], [N - Q]), 0),
        Kind.VALID,
    ),
    TensorRule(
        "transpose of a broadcast",
        "transpose(broadcast(x, rows)) = broadcast(x, columns)",
        transpose(broadcast(VECTOR, [C, N], [1]), [1, 0]),
        broadcast(VECTOR, [N, C], [0]),
        Kind.VALID,
    ),
    TensorRule(
        "space to depth and back",
        "reshape, transpose, reshape of blocks of t undone",
        _to_space(_to_depth(input_("x", N * T, C * T))),
        input_("x", N * T, C * T),
        Kind.VALID,
        at_least(1, N, C, T),
    ),
    TensorRule(
        "choice between equals",
        "where(i < q, x, x) = x",
        where(lambda i: lt(i, Q), VECTOR, VECTOR),
        VECTOR,
        Kind.VALID,
    ),
    TensorRule(
        "choice at a position as concat",
        "where(i < q, x, y) = concat(x[:q], y[q:])",
        where(lambda i: lt(i, Q), VECTOR, input_("y", N)),
        concat(0, slice_(VECTOR, [0], [Q]), slice_(input_("y", N), [Q], [N])),
        Kind.VALID,
        le(Q, N),
    ),
]

RULES = (*_WRONG, *_REPAIRED, *_VALID)
"""All rules of this module."""
