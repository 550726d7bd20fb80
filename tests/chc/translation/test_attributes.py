"""Attributes that change what an operator means: none is passed over, and what they make poison is poison."""

from __future__ import annotations

import pytest

from ir_semantics.mlir import ir
from ir_semantics.mlir.reader import read
from smt_encodings.claims import Status
from tests.ir_semantics.mlir.mlir_text import constant, function, generic, op

from .verdicts import status, verdict

II, NSW, NUW = "(i32, i32) -> i32", "overflowFlags = #arith.overflow<nsw>", "overflowFlags = #arith.overflow<nuw>"
INDICES = "(index, index) -> index"


def one(name: str, arguments: str, types: str, attributes: str = "") -> ir.Operation:
    """A function that applies an operator to its arguments."""
    names = ", ".join(each.partition(":")[0] for each in arguments.split(", "))
    result = types.rpartition("-> ")[2]
    return function(arguments, result, f"%0 = {op(name, names, types, attributes)}", "%0")


@pytest.mark.parametrize(
    ("name", "arguments", "types", "promise"),
    [
        ("arith.trunci", "%a: i32", "(i32) -> i8", NSW),
        ("arith.trunci", "%a: i32", "(i32) -> i8", NUW),
        ("arith.trunci", "%a: i32", "(i32) -> i1", NSW),
        ("arith.divsi", "%a: i32, %b: i32", II, "isExact"),
        ("arith.divui", "%a: i32, %b: i32", II, "isExact"),
        ("arith.shrsi", "%a: i32, %b: i32", II, "isExact"),
        ("arith.shrui", "%a: i32, %b: i32", II, "isExact"),
        ("arith.addi", "%a: index, %b: index", INDICES, NUW),
        ("arith.subi", "%a: index, %b: index", INDICES, NUW),
        ("arith.muli", "%a: index, %b: index", INDICES, NUW),
    ],
)
def test_a_promise_may_be_dropped_and_not_added(name: str, arguments: str, types: str, promise: str) -> None:
    plain, promised = one(name, arguments, types), one(name, arguments, types, promise)
    assert status(plain, promised) is Status.REFUTED
    assert status(promised, plain) is Status.PROVED
    assert status(promised, promised) is Status.PROVED


FLOAT = "tensor<1xf32>"


@pytest.mark.parametrize(
    ("line", "result"),
    [
        (op("arith.addi", "%a, %a", II, "later"), "i32"),
        (op("arith.addi", "%a, %a", II, f"{NSW}, later = 1 : i32"), "i32"),
        (op("arith.extui", "%a", "(i32) -> i64", "nonNeg"), "i64"),
        (op("tosa.add", "%t, %t", f"({FLOAT}, {FLOAT}) -> {FLOAT}", "later = true"), FLOAT),
        (op("tensor.from_elements", "%a", "(i32) -> tensor<1xi32>", "later"), "tensor<1xi32>"),
        ('"arith.constant"() <{value = 1 : i32, values = 2 : i32}> : () -> i32', "i32"),
        (op("arith.addf", "%x, %x", "(f32, f32) -> f32", "fastmath = 1 : i32"), "f32"),
        (op("arith.addi", "%a, %a", II, "overflowFlags = #arith.overflow<later>"), "i32"),
    ],
)
def test_attributes_that_no_meaning_takes_are_not_covered(line: str, result: str) -> None:
    program = function(f"%a: i32, %t: {FLOAT}, %x: f32", result, f"%0 = {line}", "%0")
    assert status(program, program) is Status.UNKNOWN


def test_the_attribute_is_named_with_its_place() -> None:
    program = function("%a: i32", "i32", f"%0 = {op('arith.addi', '%a, %a', II, 'later')}", "%0")
    assert verdict(program, program).reason == (
        "arith.addi at 4:7: the attribute later has no meaning here; rewrite the function without it"
    )


