"""Claims that are false, or say nothing, and that a weaker method accepts: none of them is proved.

Several are from what mlir-tv is suspected to get wrong.
"""

from __future__ import annotations

import pytest

from ir_semantics.mlir import ir
from ir_semantics.mlir.reader import read
from smt_encodings.claims import Status
from tests.ir_semantics.mlir.mlir_text import constant, function, generic, op

from .verdicts import status, verdict

II, FF = "(i32, i32) -> i32", "(f32, f32) -> f32"
SEGMENTS = "operandSegmentSizes = array<i32: 2, 1>"
MUL_ADD = (
    f'^bb0(%p: i32, %q: i32, %r: i32):\n%s = "arith.muli"(%p, %q) : {II}\n'
    f'%u = "arith.addi"(%r, %s) : {II}\n"linalg.yield"(%u) : (i32) -> ()'
)


def dot(a: str, b: str, start: str, type_: str = "tensor<?xi32>") -> str:
    return op("linalg.dot", f"{a}, {b}, {start}", f"({type_}, {type_}, tensor<i32>) -> tensor<i32>", SEGMENTS, MUL_ADD)


VECTORS = "%a: tensor<?xi32>, %b: tensor<?xi32>, %c: tensor<i32>, %d: tensor<i32>"


def dot_from(start: str) -> ir.Operation:
    return function(VECTORS, "tensor<i32>", f"%0 = {dot('%a', '%b', start)}", "%0")


def test_products_of_integers_start_from_their_accumulator() -> None:
    assert status(dot_from("%c"), dot_from("%d")) is Status.REFUTED


def test_a_square_of_integers_may_be_odd() -> None:
    squares = f"%0 = {dot('%a', '%a', '%c')}"
    extract = f"%1 = {op('tensor.extract', '%0', '(tensor<i32>) -> i32')}"
    one = f"%o = {constant('1', 'i32')}"
    parity = function(VECTORS, "i32", squares, extract, one, f"%2 = {op('arith.andi', '%1, %o', II)}", "%2")
    zero = function(VECTORS, "i32", f"%2 = {constant('0', 'i32')}", "%2")
    assert status(parity, zero) is Status.REFUTED


def test_the_absolute_value_of_integers_is_not_a_mask() -> None:
    absolute = function("%a: i8", "i8", f"%0 = {op('math.absi', '%a', '(i8) -> i8')}", "%0")
    mask = function(
        "%a: i8", "i8", f"%m = {constant('127', 'i8')}", f"%0 = {op('arith.andi', '%a, %m', '(i8, i8) -> i8')}", "%0"
    )
    assert status(absolute, mask) is Status.REFUTED
    of_minus_one = function(
        "", "i8", f"%a = {constant('-1', 'i8')}", f"%0 = {op('math.absi', '%a', '(i8) -> i8')}", "%0"
    )
    assert status(of_minus_one, function("", "i8", f"%0 = {constant('1', 'i8')}", "%0")) is Status.PROVED


def test_quotients_say_nothing_of_products() -> None:
    def both(name: str) -> ir.Operation:
        return function("%a: f32, %b: f32", "f32", f"%0 = {op(name, '%a, %b', FF)}", "%0")

    assert status(both("arith.mulf"), both("arith.divf")) is Status.REFUTED


@pytest.mark.parametrize(
    ("predicate", "zeros"), [(4, "-0.0, 0.0"), (2, "0.0, -0.0"), (11, "-0.0, 0.0"), (9, "0.0, -0.0")]
)
def test_zeros_are_not_ordered(predicate: int, zeros: str) -> None:
    a, b = zeros.split(", ")
    compared = function(
        "", "i1", f"%a = {constant(a, 'f32')}", f"%b = {constant(b, 'f32')}",
        f"%0 = {op('arith.cmpf', '%a, %b', '(f32, f32) -> i1', f'predicate = {predicate} : i64')}", "%0",
    )  # fmt: skip
    assert status(compared, function("", "i1", f"%0 = {constant('false', 'i1')}", "%0")) is Status.PROVED
    assert status(compared, function("", "i1", f"%0 = {constant('true', 'i1')}", "%0")) is Status.REFUTED


