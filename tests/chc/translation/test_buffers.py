"""Pairs of functions on buffers: blocks that may be one, what is alive, what may be written, and layouts."""

from __future__ import annotations

import pytest

from chc.translation.counterexample import Counterexample
from chc.translation.refine import Options, refines, replay
from ir_semantics.mlir import ir
from ir_semantics.mlir.reader import read
from ir_semantics.mlir.semantics.program import Reading
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.ir_semantics.mlir.mlir_text import constant, function, generic, op

from .verdicts import status, verdict

M = "memref<?xf32>"
INDICES = [f"%{k} = {constant(str(n), 'index')}" for k, n in (("zero", 0), ("one", 1), ("two", 2), ("six", 6))]


def load(name: str, buffer: str, at: str, type_: str = M) -> str:
    types = ", ".join(["index"] * len(at.split(",")))
    return f"{name} = {op('memref.load', f'{buffer}, {at}', f'({type_}, {types}) -> f32')}"


def store(value: str, buffer: str, at: str, type_: str = M) -> str:
    types = ", ".join(["index"] * len(at.split(",")))
    return op("memref.store", f"{value}, {buffer}, {at}", f"(f32, {type_}, {types}) -> ()")


def alloc(name: str, type_: str = M, size: str = "%n", kind: str = "alloc") -> str:
    operands = "(index)" if size else "()"
    sizes = f"operandSegmentSizes = array<i32: {int(bool(size))}, 0>"
    return f'{name} = "memref.{kind}"({size}) <{{{sizes}}}> : {operands} -> {type_}'


def free(buffer: str, type_: str = M) -> str:
    return op("memref.dealloc", buffer, f"({type_}) -> ()")


