"""A valid pair and an invalid one for every kind of operator; the invalid ones are refuted by a replayed input."""

from __future__ import annotations

import pytest

from chc.translation.counterexample import Counterexample
from chc.translation.refine import Options
from ir_semantics.mlir import ir
from ir_semantics.mlir.semantics.program import Reading
from smt_encodings.claims import Status
from tests.ir_semantics.mlir.mlir_text import constant, function, generic, op
from tests.marks import slow_but

from .verdicts import status, verdict

Pair = tuple[ir.Operation, ir.Operation]
VALID: dict[str, Pair] = {}
INVALID: dict[str, Pair] = {}
II, FF, II2 = "(i32, i32) -> i32", "(f32, f32) -> f32", "(index, index) -> index"


def pairs(name: str, arguments: str, results: str, source: list[str], valid: list[str], invalid: list[str]) -> None:
    functions = [function(arguments, results, *lines) for lines in (source, valid, invalid)]
    VALID[name], INVALID[name] = (functions[0], functions[1]), (functions[0], functions[2])


X2 = "%a: i32, %b: i32"
pairs(
    "addition commutes", X2, "i32",
    [f"%0 = {op('arith.addi', '%a, %b', II)}", "%0"],
    [f"%0 = {op('arith.addi', '%b, %a', II)}", "%0"],
    [f"%0 = {op('arith.subi', '%a, %b', II)}", "%0"],
)  # fmt: skip
pairs(
    "a product by two is a shift", "%a: i8", "i8",
    [f"%c = {constant('2', 'i8')}", f"%0 = {op('arith.muli', '%a, %c', '(i8, i8) -> i8')}", "%0"],
    [f"%c = {constant('1', 'i8')}", f"%0 = {op('arith.shli', '%a, %c', '(i8, i8) -> i8')}", "%0"],
    [f"%c = {constant('2', 'i8')}", f"%0 = {op('arith.shli', '%a, %c', '(i8, i8) -> i8')}", "%0"],
)  # fmt: skip
pairs(
    "a division by itself", "%a: i8", "i8",  # where it is defined
    [f"%0 = {op('arith.divui', '%a, %a', '(i8, i8) -> i8')}", "%0"],
    [f"%0 = {constant('1', 'i8')}", "%0"],
    [f"%0 = {constant('2', 'i8')}", "%0"],
)  # fmt: skip
pairs(
    "a division is not made", "%a: i8, %b: i8", "i8",
    [f"%0 = {op('arith.divsi', '%a, %b', '(i8, i8) -> i8')}", "%a"],
    ["%a"],
    [f"%0 = {op('arith.remui', '%b, %a', '(i8, i8) -> i8')}", "%a"],
)  # fmt: skip
pairs(
    "flags that promise no overflow may go", "%a: i8, %b: i8", "i8",
    ['%0 = "arith.addi"(%a, %b) <{overflowFlags = #arith.overflow<nsw>}> : (i8, i8) -> i8', "%0"],
    [f"%0 = {op('arith.addi', '%a, %b', '(i8, i8) -> i8')}", "%0"],
    ['%0 = "arith.addi"(%a, %b) <{overflowFlags = #arith.overflow<nsw, nuw>}> : (i8, i8) -> i8', "%0"],
)  # fmt: skip
pairs(
    "signed and unsigned extension", "%a: i8", "i32",
    [f"%0 = {op('arith.extsi', '%a', '(i8) -> i16')}", f"%1 = {op('arith.extsi', '%0', '(i16) -> i32')}", "%1"],
    [f"%1 = {op('arith.extsi', '%a', '(i8) -> i32')}", "%1"],
    [f"%1 = {op('arith.extui', '%a', '(i8) -> i32')}", "%1"],
)  # fmt: skip
pairs(
    "a comparison turned around", X2, "i1",
    [f"%0 = {op('arith.cmpi', '%a, %b', '(i32, i32) -> i1', 'predicate = 2 : i64')}", "%0"],
    [f"%0 = {op('arith.cmpi', '%b, %a', '(i32, i32) -> i1', 'predicate = 4 : i64')}", "%0"],
    [f"%0 = {op('arith.cmpi', '%b, %a', '(i32, i32) -> i1', 'predicate = 8 : i64')}", "%0"],
)  # fmt: skip
pairs(
    "minus zero is neutral", "%a: f32", "f32",
    [f"%c = {constant('-0.0', 'f32')}", f"%0 = {op('arith.addf', '%a, %c', FF)}", "%0"],
    ["%a"],
    [f"%c = {constant('0.0', 'f32')}", f"%0 = {op('arith.addf', '%a, %c', FF)}", "%0"],
)  # fmt: skip
pairs(
    "extending keeps the order", "%a: f32, %b: f32", "i1",
    [f"%0 = {op('arith.extf', '%a', '(f32) -> f64')}", f"%1 = {op('arith.extf', '%b', '(f32) -> f64')}",
     f"%2 = {op('arith.cmpf', '%0, %1', '(f64, f64) -> i1', 'predicate = 4 : i64')}", "%2"],
    [f"%2 = {op('arith.cmpf', '%a, %b', '(f32, f32) -> i1', 'predicate = 4 : i64')}", "%2"],
    [f"%2 = {op('arith.cmpf', '%a, %b', '(f32, f32) -> i1', 'predicate = 5 : i64')}", "%2"],
)  # fmt: skip
pairs(
    "an absolute value twice", "%a: f32", "f32",
    [f"%0 = {op('math.absf', '%a', '(f32) -> f32')}", f"%1 = {op('math.absf', '%0', '(f32) -> f32')}", "%1"],
    [f"%0 = {op('math.absf', '%a', '(f32) -> f32')}", "%0"],
    [f"%0 = {op('arith.negf', '%a', '(f32) -> f32')}", "%0"],
)  # fmt: skip
pairs(
    "an index and back", "%a: i16", "i16",
    [f"%0 = {op('arith.index_cast', '%a', '(i16) -> index')}",
     f"%1 = {op('arith.index_cast', '%0', '(index) -> i16')}", "%1"],
    ["%a"],
    [f"%0 = {op('arith.trunci', '%a', '(i16) -> i8')}", f"%1 = {op('arith.extsi', '%0', '(i8) -> i16')}", "%1"],
)  # fmt: skip
pairs(
    "a choice of the same", "%c: i1, %a: f32", "f32",
    [f"%0 = {op('arith.select', '%c, %a, %a', '(i1, f32, f32) -> f32')}", "%0"],
    ["%a"],
    [f"%z = {constant('1.0', 'f32')}", f"%0 = {op('arith.select', '%c, %a, %z', '(i1, f32, f32) -> f32')}", "%0"],
)  # fmt: skip