def test_attributes_inside_of_regions_count() -> None:
    def doubled(attributes: str) -> ir.Operation:
        total = op("arith.addi", "%p, %p", II, attributes)
        body = f'^bb0(%p: i32, %q: i32):\n%s = {total}\n"linalg.yield"(%s) : (i32) -> ()'
        vector, identity = "tensor<4xi32>", "(d0) -> (d0)"
        loop = generic("%a, %b", f"({vector}, {vector}) -> {vector}", [identity] * 2, "p", "1, 1", body)
        return function(f"%a: {vector}, %b: {vector}", vector, f"%0 = {loop}", "%0")

    assert status(doubled(NSW), doubled("")) is Status.PROVED
    assert status(doubled(""), doubled(NSW)) is Status.REFUTED
    assert status(doubled("later"), doubled("later")) is Status.UNKNOWN


def whole(function_attributes: str, end: str = "") -> ir.Operation:
    text = f"""
    "func.func"() <{{function_type = (i32) -> i32, sym_name = "f"{function_attributes}}}> ({{
    ^bb0(%a: i32):
      "func.return"(%a) {end} : (i32) -> ()
    }}) : () -> ()
    """
    (symbol,) = read(text).symbols()
    return symbol


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("", Status.PROVED),
        (', sym_visibility = "private"', Status.PROVED),
        (", arg_attrs = [{test.mark}]", Status.PROVED),
        (", arg_attrs = [{llvm.range = 1 : i32}]", Status.UNKNOWN),
        (", res_attrs = [{llvm.noundef}]", Status.UNKNOWN),
        (", later", Status.UNKNOWN),
    ],
)
def test_attributes_of_functions(attributes: str, expected: Status) -> None:
    assert status(whole(attributes), whole(attributes)) is expected


def test_attributes_of_what_ends_a_block() -> None:
    assert status(whole("", "{test.mark}"), whole("")) is Status.PROVED
    assert status(whole("", "{later}"), whole("")) is Status.UNKNOWN


# -- poison ----------------------------------------------------------------------------------------------------


def with_dead_division(name: str, divisor: str) -> ir.Operation:
    """Divides a sum that may be poison, or by it, and returns another number."""
    total = f"%s = {op('arith.addi', '%a, %b', II, NSW)}"
    number = f"%n = {constant(divisor, 'i32')}" if divisor else "%n = " + op("arith.addi", "%b, %a", II, NSW)
    quotient = f"%q = {op(name, '%s, %n' if divisor else '%a, %n', II)}"
    return function("%a: i32, %b: i32", "i32", total, number, quotient, "%a")


def where_sums_fit() -> ir.Operation:
    """The first argument where the sum of both fits into 32 bits, and 7 elsewhere."""
    wide = "(i64, i64) -> i64"
    return function(
        "%a: i32, %b: i32", "i32",
        f"%x = {op('arith.extsi', '%a', '(i32) -> i64')}", f"%y = {op('arith.extsi', '%b', '(i32) -> i64')}",
        f"%s = {op('arith.addi', '%x, %y', wide)}", f"%t = {op('arith.trunci', '%s', '(i64) -> i32')}",
        f"%u = {op('arith.extsi', '%t', '(i32) -> i64')}",
        f"%c = {op('arith.cmpi', '%u, %s', '(i64, i64) -> i1', 'predicate = 0 : i64')}",
        f"%k = {constant('7', 'i32')}", f"%0 = {op('arith.select', '%c, %a, %k', '(i1, i32, i32) -> i32')}", "%0",
    )  # fmt: skip


DIVISIONS = ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")


@pytest.mark.parametrize("name", DIVISIONS)
def test_a_dividend_that_is_poison_is_no_undefined_behaviour(name: str) -> None:
    same = function("%a: i32, %b: i32", "i32", "%a")
    divided = with_dead_division(f"arith.{name}", "2")
    assert status(divided, where_sums_fit()) is Status.REFUTED
    assert status(divided, same) is Status.PROVED
    assert status(same, divided) is Status.PROVED


