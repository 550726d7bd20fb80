"""Pairs of functions on views of one block, and on buffers that an operation both reads and writes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chc.translation.counterexample import Counterexample
from chc.translation.refine import Options, replay
from ir_semantics.mlir import ir
from ir_semantics.mlir.semantics.program import Reading
from smt_encodings.claims import Status
from tests.ir_semantics.mlir.mlir_text import constant, function, generic, op

from .verdicts import status, verdict

APART = Options(Reading(buffers_apart=True))
NUMBERS = [f"%{n} = {constant(str(v), 'index')}" for n, v in (("zero", 0), ("one", 1), ("two", 2), ("four", 4))]
SUM = '%s = "arith.addi"({}) : (i32, i32) -> i32\n"linalg.yield"(%s) : (i32) -> ()'


def numbers(values: str) -> str:
    return f"array<i64: {values}>"


def view(name: str, of: str, types: str, offsets: str, sizes: str, strides: str) -> str:
    """``memref.subview``."""
    cut = f"static_offsets = {numbers(offsets)}, static_sizes = {numbers(sizes)}, static_strides = {numbers(strides)}"
    return f"{name} = {op('memref.subview', of, types, f'{cut}, operandSegmentSizes = array<i32: 1, 0, 0, 0>')}"


def where(condition: str, *lines: str) -> str:
    """``scf.if`` without a second branch."""
    body = "\n".join([*lines, '"scf.yield"() : () -> ()'])
    return f'"scf.if"({condition}) ({{\n{body}\n}}, {{\n}}) : (i1) -> ()'


def load(name: str, buffer: str, at: str, type_: str) -> str:
    return f"{name} = {op('memref.load', f'{buffer}, {at}', f'({type_}, index) -> i32')}"


def store(value: str, buffer: str, at: str, type_: str) -> str:
    return op("memref.store", f"{value}, {buffer}, {at}", f"(i32, {type_}, index) -> ()")


# -- views that lie between each other, or in one place ---------------------------------------------------------

SQUARE, LEFT = "memref<4x4xi32>", "memref<4x2xi32, strided<[4, 1]>>"
RIGHT = "memref<4x2xi32, strided<[4, 1], offset: 2>>"
HALVES = [
    view("%l", "%a", f"({SQUARE}) -> {LEFT}", "0, 0", "4, 2", "1, 1"),
    view("%r", "%a", f"({SQUARE}) -> {RIGHT}", "0, 2", "4, 2", "1, 1"),
]
FLAT, STEEP = "memref<1x2xi32, strided<[4, 1]>>", "memref<1x2xi32, strided<[8, 1]>>"
ROWS = [
    view("%l", "%a", f"({SQUARE}) -> {FLAT}", "0, 0", "1, 2", "1, 1"),
    view("%r", "%a", f"({SQUARE}) -> {STEEP}", "0, 0", "1, 2", "2, 1"),
]
FROM_ZERO, EACH = "(d0, d1) -> (0, d1)", "(d0, d1) -> (d0, d1)"
DOUBLED = "^bb0(%p: i32, %o: i32):\n" + SUM.format("%p, %p")
COPIED = '^bb0(%p: i32, %o: i32):\n"linalg.yield"(%p) : (i32) -> ()'


def on_square(*lines: str) -> ir.Operation:
    return function(f"%c: i1, %a: {SQUARE}", "", *lines, "")


DEFINED = {
    "a copy from one half to the other": [
        *HALVES, where("%c", op("memref.copy", "%l, %r", f"({LEFT}, {RIGHT}) -> ()"))
    ],
    "loops from one half to the other": [
        *HALVES, where("%c", generic("%l, %r", f"({LEFT}, {RIGHT}) -> ()", [EACH] * 2, "pp", "1, 1", DOUBLED))
    ],
    "one row with two strides": [
        *ROWS, where("%c", generic("%l, %r", f"({FLAT}, {STEEP}) -> ()", [EACH] * 2, "pp", "1, 1", DOUBLED))
    ],
    "a row that is read as row 0": [
        *ROWS, where("%c", generic("%l, %l", f"({FLAT}, {FLAT}) -> ()", [FROM_ZERO, EACH], "pp", "1, 1", DOUBLED))
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", DEFINED)
def test_what_shares_no_place_or_is_read_where_it_is_written_is_defined(name: str) -> None:
    """Were it undefined, a target that does nothing would do."""
    source = on_square(*DEFINED[name])
    assert status(source, on_square()) is Status.REFUTED
    assert status(source, source) is Status.PROVED


def test_a_copy_between_halves_is_a_loop() -> None:
    copied = on_square(*HALVES, op("memref.copy", "%l, %r", f"({LEFT}, {RIGHT}) -> ()"))
    one, other = (
        on_square(*HALVES, generic("%l, %r", f"({LEFT}, {RIGHT}) -> ()", [EACH] * 2, "pp", "1, 1", body))
        for body in (COPIED, DOUBLED)
    )
    assert status(copied, one) is Status.PROVED
    assert status(copied, other) is Status.REFUTED


def test_views_with_strides_of_arguments_are_copied_where_they_share_no_place() -> None:
    """Whether they do is not known; the source requires it of the target."""
    flat, part = "memref<8xi32>", "memref<4xi32, strided<[2]>>"
    parts = [view(f"%{n}", f"%{b}", f"({flat}) -> {part}", "0", "4", "2") for n, b in (("x", "a"), ("y", "b"))]
    loops = generic("%x, %y", f"({part}, {part}) -> ()", ["(d0) -> (d0)"] * 2, "p", "1, 1", COPIED)
    copied, looped = (
        function(f"%a: {flat}, %b: {flat}", "", *parts, text, "")
        for text in (op("memref.copy", "%x, %y", f"({part}, {part}) -> ()"), loops)
    )
    assert status(copied, looped) is Status.PROVED
    assert status(looped, function(f"%a: {flat}, %b: {flat}", "", *parts, "")) is Status.REFUTED


# -- operations that read what they write -------------------------------------------------------------------------

COLUMN, WIDE = "memref<2x1xi32>", "memref<2x3xi32>"


def test_a_source_that_reads_a_sum_in_the_making_has_no_meaning() -> None:
    """In memory each iteration reads what the one before wrote; with the old element a third of the sum is missing."""
    body = "^bb0(%p: i32, %q: i32, %o: i32):\n" + SUM.format("%p, %o")
    of_column = "(d0, d1) -> (d0, 0)"
    sums = generic(
        "%a, %b, %a", f"({COLUMN}, {WIDE}, {COLUMN}) -> ()", [of_column, EACH, of_column], "pr", "2, 1", body
    )
    times_four = "^bb0(%o: i32):\n%k = " + constant("4", "i32") + '\n%s = "arith.muli"(%o, %k) : (i32, i32) -> i32'
    scaled = generic("%a", f"({COLUMN}) -> ()", [EACH], "pp", "0, 1", times_four + '\n"linalg.yield"(%s) : (i32) -> ()')
    source, target = (function(f"%a: {COLUMN}, %b: {WIDE}", "", text, "") for text in (sums, scaled))
    outcome = verdict(source, target, APART)
    assert outcome.status is Status.UNKNOWN
    assert "a source that writes a buffer which it reads in other iterations" in outcome.reason


@pytest.mark.parametrize(("loops", "size", "expected"), [("pr", 4, Status.PROVED), ("pp", 4, Status.UNKNOWN),
                                                         ("pp", 1, Status.PROVED)])  # fmt: skip
def test_iterations_in_any_order_write_elements_of_their_own(loops: str, size: int, expected: Status) -> None:
    matrix = f"tensor<3x{size}xf32>"
    body = '^bb0(%p: f32, %o: f32):\n%s = "arith.addf"(%o, %p) : (f32, f32) -> f32\n"linalg.yield"(%s) : (f32) -> ()'
    types, maps = f"({matrix}, tensor<3xf32>) -> tensor<3xf32>", [EACH, "(d0, d1) -> (d0)"]
    source, target = (
        function(f"%a: {matrix}, %b: tensor<3xf32>", "tensor<3xf32>",
                 f"%0 = {generic('%a, %b', types, maps, kinds, '1, 1', body)}", "%0")
        for kinds in ("pr", loops)
    )  # fmt: skip
    assert status(source, target) is expected


THREE = "memref<3xi32>"


def added(buffer: str, *, inside: bool) -> ir.Operation:
    """The first element of a buffer, added to all of %a; loaded in each iteration or before."""
    first = load("%f", buffer, "%zero", THREE)
    body = "\n".join(["^bb0(%o: i32):", *([first] if inside else []), SUM.format("%f, %o")])
    loops = generic("%a", f"({THREE}) -> ()", ["(d0) -> (d0)"], "p", "0, 1", body)
    return function(f"%a: {THREE}, %b: {THREE}", "", NUMBERS[0], *([] if inside else [first]), loops, "")


def test_a_region_uses_buffers_that_its_loops_do_not_write() -> None:
    assert status(added("%b", inside=False), added("%b", inside=True), APART) is Status.PROVED
    assert status(added("%a", inside=False), added("%b", inside=True), APART) is Status.REFUTED
    for buffer, options in (("%a", APART), ("%b", Options())):
        inside, before = (added(buffer, inside=x) for x in (True, False))
        for outcome in (verdict(inside, before, options), verdict(before, inside, options)):
            assert outcome.status is Status.UNKNOWN
            assert "what the region reads and what the operation writes must be apart" in outcome.reason


def test_a_region_that_stores_has_no_meaning() -> None:
    body = f'^bb0(%o: i32):\n{store("%o", "%b", "%zero", THREE)}\n"linalg.yield"(%o) : (i32) -> ()'
    loops = generic("%a", f"({THREE}) -> ()", ["(d0) -> (d0)"], "p", "0, 1", body)
    stored = function(f"%a: {THREE}, %b: {THREE}", "", NUMBERS[0], loops, "")
    assert "a region that writes has no meaning here" in verdict(stored, stored, APART).reason


# -- what is freed, and what may be written afterwards -------------------------------------------------------------


def freed(*lines: str, type_: str = "memref<2xi32>") -> ir.Operation:
    alloc = '{} = "memref.alloc"() <{{operandSegmentSizes = array<i32: 0, 0>}}> : () -> memref<2xi32>'
    free = op("memref.dealloc", "%d", f"({type_}) -> ()")
    return function("%c: i1", "", alloc.format("%x"), alloc.format("%y"), *lines, free, "")


def test_a_view_that_is_chosen_is_no_block_to_free() -> None:
    strided = "memref<2xi32, strided<[1]>>"
    views = [view(f"%{n}v", f"%{n}", f"(memref<2xi32>) -> {strided}", "0", "2", "1") for n in "xy"]
    blocks = freed(f"%d = {op('arith.select', '%c, %x, %y', '(i1, memref<2xi32>, memref<2xi32>) -> memref<2xi32>')}")
    select = f"%d = {op('arith.select', '%c, %xv, %yv', f'(i1, {strided}, {strided}) -> {strided}')}"
    assert status(function("%c: i1", "", ""), blocks) is Status.PROVED
    assert status(blocks, freed(*views, select, type_=strided)) is Status.REFUTED


WORDS = "memref<2xi32>"
TENSOR = f"%t = {op('bufferization.to_tensor', '%a', f'({WORDS}) -> tensor<2xi32>')}"
EXTRACT = f"%0 = {op('tensor.extract', '%t, %zero', '(tensor<2xi32>, index) -> i32')}"
EVERYTHING = load("%u", "%a", "%one", WORDS)


def test_what_may_be_written_before_may_be_written_afterwards() -> None:
    loaded, extracted = (
        function(f"%a: {WORDS}", "i32", *NUMBERS, EVERYTHING, *lines, "%0")
        for lines in ([load("%0", "%a", "%zero", WORDS)], [TENSOR, EXTRACT])
    )
    assert status(extracted, loaded) is Status.PROVED
    outcome = verdict(loaded, extracted)
    assert outcome.status is Status.REFUTED
    assert "source lets it be written afterwards, target ends all writing to it" in outcome.reason


def test_what_is_freed_is_no_tensor_any_more() -> None:
    free = op("memref.dealloc", "%a", f"({WORDS}) -> ()")
    before, after = (
        function(f"%a: {WORDS}", "i32", *NUMBERS, TENSOR, *lines, "%0") for lines in ([EXTRACT, free], [free, EXTRACT])
    )
    outcome = verdict(before, after)
    assert outcome.status is Status.UNKNOWN
    assert "a buffer of which a tensor was made cannot be freed here" in outcome.reason


@pytest.mark.parametrize(("kind", "expected"), [("alloc", Status.PROVED), ("alloca", Status.UNKNOWN)])
def test_no_tensor_is_left_on_the_stack(kind: str, expected: Status) -> None:
    alloc = f'%a = "memref.{kind}"() <{{operandSegmentSizes = array<i32: 0, 0>}}> : () -> {WORDS}'
    stores = [store("%x", "%a", f"%{at}", WORDS) for at in ("zero", "one")]
    made = function("%x: i32", "tensor<2xi32>", *NUMBERS, alloc, *stores, TENSOR, "%t")
    pair = f"%t = {op('tensor.from_elements', '%x, %x', '(i32, i32) -> tensor<2xi32>')}"
    assert status(function("%x: i32", "tensor<2xi32>", pair, "%t"), made) is expected


# -- places that a loop reads through several views ------------------------------------------------------------------

FOUR, PART = "memref<4xi32>", "memref<2xi32, strided<[1]>>"


def read_twice(*reads: str) -> ir.Operation:
    """The first two elements of %a are filled by a view; a loop over all of %a has more reads, and copies it to %b."""
    body = '^bb0(%p: i32, %q: i32):\n"linalg.yield"(%p) : (i32) -> ()'
    fill = op("linalg.fill", "%x, %v", f"(i32, {PART}) -> ()", "operandSegmentSizes = array<i32: 1, 1>", body)
    yielded = store("%e", "%b", "%k", FOUR) + '\n"scf.yield"() : () -> ()'
    lines = "\n".join(["^bb0(%k: index):", *reads, load("%e", "%a", "%k", FOUR), yielded])
    loop = op("scf.for", "%zero, %four, %one", "(index, index, index) -> ()", "", lines)
    cut = view("%v", "%a", f"({FOUR}) -> {PART}", "0", "2", "1")
    return function(f"%x: i32, %a: {FOUR}, %b: {FOUR}", "", *NUMBERS, cut, fill, loop, "")


def test_an_element_is_not_taken_for_one_of_a_view_that_read_its_place_before() -> None:
    below = f"%c = {op('arith.cmpi', '%k, %two', '(index, index) -> i1', 'predicate = 2 : i64')}"
    viewed = read_twice(below, where("%c", load("%d", "%v", "%k", PART)))
    assert status(viewed, read_twice(), APART) is Status.PROVED
    assert status(read_twice(), viewed, APART) is Status.PROVED
    body = '^bb0(%p: i32, %q: i32):\n"linalg.yield"(%p) : (i32) -> ()'
    fills = [
        op("linalg.fill", f"%x, %{b}", f"(i32, {t}) -> ()", "operandSegmentSizes = array<i32: 1, 1>", body)
        for b, t in (("v", PART), ("b", FOUR))
    ]
    cut = view("%v", "%a", f"({FOUR}) -> {PART}", "0", "2", "1")
    filled = function(f"%x: i32, %a: {FOUR}, %b: {FOUR}", "", *NUMBERS, cut, *fills, "")
    assert status(viewed, filled, APART) is Status.REFUTED


def counted(*, by_view: bool, result: str) -> ir.Operation:
    """An element of row 1 goes up by 1 in four iterations, in which it is read by way of a view of the row, or not."""
    row = "memref<4xi32, strided<[1], offset: 4>>"
    cut = view("%v", "%a", f"({SQUARE}) -> {row}", "1, 0", "1, 4", "1, 1")
    two_dimensional = f"({SQUARE}, index, index) -> i32"
    of_square = op("memref.load", "%a, %one, %j", two_dimensional)
    one, more = (f"%{n} = {constant(str(v), 'i32')}" for n, v in (("i", 1), ("m", 4)))
    up = '%y = "arith.addi"(%x, %i) : (i32, i32) -> i32'
    stored = op("memref.store", "%y, %a, %one, %j", f"(i32, {SQUARE}, index, index) -> ()")
    read = load("%x", "%v", "%j", row) if by_view else f"%x = {of_square}"
    body = "\n".join(["^bb0(%k: index):", read, up, stored, '"scf.yield"() : () -> ()'])
    loop = op("scf.for", "%zero, %four, %one", "(index, index, index) -> ()", "", body)
    results = {
        "after": f"%0 = {of_square}",
        **{n: f'%0 = "arith.addi"(%q, {v}) : (i32, i32) -> i32' for n, v in (("+ 1", "%i"), ("+ 4", "%m"))},
    }
    lines = [*NUMBERS, one, more, cut, f"%q = {of_square}", loop, results[result]]
    return function(f"%a: {SQUARE}, %j: index", "i32", *lines, "%0")


def test_a_read_after_a_loop_sees_what_the_loop_read_by_way_of_another_view() -> None:
    """What the loop finds in such a view is what it wrote in the iteration before, not what was there at first."""
    after = counted(by_view=True, result="after")
    assert status(after, counted(by_view=True, result="+ 1")) is not Status.PROVED
    assert status(after, counted(by_view=True, result="+ 4")) is not Status.REFUTED
    plain = counted(by_view=False, result="after")
    assert status(plain, counted(by_view=False, result="+ 4")) is Status.PROVED
    assert status(plain, counted(by_view=False, result="+ 1")) is Status.REFUTED


# -- counterexamples that are none -------------------------------------------------------------------------------------


def test_counterexamples_are_of_numbers_and_places_that_arguments_may_have() -> None:
    bound = f"%m = {constant(str((1 << 63) - 1), 'index')}"
    compared = f"%0 = {op('arith.cmpi', '%n, %m', '(index, index) -> i1', 'predicate = 3 : i64')}"
    source = function("%n: index", "i1", bound, compared, "%0")
    true, false = (function("%n: index", "i1", f"%0 = {constant(x, 'i1')}", "%0") for x in ("true", "false"))
    assert status(source, true) is Status.PROVED
    found = verdict(source, false).details["counterexample"]
    assert isinstance(found, Counterexample)
    assert replay(source, false, Options(), found) is not None
    with pytest.raises(ValueError, match="must have 64 bits, and 9223372036854775808 has not"):
        replay(source, true, Options(), replace(found, scalars={"arg0": 1 << 63}))
    one, other = (
        function(f"%a: {WORDS}", "i32", *NUMBERS, EVERYTHING, load("%0", "%a", at, WORDS), "%0")
        for at in ("%zero", "%one")
    )
    found = verdict(one, other).details["counterexample"]
    assert isinstance(found, Counterexample)
    assert replay(one, other, Options(), found) is not None
    assert replay(one, other, Options(), replace(found, scalars={**found.scalars, "arg0_offset": -1})) is None


def test_what_is_left_in_blocks_of_its_own_is_no_difference() -> None:
    """A target may leave buffers that it made; which of two it writes to is not known before it runs."""
    one = "memref<i32>"
    alloc = '{} = "memref.alloc"() <{{operandSegmentSizes = array<i32: 0, 0>}}> : () -> memref<i32>'
    chosen = f"%m = {op('arith.select', '%c, %a, %b', f'(i1, {one}, {one}) -> {one}')}"
    stored = op("memref.store", "%x, %m", f"(i32, {one}) -> ()")
    arguments = "%c: i1, %x: i32"
    target = function(arguments, "i32", alloc.format("%a"), alloc.format("%b"), chosen, stored, "%x")
    assert status(function(arguments, "i32", "%x"), target) is Status.PROVED