def test_many_floats_may_be_in_order() -> None:
    """A strictly increasing chain of 16 elements of one tensor exists, so its truth is not false."""
    lines, last = [], ""
    for i in range(16):
        lines += [f"%i{i} = {constant(str(i), 'index')}"]
        lines += [f"%e{i} = {op('tensor.extract', f'%t, %i{i}', '(tensor<16xf32>, index) -> f32')}"]
    for i in range(15):
        lines.append(f"%c{i} = {op('arith.cmpf', f'%e{i}, %e{i + 1}', '(f32, f32) -> i1', 'predicate = 4 : i64')}")
        if i:
            lines.append(f"%x{i} = {op('arith.andi', f'{last}, %c{i}', '(i1, i1) -> i1')}")
        last = f"%x{i}" if i else "%c0"
    chain = function("%t: tensor<16xf32>", "i1", *lines, last)
    never = function("%t: tensor<16xf32>", "i1", f"%0 = {constant('false', 'i1')}", "%0")
    assert status(chain, never) in (Status.UNKNOWN, Status.REFUTED)


def test_sizes_are_not_counted_modulo_two_to_the_32() -> None:
    big = "tensor<65536x65536xi8>"

    def filled(value: int) -> ir.Operation:
        return function("", big, f"%0 = {constant(f'dense<{value}>', big)}", "%0")

    assert status(filled(1), filled(2)) is Status.REFUTED
    assert status(filled(1), filled(1)) is Status.PROVED


def test_a_dilated_window_reaches_the_last_rows() -> None:
    image, weights, bias = "tensor<1x7x7x1xf32>", "tensor<1x3x3x1xf32>", "tensor<1xf32>"
    attributes = "pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 2, 2>"

    def convolved(out: str) -> ir.Operation:
        conv = op("tosa.conv2d", "%a, %w, %b", f"({image}, {weights}, {bias}) -> {out}", attributes)
        return function(f"%a: {image}, %w: {weights}, %b: {bias}", out, f"%0 = {conv}", "%0")

    right = convolved("tensor<1x3x3x1xf32>")
    assert status(right, right) is Status.PROVED
    wrong = convolved("tensor<1x2x2x1xf32>")
    assert status(wrong, wrong) is Status.VACUOUS


def test_slices_reach_as_far_as_their_strides() -> None:
    attributes = (
        "static_offsets = array<i64: 0>, static_sizes = array<i64: 3>, static_strides = array<i64: 3>, "
        "operandSegmentSizes = array<i32: 1, 0, 0, 0>"
    )
    cut = f"%0 = {op('tensor.extract_slice', '%a', '(tensor<6xf32>) -> tensor<3xf32>', attributes)}"
    sliced = function("%a: tensor<6xf32>", "tensor<3xf32>", cut, "%0")
    constant_ = function("%a: tensor<6xf32>", "tensor<3xf32>", f"%0 = {constant('dense<1.0>', 'tensor<3xf32>')}", "%0")
    assert status(sliced, constant_) is Status.VACUOUS
    one = f"%1 = {constant('dense<1.0>', 'tensor<3xf32>')}"
    assert status(constant_, function("%a: tensor<6xf32>", "tensor<3xf32>", cut, one, "%1")) is Status.REFUTED


def test_a_window_of_minus_infinities_has_no_largest_finite_number() -> None:
    image, out = "tensor<1x2x2x1xf32>", "tensor<1x1x1x1xf32>"
    attributes = "kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>"
    pooled = function(
        f"%a: {image}", out, f"%0 = {op('tosa.max_pool2d', '%a', f'({image}) -> {out}', attributes)}", "%0"
    )
    body = f'^bb0(%p: f32, %q: f32, %r: f32):\n%s = "arith.maximumf"(%r, %p) : {FF}\n"linalg.yield"(%s) : (f32) -> ()'

    types = f"({image}, tensor<2x2xf32>, {out}) -> {out}"

    def from_number(start: str) -> ir.Operation:
        lines = [
            f"%c = {constant(start, 'f32')}",
            f"%k = {op('tensor.empty', '', '() -> tensor<2x2xf32>')}",
            f"%e = {op('tensor.splat', '%c', f'(f32) -> {out}')}",
            f"%0 = {op('linalg.pooling_nhwc_max', '%a, %k, %e', types, SEGMENTS, body)}",
        ]
        return function(f"%a: {image}", out, *lines, "%0")

    assert status(pooled, from_number("0xFF7FFFFF")) is Status.REFUTED
    assert status(pooled, from_number("0xFF800000")) is Status.PROVED


