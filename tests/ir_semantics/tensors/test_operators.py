"""Operators on tensors against NumPy, on exact integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ir_semantics.scalars.formats import REALS
from ir_semantics.scalars.terms import cast, exp, maximum, variable
from ir_semantics.tensors.conditions import TruthOf, lt
from ir_semantics.tensors.elements import Number
from ir_semantics.tensors.evaluate import IllFormed, evaluate, shape_at
from ir_semantics.tensors.index import Index, Names, index, size
from ir_semantics.tensors.operators import (
    broadcast,
    concat,
    fill,
    map_,
    number,
    pad,
    reshape,
    reverse,
    slice_,
    transpose,
    upsample,
    where,
)
from ir_semantics.tensors.reductions import (
    avg_pool,
    conv,
    cumsum,
    dot,
    matmul,
    max_pool,
    mean,
    patches,
    reduce,
    softmax,
)
from ir_semantics.tensors.terms import Tensor, input_, make
from tests.ir_semantics.tensors.floats import Floats

A, B, C, D = map(size, "abcd")
SMALL = st.integers(1, 4)
SEEDS = st.integers(0, 10_000)


def integers(seed: int, *shape: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(-5, 6, shape)


def run(tensor: Tensor, sizes: dict[str, int], **inputs: NDArray[Any]) -> NDArray[Any]:
    exact = {name: np.vectorize(Fraction, otypes=[object])(a) if a.size else a for name, a in inputs.items()}
    result = evaluate(tensor, sizes, exact)
    assert result.shape == shape_at(tensor, sizes)
    return result


def same(left: Any, right: Any) -> None:
    left, right = np.asarray(left), np.asarray(right)
    assert left.shape == right.shape
    assert (left == right).all()


@settings(max_examples=25, deadline=None)
@given(SMALL, SMALL, SMALL, SEEDS)
def test_movement(a: int, b: int, c: int, seed: int) -> None:
    sizes, x = {"a": a, "b": b, "c": c}, integers(seed, a, b, c)
    t = input_("x", A, B, C)
    for p in itertools.permutations(range(3)):
        same(run(transpose(t, p), sizes, x=x), x.transpose(p))
    same(run(reshape(t, A * B, C), sizes, x=x), x.reshape(a * b, c))
    same(run(reshape(t, C, A, B), sizes, x=x), x.reshape(c, a, b))
    same(run(reverse(t, 0, 2), sizes, x=x), x[::-1, :, ::-1])
    same(run(upsample(t, [1, 2, C]), sizes, x=x), x.repeat(2, 1).repeat(c, 2))
    same(run(broadcast(t, [A, 2, B, C], [0, 2, 3]), sizes, x=x), np.broadcast_to(x[:, None], (a, 2, b, c)))
    same(run(concat(1, t, reverse(t, 1), t), sizes, x=x), np.concatenate([x, x[:, ::-1], x], 1))
    same(run(pad(t, [A, 0, 1], [0, B, 2], 7), sizes, x=x), np.pad(x, ((a, 0), (0, b), (1, 2)), constant_values=7))
    same(
        run(pad(t, [1, 0, 0], [0, 0, 0], input_("v")), sizes, x=x, v=np.array(3)),
        np.pad(x, ((1, 0), (0, 0), (0, 0)), constant_values=3),
    )
    masked = np.where(np.arange(b)[None, :, None] < c, x, 0)
    same(run(where(lambda i, j, k: lt(j, C), t, fill(0, A, B, C)), sizes, x=x), masked)


@given(st.integers(0, 7), st.integers(0, 7), st.integers(0, 7), st.integers(1, 4), SEEDS)
def test_slices(n: int, start: int, stop: int, stride: int, seed: int) -> None:
    tensor = slice_(input_("x", A), [B], [C], [D])
    sizes, x = {"a": n, "b": start, "c": stop, "d": stride}, integers(seed, n)
    if start <= stop <= n:
        same(run(tensor, sizes, x=x), x[start:stop:stride])
    else:
        with pytest.raises(IllFormed, match="slice needs"):
            run(tensor, sizes, x=x)


@settings(max_examples=25, deadline=None)
@given(SMALL, SMALL, SMALL, SEEDS)
def test_reductions(a: int, b: int, c: int, seed: int) -> None:
    sizes, x, y = {"a": a, "b": b, "c": c}, integers(seed, a, b, c), integers(seed + 1, a, c, b)
    t = input_("x", A, B, C)
    for axes in ([0], [1, 2], [2, 0], [0, 1, 2]):
        same(run(reduce("sum", t, axes), sizes, x=x), x.sum(tuple(axes)))
        same(run(reduce("max", t, axes), sizes, x=x), x.max(tuple(axes)))
        same(run(reduce("min", t, axes, initial=1), sizes, x=x), np.minimum(x.min(tuple(axes)), 1))
        count = int(np.prod([x.shape[i] for i in axes]))
        same(run(mean(t, axes), sizes, x=x) * count, x.sum(tuple(axes)))
    same(run(cumsum(t, 1), sizes, x=x), x.cumsum(1))
    same(run(matmul(t, input_("y", A, C, B)), sizes, x=x, y=y), x @ y)
    same(run(dot(input_("x", B, C), input_("y", C)), sizes, x=x[0], y=y[0, :, 0]), x[0] @ y[0, :, 0])
    term = maximum(variable("p") * 2, variable("q") - 1)
    same(run(map_(term, p=t, q=t), sizes, x=x), np.maximum(2 * x, x - 1))
    same(run(number(A * B), sizes), np.array(a * b))


def padded(x: NDArray[Any], pads: Sequence[tuple[int, int]], value: float = 0) -> NDArray[Any]:
    return np.pad(x.astype(float), [(0, 0), (0, 0), *pads], constant_values=value)


def windows(x: NDArray[Any], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> NDArray[Any]:
    """[n, c, outputs ..., taps ...], by NumPy's sliding windows."""
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, spans, (2, 3))
    return view[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 2), st.integers(1, 2), st.integers(1, 5), st.integers(1, 5), st.data())