TOGETHER = "reassociation = [[0, 1]]"
A, AB = f"%a: {M}, %i: index, %v: f32", f"%a: {M}, %b: {M}, %i: index, %j: index, %v: f32"
N = f"{AB}, %n: index"
VALID: dict[str, tuple[ir.Operation, ir.Operation]] = {
    "what was stored is loaded": (
        function(A, "f32", store("%v", "%a", "%i"), load("%0", "%a", "%i"), "%0"),
        function(A, "f32", store("%v", "%a", "%i"), "%v"),
    ),
    "a load is dropped": (
        function(A, "f32", load("%0", "%a", "%i"), "%v"),
        function(A, "f32", "%v"),
    ),
    "a new buffer is none of the arguments": (
        function(N, "f32", alloc("%c"), store("%v", "%c", "%j"), load("%0", "%a", "%i"), load("%1", "%c", "%j"), "%1"),
        function(N, "f32", load("%0", "%a", "%i"), "%v"),
    ),
    "two new buffers are two": (
        function(N, "f32", alloc("%c"), alloc("%d"), store("%v", "%c", "%i"), load("%x", "%a", "%i"),
                 store("%x", "%d", "%j"), load("%0", "%c", "%i"), "%0"),
        function(N, "f32", load("%x", "%a", "%i"), "%v"),
    ),
    "what is freed at the end need not be": (
        function(N, "f32", alloc("%c"), store("%v", "%c", "%i"), load("%0", "%c", "%i"), free("%c"), "%0"),
        function(N, "f32", "%v"),
    ),
    "stores at two places in another order": (
        function(A, "", *INDICES, store("%v", "%a", "%zero"), store("%v", "%a", "%one"), ""),
        function(A, "", *INDICES, store("%v", "%a", "%one"), store("%v", "%a", "%zero"), ""),
    ),
    "what is copied is what was there": (
        function(AB, "f32", op("memref.copy", "%a, %b", f"({M}, {M}) -> ()"), load("%0", "%b", "%i"), "%0"),
        function(AB, "f32", load("%0", "%a", "%i"), op("memref.copy", "%a, %b", f"({M}, {M}) -> ()"), "%0"),
    ),
    "a tensor as a buffer": (
        function("%t: tensor<?x?xf32>, %i: index, %j: index", "f32",
                 f"%m = {op('bufferization.to_memref', '%t', '(tensor<?x?xf32>) -> memref<?x?xf32>')}",
                 load("%0", "%m", "%i, %j", "memref<?x?xf32>"), "%0"),
        function("%t: tensor<?x?xf32>, %i: index, %j: index", "f32",
                 f"%0 = {op('tensor.extract', '%t, %i, %j', '(tensor<?x?xf32>, index, index) -> f32')}", "%0"),
    ),
}  # fmt: skip
INVALID: dict[str, tuple[ir.Operation, ir.Operation]] = {
    "arguments may be one buffer": (
        function(AB, "f32", store("%v", "%a", "%i"), load("%x", "%a", "%i"), load("%0", "%b", "%j"), "%0"),
        function(AB, "f32", load("%0", "%b", "%j"), store("%v", "%a", "%i"), "%0"),
    ),
    "a load is made": (
        function(A, "f32", "%v"),
        function(A, "f32", load("%0", "%a", "%i"), "%v"),
    ),
    "a store is dropped": (
        function(A, "", store("%v", "%a", "%i"), ""),
        function(A, "", load("%0", "%a", "%i"), ""),
    ),
    "what is freed is stored to": (
        function(N, "", alloc("%c"), store("%v", "%c", "%i"), free("%c"), ""),
        function(N, "", alloc("%c"), free("%c"), store("%v", "%c", "%i"), ""),
    ),
    "an argument is freed": (
        function(A, "f32", store("%v", "%a", "%i"), "%v"),
        function(A, "f32", store("%v", "%a", "%i"), free("%a"), "%v"),
    ),
    "a view is freed": (
        function("", "", alloc("%c", "memref<2x3xf32>", ""), free("%c", "memref<2x3xf32>"), ""),
        function("", "", alloc("%c", "memref<2x3xf32>", ""),
                 f"%d = {op('memref.collapse_shape', '%c', '(memref<2x3xf32>) -> memref<6xf32>', TOGETHER)}",
                 free("%d", "memref<6xf32>"), ""),
    ),
    "what has become a tensor is written": (
        function(A, "f32", f"%t = {op('bufferization.to_tensor', '%a', f'({M}) -> tensor<?xf32>')}",
                 load("%x", "%a", "%i"), "%v"),
        function(A, "f32", f"%t = {op('bufferization.to_tensor', '%a', f'({M}) -> tensor<?xf32>')}",
                 load("%x", "%a", "%i"), store("%x", "%a", "%i"), "%v"),
    ),
    "a new buffer holds nothing": (
        function(N, "f32", alloc("%c"), store("%v", "%c", "%i"), load("%0", "%c", "%i"), "%0"),
        function(N, "f32", alloc("%c"), store("%v", "%c", "%i"), load("%0", "%c", "%j"), "%0"),
    ),
    "an offset is another one": (
        function("%t: tensor<4x8xf32>, %i: index, %j: index", "f32",
                 f"%m = {op('bufferization.to_memref', '%t', '(tensor<4x8xf32>) -> memref<4x8xf32>')}",
                 load("%0", "%m", "%i, %j", "memref<4x8xf32>"), "%0"),
        function("%t: tensor<4x8xf32>, %i: index, %j: index", "f32",
                 f"%m = {op('bufferization.to_memref', '%t', '(tensor<4x8xf32>) -> memref<4x8xf32>')}",
                 load("%0", "%m", "%j, %i", "memref<4x8xf32>"), "%0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALID)
def test_valid_pairs_are_proved(name: str) -> None:
    outcome = verdict(*VALID[name])
    assert outcome.status is Status.PROVED, outcome.reason


@pytest.mark.parametrize("name", INVALID)
def test_invalid_pairs_are_refuted_by_an_input(name: str) -> None:
    outcome = verdict(*INVALID[name])
    assert outcome.status is Status.REFUTED, outcome.reason
    assert isinstance(outcome.details["counterexample"], Counterexample)


def test_arguments_that_are_apart_are_two_buffers() -> None:
    assert status(*INVALID["arguments may be one buffer"], Options(Reading(buffers_apart=True))) is Status.PROVED


def test_to_read_what_was_never_written_may_be_undefined_behaviour() -> None:
    stored = function(A, "", store("%v", "%a", "%i"), "")
    read_before = function(A, "", load("%0", "%a", "%i"), store("%v", "%a", "%i"), "")
    assert status(stored, read_before) is Status.PROVED
    assert status(stored, read_before, Options(Reading(unwritten_reads=False))) is Status.REFUTED


def in_module(value: str, *lines: str) -> tuple[ir.Module, ir.Operation]:
    text = f"""
    "memref.global"() <{{constant, initial_value = dense<{value}> : tensor<2xf32>, sym_name = "g",
      type = memref<2xf32>}}> : () -> ()
    "func.func"() <{{function_type = () -> f32, sym_name = "f"}}> ({{
      {chr(10).join(lines)}
      "func.return"(%0) : (f32) -> ()
    }}) : () -> ()
    """
    module = read(text)
    return module, next(s for s in module.symbols() if s.symbol == "f")


def test_constant_globals_are_known_and_must_be_the_same() -> None:
    one = [INDICES[1]]
    get = f"%g = {op('memref.get_global', '', '() -> memref<2xf32>', 'name = @g')}"
    loaded = in_module("[3.0, 5.0]", *one, get, load("%0", "%g", "%one", "memref<2xf32>"))
    for value, expected in (("5.0", Status.PROVED), ("3.0", Status.REFUTED)):
        direct = in_module("[3.0, 5.0]", f"%0 = {constant(value, 'f32')}")
        outcome = refines(loaded[1], direct[1], None, Discharger(), (loaded[0], direct[0]))
        assert outcome.status is expected
    other = in_module("[3.0, 6.0]", f"%0 = {constant('5.0', 'f32')}")
    with pytest.raises(ValueError, match="the global g must be the same on both sides; rename one of them"):
        refines(loaded[1], other[1], None, Discharger(), (loaded[0], other[0]))


# -- layouts ---------------------------------------------------------------------------------------------------

VIEW = "memref<2x2xf32, strided<[16, 3], offset: 9>>"
CUT = (
    "static_offsets = array<i64: 1, 1>, static_sizes = array<i64: 2, 2>, static_strides = array<i64: 2, 3>, "
    "operandSegmentSizes = array<i32: 1, 0, 0, 0>"
)


def test_a_view_with_strides_is_filled_and_nothing_else() -> None:
    big = "memref<5x8xf32>"
    arguments = f"%a: {big}, %v: f32, %w: f32, %i: index, %j: index"
    cut = f"%s = {op('memref.subview', '%a', f'({big}) -> {VIEW}', CUT)}"
    fill = op("linalg.fill", "%v, %s", f"(f32, {VIEW}) -> ()", "operandSegmentSizes = array<i32: 1, 1>",
              '^bb0(%p: f32, %q: f32):\n"linalg.yield"(%p) : (f32) -> ()')  # fmt: skip
    for row, column, hit in ((1, 1, True), (3, 4, True), (1, 2, False), (2, 1, False), (4, 4, False)):
        at = [f"%r = {constant(str(row), 'index')}", f"%k = {constant(str(column), 'index')}"]
        first = store("%w", "%a", "%r, %k", big)
        filled = function(arguments, "f32", *at, first, cut, fill, load("%0", "%a", "%r, %k", big), "%0")
        expected = function(arguments, "f32", *at, first, cut, fill, "%v" if hit else "%w")
        other = function(arguments, "f32", *at, first, cut, fill, "%w" if hit else "%v")
        assert status(filled, expected) is Status.PROVED, (row, column)
        assert status(filled, other) is Status.REFUTED, (row, column)


def test_loops_that_write_what_they_read_elsewhere_are_not_said_to_be_copies() -> None:
    """A loop over buffers that overlap is undefined behaviour, so a copy of it refines it; the converse is false."""
    body = '^bb0(%p: f32, %q: f32):\n"linalg.yield"(%p) : (f32) -> ()'
    identity = "(d0) -> (d0)"
    loops = generic("%a, %b", f"({M}, {M}) -> ()", [identity, identity], "p", "1, 1", body)
    buffers = f"%a: {M}, %b: {M}"
    copied = function(buffers, "", op("memref.copy", "%a, %b", f"({M}, {M}) -> ()"), "")
    looped = function(buffers, "", loops, "")
    outcome = verdict(copied, looped)
    assert outcome.status is Status.PROVED
    overlap = "to write a buffer that overlaps another one of the operation is undefined"
    assert overlap in outcome.claim.assumptions
    backwards = loops.replace("%a, %b", "%b, %a")
    assert status(looped, function(buffers, "", backwards, "")) is Status.REFUTED


def in_place(other: str, *, before: bool) -> ir.Operation:
    """Adds an element of ``other`` to each one of ``%a``: that of before, or what the region finds."""
    buffer, types = "memref<4xf32>", "(f32, f32) -> f32"
    loaded = load("%v", other, "%zero", buffer)
    inside = [] if before else [loaded]
    body = [*inside, f"%s = {op('arith.addf', '%x, %v', types)}", '"linalg.yield"(%s) : (f32) -> ()']
    region = "\n".join(["^bb0(%x: f32):", *body])
    loops = generic("%a", f"({buffer}) -> ()", ["(i) -> (i)"], "p", "0, 1", region)
    lines = [INDICES[0], *([loaded] if before else []), loops]
    return function(f"%a: {buffer}, %b: {buffer}", "", *lines, "")


def test_what_a_region_reads_is_nothing_that_its_operation_writes() -> None:
    apart = Options(Reading(buffers_apart=True))
    for buffer, options, expected in (
        ("%b", apart, Status.PROVED),
        ("%b", Options(), Status.UNKNOWN),
        ("%a", apart, Status.UNKNOWN),
    ):
        outcome = verdict(in_place(buffer, before=True), in_place(buffer, before=False), options)
        assert outcome.status is expected, (buffer, outcome.reason)
        if expected is Status.UNKNOWN:
            assert "what the region reads and what the operation writes must be apart" in outcome.reason


def test_readings_of_memory_stand_with_the_claim() -> None:
    words = "memref<4xi32>"
    store = op("memref.store", "%v, %a, %i", f"(i32, {words}, index) -> ()")
    one, other = (
        function(
            f"%a: {words}, %b: memref<4xf32>, %v: i32, %w: f32, %i: index", "i32",
            store, op("memref.store", "%w, %b, %i", "(f32, memref<4xf32>, index) -> ()"), *after,
        )
        for after in ([f"%0 = {op('memref.load', '%a, %i', f'({words}, index) -> i32')}", "%0"], ["%v"])
    )  # fmt: skip
    outcome = verdict(one, other)
    assert outcome.status is Status.PROVED
    assert "buffers of elements of different types share no memory" in outcome.claim.assumptions
    buffer = f"%m = {op('bufferization.to_buffer', '%t', f'(tensor<4xi32>) -> {words}')}"
    load = f"%0 = {op('memref.load', '%m, %i', f'({words}, index) -> i32')}"
    extract = f"%0 = {op('tensor.extract', '%t, %i', '(tensor<4xi32>, index) -> i32')}"
    arguments = "%t: tensor<4xi32>, %i: index"
    outcome = verdict(function(arguments, "i32", buffer, load, "%0"), function(arguments, "i32", extract, "%0"))
    assert outcome.status is Status.PROVED
    assert (
        "to write a buffer that was made of a tensor, or that a tensor was made of, is undefined"
        in outcome.claim.assumptions
    )


def loaded_as(kind: str) -> ir.Operation:
    """An element of a tensor, read from a buffer of a type."""
    buffer = f"%m = {op('bufferization.to_buffer', '%t', f'(tensor<4xi32>) -> {kind}')}"
    load = f"%0 = {op('memref.load', '%m, %i', f'({kind}, index) -> i32')}"
    return function("%t: tensor<4xi32>, %i: index", "i32", buffer, load, "%0")


def test_where_the_elements_of_a_buffer_of_a_tensor_are_is_open() -> None:
    extract = f"%0 = {op('tensor.extract', '%t, %{}', '(tensor<4xi32>, index) -> i32')}"
    one, other = (
        function("%t: tensor<4xi32>, %i: index", "i32", f"%c = {constant('1', 'index')}", extract.format(at), "%0")
        for at in "ic"
    )
    buffer = loaded_as("memref<4xi32, strided<[?], offset: ?>>")
    assert status(buffer, one) is status(one, buffer) is Status.PROVED
    assert status(buffer, other) is Status.REFUTED
    outcome = verdict(loaded_as("memref<4xi32, strided<[2], offset: ?>>"), one)
    assert "a new buffer must have elements one after the other" in outcome.reason


def test_a_tensor_is_allocated_without_elements_or_as_a_copy() -> None:
    kind = "tensor<?xf32>"

    def allocated(segments: str, *lines: str) -> ir.Operation:
        sizes, operands = f"operandSegmentSizes = array<i32: {segments}>", "%n" if segments[0] == "1" else "%t"
        types = f"({'index' if operands == '%n' else kind}) -> {kind}"
        tensor = f"%a = {op('bufferization.alloc_tensor', operands, types, sizes)}"
        return function(f"%t: {kind}, %n: index", "f32", *INDICES, tensor, *lines, "%0")

    extract = f"%0 = {op('tensor.extract', '%{}, %zero', f'({kind}, index) -> f32')}"
    given = function(f"%t: {kind}, %n: index", "f32", *INDICES, extract.format("t"), "%0")
    copied = allocated("0, 1, 0", extract.format("a"))
    assert status(given, copied) is status(copied, given) is Status.PROVED
    assert status(given, allocated("1, 0, 0", extract.format("a"))) is Status.REFUTED


def test_a_cast_requires_the_sizes_that_its_type_states() -> None:
    def cast(kind: str) -> ir.Operation:
        changed = f"%m = {op('memref.cast', '%a', f'({M}) -> {kind}')}"
        return function(f"%a: {M}", "f32", *INDICES, changed, load("%0", "%m", "%one", kind), "%0")

    plain = function(f"%a: {M}", "f32", *INDICES, load("%0", "%a", "%one"), "%0")
    for kind in (M, "memref<?xf32, strided<[?], offset: ?>>"):
        assert status(plain, cast(kind)) is status(cast(kind), plain) is Status.PROVED
    assert status(cast("memref<4xf32>"), plain) is Status.PROVED
    assert status(plain, cast("memref<4xf32>")) is Status.REFUTED
    of_layout = cast("memref<?xf32, strided<[2], offset: ?>>")
    assert "a cast that states more of the layout has no meaning here" in verdict(of_layout, of_layout).reason


def test_large_buffers_that_must_be_written_have_counterexamples() -> None:
    large = "memref<600x600xf32>"
    body = '^bb0(%p: f32, %q: f32):\n%r = "arith.{}"(%p, %q) : (f32, f32) -> f32\n"linalg.yield"(%r) : (f32) -> ()'
    both = ["(d0, d1) -> (d0, d1)"] * 2
    added, multiplied = (
        function(
            f"%a: {large}, %b: {large}", "",
            generic("%a, %b", f"({large}, {large}) -> ()", both, "pp", "1, 1", body.format(v)), ""
        )
        for v in ("addf", "mulf")
    )  # fmt: skip
    reading = Options(Reading(unwritten_reads=False))
    outcome = verdict(added, multiplied, reading)
    assert outcome.status is Status.REFUTED, outcome.reason
    assert replay(added, multiplied, reading, outcome.details["counterexample"]) is not None
    assert status(added, added, reading) is Status.PROVED


def subview(offset: str, size: str) -> str:
    """A view of %a, a buffer of a size that is not known, from an offset on."""
    sizes = "operandSegmentSizes = array<i32: 1, 1, 1, 0>, static_offsets = array<i64: -9223372036854775808>, "
    sizes += "static_sizes = array<i64: -9223372036854775808>, static_strides = array<i64: 1>"
    result = "memref<?xf32, strided<[1], offset: ?>>"
    return f"%s = {op('memref.subview', f'%a, {offset}, {size}', f'({M}, index, index) -> {result}', sizes)}"


@pytest.mark.parametrize(("offset", "size"), [("%i", "%n"), ("%zero", "%n"), ("%i", "%zero"), ("%zero", "%six")])
def test_views_that_are_not_used_are_inside_of_their_buffer(offset: str, size: str) -> None:
    arguments = f"%a: {M}, %i: index, %n: index"
    viewed = function(arguments, "", *INDICES, subview(offset, size), "")
    plain = function(arguments, "", "")
    assert status(plain, viewed) is Status.REFUTED
    assert status(viewed, plain) is Status.PROVED


def test_views_of_a_shape_with_sizes_below_0_are_undefined() -> None:
    arguments = f"%a: {M}"
    attributes = f"{TOGETHER}, static_output_shape = array<i64: -9223372036854775808, -9223372036854775808>"
    types = f"({M}, index, index) -> memref<?x?xf32>"

    def expanded(factor: str) -> ir.Operation:
        """A view of so many rows, which is the whole buffer or nothing in turn."""
        zero, one = INDICES[:2]
        size = f"%size = {op('memref.dim', '%a, %zero', f'({M}, index) -> index')}"
        other = f"%other = {op('arith.muli', '%size, %factor', '(index, index) -> index')}"
        view = f"%s = {op('memref.expand_shape', '%a, %factor, %other', types, attributes)}"
        return function(arguments, "", zero, one, f"%factor = {constant(factor, 'index')}", size, other, view, "")

    plain = function(arguments, "", "")
    assert status(plain, expanded("1")) is Status.PROVED
    assert status(plain, expanded("-1")) is Status.REFUTED


def test_that_types_share_no_memory_stands_with_the_claim_where_one_is_read_alone() -> None:
    words = "memref<4xi32>"
    store = op("memref.store", "%w, %b, %i", "(f32, memref<4xf32>, index) -> ()")
    load = f"%0 = {op('memref.load', '%a, %i', f'({words}, index) -> i32')}"
    arguments = f"%a: {words}, %b: memref<4xf32>, %w: f32, %i: index"
    outcome = verdict(function(arguments, "i32", store, load, "%0"), function(arguments, "i32", load, store, "%0"))
    assert outcome.status is Status.PROVED
    assert "buffers of elements of different types share no memory" in outcome.claim.assumptions


def test_bounds_that_many_numbers_must_keep_together_are_met_in_runs() -> None:
    square, part = "memref<?x?xf32>", "memref<?x?xf32, strided<[?, 1], offset: ?>>"
    buffer = f"%a = {op('bufferization.to_buffer', '%t', f'(tensor<?x?xf32>) -> {square}')}"
    dynamic = f"array<i64: {-(1 << 63)}, {-(1 << 63)}>"
    sizes = f"operandSegmentSizes = array<i32: 1, 2, 2, 0>, static_offsets = {dynamic}, static_sizes = {dynamic}, "
    sizes += "static_strides = array<i64: 1, 1>"
    types = f"({square}, index, index, index, index) -> {part}"
    view = f"%s = {op('memref.subview', '%a, %y, %x, %rows, %columns', types, sizes)}"
    arguments = "%t: tensor<?x?xf32>, " + ", ".join(f"%{n}: index" for n in ("y", "x", "rows", "columns", "i", "j"))
    source = function(arguments, "f32", buffer, view, load("%0", "%s", "%i, %j", part), "%0")
    places = [
        f"%{n} = {op('arith.addi', pair, '(index, index) -> index')}" for n, pair in (("r", "%y, %i"), ("c", "%x, %j"))
    ]
    right, wrong = (
        function(arguments, "f32", buffer, *places, load("%0", "%a", at, square), "%0") for at in ("%r, %c", "%c, %r")
    )
    assert status(source, right) is Status.PROVED
    assert status(source, wrong) is Status.REFUTED


def test_a_counterexample_says_whose_cell_differs_and_what_was_there_before() -> None:
    one, other = (
        function(f"%a: {M}, %b: {M}, %v: f32", "", *INDICES, store("%v", b, "%one"), "") for b in ("%a", "%b")
    )
    given = Counterexample(
        {"arg0_dim0": 2, "arg1_dim0": 3},
        {"arg0_block": 1, "arg0_offset": 2, "arg1_block": 0, "arg1_offset": 0, "arg2": 0.5},
        {
            "alive blocks": {(0,): True, (1,): True},
            "size blocks": {(0,): 3, (1,): 4},
            "writable blocks": {(0,): True, (1,): True},
            "memory of binary32": {(b, i): 10.0 * b + i for b in (0, 1) for i in range(4)},
            "written memory of binary32": {(b, i): i > 0 for b in (0, 1) for i in range(4)},
        },
        "", "", "",
    )  # fmt: skip
    found = replay(one, other, Options(), given)
    assert found is not None
    assert str(found) == (
        "with arg0_dim0 = 2, arg1_dim0 = 3, arg2 = 0.5: block 0 differs first at 1 (binary32), which is arg1[1]: "
        "source 1.0, target 0.5; before, block 0 (arg1) holds [never written, 1.0, 2.0]; "
        "block 1 (arg0 from 2) holds [never written, 11.0, 12.0, 13.0]"
    )
    assert found.to_json() == {
        "place": "block 0 differs first at 1 (binary32), which is arg1[1]",
        "source": "1.0",
        "target": "0.5",
        "numbers": {"arg0_dim0": "2", "arg1_dim0": "3", "arg2": "0.5"},
        "tensors": {},
        "cell": {"block": 0, "place": 1, "format": "binary32", "elements": ["arg1[1]"]},
        "blocks": [
            {"block": 0, "views": {"arg1": 0}, "held": {"binary32": [None, "1.0", "2.0"]}, "lacks": []},
            {"block": 1, "views": {"arg0": 2}, "held": {"binary32": [None, "11.0", "12.0", "13.0"]}, "lacks": []},
        ],
    }