@pytest.mark.parametrize("name", ["divsi", "floordivsi", "ceildivsi"])
def test_poison_by_minus_one_is_undefined_behaviour_of_quotients(name: str) -> None:
    """The poison may be the least number."""
    assert status(with_dead_division(f"arith.{name}", "-1"), where_sums_fit()) is Status.PROVED


def test_the_remainder_of_poison_by_minus_one_is_poison() -> None:
    assert status(with_dead_division("arith.remsi", "-1"), where_sums_fit()) is Status.REFUTED


@pytest.mark.parametrize("name", DIVISIONS)
def test_a_divisor_that_is_poison_is_undefined_behaviour(name: str) -> None:
    assert status(with_dead_division(f"arith.{name}", ""), where_sums_fit()) is Status.PROVED
    assert status(function("%a: i32, %b: i32", "i32", "%a"), with_dead_division(f"arith.{name}", "")) is Status.REFUTED


def test_affine_maps_of_poison_are_poison() -> None:
    def dead(promise: str) -> ir.Operation:
        mapped = op("affine.apply", "%s", "(index) -> index", "map = affine_map<(d0) -> (d0 * 2)>")
        return function(
            "%a: index, %b: index", "index",
            f"%s = {op('arith.addi', '%a, %b', INDICES, promise)}", f"%0 = {mapped}", "%a",
        )  # fmt: skip

    same = function("%a: index, %b: index", "index", "%a")
    assert status(same, dead(NUW)) is Status.PROVED
    by_poison = op("affine.apply", "%a, %s", "(index, index) -> index", "map = affine_map<(d0)[s0] -> (d0 mod s0)>")
    divided = function(
        "%a: index, %b: index", "index", f"%s = {op('arith.addi', '%a, %b', INDICES, NUW)}", f"%0 = {by_poison}", "%0"
    )
    assert status(divided, divided) is Status.UNKNOWN


def test_affine_maps_do_not_use_every_operand() -> None:
    shifted = f"%p = {op('arith.shli', '%a, %b', II)}\n%q = {op('arith.index_cast', '%p', '(i32) -> index')}"
    applied = f"%0 = {op('affine.apply', '%i, %q', INDICES, 'map = affine_map<(d0)[s0] -> (d0)>')}"
    arguments = "%a: i32, %b: i32, %i: index"
    source = function(arguments, "index", shifted, applied, "%0")
    outcome = verdict(source, function(arguments, "index", f"%0 = {constant('7', 'index')}", "%0"))
    assert outcome.status is Status.UNKNOWN
    assert "an operand that may be undefined, and that the map does not use, has no meaning here" in outcome.reason


@pytest.mark.parametrize(
    "use",
    [
        op("tensor.empty", "%s", "(index) -> tensor<?xf32>"),
        op("tensor.splat", "%x, %s", "(f32, index) -> tensor<?xf32>"),
        op(
            "tensor.extract_slice", "%t, %s", "(tensor<9xf32>, index) -> tensor<3xf32>",
            "static_offsets = array<i64: -9223372036854775808>, static_sizes = array<i64: 3>, "
            "static_strides = array<i64: 1>, operandSegmentSizes = array<i32: 1, 1, 0, 0>",
        ),
        op("arith.select", "%c, %m, %n", "(i1, memref<4xf32>, memref<4xf32>) -> memref<4xf32>"),
    ],
)  # fmt: skip
def test_sizes_that_are_poison_are_no_undefined_behaviour_of_a_source(use: str) -> None:
    """Nobody says that they are, so the source may go on; a target may not."""
    arguments = "%a: index, %b: index, %x: f32, %t: tensor<9xf32>, %m: memref<4xf32>, %n: memref<4xf32>"

    def unused(promise: str) -> ir.Operation:
        less = op("arith.cmpi", "%s, %a", "(index, index) -> i1", "predicate = 2 : i64")
        sums = f"%s = {op('arith.addi', '%a, %b', INDICES, promise)}"
        return function(arguments, "f32", sums, f"%c = {less}", f"%u = {use}", "%x")

    never = function(arguments, "f32", "%x")
    assert status(unused(NUW), never) is Status.UNKNOWN
    assert status(unused(""), never) is Status.PROVED
    assert status(never, unused(NUW)) is Status.REFUTED


