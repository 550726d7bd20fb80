"""Chains of TOSA's operators as loops: reductions inside of reductions, and maxima that start at the lowest number."""

from __future__ import annotations

import pytest

from chc.translation.prove import Prover
from ir_semantics.elements.binders import fold
from ir_semantics.elements.operators import apply, at_most, choose, same
from ir_semantics.elements.terms import constant as literal
from ir_semantics.elements.terms import fresh, is_true, new_terms, number
from ir_semantics.mlir import ir
from ir_semantics.scalars.formats import INTEGERS, Format
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.ir_semantics.mlir.mlir_text import constant, function, generic, op

from .verdicts import status, verdict

T, ROW, COLUMN = "tensor<3x3xf32>", "tensor<3x1xf32>", "tensor<3xf32>"
LOWEST = "-3.40282347E+38"
ID, FIRST = "(d0, d1) -> (d0, d1)", "(d0, d1) -> (d0, 0)"
FF = "(f32, f32) -> f32"
FILL = "operandSegmentSizes = array<i32: 1, 1>"


def softmax(*, whole: bool) -> ir.Operation:
    """In TOSA; else the differences alone."""
    lines = [
        f"%m = {op('tosa.reduce_max', '%x', f'({T}) -> {ROW}', 'axis = 1 : i32')}",
        f"%d = {op('tosa.sub', '%x, %m', f'({T}, {ROW}) -> {T}')}",
        f"%e = {op('tosa.exp', '%d', f'({T}) -> {T}')}",
        f"%s = {op('tosa.reduce_sum', '%e', f'({T}) -> {ROW}', 'axis = 1 : i32')}",
        f"%i = {op('tosa.reciprocal', '%s', f'({ROW}) -> {ROW}')}",
        f"%r = {op('tosa.mul', '%e, %i', f'({T}, {ROW}) -> {T}', 'shift = 0 : i8')}",
    ]
    return function(f"%x: {T}", T, *lines, "%r") if whole else function(f"%x: {T}", T, *lines[:2], "%d")


def reduced(name: str, operand: str, start: str, operator: str, axis: int) -> list[str]:
    """A reduction along an axis, as a tensor of one column."""
    body = f'^bb0(%p1: f32, %p2: f32):\n%p3 = "{operator}"(%p1, %p2) : {FF}\n"linalg.yield"(%p3) : (f32) -> ()'
    shape = "reassociation = [[0, 1]], static_output_shape = array<i64: 3, 1>"
    return [
        f"%c{name} = {constant(start, 'f32')}",
        f"%e{name} = {op('tensor.empty', '', f'() -> {COLUMN}')}",
        f"%f{name} = {op('linalg.fill', f'%c{name}, %e{name}', f'(f32, {COLUMN}) -> {COLUMN}', FILL)}",
        f"%r{name} = "
        + op(
            "linalg.reduce", f"{operand}, %f{name}", f"({T}, {COLUMN}) -> {COLUMN}", f"dimensions = array<i64: {axis}>",
            body,
        ),
        f"%{name} = {op('tensor.expand_shape', f'%r{name}', f'({COLUMN}) -> {ROW}', shape)}",
    ]  # fmt: skip


def loops(start: str = LOWEST, axis: int = 1, *, shifted: bool = True, whole: bool = True) -> ir.Operation:
    """As :func:`softmax`, as loops; in the wrong ones the maximum starts elsewhere, or goes along the other axis."""
    minus = (
        f'^bb0(%p1: f32, %p2: f32, %p3: f32):\n%p4 = "arith.subf"(%p1, %p2) : {FF}\n"linalg.yield"(%p4) : (f32) -> ()'
    )
    power = '^bb0(%p1: f32, %p2: f32):\n%p3 = "math.exp"(%p1) : (f32) -> f32\n"linalg.yield"(%p3) : (f32) -> ()'
    share = (
        f'^bb0(%p1: f32, %p2: f32, %p3: f32):\n%p4 = {constant("1.0", "f32")}\n%p5 = "arith.divf"(%p4, %p2) : {FF}\n'
        f'%p6 = "arith.mulf"(%p1, %p5) : {FF}\n"linalg.yield"(%p6) : (f32) -> ()'
    )
    lines = [
        *reduced("m", "%x", start, "arith.maximumf", axis),
        f"%e = {op('tensor.empty', '', f'() -> {T}')}",
        f"%d = {generic('%x, %m, %e', f'({T}, {ROW}, {T}) -> {T}', [ID, FIRST, ID], 'pp', '2, 1', minus)}",
        f"%p = {generic('%d, %e' if shifted else '%x, %e', f'({T}, {T}) -> {T}', [ID, ID], 'pp', '1, 1', power)}",
        *reduced("s", "%p", "0.0", "arith.addf", 1),
        f"%r = {generic('%p, %s, %e', f'({T}, {ROW}, {T}) -> {T}', [ID, FIRST, ID], 'pp', '2, 1', share)}",
    ]
    return function(f"%x: {T}", T, *lines, "%r") if whole else function(f"%x: {T}", T, *lines[:7], "%d")