T, M = "tensor<?xf32>", "tensor<?x?xf32>"
T8 = "tensor<8xf32>"
ONE_ONE = "operandSegmentSizes = array<i32: 1, 1>"
ZERO, ONE = f"%z = {constant('0', 'index')}", f"%one = {constant('1', 'index')}"


def empty(name: str, operands: str, type_: str) -> str:
    types = ", ".join(["index"] * len([o for o in operands.split(",") if o.strip()]))
    return f"{name} = {op('tensor.empty', operands, f'({types}) -> {type_}')}"


def dims(tensor: str, type_: str) -> list[str]:
    return [
        ZERO, ONE, f"%n = {op('tensor.dim', f'{tensor}, %z', f'({type_}, index) -> index')}",
        f"%m = {op('tensor.dim', f'{tensor}, %one', f'({type_}, index) -> index')}",
    ]  # fmt: skip


def binary(name: str, body_op: str, operands: str, maps: list[str]) -> str:
    region = f'^bb0(%p: f32, %q: f32, %r: f32):\n%s = "{body_op}"(%p, %q) : {FF}\n"linalg.yield"(%s) : (f32) -> ()'
    return f"{name} = {generic(operands, f'({M}, {M}, {M}) -> {M}', maps, 'pp', '2, 1', region)}"


ID, SWAP = "(d0, d1) -> (d0, d1)", "(d0, d1) -> (d1, d0)"
FUSED = (
    "^bb0(%p: f32, %q: f32, %t: f32, %r: f32):\n"
    f'%s = "arith.addf"(%p, %q) : {FF}\n%u = "arith.mulf"(%s, %t) : {FF}\n"linalg.yield"(%u) : (f32) -> ()'
)


def fused(maps: list[str]) -> str:
    return f"%2 = {generic('%a, %b, %c, %e', f'({M}, {M}, {M}, {M}) -> {M}', maps, 'pp', '3, 1', FUSED)}"