# -- indices ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["index_cast", "index_castui"])
def test_casts_to_index_keep_64_bits(name: str) -> None:
    """So the sign of 64 bits is that of the index, whichever cast it is."""
    cast = f"%i = {op(f'arith.{name}', '%a', '(i64) -> index')}"
    back = f"%0 = {op(f'arith.{name}', '%i', '(index) -> i64')}"
    assert status(function("%a: i64", "i64", cast, back, "%0"), function("%a: i64", "i64", "%a")) is Status.PROVED
    zero, less = (
        f"%z = {constant('0', 'index')}",
        op("arith.cmpi", "%i, %z", "(index, index) -> i1", "predicate = 2 : i64"),
    )
    never = function("%a: i64", "i1", f"%0 = {constant('false', 'i1')}", "%0")
    assert status(function("%a: i64", "i1", cast, zero, f"%0 = {less}", "%0"), never) is Status.REFUTED


def test_wide_words_are_cut_to_an_index() -> None:
    there_and_back = function(
        "%a: i128", "i128",
        f"%i = {op('arith.index_cast', '%a', '(i128) -> index')}",
        f"%0 = {op('arith.index_cast', '%i', '(index) -> i128')}", "%0",
    )  # fmt: skip
    cut = function(
        "%a: i128", "i128",
        f"%i = {op('arith.trunci', '%a', '(i128) -> i64')}", f"%0 = {op('arith.extsi', '%i', '(i64) -> i128')}", "%0",
    )  # fmt: skip
    assert status(there_and_back, cut) is Status.PROVED
    assert status(there_and_back, function("%a: i128", "i128", "%a")) is Status.REFUTED


@pytest.mark.parametrize("name", ["ceildivui", "divui", "remui"])
def test_unsigned_quotients_of_indices_that_may_be_negative_are_not_covered(name: str) -> None:
    divided = function(
        "%a: index", "index", f"%n = {constant('2', 'index')}", f"%0 = {op(f'arith.{name}', '%a, %n', INDICES)}", "%0"
    )
    assert status(divided, divided) is Status.UNKNOWN


def test_readings_of_arithmetic_stand_with_the_claim() -> None:
    doubled = one("affine.apply", "%a: index", "(index) -> index", "map = affine_map<(d0) -> (d0 + d0)>")
    twice = one("affine.apply", "%a: index", "(index) -> index", "map = affine_map<(d0) -> (d0 * 2)>")
    outcome = verdict(doubled, twice)
    assert outcome.status is Status.PROVED
    assert "operations on values of type index do not leave 64 bits" in outcome.claim.assumptions
    rest = one("arith.remsi", "%a: i32, %b: i32", II)
    reading = "the remainder of the least number by -1 is 0, as MLIR folds it"
    assert reading in verdict(rest, rest).claim.assumptions
    by_two = function("%a: i32", "i32", f"%n = {constant('2', 'i32')}", f"%0 = {op('arith.remsi', '%a, %n', II)}", "%0")
    assert reading not in verdict(by_two, by_two).claim.assumptions


# -- TOSA ------------------------------------------------------------------------------------------------------

IMAGE = "tensor<1x4x4x2xf16>"
ZERO = '%z = "tosa.const"() <{values = dense<0.0> : tensor<1xf16>}> : () -> tensor<1xf16>'
WINDOW = "pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>"