def test_iterations_that_may_run_at_once_do_not_add_up() -> None:
    """As for loops of scf: two iterations of a parallel loop must not write one element; of a single one none can."""

    def added(loops: str, size: str) -> ir.Operation:
        vector = f"tensor<{size}xi32>"
        body = f'^bb0(%p: i32, %r: i32):\n%s = "arith.addi"(%p, %r) : {II}\n"linalg.yield"(%s) : (i32) -> ()'
        types = f"({vector}, tensor<i32>) -> tensor<i32>"
        total = generic("%a, %e", types, ["(i) -> (i)", "(i) -> ()"], loops, "1, 1", body)
        return function(f"%a: {vector}, %e: tensor<i32>", "tensor<i32>", f"%0 = {total}", "%0")

    outcome = verdict(added("r", "?"), added("p", "?"))
    assert outcome.status is Status.UNKNOWN
    assert "iterations of a parallel loop that write one element have no meaning here" in outcome.reason
    assert status(added("r", "1"), added("p", "1")) is Status.PROVED


def test_what_tosa_makes_of_nan_as_an_integer_is_open() -> None:
    cast = f"%0 = {op('tosa.cast', '%a', '(tensor<f32>) -> tensor<i32>')}"
    lines = [
        cast,
        f"%n = {op('arith.cmpf', '%a, %a', '(tensor<f32>, tensor<f32>) -> tensor<i1>', 'predicate = 14 : i64')}",
        f"%z = {constant('dense<0>', 'tensor<i32>')}",
        f"%1 = {op('arith.select', '%n, %z, %0', '(tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>')}",
    ]
    open_ = function("%a: tensor<f32>", "tensor<i32>", cast, "%0")
    zero = function("%a: tensor<f32>", "tensor<i32>", *lines, "%1")
    outcome = verdict(open_, zero)
    assert outcome.status is Status.PROVED
    assert "tosa.cast of NaN to an integer may give any integer" in outcome.claim.assumptions
    assert status(zero, open_) is Status.REFUTED


# -- what is not defined --------------------------------------------------------------------------------------

PLUS = f'^bb0(%p: f32, %r: f32):\n%s = "arith.addf"(%p, %r) : {FF}\n"linalg.yield"(%s) : (f32) -> ()'
SUM = generic(
    "%a, %e", "(tensor<3xf32>, tensor<f32>) -> tensor<f32>", ["(d0) -> (d0)", "(d0) -> ()"], "r", "1, 1", PLUS
)
EMPTY = f"%e = {op('tensor.empty', '', '() -> tensor<f32>')}"


def test_a_sum_that_starts_from_nothing_is_vacuous_as_source_and_wrong_as_target() -> None:
    summed = function("%a: tensor<3xf32>", "tensor<f32>", EMPTY, f"%0 = {SUM}", "%0")
    one = function("%a: tensor<3xf32>", "tensor<f32>", f"%0 = {constant('dense<1.0>', 'tensor<f32>')}", "%0")
    assert status(summed, one) is Status.VACUOUS
    refuted = verdict(one, summed)
    assert refuted.status is Status.REFUTED
    assert "is not defined" in refuted.reason