THREE = f"%a: {M}, %b: {M}, %c: {M}"
producer = [*dims("%a", M), empty("%e", "%n, %m", M), binary("%0", "arith.addf", "%a, %b, %e", [ID, SWAP, ID])]
pairs(
    "two loops in one, for every size", THREE, M,
    [*producer, binary("%1", "arith.mulf", "%0, %c, %e", [ID, ID, ID]), "%1"],
    [*dims("%a", M), empty("%e", "%n, %m", M), fused([ID, SWAP, ID, ID]), "%2"],
    [*dims("%a", M), empty("%e", "%n, %m", M), fused([ID, ID, ID, ID]), "%2"],
)  # fmt: skip
pairs(
    "the size of a result", f"%a: {M}", M,
    [*dims("%a", M), empty("%e", "%n, %m", M), f"%c = {constant('1.0', 'f32')}",
     f"%0 = {op('linalg.fill', '%c, %e', f'(f32, {M}) -> {M}', ONE_ONE)}", "%0"],
    [*dims("%a", M), f"%c = {constant('1.0', 'f32')}",
     f"%0 = {op('tensor.splat', '%c, %n, %m', f'(f32, index, index) -> {M}')}", "%0"],
    [*dims("%a", M), f"%c = {constant('1.0', 'f32')}",
     f"%0 = {op('tensor.splat', '%c, %m, %n', f'(f32, index, index) -> {M}')}", "%0"],
)  # fmt: skip


def summing(body: str, start: str, source: str, type_: str, loops: str, maps: list[str]) -> list[str]:
    lines = [f"%c = {constant(start, 'f32')}", empty("%e", "", "tensor<f32>")]
    lines.append(f"%i = {op('linalg.fill', '%c, %e', '(f32, tensor<f32>) -> tensor<f32>', ONE_ONE)}")
    lines.append(
        f"%t = {generic(f'{source}, %i', f'({type_}, tensor<f32>) -> tensor<f32>', maps, loops, '1, 1', body)}"
    )
    return lines


PLUS = f'^bb0(%p: f32, %r: f32):\n%s = "arith.addf"(%p, %r) : {FF}\n"linalg.yield"(%s) : (f32) -> ()'
SULP = f'^bb0(%p: f32, %r: f32):\n%s = "arith.addf"(%r, %p) : {FF}\n"linalg.yield"(%s) : (f32) -> ()'
FLAT = f"%f = {op('tensor.collapse_shape', '%a', f'({M}) -> {T}', 'reassociation = [[0, 1]]')}"
pairs(
    "a sum over two loops, and over one in the same order", f"%a: {M}", "tensor<f32>",
    [*summing(PLUS, "-0.0", "%a", M, "rr", [ID, "(d0, d1) -> ()"]), "%t"],
    [FLAT, *summing(SULP, "-0.0", "%f", T, "r", ["(d0) -> (d0)", "(d0) -> ()"]), "%t"],
    [FLAT, *summing(SULP, "1.0", "%f", T, "r", ["(d0) -> (d0)", "(d0) -> ()"]), "%t"],
)  # fmt: skip
pairs(
    "a sum by columns is another sum", "%a: tensor<3x4xf32>", "tensor<f32>",
    [*summing(PLUS, "-0.0", "%a", "tensor<3x4xf32>", "rr", [ID, "(d0, d1) -> ()"]), "%t"],
    [*summing(SULP, "-0.0", "%a", "tensor<3x4xf32>", "rr", [ID, "(d0, d1) -> ()"]), "%t"],
    [*summing(PLUS, "-0.0", "%a", "tensor<3x4xf32>", "rr", [SWAP, "(d0, d1) -> ()"]), "%t"],
)  # fmt: skip
pairs(
    "a sum of one element", "%a: tensor<1xf32>", "tensor<f32>",
    [*summing(PLUS, "-0.0", "%a", "tensor<1xf32>", "r", ["(d0) -> (d0)", "(d0) -> ()"]), "%t"],
    [f"%t = {op('tensor.collapse_shape', '%a', '(tensor<1xf32>) -> tensor<f32>', 'reassociation = []')}", "%t"],
    [*summing(PLUS, "0.0", "%a", "tensor<1xf32>", "r", ["(d0) -> (d0)", "(d0) -> ()"]), "%t"],
)  # fmt: skip