@pytest.mark.parametrize("start", [LOWEST, "0xFF800000"])
def test_a_softmax_as_loops(start: str) -> None:
    """From the lowest number, rows of minus infinities have another maximum, and the quotients are NaN all the same."""
    assert status(softmax(whole=True), loops(start)) is Status.PROVED


@pytest.mark.parametrize(
    "wrong",
    [loops("0.0"), loops(axis=0), loops(shifted=False), loops("-3.0e+38")],
    ids=["the maximum starts at 0", "the other axis", "of what is not shifted", "above the lowest number"],
)
def test_a_wrong_softmax(wrong: ir.Operation) -> None:
    assert status(softmax(whole=True), wrong) is Status.REFUTED


def test_the_differences_to_a_maximum_show_where_it_starts() -> None:
    assert status(softmax(whole=False), loops("0xFF800000", whole=False)) is Status.PROVED
    assert status(softmax(whole=False), loops(whole=False)) is Status.REFUTED


IMAGE, POOLED = "tensor<1x4x4x2xf32>", "tensor<1x2x2x2xf32>"
WINDOW = "kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>"


def clamped_pool(least: str = "0.0") -> ir.Operation:
    """The largest elements of windows of an image, which is cut to a range before."""
    return function(
        f"%x: {IMAGE}", POOLED,
        f"%c = {op('tosa.clamp', '%x', f'({IMAGE}) -> {IMAGE}', f'max_val = 6.0 : f32, min_val = {least} : f32')}",
        f"%r = {op('tosa.max_pool2d', '%c', f'({IMAGE}) -> {POOLED}', WINDOW)}", "%r",
    )  # fmt: skip


def pooled_loops(start: str = LOWEST, most: str = "6.0") -> ir.Operation:
    """As :func:`clamped_pool`, as loops, in which the range is cut from the other end first."""
    all_of = "(d0, d1, d2, d3) -> (d0, d1, d2, d3)"
    cut = (
        f"^bb0(%p1: f32, %p2: f32):\n%p3 = {constant('0.0', 'f32')}\n%p4 = {constant(most, 'f32')}\n"
        f'%p5 = "arith.minimumf"(%p1, %p4) : {FF}\n%p6 = "arith.maximumf"(%p5, %p3) : {FF}\n'
        '"linalg.yield"(%p6) : (f32) -> ()'
    )
    larger = (
        f'^bb0(%p1: f32, %p2: f32, %p3: f32):\n%p4 = "arith.maximumf"(%p3, %p1) : {FF}\n'
        '"linalg.yield"(%p4) : (f32) -> ()'
    )
    maps = [
        "(n, y, x, c, i, j) -> (n, y * 2 + i, x * 2 + j, c)", "(n, y, x, c, i, j) -> (i, j)",
        "(n, y, x, c, i, j) -> (n, y, x, c)",
    ]  # fmt: skip
    types = f"({IMAGE}, tensor<2x2xf32>, {POOLED}) -> {POOLED}"
    return function(
        f"%x: {IMAGE}", POOLED,
        f"%e = {op('tensor.empty', '', f'() -> {IMAGE}')}",
        f"%c = {generic('%x, %e', f'({IMAGE}, {IMAGE}) -> {IMAGE}', [all_of, all_of], 'pppp', '1, 1', cut)}",
        f"%l = {constant(start, 'f32')}", f"%w = {op('tensor.empty', '', '() -> tensor<2x2xf32>')}",
        f"%o = {op('tensor.empty', '', f'() -> {POOLED}')}",
        f"%f = {op('linalg.fill', '%l, %o', f'(f32, {POOLED}) -> {POOLED}', FILL)}",
        f"%r = {generic('%c, %w, %f', types, maps, 'pppprr', '2, 1', larger)}",
        "%r",
    )  # fmt: skip


def test_a_pooling_of_a_range_may_start_at_the_lowest_number() -> None:
    """Without the range it may not: of minus infinities the maximum would be that number."""
    found = verdict(clamped_pool(), pooled_loops())
    assert found.status is Status.PROVED
    assert not any("the same: the same" in o.name for o in found.obligations)
    for start, most in ((LOWEST, "7.0"), ("1.0", "6.0")):
        assert status(clamped_pool(), pooled_loops(start, most)) is Status.REFUTED
    assert status(clamped_pool("-1.0"), pooled_loops()) is Status.REFUTED


def averages() -> ir.Operation:
    """Averages of windows that reach over the image: 2x2 of 3x2, with a row above, a column before and one behind."""
    window = "acc_type = f32, kernel = array<i64: 2, 2>, pad = array<i64: 1, 0, 1, 1>, stride = array<i64: 1, 1>"
    return function(
        "%x: tensor<1x3x2x1xf32>", "tensor<1x3x3x1xf32>",
        f"%r = {op('tosa.avg_pool2d', '%x', '(tensor<1x3x2x1xf32>) -> tensor<1x3x3x1xf32>', window)}", "%r",
    )  # fmt: skip