def test_a_division_that_is_not_there_must_not_be_made() -> None:
    plain = function("%a: i8, %b: i8", "i8", "%a")
    divided = function("%a: i8, %b: i8", "i8", f"%0 = {op('arith.divsi', '%a, %b', '(i8, i8) -> i8')}", "%a")
    refuted = verdict(plain, divided)
    assert refuted.status is Status.REFUTED
    assert "undefined behaviour" in refuted.reason
    assert "arith.divsi" in refuted.reason


def test_shapes_that_must_be_equal_may_not_be_made_so() -> None:
    t = "tensor<?xf32>"
    cast = f"%0 = {op('tensor.cast', '%a', f'({t}) -> tensor<4xf32>')}"
    assert status(function(f"%a: {t}", t, "%a"), function(f"%a: {t}", t, cast, "%a")) is Status.REFUTED
    assert status(function(f"%a: {t}", t, cast, "%a"), function(f"%a: {t}", t, "%a")) is Status.PROVED


def test_dynamic_sizes_of_one_are_broadcast() -> None:
    t = "tensor<?xf32>"
    added = function(f"%a: {t}, %b: {t}", t, f"%0 = {op('tosa.add', '%a, %b', f'({t}, {t}) -> {t}')}", "%0")
    looped = function(f"%a: {t}, %b: {t}", t, f"%0 = {op('arith.addf', '%a, %b', f'({t}, {t}) -> {t}')}", "%0")
    assert status(added, looped) is Status.REFUTED
    assert status(looped, added) is Status.PROVED


def test_what_has_no_meaning_is_said_with_its_place() -> None:
    unknown = function("%a: f32", "f32", f"%0 = {op('complex.abs', '%a', '(f32) -> f32')}", "%0")
    outcome = verdict(unknown, unknown)
    assert outcome.status is Status.UNKNOWN
    assert outcome.reason == ("complex.abs at 4:7: the operator has no meaning here; rewrite the function without it")
    outcome = verdict(function("%a: f32", "f32", "%a"), unknown)
    assert outcome.status is Status.UNKNOWN
    assert outcome.reason == (
        "the target's complex.abs at 4:7: the operator has no meaning here; rewrite the function without it"
    )


@pytest.mark.parametrize("written", ["complex<f32>", "memref<2xcomplex<f32>>"])
def test_types_in_messages_are_those_of_mlir(written: str) -> None:
    unknown = function(f"%a: {written}", written, "%a")
    assert verdict(unknown, unknown).reason == (
        f"func.func at 2:5: an argument of the type {written} has no meaning here; rewrite the function without it"
    )


