"""What releases 19 and 22 of ``mlir-opt`` print differently in the generic form has one meaning.

Each form is that of release 19, that of release 22, and a change to the latter that makes it mean something else.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ir_semantics.mlir import ir
from smt_encodings.claims import Status
from tests.ir_semantics.mlir.mlir_text import function

from .verdicts import verdict

X, IX = "tensor<2x3xf32>", "tensor<2x3xi32>"
IMAGE = "tensor<1x3x3x1xf32>"
WINDOW = "dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>"
POOL = "kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>"
ZERO = '%z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>'
SHIFT = '%z = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>'
OVERFLOW = "overflowFlags = #arith.overflow<none>"
PRODUCT = """({
  ^bb0(%p: f32, %q: f32, %r: f32):
    %m = "arith.mulf"(%p, %q) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %t = "arith.addf"(%r, %m) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    "linalg.yield"(%t) : (f32) -> ()
  })"""


def shape(name: str, *sizes: int) -> str:
    """``tosa.const_shape``, which releases since TOSA 1.0 have."""
    count = len(sizes)
    listed = ", ".join(map(str, sizes))
    stated = f"values = dense<[{listed}]> : tensor<{count}xindex>"
    return f'%{name} = "tosa.const_shape"() <{{{stated}}}> : () -> !tosa.shape<{count}>'


@dataclass(frozen=True)
class Form:
    """Arguments, the type of the result %0, lines of both releases, and what is replaced for another meaning."""

    arguments: str
    result: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    broken: tuple[str, str]

    def of(self, lines: tuple[str, ...], change: tuple[str, str] = ("", "")) -> ir.Operation:
        assert change[0] in "\n".join(lines)
        return function(self.arguments, self.result, *(line.replace(*change) for line in lines), "%0")


FORMS = {
    "the value of a constant": Form(
        "", IX,
        (f'%0 = "tosa.const"() <{{value = dense<[[1, 2, 3], [4, 5, 6]]> : {IX}}}> : () -> {IX}',),
        (f'%0 = "tosa.const"() <{{values = dense<[[1, 2, 3], [4, 5, 6]]> : {IX}}}> : () -> {IX}',),
        ("5, 6", "5, 7"),
    ),
    "the order of a transposition": Form(
        f"%x: {X}", "tensor<3x2xf32>",
        (
            '%o = "tosa.const"() <{value = dense<[1, 0]> : tensor<2xi32>}> : () -> tensor<2xi32>',
            f'%0 = "tosa.transpose"(%x, %o) : ({X}, tensor<2xi32>) -> tensor<3x2xf32>',
        ),
        (f'%0 = "tosa.transpose"(%x) <{{perms = array<i32: 1, 0>}}> : ({X}) -> tensor<3x2xf32>',),
        (
            f'"tosa.transpose"(%x) <{{perms = array<i32: 1, 0>}}> : ({X})',
            '"tosa.reshape"(%x) <{new_shape = array<i64: 3, 2>}> : (tensor<2x3xf32>)',
        ),
    ),
    "the shape of a reshape": Form(
        f"%x: {X}", "tensor<6x1xf32>",
        (f'%0 = "tosa.reshape"(%x) <{{new_shape = array<i64: 6, 1>}}> : ({X}) -> tensor<6x1xf32>',),
        (
            shape("s", 6, 1), f'%y = "tosa.reverse"(%x) <{{axis = 1 : i32}}> : ({X}) -> {X}',
            f'%0 = "tosa.reshape"(%x, %s) : ({X}, !tosa.shape<2>) -> tensor<6x1xf32>',
        ),
        ("(%x, %s)", "(%y, %s)"),
    ),
    "the times of a tile": Form(
        f"%x: {X}", "tensor<4x3xf32>",
        (f'%0 = "tosa.tile"(%x) <{{multiples = array<i64: 2, 1>}}> : ({X}) -> tensor<4x3xf32>',),
        (
            shape("s", 2, 1), f'%y = "tosa.reverse"(%x) <{{axis = 0 : i32}}> : ({X}) -> {X}',
            f'%0 = "tosa.tile"(%x, %s) : ({X}, !tosa.shape<2>) -> tensor<4x3xf32>',
        ),
        ("(%x, %s)", "(%y, %s)"),
    ),
    "where a slice starts": Form(
        f"%x: {X}", "tensor<1x2xf32>",
        (f'%0 = "tosa.slice"(%x) <{{size = array<i64: 1, 2>, start = array<i64: 1, 0>}}> : ({X}) -> tensor<1x2xf32>',),
        (
            shape("a", 1, 0), shape("n", 1, 2),
            f'%0 = "tosa.slice"(%x, %a, %n) : ({X}, !tosa.shape<2>, !tosa.shape<2>) -> tensor<1x2xf32>',
        ),
        ("dense<[1, 0]>", "dense<[1, 1]>"),
    ),
    "the amounts and the value of a padding": Form(
        f"%x: {X}", "tensor<4x3xf32>",
        (
            '%a = "tosa.const"() <{value = dense<[1, 1, 0, 0]> : tensor<4xi64>}> : () -> tensor<4xi64>',
            '%k = "tosa.const"() <{value = dense<3.5> : tensor<f32>}> : () -> tensor<f32>',
            f'%0 = "tosa.pad"(%x, %a, %k) : ({X}, tensor<4xi64>, tensor<f32>) -> tensor<4x3xf32>',
        ),
        (
            shape("a", 1, 1, 0, 0),
            '%k = "tosa.const"() <{values = dense<3.5> : tensor<1xf32>}> : () -> tensor<1xf32>',
            f'%0 = "tosa.pad"(%x, %a, %k) : ({X}, !tosa.shape<4>, tensor<1xf32>) -> tensor<4x3xf32>',
        ),
        ("[1, 1, 0, 0]", "[2, 0, 0, 0]"),
    ),
    "the shift of a product": Form(
        f"%x: {IX}, %y: {IX}", IX,
        (f'%0 = "tosa.mul"(%x, %y) <{{shift = 0 : i8}}> : ({IX}, {IX}) -> {IX}',),
        (SHIFT, f'%0 = "tosa.mul"(%x, %y, %z) : ({IX}, {IX}, tensor<1xi8>) -> {IX}'),
        ("(%x, %y, %z)", "(%x, %x, %z)"),
    ),
    "the zero points of a negation": Form(
        f"%x: {X}", X,
        (f'%0 = "tosa.negate"(%x) : ({X}) -> {X}',),
        (ZERO, f'%0 = "tosa.negate"(%x, %z, %z) : ({X}, tensor<1xf32>, tensor<1xf32>) -> {X}'),
        ('"tosa.negate"(%x, %z, %z) : (tensor<2x3xf32>, tensor<1xf32>, tensor<1xf32>)', f'"tosa.abs"(%x) : ({X})'),
    ),
    "the ends of a clamp": Form(
        f"%x: {X}", X,
        (
            '%0 = "tosa.clamp"(%x) <{max_fp = 6.0 : f32, max_int = 6 : i64, min_fp = 0.0 : f32, min_int = 0 : i64}>'
            f" : ({X}) -> {X}",
        ),
        (f'%0 = "tosa.clamp"(%x) <{{max_val = 6.0 : f32, min_val = 0.0 : f32}}> : ({X}) -> {X}',),
        ("6.0", "5.0"),
    ),
    "the zero points and the accumulator of a convolution": Form(
        f"%x: {IMAGE}, %w: tensor<1x2x2x1xf32>, %b: tensor<1xf32>", "tensor<1x2x2x1xf32>",
        (
            f'%0 = "tosa.conv2d"(%x, %w, %b) <{{{WINDOW}}}> : ({IMAGE}, tensor<1x2x2x1xf32>, tensor<1xf32>) '
            "-> tensor<1x2x2x1xf32>",
        ),
        (
            ZERO,
            f'%0 = "tosa.conv2d"(%x, %w, %b, %z, %z) <{{acc_type = f32, {WINDOW}}}> : ({IMAGE}, tensor<1x2x2x1xf32>, '
            "tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x2x2x1xf32>",
        ),
        ("(%x, %w, %b, %z, %z)", "(%x, %w, %z, %z, %z)"),
    ),
    "the zero points of a product of matrices": Form(
        "%x: tensor<1x2x3xf32>, %y: tensor<1x3x2xf32>", "tensor<1x2x2xf32>",
        ('%0 = "tosa.matmul"(%x, %y) : (tensor<1x2x3xf32>, tensor<1x3x2xf32>) -> tensor<1x2x2xf32>',),
        (
            ZERO, f'%n = "tosa.negate"(%x, %z, %z) : ({", ".join(["tensor<1x2x3xf32>", *["tensor<1xf32>"] * 2])})'
            " -> tensor<1x2x3xf32>",
            '%0 = "tosa.matmul"(%x, %y, %z, %z) : (tensor<1x2x3xf32>, tensor<1x3x2xf32>, tensor<1xf32>, tensor<1xf32>)'
            " -> tensor<1x2x2xf32>",
        ),
        ("(%x, %y, %z, %z)", "(%n, %y, %z, %z)"),
    ),
    "the zero points of an average": Form(
        f"%x: {IMAGE}", "tensor<1x2x2x1xf32>",
        (f'%0 = "tosa.avg_pool2d"(%x) <{{acc_type = f32, {POOL}}}> : ({IMAGE}) -> tensor<1x2x2x1xf32>',),
        (
            ZERO, f'%y = "tosa.reverse"(%x) <{{axis = 1 : i32}}> : ({IMAGE}) -> {IMAGE}',
            f'%0 = "tosa.avg_pool2d"(%x, %z, %z) <{{acc_type = f32, {POOL}}}> : ({IMAGE}, tensor<1xf32>, tensor<1xf32>)'
            " -> tensor<1x2x2x1xf32>",
        ),
        ("(%x, %z, %z)", "(%y, %z, %z)"),
    ),
    "the name of a quotient": Form(
        f"%x: {IX}, %y: {IX}", IX,
        (f'%0 = "tosa.int_div"(%x, %y) : ({IX}, {IX}) -> {IX}',),
        (f'%0 = "tosa.intdiv"(%x, %y) : ({IX}, {IX}) -> {IX}',),
        ("(%x, %y)", "(%y, %x)"),
    ),
    "the name of the product of a row": Form(
        f"%x: {X}", "tensor<2x1xf32>",
        (f'%0 = "tosa.reduce_prod"(%x) <{{axis = 1 : i32}}> : ({X}) -> tensor<2x1xf32>',),
        (f'%0 = "tosa.reduce_product"(%x) <{{axis = 1 : i32}}> : ({X}) -> tensor<2x1xf32>',),
        ("reduce_product", "reduce_max"),
    ),
    "the maps of a product of matrices": Form(
        f"%x: {X}, %y: tensor<3x2xf32>, %s: tensor<2x2xf32>", "tensor<2x2xf32>",
        (
            f'%0 = "linalg.matmul"(%x, %y, %s) <{{operandSegmentSizes = array<i32: 2, 1>}}> {PRODUCT} '
            f": ({X}, tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>",
        ),
        (
            '%0 = "linalg.matmul"(%x, %y, %s) <{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, '
            "affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], "
            f"operandSegmentSizes = array<i32: 2, 1>}}> {PRODUCT} : ({X}, tensor<3x2xf32>, tensor<2x2xf32>) "
            "-> tensor<2x2xf32>",
        ),
        ("affine_map<(m, n, k) -> (m, n)>", "affine_map<(m, n, k) -> (n, m)>"),
    ),
    "the name of a buffer that is made of a tensor": Form(
        f"%t: {X}, %i: index, %j: index", "f32",
        (
            f'%m = "bufferization.to_memref"(%t) : ({X}) -> memref<2x3xf32>',
            '%0 = "memref.load"(%m, %i, %j) <{nontemporal = false}> : (memref<2x3xf32>, index, index) -> f32',
        ),
        (
            f'%m = "bufferization.to_buffer"(%t) : ({X}) -> memref<2x3xf32>',
            '%0 = "memref.load"(%m, %i, %j) : (memref<2x3xf32>, index, index) -> f32',
        ),
        ("(%m, %i, %j)", "(%m, %i, %i)"),
    ),
    "a condition that is an attribute or a property": Form(
        "%n: index, %p: i32, %q: i32", "i32",
        (
            '%0 = "affine.if"(%n) ({\n"affine.yield"(%p) : (i32) -> ()\n}, {\n"affine.yield"(%q) : (i32) -> ()\n}) '
            "{condition = affine_set<(d0) : (d0 - 3 >= 0)>} : (index) -> i32",
        ),
        (
            '%0 = "affine.if"(%n) <{condition = affine_set<(d0) : (d0 - 3 >= 0)>}> '
            '({\n"affine.yield"(%p) : (i32) -> ()\n}, {\n"affine.yield"(%q) : (i32) -> ()\n}) : (index) -> i32',
        ),
        ("d0 - 3 >= 0", "d0 - 3 == 0"),
    ),
    "flags that are attributes or properties": Form(
        "%x: i32, %y: i32", "i32",
        ('%0 = "arith.addi"(%x, %y) : (i32, i32) -> i32',),
        (f'%0 = "arith.addi"(%x, %y) <{{{OVERFLOW}}}> : (i32, i32) -> i32',),
        ("overflow<none>", "overflow<nsw>"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_both_forms_have_one_meaning(name: str) -> None:
    form = FORMS[name]
    old, new = form.of(form.old), form.of(form.new)
    for source, target in ((old, new), (new, old)):
        outcome = verdict(source, target)
        assert outcome.status is Status.PROVED, outcome.reason
    outcome = verdict(old, form.of(form.new, form.broken))
    assert outcome.status is Status.REFUTED, outcome.reason