MUL_ADD = (
    f'^bb0(%p: f32, %q: f32, %r: f32):\n%s = "arith.mulf"(%p, %q) : {FF}\n'
    f'%u = "arith.addf"(%r, %s) : {FF}\n"linalg.yield"(%u) : (f32) -> ()'
)
MATMUL = op("linalg.matmul", "%a, %b, %c", f"({M}, {M}, {M}) -> {M}", "operandSegmentSizes = array<i32: 2, 1>", MUL_ADD)
MM = ["(d0, d1, d2) -> (d0, d2)", "(d0, d1, d2) -> (d2, d1)", "(d0, d1, d2) -> (d0, d1)"]


def loops3(maps: list[str], last: str) -> str:
    return generic(f"%a, %b, {last}", f"({M}, {M}, {M}) -> {M}", maps, "ppr", "2, 1", MUL_ADD)


pairs(
    "a product of matrices as loops, for every size", f"%a: {M}, %b: {M}, %c: {M}, %d: {M}", M,
    [f"%0 = {MATMUL}", "%0"], [f"%0 = {loops3(MM, '%c')}", "%0"], [f"%0 = {loops3(MM, '%d')}", "%0"],
)  # fmt: skip
CONV = (
    "strides = dense<[{s}, {s}]> : tensor<2xi64>, dilations = dense<[{d}, {d}]> : tensor<2xi64>, "
    "operandSegmentSizes = array<i32: 2, 1>"
)
IMAGE, KERNEL, OUT = "tensor<1x7x7x2xf32>", "tensor<2x2x2x3xf32>", "tensor<1x3x3x3xf32>"


def conv(stride: int, dilation: int) -> str:
    attributes = CONV.format(s=stride, d=dilation)
    return op("linalg.conv_2d_nhwc_hwcf", "%a, %b, %c", f"({IMAGE}, {KERNEL}, {OUT}) -> {OUT}", attributes, MUL_ADD)


def conv_loops(first: str) -> str:
    maps = [first, "(n, h, w, f, k, l, c) -> (k, l, c, f)", "(n, h, w, f, k, l, c) -> (n, h, w, f)"]
    return generic("%a, %b, %c", f"({IMAGE}, {KERNEL}, {OUT}) -> {OUT}", maps, "pppprrr", "2, 1", MUL_ADD)


WINDOW = "(n, h, w, f, k, l, c) -> (n, h * 2 + k * 2, w * 2 + l * 2, c)"
pairs(
    "a convolution with strides and dilations as loops", f"%a: {IMAGE}, %b: {KERNEL}, %c: {OUT}", OUT,
    [f"%0 = {conv(2, 2)}", "%0"], [f"%0 = {conv_loops(WINDOW)}", "%0"],
    [f"%0 = {conv_loops(WINDOW.replace('l * 2', 'l'))}", "%0"],
)  # fmt: skip

SLICE = (
    "static_offsets = array<i64: {o}>, static_sizes = array<i64: 2>, static_strides = array<i64: {s}>, "
    "operandSegmentSizes = array<i32: 1, 0, 0, 0>"
)


def cut(name: str, source: str, o: int, s: int) -> str:
    return f"{name} = {op('tensor.extract_slice', source, '(tensor<8xf32>) -> tensor<2xf32>', SLICE.format(o=o, s=s))}"