BRANCHES = """
"func.func"() <{function_type = () -> (), sym_name = "f"}> ({
  "cf.br"()[^bb1] : () -> ()
^bb1:
  "func.return"() : () -> ()
}) : () -> ()"""
NO_SIZES = "operandSegmentSizes = array<i32: 0, 0>"
REFUSED = {
    "blocks": (
        next(iter(read(BRANCHES).symbols())),
        "func.func at 2:1: a function must be one block; keep control flow in operators of scf or affine",
    ),
    "a new buffer that ends with the function": (
        function("", "memref<f32>", f"%m = {op('memref.alloca', '', '() -> memref<f32>', NO_SIZES)}", "%m"),
        "func.return at 2:5: a new buffer that the caller may not write, or not free, cannot be returned here; "
        "make it by memref.alloc",
    ),
    "a call with a buffer": (
        function("%m: memref<f32>", "i1", f"%0 = {op('func.call', '%m', '(memref<f32>) -> i1', 'callee = @g')}", "%0"),
        "func.call at 4:7: a call with buffers has no meaning here; inline it",
    ),
    "what may be poison": (
        function(
            "%a: i32", "i32",
            f"%s = {op('arith.addi', '%a, %a', '(i32, i32) -> i32', 'overflowFlags = #arith.overflow<nsw>')}",
            f"%0 = {op('func.call', '%s', '(i32) -> i32', 'callee = @g')}", "%0",
        ),
        "func.call at 5:1: a source that gives to a call what may be undefined has no meaning here; "
        "write the source so that it is always defined",
    ),
    "an unknown divisor": (
        function("%i: index", "index", f"%0 = {op('arith.divsi', '%i, %i', '(index, index) -> index')}", "%0"),
        "arith.divsi at 4:7: a divisor of type index must be a positive constant; compute on i64",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("program", "message"), REFUSED.values(), ids=REFUSED)
def test_each_refusal_has_its_own_next_step(program: ir.Operation, message: str) -> None:
    outcome = verdict(program, program)
    assert (outcome.status, outcome.reason) == (Status.UNKNOWN, message)


def test_signatures_must_agree() -> None:
    with pytest.raises(ValueError, match=r"; @f is \(f32\) -> f32 in the source, and @f \(f64\) -> f64 in"):
        verdict(function("%a: f32", "f32", "%a"), function("%a: f64", "f64", "%a"))


def test_a_result_that_is_nowhere_defined_hides_no_undefined_behaviour() -> None:
    pair = "tensor<2xi32>"
    empty = f"%r = {op('tensor.empty', '', f'() -> {pair}')}"
    nothing = function("%a: i32", pair, empty, "%r")
    divided = function(
        "%a: i32", pair,
        f"%k = {constant('1522756', 'i32')}", f"%q = {op('arith.muli', '%a, %a', II)}",
        f"%d = {op('arith.subi', '%q, %k', II)}", f"%o = {constant('1', 'i32')}",
        f"%z = {op('arith.divui', '%o, %d', II)}", empty, "%r",
    )  # fmt: skip
    assert status(nothing, divided) in (Status.UNKNOWN, Status.REFUTED)  # 1234 times 1234 is 1522756
    assert status(nothing, nothing) is Status.VACUOUS
    assert status(divided, nothing) is Status.VACUOUS


def test_of_equal_places_in_a_sparse_constant_the_first_counts() -> None:
    kind = "tensor<3xi32>"
    listed = function("", kind, f"%0 = {constant('sparse<0, [1, 2]>', kind)}", "%0")
    for first, expected in ((1, Status.PROVED), (2, Status.REFUTED)):
        dense = function("", kind, f"%0 = {constant(f'dense<[{first}, 0, 0]>', kind)}", "%0")
        assert status(listed, dense) is expected


def test_a_slice_of_nothing_starts_inside_or_at_the_end() -> None:
    source, small = "tensor<5xf32>", "tensor<0xf32>"
    nothing = function(f"%t: {source}, %o: index", small, f"%0 = {op('tensor.empty', '', f'() -> {small}')}", "%0")

    def sliced(offset: int | None) -> ir.Operation:
        attributes = (
            f"static_offsets = array<i64: {-(1 << 63) if offset is None else offset}>, "
            "static_sizes = array<i64: 0>, static_strides = array<i64: 1>, "
            f"operandSegmentSizes = array<i32: 1, {int(offset is None)}, 0, 0>"
        )
        operands, types = ("%t, %o", f"({source}, index)") if offset is None else ("%t", f"({source})")
        line = op("tensor.extract_slice", operands, f"{types} -> {small}", attributes)
        return function(f"%t: {source}, %o: index", small, f"%0 = {line}", "%0")

    assert status(nothing, sliced(5)) is Status.PROVED
    for offset in (None, 6, -1):
        assert status(nothing, sliced(offset)) in (Status.REFUTED, Status.UNKNOWN)


def test_operations_that_do_not_fit_are_said_with_their_place() -> None:
    t = "tensor<2x3xf32>"
    turned = function(f"%a: {t}", t, f"%0 = {op('tosa.reverse', '%a', f'({t}) -> {t}', 'axis = 2 : i32')}", "%0")
    outcome = verdict(turned, turned)
    assert outcome.status is Status.UNKNOWN
    assert "the attribute axis must be a dimension, from 0 to 1, not 2" in outcome.reason
    mixed = function("%a: f32, %b: f64", "f32", f"%0 = {op('arith.addf', '%a, %b', '(f32, f64) -> f32')}", "%0")
    outcome = verdict(mixed, mixed)
    assert outcome.status is Status.UNKNOWN
    assert "operands, attributes and types of the operation do not fit" in outcome.reason