def averages_by_loops(border: str = "0.0", start: str = "0.0", behind: int = 1) -> ir.Operation:
    """As :func:`averages`: sums of windows of a padded image, over the number of elements that are inside."""

    def inside(name: str, dimension: int, high: int) -> list[str]:
        """The two elements of a window, but for one before, and as many as are behind."""
        index, binary = "() -> index", "(index, index) -> index"
        return [
            f"%{name}i = {op('linalg.index', '', index, f'dim = {dimension} : i64')}",
            f"%{name}a = {op('arith.subi', f'%{name}i, %k1', binary)}",
            f"%{name}b = {op('arith.minsi', f'%{name}a, %k0', binary)}",
            f"%{name}h = {constant(str(2 - high), 'index')}",
            f"%{name}c = {op('arith.subi', f'%{name}h, %{name}i', binary)}",
            f"%{name}d = {op('arith.minsi', f'%{name}c, %k0', binary)}",
            f"%{name}e = {op('arith.addi', f'%{name}b, %{name}d', binary)}",
            f"%{name} = {op('arith.addi', f'%{name}e, %k2', binary)}",
        ]

    lines = [
        "^bb0(%p1: f32, %p2: f32):", *(f"%k{n} = {constant(str(n), 'index')}" for n in range(3)),
        *inside("u", 1, 0), *inside("v", 2, behind), f"%n = {op('arith.muli', '%u, %v', '(index, index) -> index')}",
        f"%w = {op('arith.index_cast', '%n', '(index) -> i32')}", f"%q = {op('arith.sitofp', '%w', '(i32) -> f32')}",
        f"%p3 = {op('arith.divf', '%p1, %q', FF)}", '"linalg.yield"(%p3) : (f32) -> ()',
    ]  # fmt: skip
    share = "\n".join(lines)
    pads = (
        "operandSegmentSizes = array<i32: 1, 0, 0>, static_high = array<i64: 0, 0, 1, 0>, "
        "static_low = array<i64: 0, 1, 1, 0>"
    )
    outside = (
        "^bb0(%i: index, %j: index, %k: index, %l: index):\n"
        f'%p0 = {constant(border, "f32")}\n"tensor.yield"(%p0) : (f32) -> ()'
    )
    add = f'^bb0(%p1: f32, %p2: f32, %p3: f32):\n%p4 = "arith.addf"(%p3, %p1) : {FF}\n"linalg.yield"(%p4) : (f32) -> ()'
    small, wide, result = "tensor<1x3x2x1xf32>", "tensor<1x4x4x1xf32>", "tensor<1x3x3x1xf32>"
    maps = [f"(n, y, x, c, i, j) -> ({at})" for at in ("n, y + i, x + j, c", "i, j", "n, y, x, c")]
    types, one = f"({wide}, tensor<2x2xf32>, {result}) -> {result}", "(n, y, x, c) -> (n, y, x, c)"
    return function(
        f"%x: {small}", result, f"%a = {op('tensor.pad', '%x', f'({small}) -> {wide}', pads, outside)}",
        f"%z = {constant(start, 'f32')}", f"%g = {op('tensor.empty', '', '() -> tensor<2x2xf32>')}",
        f"%e = {op('tensor.empty', '', f'() -> {result}')}",
        f"%f = {op('linalg.fill', '%z, %e', f'(f32, {result}) -> {result}', FILL)}",
        f"%s = {generic('%a, %g, %f', types, maps, 'pppprr', '2, 1', add)}",
        f"%r = {generic('%s, %e', f'({result}, {result}) -> {result}', [one, one], 'pppp', '1, 1', share)}",
        "%r",
    )  # fmt: skip


def test_averages_of_windows_that_reach_over_the_image() -> None:
    """Zeros that are added change nothing, as the sum is never -0.0."""
    assert status(averages(), averages_by_loops()) is Status.PROVED
    for border, start, behind in (("1.0", "0.0", 1), ("0.0", "1.0", 1), ("0.0", "0.0", 0)):
        assert status(averages(), averages_by_loops(border, start, behind)) is Status.REFUTED


@pytest.mark.parametrize(("start", "holds"), [(0, True), (1, True), (-0.0, False)])
def test_zeros_that_are_added_change_sums_that_start_with_minus_zero(start: float, holds: bool) -> None:
    kind = Format("float", (8, 24))
    with new_terms():
        accumulator, x, k = fresh("sum", kind), fresh("x", kind), fresh("k", INTEGERS)
        there = at_most(k, number(1))
        steps = (
            choose(there, apply("add", accumulator, x), accumulator),
            apply("add", accumulator, choose(there, x, literal(0, kind))),
        )
        sums = [fold(literal(start, kind), accumulator, [(k, number(3))], step) for step in steps]
        prover = Prover(Discharger(timeout=20), "sums")
        assert is_true(prover.joined("sums are equal", (), same(*sums), ())) is holds