def convolved(name: str, weights: str, accumulator: str) -> ir.Operation:
    attributes = f"acc_type = {accumulator}, dilation = array<i64: 1, 1>, {WINDOW}"
    out = "tensor<1x3x3x2xf16>"
    types = f"({IMAGE}, {weights}, tensor<2xf16>, tensor<1xf16>, tensor<1xf16>) -> {out}"
    line = op(name, "%a, %w, %b, %z, %z", types, attributes)
    return function(f"%a: {IMAGE}, %w: {weights}, %b: tensor<2xf16>", out, ZERO, f"%0 = {line}", "%0")


def averaged(accumulator: str) -> ir.Operation:
    attributes = f"acc_type = {accumulator}, kernel = array<i64: 2, 2>, {WINDOW}"
    out = "tensor<1x3x3x2xf16>"
    line = op("tosa.avg_pool2d", "%a, %z, %z", f"({IMAGE}, tensor<1xf16>, tensor<1xf16>) -> {out}", attributes)
    return function(f"%a: {IMAGE}", out, ZERO, f"%0 = {line}", "%0")


def test_sums_in_another_format_than_the_result_are_not_covered() -> None:
    for wide, narrow in (
        (averaged("f32"), averaged("f16")),
        (
            convolved("tosa.conv2d", "tensor<2x2x2x2xf16>", "f32"),
            convolved("tosa.conv2d", "tensor<2x2x2x2xf16>", "f16"),
        ),
        (
            convolved("tosa.depthwise_conv2d", "tensor<2x2x2x1xf16>", "f32"),
            convolved("tosa.depthwise_conv2d", "tensor<2x2x2x1xf16>", "f16"),
        ),
    ):
        assert status(wide, narrow) is Status.UNKNOWN
        assert status(narrow, narrow) is Status.PROVED


@pytest.mark.parametrize("width", [8, 32])
def test_negation_with_zero_points_saturates(width: int) -> None:
    kind, wide = f"tensor<4xi{width}>", f"tensor<4xi{2 * width}>"
    zero = f'%z = "tosa.const"() <{{values = dense<0> : tensor<1xi{width}>}}> : () -> tensor<1xi{width}>'
    types = f"({kind}, tensor<1xi{width}>, tensor<1xi{width}>) -> {kind}"
    negated = function(f"%a: {kind}", kind, zero, f"%0 = {op('tosa.negate', '%a, %z, %z', types)}", "%0")
    dense = f"dense<{(1 << (width - 1)) - 1}>"
    clipped = function(
        f"%a: {kind}", kind,
        f"%x = {op('arith.extsi', '%a', f'({kind}) -> {wide}')}", f"%o = {constant('dense<0>', wide)}",
        f"%n = {op('arith.subi', '%o, %x', f'({wide}, {wide}) -> {wide}')}", f"%m = {constant(dense, wide)}",
        f"%c = {op('arith.minsi', '%n, %m', f'({wide}, {wide}) -> {wide}')}",
        f"%0 = {op('arith.trunci', '%c', f'({wide}) -> {kind}')}", "%0",
    )  # fmt: skip
    wrapped = function(
        f"%a: {kind}", kind,
        f"%o = {constant('dense<0>', kind)}", f"%0 = {op('arith.subi', '%o, %a', f'({kind}, {kind}) -> {kind}')}", "%0",
    )  # fmt: skip
    assert status(negated, clipped) is Status.PROVED
    assert status(negated, wrapped) is Status.REFUTED


@pytest.mark.parametrize(
    ("name", "end", "extreme"), [("max", "0xFF800000", "maxnumf"), ("min", "0x7F800000", "minnumf")]
)
def test_the_extreme_of_nans_alone_is_nan(name: str, end: str, extreme: str) -> None:
    row, single = "tensor<1x2xf32>", "tensor<1x1xf32>"
    mode = "axis = 1 : i32, nan_mode = #tosa.nan_mode<IGNORE>"
    reduced = f"%0 = {op(f'tosa.reduce_{name}', '%a', f'({row}) -> {single}', mode)}"
    types = f"({single}, {single}) -> {single}"
    never_nan = function(
        f"%a: {row}", single, reduced,
        f"%e = {constant(f'dense<{end}>', single)}", f"%1 = {op(f'arith.{extreme}', '%0, %e', types)}", "%1",
    )  # fmt: skip
    assert status(function(f"%a: {row}", single, reduced, "%0"), never_nan) is Status.REFUTED
    of_one = function(
        f"%a: {single}", single, f"%0 = {op(f'tosa.reduce_{name}', '%a', f'({single}) -> {single}', mode)}", "%0"
    )
    assert status(of_one, function(f"%a: {single}", single, "%a")) is Status.PROVED