def test_windows(n: int, c: int, h: int, w: int, data: st.DataObject) -> None:
    pads = [(data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in range(2)]
    kernel = [data.draw(st.integers(1, min(3, d + b + a))) for d, (b, a) in zip((h, w), pads, strict=True)]
    strides = [data.draw(st.integers(1, 3)) for _ in range(2)]
    x = integers(data.draw(SEEDS), n, c, h, w)
    t = input_("x", n, c, h, w)
    shared: dict[str, Any] = {"strides": strides, "pads": pads}
    taps = windows(padded(x, pads), kernel, strides, (1, 1))
    there = windows(padded(np.ones_like(x), pads), kernel, strides, (1, 1))
    same(run(patches(t, kernel, **shared), {}, x=x), taps.transpose(0, 1, 4, 5, 2, 3))
    lowest = windows(padded(x, pads, float("-inf")), kernel, strides, (1, 1)).max((4, 5))
    same(run(max_pool(t, kernel, **shared), {}, x=x).astype(float), lowest)
    same(run(max_pool(t, kernel, **shared, outside=0), {}, x=x), taps.max((4, 5)))
    count = kernel[0] * kernel[1]
    same(run(avg_pool(t, kernel, **shared, count_include_pad=True), {}, x=x) * count, taps.sum((4, 5)))
    if there.sum((4, 5)).all():
        counts = there.sum((4, 5)).astype(int)
        same(run(avg_pool(t, kernel, **shared), {}, x=x) * counts, taps.sum((4, 5)))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.sampled_from([1, 2]), st.data())