AT = [f"%i = {constant('1', 'index')}"]
pairs(
    "an element of a slice with a stride", "%a: tensor<8xf32>", "f32",
    [*AT, cut("%0", "%a", 3, 2), f"%1 = {op('tensor.extract', '%0, %i', '(tensor<2xf32>, index) -> f32')}", "%1"],
    [f"%i = {constant('5', 'index')}", f"%1 = {op('tensor.extract', '%a, %i', '(tensor<8xf32>, index) -> f32')}", "%1"],
    [f"%i = {constant('4', 'index')}", f"%1 = {op('tensor.extract', '%a, %i', '(tensor<8xf32>, index) -> f32')}", "%1"],
)  # fmt: skip
PUT = (
    "static_offsets = array<i64: 1>, static_sizes = array<i64: 2>, static_strides = array<i64: 3>, "
    "operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>"
)
pairs(
    "a slice that is put back", "%a: tensor<8xf32>", "tensor<8xf32>",
    [cut("%0", "%a", 1, 3),
     f"%1 = {op('tensor.insert_slice', '%0, %a', '(tensor<2xf32>, tensor<8xf32>) -> tensor<8xf32>', PUT)}", "%1"],
    ["%a"],
    [cut("%0", "%a", 1, 2),
     f"%1 = {op('tensor.insert_slice', '%0, %a', '(tensor<2xf32>, tensor<8xf32>) -> tensor<8xf32>', PUT)}", "%1"],
)  # fmt: skip
pairs(
    "an element that was put in", f"%a: {T}, %v: f32, %i: index", "f32",
    [f"%0 = {op('tensor.insert', '%v, %a, %i', f'(f32, {T}, index) -> {T}')}",
     f"%1 = {op('tensor.extract', '%0, %i', f'({T}, index) -> f32')}", "%1"],
    ["%v"],
    [f"%1 = {op('tensor.extract', '%a, %i', f'({T}, index) -> f32')}", "%1"],
)  # fmt: skip
PAD = "static_low = array<i64: 1>, static_high = array<i64: 2>, operandSegmentSizes = array<i32: 1, 0, 0>"


def pad(value: str) -> list[str]:
    region = f'^bb0(%j: index):\n"tensor.yield"(%{value}) : (f32) -> ()'
    return [f"%c = {constant('1.0', 'f32')}", f"%d = {constant('2.0', 'f32')}",
            f"%0 = {op('tensor.pad', '%a', f'({T}) -> {T}', PAD, region)}", f"%i = {constant('0', 'index')}",
            f"%1 = {op('tensor.extract', '%0, %i', f'({T}, index) -> f32')}", "%1"]  # fmt: skip


pairs("what is before a padded tensor", f"%a: {T}", "f32", pad("c"), [f"%1 = {constant('1.0', 'f32')}", "%1"], pad("d"))
pairs(
    "a size is checked", f"%a: {T}", T,
    [f"%0 = {op('tensor.cast', '%a', f'({T}) -> tensor<4xf32>')}",
     f"%1 = {op('tensor.cast', '%0', f'(tensor<4xf32>) -> {T}')}", "%1"],
    ["%a"],
    [f"%0 = {op('tensor.cast', '%a', f'({T}) -> tensor<5xf32>')}",
     f"%1 = {op('tensor.cast', '%0', f'(tensor<5xf32>) -> {T}')}", "%1"],
)  # fmt: skip
GENERATED = '^bb0(%i: index):\n%s = "arith.index_cast"(%i) : (index) -> i32\n{more}\n"tensor.yield"(%u) : (i32) -> ()'


def generated(more: str) -> str:
    return f"%0 = {op('tensor.generate', '%n', '(index) -> tensor<?xi32>', '', GENERATED.format(more=more))}"


pairs(
    "generated elements", "%n: index", "tensor<?xi32>",
    [generated(f'%u = "arith.addi"(%s, %s) : {II}'), "%0"],
    [generated(f'%k = "arith.constant"() <{{value = 2 : i32}}> : () -> i32\n%u = "arith.muli"(%s, %k) : {II}'), "%0"],
    [generated(f'%u = "arith.muli"(%s, %s) : {II}'), "%0"],
)  # fmt: skip
pairs(
    "elements of a constant", "", "f32",
    [f"%t = {constant('dense<[[1.0, 2.0], [3.0, 4.0]]>', 'tensor<2x2xf32>')}", ZERO, ONE,
     f"%0 = {op('tensor.extract', '%t, %one, %z', '(tensor<2x2xf32>, index, index) -> f32')}", "%0"],
    [f"%0 = {constant('3.0', 'f32')}", "%0"],
    [f"%0 = {constant('2.0', 'f32')}", "%0"],
)  # fmt: skip
pairs(
    "an affine expression", "%a: index, %b: index", "index",
    [f"%0 = {op('affine.apply', '%a, %b', II2, 'map = affine_map<(d0)[s0] -> (d0 * 2 + s0 + d0)>')}",
     "%0"],
    [f"%0 = {op('affine.apply', '%b, %a', II2, 'map = affine_map<(d0, d1) -> (d0 + d1 * 3)>')}",
     "%0"],
    [f"%0 = {op('affine.apply', '%a, %b', II2, 'map = affine_map<(d0, d1) -> (d0 + d1 * 3)>')}",
     "%0"],
)  # fmt: skip