def test_modes_of_nan_are_known_ones() -> None:
    single = "tensor<1x1xf32>"
    mode = "axis = 1 : i32, nan_mode = #tosa.nan_mode<LATER>"
    reduced = op("tosa.reduce_max", "%a", f"({single}) -> {single}", mode)
    program = function(f"%a: {single}", single, f"%0 = {reduced}", "%0")
    assert status(program, program) is Status.UNKNOWN


@pytest.mark.parametrize("mode", ["PROPAGATE", "IGNORE"])
def test_modes_of_nan_change_no_integer(mode: str) -> None:
    row, single, stated = "tensor<1x2xi32>", "tensor<1x1xi32>", f"nan_mode = #tosa.nan_mode<{mode}>"
    larger = function(
        f"%a: {single}, %b: {single}", single,
        f"%0 = {op('tosa.maximum', '%a, %b', f'({single}, {single}) -> {single}', stated)}", "%0",
    )  # fmt: skip
    for name, expected in (("maxsi", Status.PROVED), ("minsi", Status.REFUTED)):
        plain = function(
            f"%a: {single}, %b: {single}", single,
            f"%0 = {op(f'arith.{name}', '%a, %b', f'({single}, {single}) -> {single}')}", "%0",
        )  # fmt: skip
        assert status(larger, plain) is expected
    reduced = op("tosa.reduce_max", "%a", f"({row}) -> {single}", f"axis = 1 : i32, {stated}")
    bare = op("tosa.reduce_max", "%a", f"({row}) -> {single}", "axis = 1 : i32")
    programs = [function(f"%a: {row}", single, f"%0 = {line}", "%0") for line in (reduced, bare)]
    assert status(*programs) is Status.PROVED


MANY, TWO = "tensor<10000000000xi64>", "(tensor<f32>, tensor<f32>) -> tensor<f32>"
SHAPE = f"%s = {op('tosa.const_shape', '', '() -> !tosa.shape<1>', 'values = dense<1> : tensor<10000000000xindex>')}"
LONG = {
    "an attribute": (
        f"%0 = {op('linalg.transpose', '%t, %t', TWO, f'permutation = dense<0> : {MANY}')}",
        "linalg.transpose at 4:7: the attribute permutation must list at most 65536 integers",
    ),
    "a shape": (
        f"{SHAPE}\n%0 = {op('tosa.reshape', '%t, %s', '(tensor<f32>, !tosa.shape<1>) -> tensor<f32>')}",
        "tosa.const_shape at 4:7: a shape must list at most 65536 numbers",
    ),
    "an operand": (
        f"%s = {constant('dense<0>', MANY)}\n"
        f"%0 = {op('tosa.transpose', '%t, %s', f'(tensor<f32>, {MANY}) -> tensor<f32>')}",
        "tosa.transpose at 5:1: perms must list at most 65536 numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "message"), LONG.values(), ids=LONG)
def test_lists_that_are_short_as_text_and_long_as_numbers_are_refused(lines: str, message: str) -> None:
    program = function("%t: tensor<f32>", "tensor<f32>", lines, "%0")
    outcome = verdict(program, program)
    assert (outcome.status, outcome.reason) == (
        Status.UNKNOWN, f"{message}; verify the text with mlir-opt, and correct it"
    )  # fmt: skip