def test_convolution(n: int, c: int, o: int, groups: int, data: st.DataObject) -> None:
    h, w = data.draw(st.integers(3, 6)), data.draw(st.integers(3, 6))
    pads = [(data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in range(2)]
    kernel = [data.draw(st.integers(1, 2)) for _ in range(2)]
    strides = [data.draw(st.integers(1, 3)) for _ in range(2)]
    dilations = [data.draw(st.integers(1, 2)) for _ in range(2)]
    seed = data.draw(SEEDS)
    x, k = integers(seed, n, groups * c, h, w), integers(seed + 1, groups * o, c, *kernel)
    tensor = conv(
        input_("x", n, groups * c, h, w),
        input_("k", groups * o, c, *kernel),
        strides=strides,
        pads=pads,
        dilations=dilations,
        groups=groups,
    )
    parts = []
    for g in range(groups):
        taps = windows(padded(x[:, g * c : (g + 1) * c], pads), kernel, strides, dilations)
        parts.append(np.einsum("nchwpq,ocpq->nohw", taps, k[g * o : (g + 1) * o]))
    same(run(tensor, {}, x=x, k=k), np.concatenate(parts, 1))
    flipped = conv(input_("x", n, groups * c, h, w), input_("k", o, groups * c, *kernel), correlate=False)
    weights = integers(seed + 2, o, groups * c, *kernel)
    taps = windows(x, kernel, (1, 1), (1, 1))
    same(run(flipped, {}, x=x, k=weights), np.einsum("nchwpq,ocpq->nohw", taps, weights[:, :, ::-1, ::-1]))


def test_softmax_in_floats_and_exactly() -> None:
    x = np.array([[0.5, -1.0, 2.0], [0.0, 0.0, 0.0]])
    expected = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    tensor = softmax(input_("x", 2, 3), 1)
    floats = evaluate(tensor, {}, {"x": x.astype(object)}, Floats()).astype(float)
    assert np.allclose(floats, expected, rtol=1e-14, atol=0)
    exact = run(tensor, {}, x=x)
    middles = np.vectorize(lambda e: float((e.low + e.high) / 2) if hasattr(e, "low") else float(e))(exact)
    assert np.allclose(middles, expected, rtol=1e-14, atol=0)


def test_masks() -> None:
    tensor = where(lambda i: TruthOf("m", (i,)), input_("x", A), fill(float("-inf"), A))
    x = np.array([Fraction(1), Fraction(2)], dtype=object)
    result = evaluate(tensor, {"a": 2}, {"x": x, "m": np.array([False, True], dtype=object)})
    assert list(result) == [float("-inf"), 2]


def test_empty_reductions_are_units() -> None:
    empty = np.empty((0,), dtype=object)
    for op, unit in (("sum", 0), ("max", float("-inf")), ("min", float("inf"))):
        assert evaluate(reduce(op, input_("x", A), [0]), {"a": 0}, {"x": empty}).item() == unit


def test_reads_outside_a_tensor_are_no_elements() -> None:
    x = input_("x", A)
    wild = Tensor("test.wild", (x,), (), x.shape, x.requires, lambda at, of, names: of[0]([at[0] - 1]))
    with pytest.raises(IndexError, match=r"operand 0 of test.wild has the shape \(2,\) and is read at \(-1,\)"):
        evaluate(wild, {"a": 2}, {"x": np.array([1, 2], dtype=object)})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: reverse(x, -1), "the axes of reverse of x must be different numbers from 0 to 1, not -1"),
        (lambda x: reverse(x, "0"), "the axes of reverse of x must be different numbers from 0 to 1, not '0'"),
        (lambda x: reverse(x, 0, 0), "the axes of reverse of x must be different numbers from 0 to 1, not 0, 0"),
        (lambda x: cumsum(x, 2), "the axes of cumsum of x must be different numbers from 0 to 1, not 2"),
        (lambda x: softmax(x, -1), "the axes of softmax of x must be different numbers from 0 to 1, not -1"),
        (lambda x: reduce("sum", x, [2]), "the axes of the sum of x must be different numbers from 0 to 1, not 2"),
        (lambda x: concat(2, x, x), "the axes of concat of x must be different numbers from 0 to 1, not 2"),
        (lambda x: reduce("max", reduce("max", x, [0, 1]), [0]), "the axes of the max of max(x, axes=[0, 1]) must be "),
        (
            lambda x: where(lambda i, j: lt(i, size("i1")), x, x),
            "the size i1 must have another name: that of a subscript in this choice; rename it",
        ),
    ],
)
def test_axes_and_subscripts_are_those_of_the_operand(build: Callable[[Tensor], Tensor], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        build(input_("x", A, B))
    assert str(caught.value).startswith(message)


def test_bad_input_is_named() -> None:
    x, y = input_("x", A, B), input_("y", A)
    with pytest.raises(ValueError, match=r"a permutation of 2 axes must have each axis once, not \[0, 0\]"):
        transpose(x, [0, 0])
    with pytest.raises(ValueError, match="matmul must be given tensors of one rank of at least 2, not 2 and 1"):
        matmul(x, y)
    with pytest.raises(ValueError, match=r"the operands of x \+ z must be named \['x', 'z'\], not \['x'\]"):
        map_(variable("x") + variable("z"), x=x)
    with pytest.raises(ValueError, match="windows must be given a size, a stride"):
        max_pool(input_("x", 1, 1, 4), [2, 2])
    with pytest.raises(ValueError, match=r"the input x must have the shape \(2, 3\) at these sizes, not \(3, 2\)"):
        evaluate(x, {"a": 2, "b": 3}, {"x": np.zeros((3, 2), dtype=object)})
    with pytest.raises(ValueError, match="slice must be given one number for each of the 2 axes of x, not 1"):
        slice_(x, [0], [1])


def test_terms_are_shown_as_people_write_them() -> None:
    x, v, s = input_("x", A, B), input_("v", A), input_("s")

    def minus(x: Tensor, y: Tensor) -> Tensor:
        return map_(variable("x") - variable("y"), x=x, y=y)

    powers = map_(exp(variable("x")), x=x)
    column = broadcast(v, [A, B], [0])
    shown = {
        "pad(transpose(x), before=[0, 1], after=[a, 0])": pad(transpose(x, [1, 0]), [0, 1], [A, 0]),
        "pad(x, [1, b], value=s)": pad(x, [1, B], [1, B], s),
        "x[1:, ::2]": slice_(x, [1, 0], [A, B], [1, 2]),
        "(x - v[:, None])[1:]": slice_(minus(x, column), [1, 0], [A, B]),
        "x - (x - s)": minus(x, minus(x, broadcast(s, [A, B], []))),
        "x - (-1)": minus(x, fill(-1, A, B)),
        "broadcast(v, [a, b], axes=[0]) - fill(1, [a, b])": minus(column, fill(1, A, B)),
        "(x @ transpose(x)) @ x": matmul(matmul(x, transpose(x, [1, 0])), x),
        "x @ transpose(x - 1)": matmul(x, transpose(minus(x, fill(1, A, B)), [1, 0])),
        "softmax(x, axis=1)": softmax(x, 1),
        "exp(x) - sum(exp(x), axes=[1])[:, None]": minus(powers, broadcast(reduce("sum", powers, [1]), [A, B], [0])),
        "max(x, axes=[0], initial=0)": reduce("max", x, [0], 0),
    }
    assert [*map(str, shown.values())] == [*shown]
    assert reshape(x, A * B).shape == (Index({("a", "b"): 1}),)
    assert index(3) == Index({(): 3})


def test_casts_are_no_element_wise_operators() -> None:
    x = input_("x", A)
    with pytest.raises(
        ValueError, match="elements of tensors have one format, so cast from number to the reals cannot"
    ):
        map_(cast(variable("x"), REALS), x=x).rule([index(0)], [lambda at: Number(Fraction(0))], Names())
    with pytest.raises(ValueError, match="elements of tensors have one format"):
        map_(variable("x", REALS) + 1, x=x).rule([index(0)], [lambda at: Number(Fraction(0))], Names())


def test_operators_of_others_are_not_called_as_ours() -> None:
    """A term called transpose that is the identity was printed, proved and compiled as the transpose."""
    n = size("n")
    x = input_("x", n, n)
    with pytest.raises(ValueError) as refused:
        make("transpose", (x,), (n, n), lambda at, of, names: of[0](at), permutation=[1, 0])
    assert str(refused.value) == (
        f"an operator of the module {__name__} must have a name with a dot, such as {__name__}.transpose; transpose "
        "without one is of ilaverify"
    )


@pytest.mark.parametrize("name", ["x + y", "0", "", "transpose(x)", "x.y"])
def test_inputs_have_names(name: str) -> None:
    with pytest.raises(ValueError, match="a variable's name must be of letters, digits and '_', not "):
        input_(name, 3)