# -- TOSA ------------------------------------------------------------------------------------------------------

A, B = "tensor<2x3xf32>", "tensor<3xf32>"
pairs(
    "TOSA adds with broadcasting", f"%a: {A}, %b: {B}", A,
    [f"%0 = {op('tosa.add', '%a, %b', f'({A}, {B}) -> {A}')}", "%0"],
    [f"%1 = {op('tosa.reshape', '%b', f'({B}) -> tensor<1x3xf32>', 'new_shape = array<i64: 1, 3>')}",
     f"%0 = {op('tosa.add', '%1, %a', f'(tensor<1x3xf32>, {A}) -> {A}')}", "%0"],
    [f"%0 = {op('tosa.sub', '%a, %b', f'({A}, {B}) -> {A}')}", "%0"],
)  # fmt: skip
PERM = f"%p = {op('tosa.const', '', '() -> tensor<2xi32>', 'value = dense<[1, 0]> : tensor<2xi32>')}"
pairs(
    "transposed twice", f"%a: {M}", M,
    [PERM, f"%0 = {op('tosa.transpose', '%a, %p', f'({M}, tensor<2xi32>) -> {M}')}",
     f"%1 = {op('tosa.transpose', '%0, %p', f'({M}, tensor<2xi32>) -> {M}')}", "%1"],
    ["%a"],
    [PERM, f"%0 = {op('tosa.transpose', '%a, %p', f'({M}, tensor<2xi32>) -> {M}')}", "%0"],
)  # fmt: skip
pairs(
    "reversed twice", f"%a: {M}", M,
    [f"%0 = {op('tosa.reverse', '%a', f'({M}) -> {M}', 'axis = 1 : i32')}",
     f"%1 = {op('tosa.reverse', '%0', f'({M}) -> {M}', 'axis = 1 : i32')}", "%1"],
    ["%a"],
    [f"%1 = {op('tosa.reverse', '%a', f'({M}) -> {M}', 'axis = 1 : i32')}", "%1"],
)  # fmt: skip
pairs(
    "concatenated in steps", f"%a: {T}, %b: {T}, %c: {T}", T,
    [f"%0 = {op('tosa.concat', '%a, %b', f'({T}, {T}) -> {T}', 'axis = 0 : i32')}",
     f"%1 = {op('tosa.concat', '%0, %c', f'({T}, {T}) -> {T}', 'axis = 0 : i32')}", "%1"],
    [f"%1 = {op('tosa.concat', '%a, %b, %c', f'({T}, {T}, {T}) -> {T}', 'axis = 0 : i32')}", "%1"],
    [f"%1 = {op('tosa.concat', '%a, %c, %b', f'({T}, {T}, {T}) -> {T}', 'axis = 0 : i32')}", "%1"],
)  # fmt: skip
pairs(
    "tiled in steps", "%a: tensor<3xf32>", "tensor<12xf32>",
    [f"%0 = {op('tosa.tile', '%a', '(tensor<3xf32>) -> tensor<6xf32>', 'multiples = array<i64: 2>')}",
     f"%1 = {op('tosa.tile', '%0', '(tensor<6xf32>) -> tensor<12xf32>', 'multiples = array<i64: 2>')}", "%1"],
    [f"%1 = {op('tosa.tile', '%a', '(tensor<3xf32>) -> tensor<12xf32>', 'multiples = array<i64: 4>')}", "%1"],
    [f"%0 = {op('tosa.reverse', '%a', '(tensor<3xf32>) -> tensor<3xf32>', 'axis = 0 : i32')}",
     f"%1 = {op('tosa.tile', '%0', '(tensor<3xf32>) -> tensor<12xf32>', 'multiples = array<i64: 4>')}", "%1"],
)  # fmt: skip
SUMMED, ROWS = "tensor<1x4xf32>", "(tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32>"
WIDER = "reassociation = [[0, 1]], static_output_shape = array<i64: 1, 4>"
REDUCED = f"%0 = {op('tosa.reduce_sum', '%a', f'(tensor<3x4xf32>) -> {SUMMED}', 'axis = 0 : i32')}"


