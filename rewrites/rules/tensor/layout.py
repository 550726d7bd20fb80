"""Rules on data movement: reshape, transpose, slice, pad, concat, reverse; wrong ones, repairs and valid ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from chc.tensor_rules.rule import TensorRule
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

from .inputs import first, rest
from .words import add, at_least, largest, relu, repaired, sizes, wrong

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
    wrong(
        "reshape of a transpose as a reshape",
        reshape(transpose(MATRIX, [1, 0]), C * N),
        reshape(MATRIX, C * N),
        at_least(1, N, C),
        row="L9",
    ),
    wrong(
        "permutation (0, 2, 3, 1) as exchange of the last two axes",
        transpose(IMAGE, [0, 2, 3, 1]),
        transpose(IMAGE, [0, 1, 3, 2]),
        FULL,
        row="L13",
    ),
    wrong(
        "permutation (0, 2, 3, 1) as exchange of the last two axes, all of one size",
        transpose(input_("x", N, C, C, C), [0, 2, 3, 1]),
        transpose(input_("x", N, C, C, C), [0, 1, 3, 2]),
        row="L13",
        note="shapes agree here, and the data are wrong",
    ),
    wrong("odd elements twice from 2", _odds(_odds(VECTOR)), slice_(VECTOR, [2], [N], [4]), le(4, N), row="L15"),
    wrong(
        "transpose before a reshape dropped",
        reshape(transpose(CUBE, [0, 2, 1]), N, H * C),
        reshape(CUBE, N, H * C),
        at_least(1, N, C, H),
        row="L33",
    ),
    wrong(
        "transposes compose as q[p]",
        transpose(transpose(CUBE, [1, 2, 0]), [0, 2, 1]),
        transpose(CUBE, [2, 1, 0]),
        at_least(1, N, C, H),
    ),
    wrong("concat commutes", concat(1, MATRIX, OTHER), concat(1, OTHER, MATRIX), at_least(1, N)),
    wrong(
        "reverse of concat without exchange",
        reverse(concat(1, MATRIX, OTHER), 1),
        concat(1, reverse(MATRIX, 1), reverse(OTHER, 1)),
        at_least(1, N),
    ),
    wrong("pads of two values merge", pad(pad(VECTOR, [P], [0], 1), [Q], [0], 0), pad(VECTOR, [P + Q], [0], 0)),
    wrong(
        "slice of a pad as the pad of a smaller amount",
        slice_(pad(VECTOR, [P], [0]), [Q], [P + N]),
        pad(VECTOR, [P - Q], [0]),
    ),
    wrong(
        "every s-th element of the reverse as the reverse of every s-th",
        slice_(reverse(VECTOR, 0), [0], [N], [S]),
        reverse(slice_(VECTOR, [0], [N], [S]), 0),
        at_least(1, N),
    ),
    wrong(
        "reshape of concat along the second axis",
        reshape(concat(1, MATRIX, OTHER), N * (C + Q)),
        concat(0, reshape(MATRIX, N * C), reshape(OTHER, N * Q)),
        at_least(1, N, C, Q),
    ),
    wrong("relu before a pad with a negative value", relu(pad(VECTOR, [P], [P], -1)), pad(relu(VECTOR), [P], [P], -1)),
    wrong(
        "two reshapes through a transpose cancel",
        reshape(reshape(input_("x", N, N), N * N), N, N),
        transpose(input_("x", N, N), [1, 0]),
        at_least(1, N),
    ),
    wrong("upsampling by tiling", upsample(VECTOR, [2]), concat(0, VECTOR, VECTOR)),
]

_REPAIRED = [
    repaired(
        "odd elements twice",
        _odds(_odds(VECTOR)),
        slice_(VECTOR, [3], [N], [4]),
        le(3, N),
        row="L15",
        note="also the valid control; x[1::2] of fewer than 3 elements has no element number 1",
    ),
    repaired(
        "reshape of a transpose of one row",
        reshape(transpose(input_("x", 1, C), [1, 0]), C),
        reshape(input_("x", 1, C), C),
        at_least(1, C),
        row="L9",
        note="an axis of size 1 may move anywhere",
    ),
    repaired(
        "permutation (0, 2, 3, 1) as two exchanges",
        transpose(IMAGE, [0, 2, 3, 1]),
        transpose(transpose(IMAGE, [0, 2, 1, 3]), [0, 1, 3, 2]),
        row="L13",
    ),
    repaired(
        "transpose of an axis of size 1 before a reshape",
        reshape(transpose(input_("x", N, 1, H), [0, 2, 1]), N, H),
        reshape(input_("x", N, 1, H), N, H),
        at_least(1, N, H),
        row="L33",
    ),
]


def composition(p: Sequence[int], q: Sequence[int]) -> TensorRule:
    """transpose(transpose(x, p), q) = transpose(x, p[q]) for two permutations of a rank."""
    x = input_("x", *sizes("a b c d e")[: len(p)])
    composed = [p[j] for j in q]
    return TensorRule(
        f"transposes {tuple(p)} and {tuple(q)}", transpose(transpose(x, p), q), transpose(x, composed), row="6.9"
    )


def compositions(rank: int) -> list[TensorRule]:
    """That rule for all permutations of a rank."""
    return [composition(p, q) for p, q in itertools.product(itertools.permutations(range(rank)), repeat=2)]


_VALID = [
    *compositions(2),
    *(composition((0, 2, 1), q) for q in ((1, 0, 2), (1, 2, 0), (2, 0, 1))),
    composition((0, 2, 3, 1), (0, 3, 1, 2)),
    TensorRule("reverse twice", reverse(reverse(MATRIX, 1), 1), MATRIX),
    TensorRule(
        "reshape twice", reshape(reshape(CUBE, N * C, H), N, C * H), reshape(CUBE, N, C * H), at_least(1, N, C, H)
    ),
    TensorRule("reshape back", reshape(reshape(IMAGE, N * C * H * W), N, C, H, W), IMAGE, FULL),
    TensorRule(
        "an axis of size 1 through reshape",
        reshape(MATRIX, N, 1, C),
        broadcast(MATRIX, [N, 1, C], [0, 2]),
        at_least(1, C),
    ),
    TensorRule(
        "transpose through a reshape that keeps blocks",
        reshape(transpose(reshape(input_("x", N, C * H), N, C, H), [1, 0, 2]), C, N, H),
        transpose(reshape(input_("x", N, C * H), N, C, H), [1, 0, 2]),
        at_least(1, N, C, H),
    ),
    TensorRule(
        "slice of a transpose",
        slice_(transpose(MATRIX, [1, 0]), [Q, 0], [T, N], [S, 1]),
        transpose(slice_(MATRIX, [0, Q], [N, T], [1, S]), [1, 0]),
    ),
    TensorRule(
        "slice of a slice", slice_(slice_(VECTOR, [P], [N]), [Q], [T], [S]), slice_(VECTOR, [P + Q], [P + T], [S])
    ),
    TensorRule(
        "strides of slices multiply",
        slice_(slice_(VECTOR, [0], [N], [S]), [0], [(N + S - 1) // S], [T]),
        slice_(VECTOR, [0], [N], [S * T]),
    ),
    TensorRule(
        "pad of a transpose",
        pad(transpose(MATRIX, [1, 0]), [P, 0], [0, Q]),
        transpose(pad(MATRIX, [0, P], [Q, 0]), [1, 0]),
    ),
    TensorRule(
        "pads of one value merge",
        pad(pad(VECTOR, [P], [S], input_("v")), [Q], [T], input_("v")),
        pad(VECTOR, [P + Q], [S + T], input_("v")),
    ),
    TensorRule("slice undoes pad", slice_(pad(VECTOR, [P], [Q]), [P], [P + N]), VECTOR),
    TensorRule(
        "slice of a pad inside the pad",
        slice_(pad(VECTOR, [P], [0]), [Q], [P + N]),
        pad(VECTOR, [P - Q], [0]),
        le(Q, P),
    ),
    TensorRule(
        "slice of a pad beyond the pad",
        slice_(pad(VECTOR, [P], [0]), [Q], [P + N]),
        slice_(VECTOR, [Q - P], [N]),
        le(P, Q),
    ),
    TensorRule("pad as concat", pad(VECTOR, [P], [Q]), concat(0, fill(0, P), VECTOR, fill(0, Q))),
    TensorRule("concat of neighbouring slices", concat(1, first(MATRIX, Q, 1), rest(MATRIX, Q, 1)), MATRIX, le(Q, C)),
    TensorRule(
        "slice of concat in the first part", first(concat(0, VECTOR, input_("y", T)), Q), first(VECTOR, Q), le(Q, N)
    ),
    TensorRule("slice of concat in the second part", rest(concat(0, VECTOR, input_("y", T)), N), input_("y", T)),
    TensorRule(
        "concat associates",
        concat(0, concat(0, VECTOR, input_("y", T)), input_("z", K)),
        concat(0, VECTOR, concat(0, input_("y", T), input_("z", K))),
    ),
    TensorRule(
        "transpose of concat",
        transpose(concat(1, MATRIX, OTHER), [1, 0]),
        concat(0, transpose(MATRIX, [1, 0]), transpose(OTHER, [1, 0])),
    ),
    TensorRule(
        "reverse of concat", reverse(concat(1, MATRIX, OTHER), 1), concat(1, reverse(OTHER, 1), reverse(MATRIX, 1))
    ),
    TensorRule(
        "flatten of concat along the first axis",
        reshape(concat(0, MATRIX, input_("y", Q, C)), (N + Q) * C),
        concat(0, reshape(MATRIX, N * C), reshape(input_("y", Q, C), Q * C)),
        at_least(1, C),
    ),
    TensorRule(
        "element-wise of concat",
        add(concat(1, MATRIX, OTHER), concat(1, input_("z", N, C), input_("v", N, Q))),
        concat(1, add(MATRIX, input_("z", N, C)), add(OTHER, input_("v", N, Q))),
    ),
    TensorRule(
        "element-wise of transpose",
        add(transpose(MATRIX, [1, 0]), transpose(input_("y", N, C), [1, 0])),
        transpose(add(MATRIX, input_("y", N, C)), [1, 0]),
    ),
    TensorRule("relu of a reshape", relu(reshape(CUBE, N, C * H)), reshape(relu(CUBE), N, C * H), at_least(1, N, C, H)),
    TensorRule("relu of a slice", relu(slice_(VECTOR, [Q], [T], [S])), slice_(relu(VECTOR), [Q], [T], [S])),
    TensorRule("relu of a pad with zeros", relu(pad(VECTOR, [P], [Q])), pad(relu(VECTOR), [P], [Q])),
    TensorRule("relu twice", relu(relu(MATRIX)), relu(MATRIX)),
    TensorRule(
        "maximum commutes and is idempotent",
        largest(MATRIX, largest(input_("y", N, C), MATRIX)),
        largest(MATRIX, input_("y", N, C)),
    ),
    TensorRule("subsampling undoes upsampling", slice_(upsample(VECTOR, [S]), [0], [N * S], [S]), VECTOR),
    TensorRule("upsampling twice", upsample(upsample(VECTOR, [S]), [T]), upsample(VECTOR, [S * T])),
    TensorRule(
        "upsampling as broadcast and reshape",
        upsample(VECTOR, [S]),
        reshape(broadcast(VECTOR, [N, S], [0]), N * S),
        at_least(1, N),
    ),
    TensorRule(
        "reverse of a slice", slice_(reverse(VECTOR, 0), [Q], [T]), reverse(slice_(VECTOR, [N - T], [N - Q]), 0)
    ),
    TensorRule(
        "transpose of a broadcast", transpose(broadcast(VECTOR, [C, N], [1]), [1, 0]), broadcast(VECTOR, [N, C], [0])
    ),
    TensorRule(
        "space to depth and back",
        _to_space(_to_depth(input_("x", N * T, C * T))),
        input_("x", N * T, C * T),
        at_least(1, N, C, T),
    ),
    TensorRule("choice between equals", where(lambda i: lt(i, Q), VECTOR, VECTOR), VECTOR),
    TensorRule(
        "choice at a position as concat",
        where(lambda i: lt(i, Q), VECTOR, input_("y", N)),
        concat(0, first(VECTOR, Q), rest(input_("y", N), Q)),
        le(Q, N),
    ),
]

RULES = (*_WRONG, *_REPAIRED, *_VALID)
"""All rules of this module."""
