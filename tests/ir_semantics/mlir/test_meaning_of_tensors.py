"""The meaning of tensor, linalg and TOSA, against NumPy, which shares no code with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from ir_semantics.mlir.semantics.program import Reading

from .mlir_text import constant, function, generic, op
from .running import UB, UNDEFINED, agrees, run, same

RANDOM = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.integers(-8, 9, shape).astype(np.float32) / np.float32(3)


def test_slices() -> None:
    attributes = (
        "static_offsets = array<i64: 1, -9223372036854775808>, static_sizes = array<i64: 2, 1>, "
        "static_strides = array<i64: 2, 3>, operandSegmentSizes = array<i32: 1, 1, 0, 0>"
    )
    cut = op("tensor.extract_slice", "%a, %o", "(tensor<5x7xf32>, index) -> tensor<2xf32>", attributes)
    program = function("%a: tensor<5x7xf32>, %o: index", "tensor<2xf32>", f"%0 = {cut}", "%0")
    a = floats(5, 7)
    for offset in range(-1, 8):
        expected = [UB] if not 0 <= offset < 7 else [a[1:5:2, offset].tolist()]
        assert run(program, a, offset) == expected


def test_slices_that_are_put_in() -> None:
    attributes = (
        "static_offsets = array<i64: 1, 0>, static_sizes = array<i64: 2, 3>, static_strides = array<i64: 2, 2>, "
        "operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>"
    )
    put = op("tensor.insert_slice", "%a, %b", "(tensor<2x3xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>", attributes)
    program = function("%a: tensor<2x3xf32>, %b: tensor<?x6xf32>", "tensor<?x6xf32>", f"%0 = {put}", "%0")
    a, b = floats(2, 3), floats(4, 6)
    expected = b.copy()
    expected[1:4:2, 0:6:2] = a
    agrees(program, (a, b), expected)
    assert run(program, a, floats(3, 6)) == [UB]


def test_shapes_change_and_elements_stay_in_order() -> None:
    groups = "reassociation = [[0], [1, 2]]"
    collapse = op("tensor.collapse_shape", "%a", "(tensor<2x?x5xf32>) -> tensor<2x?xf32>", groups)
    program = function("%a: tensor<2x?x5xf32>", "tensor<2x?xf32>", f"%0 = {collapse}", "%0")
    a = floats(2, 3, 5)
    agrees(program, (a,), a.reshape(2, 15))
    sizes = f"{groups}, static_output_shape = array<i64: 2, 3, -9223372036854775808>"
    expand = op("tensor.expand_shape", "%a, %n", "(tensor<2x?xf32>, index) -> tensor<2x3x?xf32>", sizes)
    program = function("%a: tensor<2x?xf32>, %n: index", "tensor<2x3x?xf32>", f"%0 = {expand}", "%0")
    agrees(program, (a.reshape(2, 15), 5), a.reshape(2, 3, 5))
    assert run(program, a.reshape(2, 15), 4) == [UB]
    reshape = op("tosa.reshape", "%a", "(tensor<2x6xf32>) -> tensor<3x4xf32>", "new_shape = array<i64: 3, -1>")
    b = floats(2, 6)
    agrees(function("%a: tensor<2x6xf32>", "tensor<3x4xf32>", f"%0 = {reshape}", "%0"), (b,), b.reshape(3, 4))


def test_padding() -> None:
    body = '^bb0(%i: index, %j: index):\n"tensor.yield"(%v) : (f32) -> ()'
    sizes = "static_low = array<i64: 1, 0>, static_high = array<i64: 2, 3>, operandSegmentSizes = array<i32: 1, 0, 0>"
    padded = op("tensor.pad", "%a", "(tensor<2x?xf32>) -> tensor<5x?xf32>", sizes, body)
    program = function("%a: tensor<2x?xf32>, %v: f32", "tensor<5x?xf32>", f"%0 = {padded}", "%0")
    a = floats(2, 4)
    agrees(program, (a, 7.0), np.pad(a, ((1, 2), (0, 3)), constant_values=7))


def test_what_is_never_written_is_not_defined() -> None:
    lines = [
        f"%e = {op('tensor.empty', '', '() -> tensor<3xf32>')}",
        f"%i = {constant('1', 'index')}",
        f"%0 = {op('tensor.insert', '%a, %e, %i', '(f32, tensor<3xf32>, index) -> tensor<3xf32>')}",
    ]
    assert run(function("%a: f32", "tensor<3xf32>", *lines, "%0"), 2.0) == [[UNDEFINED, 2.0, UNDEFINED]]


def test_constants() -> None:
    for text, values in (
        ("dense<[[1.0, -0.0], [0x7F800000, 4.0]]>", [[1.0, -0.0], [math.inf, 4.0]]),
        ("dense<2.5>", [[2.5, 2.5], [2.5, 2.5]]),
        ("sparse<[[1, 0], [0, 1]], [3.0, 5.0]>", [[0.0, 5.0], [3.0, 0.0]]),
    ):
        program = function("", "tensor<2x2xf32>", f"%0 = {constant(text, 'tensor<2x2xf32>')}", "%0")
        assert same(run(program), [values])


def test_moving_elements() -> None:
    a = floats(2, 3)
    t = "tensor<2x3xf32>"
    perm = f"%p = {op('tosa.const', '', '() -> tensor<2xi32>', 'value = dense<[1, 0]> : tensor<2xi32>')}"
    turned = f"%0 = {op('tosa.transpose', '%a, %p', f'({t}, tensor<2xi32>) -> tensor<3x2xf32>')}"
    agrees(function(f"%a: {t}", "tensor<3x2xf32>", perm, turned, "%0"), (a,), a.T)
    back = f"%0 = {op('tosa.reverse', '%a', f'({t}) -> {t}', 'axis = 1 : i32')}"
    agrees(function(f"%a: {t}", t, back, "%0"), (a,), a[:, ::-1])
    tile = op("tosa.tile", "%a", f"({t}) -> tensor<4x9xf32>", "multiples = array<i64: 2, 3>")
    agrees(function(f"%a: {t}", "tensor<4x9xf32>", f"%0 = {tile}", "%0"), (a,), np.tile(a, (2, 3)))
    join = op("tosa.concat", "%a, %a", f"({t}, {t}) -> tensor<2x6xf32>", "axis = 1 : i32")
    agrees(function(f"%a: {t}", "tensor<2x6xf32>", f"%0 = {join}", "%0"), (a,), np.concatenate([a, a], 1))
    part = "size = array<i64: 1, 2>, start = array<i64: 1, 1>"
    cut = op("tosa.slice", "%a", f"({t}) -> tensor<1x2xf32>", part)
    agrees(function(f"%a: {t}", "tensor<1x2xf32>", f"%0 = {cut}", "%0"), (a,), a[1:2, 1:3])


def test_gathering() -> None:
    values, indices = floats(2, 3, 2), np.array([[0, 2, 1, 1], [2, 2, 0, 1]], dtype=np.int32)
    types = "(tensor<2x3x2xf32>, tensor<2x4xi32>) -> tensor<2x4x2xf32>"
    gather = op("tosa.gather", "%v, %i", types)
    program = function("%v: tensor<2x3x2xf32>, %i: tensor<2x4xi32>", "tensor<2x4x2xf32>", f"%0 = {gather}", "%0")
    agrees(program, (values, indices), np.stack([values[n, indices[n]] for n in range(2)]))
    for wrong in (-1, 3):
        assert run(program, values, np.where(indices == 1, wrong, indices)) == [UB]


def summed(terms: Sequence[np.float32], start: np.float32) -> np.float32:
    """One after the other, each rounded."""
    total = start
    for term in terms:
        total = np.float32(total + term)
    return total


MUL_ADD = (
    '^bb0(%p: f32, %q: f32, %r: f32):\n%s = "arith.mulf"(%p, %q) : (f32, f32) -> f32\n'
    '%u = "arith.addf"(%r, %s) : (f32, f32) -> f32\n"linalg.yield"(%u) : (f32) -> ()'
)
SEGMENTS = "operandSegmentSizes = array<i32: 2, 1>"


def types_of(*arrays: np.ndarray) -> list[str]:
    return [f"tensor<{'x'.join(map(str, a.shape))}xf32>" for a in arrays]


def agrees_with(
    name: str, inputs: Sequence[np.ndarray], expected: np.ndarray, attributes: str, region: str = ""
) -> None:
    """Asserts that an operator of float tensors gives an array."""
    *operands, result = types_of(*inputs, expected)
    names = [f"%x{i}" for i in range(len(inputs))]
    applied = op(name, ", ".join(names), f"({', '.join(operands)}) -> {result}", attributes, region)
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, operands, strict=True))
    agrees(function(arguments, result, f"%0 = {applied}", "%0"), inputs, expected)


def test_products_of_matrices() -> None:
    a, b, c = floats(2, 5), floats(5, 3), floats(2, 3)
    expected = np.array([[summed([a[i, k] * b[k, j] for k in range(5)], c[i, j]) for j in range(3)] for i in range(2)])
    agrees_with("linalg.matmul", (a, b, c), expected, SEGMENTS, MUL_ADD)
    agrees_with("linalg.matmul_transpose_b", (a, b.T.copy(), c), expected, SEGMENTS, MUL_ADD)
    zero = np.array(
        [[[summed([a[i, k] * b[k, j] for k in range(5)], np.float32(0)) for j in range(3)] for i in range(2)]]
    )
    agrees_with("tosa.matmul", (a[None], b[None]), zero, "")


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_convolutions(stride: int, dilation: int) -> None:
    image, kernel = floats(1, 7, 7, 2), floats(2, 3, 2, 3)
    sizes = [(7 - dilation * (k - 1) - 1) // stride + 1 for k in (2, 3)]
    start = floats(1, *sizes, 3)
    expected = np.empty(start.shape, np.float32)
    for y, x, f in np.ndindex(*sizes, 3):
        taps = [
            image[0, y * stride + k * dilation, x * stride + n * dilation, c] * kernel[k, n, c, f]
            for k, n, c in np.ndindex(2, 3, 2)
        ]
        expected[0, y, x, f] = summed(taps, start[0, y, x, f])
    windows = f"dilations = dense<{dilation}> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>, {SEGMENTS}"
    agrees_with("linalg.conv_2d_nhwc_hwcf", (image, kernel, start), expected, windows, MUL_ADD)
    turned = [x.transpose(0, 3, 1, 2).copy() for x in (image, start, expected)]
    by_channel = np.empty_like(turned[2])
    for f, y, x in np.ndindex(*by_channel.shape[1:]):
        taps = [
            turned[0][0, c, y * stride + k * dilation, x * stride + n * dilation] * kernel[k, n, c, f]
            for c, k, n in np.ndindex(2, 2, 3)
        ]
        by_channel[0, f, y, x] = summed(taps, turned[1][0, f, y, x])
    weights = kernel.transpose(3, 2, 0, 1).copy()
    agrees_with("linalg.conv_2d_nchw_fchw", (turned[0], weights, turned[1]), by_channel, windows, MUL_ADD)


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("minus", [False, True])
def test_convolutions_of_tosa(depthwise: bool, minus: bool) -> None:
    image, bias = floats(1, 5, 4, 2), floats(6 if depthwise else 3)
    weights = floats(3, 2, 2, 3) if depthwise else floats(3, 3, 2, 2)
    padded = np.pad(image, ((0, 0), (1, 0), (2, 1), (0, 0)))
    expected = np.empty((1, 2, 3, len(bias)), np.float32)
    for y, x, o in np.ndindex(*expected.shape[1:]):
        if depthwise:
            c, m = divmod(o, 3)
            taps = [padded[0, 2 * y + k, 2 * x + n, c] * weights[k, n, c, m] for k, n in np.ndindex(3, 2)]
        else:
            taps = [padded[0, 2 * y + k, 2 * x + n, c] * weights[o, k, n, c] for k, n, c in np.ndindex(3, 2, 2)]
        expected[0, y, x, o] = summed(taps, np.float32(-0.0 if minus else 0.0)) + bias[o]
    types = types_of(image, weights, bias, expected)
    attributes = "pad = array<i64: 1, 0, 2, 1>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>"
    name = "tosa.depthwise_conv2d" if depthwise else "tosa.conv2d"
    applied = op(name, "%a, %w, %b", f"({types[0]}, {types[1]}, {types[2]}) -> {types[3]}", attributes)
    program = function(f"%a: {types[0]}, %w: {types[1]}, %b: {types[2]}", types[3], f"%0 = {applied}", "%0")
    (result,) = run(program, image, weights, bias, reading=Reading(sums_start_at_minus_zero=minus))
    assert same(result, expected.tolist())


def test_poolings_of_tosa() -> None:
    image = floats(1, 5, 4, 2)
    windows = "kernel = array<i64: 3, 2>, stride = array<i64: 2, 2>, pad = array<i64: 1, 1, 0, 0>"
    largest, mean = np.empty((1, 3, 2, 2), np.float32), np.empty((1, 3, 2, 2), np.float32)
    for y, x, c in np.ndindex(3, 2, 2):
        taps = [image[0, 2 * y + k - 1, 2 * x + n, c] for k, n in np.ndindex(3, 2) if 0 <= 2 * y + k - 1 < 5]
        largest[0, y, x, c] = max(taps)
        mean[0, y, x, c] = summed(taps, np.float32(0)) / np.float32(len(taps))
    agrees_with("tosa.max_pool2d", (image,), largest, windows)
    agrees_with("tosa.avg_pool2d", (image,), mean, f"acc_type = f32, {windows}")


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"])
def test_reductions_of_tosa(name: str) -> None:
    a = floats(3, 4)
    expected = np.empty((3, 1), np.float32)
    for i, row in enumerate(a):
        value = {"reduce_sum": np.float32(0), "reduce_prod": np.float32(1)}.get(name, row[0])
        for x in row:
            extreme = max(value, x) if name == "reduce_max" else min(value, x)
            value = {"reduce_sum": value + x, "reduce_prod": value * x}.get(name, extreme)
        expected[i] = value
    agrees_with(f"tosa.{name}", (a,), expected, "axis = 1 : i32")


TOSA: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "maximum": np.maximum, "minimum": np.minimum, "greater": np.greater,
    "greater_equal": np.greater_equal, "equal": np.equal,
}  # fmt: skip


@pytest.mark.parametrize("name", TOSA)
def test_elementwise_operators_of_tosa_broadcast(name: str) -> None:
    a, b = floats(2, 1, 4), floats(3, 1)
    expected = TOSA[name](a, b)
    result = f"tensor<2x3x4x{'f32' if expected.dtype == np.float32 else 'i1'}>"
    applied = op(f"tosa.{name}", "%a, %b", f"(tensor<2x1x4xf32>, tensor<3x1xf32>) -> {result}")
    program = function("%a: tensor<2x1x4xf32>, %b: tensor<3x1xf32>", result, f"%0 = {applied}", "%0")
    agrees(program, (a, b), expected)


def test_clamping() -> None:
    attributes = "min_fp = -1.0 : f32, max_fp = 1.5 : f32, min_int = -1 : i64, max_int = 2 : i64"
    a = np.array([-3, -1, 0.5, 1.5, 9, math.nan, math.inf], np.float32)
    agrees_with("tosa.clamp", (a,), np.clip(a, np.float32(-1), np.float32(1.5)), attributes)


def test_loops_with_indices_windows_and_two_results() -> None:
    body = (
        '^bb0(%p: i32, %r: i32, %t: i32):\n%i = "linalg.index"() <{dim = 1 : i64}> : () -> index\n'
        '%j = "arith.index_cast"(%i) : (index) -> i32\n%s = "arith.muli"(%p, %j) : (i32, i32) -> i32\n'
        '%u = "arith.addi"(%r, %s) : (i32, i32) -> i32\n"linalg.yield"(%u, %p) : (i32, i32) -> ()'
    )
    maps = ["(d0, d1) -> (d0 * 2 + d1)", "(d0, d1) -> (d0)", "(d0, d1) -> (d0, d1)"]
    results = "tensor<3xi32>, tensor<3x2xi32>"
    loops = generic("%a, %b, %c", f"(tensor<8xi32>, {results}) -> ({results})", maps, "pr", "1, 2", body)
    arguments = "%a: tensor<8xi32>, %b: tensor<3xi32>, %c: tensor<3x2xi32>"
    program = function(arguments, results, f"%0, %1 = {loops}", "%0, %1")
    a, b = np.arange(8) + 3, np.arange(3)
    sums = [int(b[i] + sum(a[2 * i + j] * j for j in range(2))) for i in range(3)]
    windows = [[int(a[2 * i + j]) for j in range(2)] for i in range(3)]
    assert run(program, a, b, np.zeros((3, 2), np.int64)) == [sums, windows]


def test_sums_of_bf16_are_rounded_at_the_end() -> None:
    """256 + 1 is 256 in bf16, where 256 + 1 + 1 + 2 is 260 in f32."""
    for type_, expected in (("bf16", 260.0), ("f16", 260.0)):
        total = op("tosa.reduce_sum", "%a", f"(tensor<4x{type_}>) -> tensor<1x{type_}>", "axis = 0 : i32")
        program = function(f"%a: tensor<4x{type_}>", f"tensor<1x{type_}>", f"%0 = {total}", "%0")
        agrees(program, [[256.0, 1.0, 1.0, 2.0]], [expected])