def lowered(start: str) -> list[str]:
    return [f"%c = {constant(start, 'f32')}", empty("%e", "", "tensor<4xf32>"),
            f"%i = {op('linalg.fill', '%c, %e', '(f32, tensor<4xf32>) -> tensor<4xf32>', ONE_ONE)}",
            f"%t = {generic('%a, %i', ROWS, [ID, '(d0, d1) -> (d1)'], 'rp', '1, 1', PLUS)}",
            f"%0 = {op('tensor.expand_shape', '%t', f'(tensor<4xf32>) -> {SUMMED}', WIDER)}",
            "%0"]  # fmt: skip


pairs("TOSA's sum as loops", "%a: tensor<3x4xf32>", SUMMED, [REDUCED, "%0"], lowered("0.0"), lowered("-0.0"))
V, I_, R_ = "tensor<1x?x2xf32>", "tensor<1x3xi32>", "tensor<1x3x2xf32>"
GATHER_BODY = (
    '^bb0(%q: i32, %r: f32):\n%n = "linalg.index"() <{dim = 0 : i64}> : () -> index\n'
    '%k = "linalg.index"() <{dim = 2 : i64}> : () -> index\n%x = "arith.index_cast"(%q) : (i32) -> index\n'
    f'%y = "tensor.extract"(%v, %n, %x, %k) : ({V}, index, index, index) -> f32\n"linalg.yield"(%y) : (f32) -> ()'
)


def gathered(last: int) -> list[str]:
    maps = ["(d0, d1, d2) -> (d0, d1)", "(d0, d1, d2) -> (d0, d1, d2)"]
    body = GATHER_BODY.replace("dim = 2", f"dim = {last}")
    return [empty("%e", "", R_), f"%0 = {generic('%i, %e', f'({I_}, {R_}) -> {R_}', maps, 'ppp', '1, 1', body)}", "%0"]


GATHERED = [f"%0 = {op('tosa.gather', '%v, %i', f'({V}, {I_}) -> {R_}')}", "%0"]
pairs("TOSA's gather as loops", f"%v: {V}, %i: {I_}", R_, GATHERED, gathered(2), gathered(0))


@pytest.mark.parametrize("name", VALID)
def test_valid_pairs_are_proved(name: str) -> None:
    outcome = verdict(*VALID[name])
    assert outcome.status is Status.PROVED, outcome.reason
    assert outcome.runs is not None
    assert outcome.runs.count > 0


@pytest.mark.parametrize("name", slow_but(INVALID.keys() - {"TOSA's sum as loops"}, INVALID))
def test_invalid_pairs_are_refuted_by_an_input(name: str) -> None:
    outcome = verdict(*INVALID[name])
    assert outcome.status is Status.REFUTED, outcome.reason
    assert isinstance(outcome.details["counterexample"], Counterexample)


@pytest.mark.parametrize("name", VALID)
def test_functions_refine_themselves(name: str) -> None:
    source = VALID[name][0]
    assert verdict(source, source).status is Status.PROVED


def test_readings_decide_where_sums_start() -> None:
    minus = Options(Reading(sums_start_at_minus_zero=True))
    assert verdict(*VALID["TOSA's sum as loops"], minus).status is Status.REFUTED
    assert verdict(*INVALID["TOSA's sum as loops"], minus).status is Status.PROVED
    both = Options(Reading(use_neg_zero=True, sums_start_at_minus_zero=True))
    assert verdict(*VALID["TOSA's sum as loops"], both).status is Status.PROVED


def test_how_a_sparse_tensor_is_stored_changes_no_element() -> None:
    stored = "tensor<?xf32, #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>>"
    convert = op("sparse_tensor.convert", "%x", f"(tensor<?xf32>) -> {stored}")
    back = op("sparse_tensor.convert", "%y", f"({stored}) -> tensor<?xf32>")
    arguments = "%x: tensor<?xf32>, %i: index"
    source = function(arguments, "tensor<?xf32>", f"%y = {convert}", f"%z = {back}", "%z")
    outcome = verdict(source, function(arguments, "tensor<?xf32>", "%x"))
    assert outcome.status is Status.PROVED, outcome.reason
    assert "how a sparse tensor is stored changes none of its elements" in outcome.claim.assumptions
    negated = op("arith.negf", "%z", "(tensor<?xf32>) -> tensor<?xf32>")
    other = function(arguments, "tensor<?xf32>", f"%y = {convert}", f"%z = {back}", f"%w = {negated}", "%w")
    assert status(source, other) is Status.REFUTED
