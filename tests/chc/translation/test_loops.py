"""Pairs of functions with loops and choices: what is carried as scalars, tensors, and in memory."""

from __future__ import annotations

import re

import pytest

from chc.translation.refine import Options
from ir_semantics.mlir import ir
from ir_semantics.mlir.semantics.program import Reading
from smt_encodings.claims import Status
from tests.ir_semantics.mlir.mlir_text import constant, function, generic, op

from .verdicts import status, verdict

T, M, F2 = "tensor<?xf32>", "memref<?xf32>", "(f32, f32) -> f32"
NUMBERS = [f"%{k} = {constant(str(n), 'index')}" for k, n in (("zero", 0), ("one", 1), ("two", 2), ("four", 4))]
SIZE = f"%n = {op('tensor.dim', '%t, %zero', f'({T}, index) -> index')}"
BUFFER_SIZE = f"%n = {op('memref.dim', '%a, %zero', f'({M}, index) -> index')}"


def loop(bounds: str, starts: str, types: str, *lines: str, yields: str = "", carried: str = "") -> str:
    """``scf.for`` over %k; ``carried`` are the block's arguments, such as ``, %x: f32``."""
    body = "\n".join([f"^bb0(%k: index{carried}):", *lines, f'"scf.yield"({yields}) : ({types}) -> ()'])
    comma = ", " if starts else ""
    kinds = f"(index, index, index{comma}{types}) -> ({types})"
    return op("scf.for", f"{bounds}{comma}{starts}", kinds, "", body)


def summed(bounds: str = "%zero, %n, %one") -> ir.Operation:
    """The sum of a tensor from %i on, in a loop."""
    lines = (
        f"%e = {op('tensor.extract', '%t, %k', f'({T}, index) -> f32')}",
        f"%y = {op('arith.addf', '%x, %e', F2)}",
    )
    whole = loop(bounds, "%i", "f32", *lines, yields="%y", carried=", %x: f32")
    return function(f"%t: {T}, %i: f32", "f32", *NUMBERS, SIZE, f"%0 = {whole}", "%0")


def reduced() -> ir.Operation:
    """The same sum by linalg."""
    body = f'^bb0(%p: f32, %q: f32):\n%s = {op("arith.addf", "%q, %p", F2)}\n"linalg.yield"(%s) : (f32) -> ()'
    whole = generic("%t, %b", f"({T}, tensor<f32>) -> tensor<f32>", ["(d0) -> (d0)", "(d0) -> ()"], "r", "1, 1", body)
    return function(
        f"%t: {T}, %i: f32", "f32", f"%b = {op('tensor.from_elements', '%i', '(f32) -> tensor<f32>')}",
        f"%c = {whole}", f"%0 = {op('tensor.extract', '%c', '(tensor<f32>) -> f32')}", "%0",
    )  # fmt: skip


def negated_by(bounds: str) -> ir.Operation:
    """Elements of a tensor negated one by one."""
    lines = (
        f"%e = {op('tensor.extract', '%x, %k', f'({T}, index) -> f32')}",
        f"%f = {op('arith.negf', '%e', '(f32) -> f32')}",
        f"%y = {op('tensor.insert', '%f, %x, %k', f'(f32, {T}, index) -> {T}')}",
    )
    whole = loop(bounds, "%t", T, *lines, yields="%y", carried=f", %x: {T}")
    return function(f"%t: {T}", T, *NUMBERS, SIZE, f"%0 = {whole}", "%0")


def negated_in_tiles(size: int) -> ir.Operation:
    """Slices of a tensor negated, each of the size or less; steps are 4."""
    slice_ = (
        "static_offsets = array<i64: -9223372036854775808>, static_sizes = array<i64: -9223372036854775808>, "
        "static_strides = array<i64: 1>, operandSegmentSizes = array<i32: {}>"
    )
    inserting = f"({T}, {T}, index, index) -> {T}"
    least = f"map = affine_map<(d0)[s0] -> (-d0 + s0, {size})>"
    lines = (
        f"%m = {op('affine.min', '%k, %n', '(index, index) -> index', least)}",
        f"%s = {op('tensor.extract_slice', '%t, %k, %m', f'({T}, index, index) -> {T}', slice_.format('1, 1, 1, 0'))}",
        f"%f = {op('arith.negf', '%s', f'({T}) -> {T}')}",
        f"%y = {op('tensor.insert_slice', '%f, %x, %k, %m', inserting, slice_.format('1, 1, 1, 1, 0'))}",
    )
    whole = loop("%zero, %n, %four", "%t", T, *lines, yields="%y", carried=f", %x: {T}")
    return function(f"%t: {T}", T, *NUMBERS, SIZE, f"%0 = {whole}", "%0")


NEGATED = function(f"%t: {T}", T, f"%0 = {op('arith.negf', '%t', f'({T}) -> {T}')}", "%0")


def counted(high: str) -> ir.Operation:
    added = f"%y = {op('arith.addi', '%x, %two', '(index, index) -> index')}"
    whole = loop(f"%zero, {high}, %one", "%zero", "index", added, yields="%y", carried=", %x: index")
    return function("%n: index, %s: index", "index", *NUMBERS, f"%0 = {whole}", "%0")


def doubled(at_least: int) -> ir.Operation:
    """Twice a number, or twice ``at_least`` where that is more."""
    map_ = f"map = affine_map<(d0) -> (d0 * 2, {2 * at_least})>"
    return function("%n: index, %s: index", "index", f"%0 = {op('affine.max', '%n', '(index) -> index', map_)}", "%0")


AB = f"%a: {M}, %b: {M}"
LOAD = f"%e = {op('memref.load', '%a, %k', f'({M}, index) -> f32')}"
ADDED = f"%f = {op('arith.addf', '%e, %e', F2)}"


def stored(at: str) -> str:
    return op("memref.store", f"%f, %b, {at}", f"(f32, {M}, index) -> ()")


def by_loop(*lines: str, times: int = 1, kind: str = "scf.for") -> ir.Operation:
    """Elements of %a and %b, in a loop over the size of %a; several times in a loop around."""
    end = '"scf.reduce"() : () -> ()' if kind == "scf.parallel" else '"scf.yield"() : () -> ()'
    body = "\n".join(["^bb0(%k: index):", *lines, end])
    segments = "operandSegmentSizes = array<i32: 1, 1, 1, 0>" if kind == "scf.parallel" else ""
    inner = op(kind, "%zero, %n, %one", "(index, index, index) -> ()", segments, body)
    if times > 1:
        body = f'^bb0(%j: index):\n{inner}\n"scf.yield"() : () -> ()'
        inner = op("scf.for", "%zero, %two, %one", "(index, index, index) -> ()", "", body)
    return function(AB, "", *NUMBERS, BUFFER_SIZE, inner, "")


def by_linalg() -> ir.Operation:
    body = f'^bb0(%p: f32, %q: f32):\n%s = {op("arith.addf", "%p, %p", F2)}\n"linalg.yield"(%s) : (f32) -> ()'
    return function(AB, "", generic("%a, %b", f"({M}, {M}) -> ()", ["(d0) -> (d0)"] * 2, "p", "1, 1", body), "")


REVERSED = [
    f"%r = {op('arith.subi', '%n, %k', '(index, index) -> index')}",
    f"%l = {op('arith.subi', '%r, %one', '(index, index) -> index')}",
]


def branch(yes: str, no: str) -> ir.Operation:
    """One of two numbers by a branch, stored in it, too."""
    store = op("memref.store", "{0}, %a, %zero", f"(f32, {M}, index) -> ()")
    region = "{1}\n" + store + '\n"scf.yield"({0}) : (f32) -> ()'
    none = op("arith.negf", "%p", "(f32) -> f32")
    texts = [region.format(x, f"%m{i} = {none}") for i, x in enumerate((yes, no))]
    both = f'"scf.if"(%c) ({{\n{texts[0]}\n}}, {{\n{texts[1]}\n}}) : (i1) -> f32'
    return function(f"%a: {M}, %c: i1, %p: f32, %q: f32", "f32", *NUMBERS, f"%0 = {both}", "%0")


def chosen(yes: str, no: str) -> ir.Operation:
    select = f"%0 = {op('arith.select', f'%c, {yes}, {no}', '(i1, f32, f32) -> f32')}"
    store = op("memref.store", "%0, %a, %zero", f"(f32, {M}, index) -> ()")
    return function(f"%a: {M}, %c: i1, %p: f32, %q: f32", "f32", *NUMBERS, select, store, "%0")


def counted_while(step: str, *, flags: str = "none") -> ir.Operation:
    """As :func:`counted`, in a while loop."""
    grown = op("arith.addi", f"%j, {step}", "(index, index) -> index", f"overflowFlags = #arith.overflow<{flags}>")
    text = f"""
    %r:2 = "scf.while"(%zero, %zero) ({{
    ^bb0(%i: index, %x: index):
      %m = {op("arith.cmpi", "%i, %n", "(index, index) -> i1", "predicate = 2 : i64")}
      "scf.condition"(%m, %i, %x) : (i1, index, index) -> ()
    }}, {{
    ^bb0(%j: index, %y: index):
      %z = {op("arith.addi", "%y, %two", "(index, index) -> index")}
      %k = {grown}
      "scf.yield"(%k, %z) : (index, index) -> ()
    }}) : (index, index) -> (index, index)
    """
    return function("%n: index, %s: index", "index", *NUMBERS, text, "%r#1")


def in_affine_tiles(size: int) -> ir.Operation:
    """As :func:`by_linalg`, by tiles of ``size`` elements that start at each second one."""
    start, sizes = "lowerBoundMap = affine_map<{} -> ({})>", "operandSegmentSizes = array<i32: {}>"
    plus = op("arith.addf", "%e, %e", F2)
    inner = f"""^bb0(%j: index):
    %e = "affine.load"(%a, %j) <{{map = affine_map<(d0) -> (d0)>}}> : ({M}, index) -> f32
    %f = {plus}
    "affine.store"(%f, %b, %j) <{{map = affine_map<(d0) -> (d0)>}}> : (f32, {M}, index) -> ()
    "affine.yield"() : () -> ()"""
    end = f"upperBoundMap = affine_map<(d0)[s0] -> (d0 + {size}, s0)>"
    bounds = f"{start.format('(d0)', 'd0')}, {end}, step = 1 : index, {sizes.format('1, 2, 0')}"
    tile = op("affine.for", "%i, %i, %n", "(index, index, index) -> ()", bounds, inner)
    bounds = f"{start.format('()', '0')}, upperBoundMap = affine_map<()[s0] -> (s0)>, step = 2 : index"
    outer = f'^bb0(%i: index):\n{tile}\n"affine.yield"() : () -> ()'
    whole = op("affine.for", "%n", "(index) -> ()", f"{bounds}, {sizes.format('0, 1, 0')}", outer)
    return function(AB, "", *NUMBERS, BUFFER_SIZE, whole, "")


def turned(nested: bool, at: str = "%j, %i") -> ir.Operation:
    """A matrix written into another one, with rows as columns, in a nest of loops or in loops of any order."""
    s, t, two = "memref<?x4xf32>", "memref<4x?xf32>", "(index, index, index) -> ()"
    lines = f"%e = {op('memref.load', f'%a, {at}', f'({s}, index, index) -> f32')}\n"
    lines += op("memref.store", "%e, %b, %i, %j", f"(f32, {t}, index, index) -> ()")
    if nested:
        inner = op("scf.for", "%zero, %n, %one", two, "", f'^bb0(%j: index):\n{lines}\n"scf.yield"() : () -> ()')
        body = f'^bb0(%i: index):\n{inner}\n"scf.yield"() : () -> ()'
        whole = op("scf.for", "%zero, %four, %one", two, "", body)
    else:
        body = f'^bb0(%i: index, %j: index):\n{lines}\n"scf.reduce"() : () -> ()'
        types = f"({', '.join(['index'] * 6)}) -> ()"
        segments = "operandSegmentSizes = array<i32: 2, 2, 2, 0>"
        whole = op("scf.parallel", "%zero, %zero, %four, %n, %one, %one", types, segments, body)
    size = f"%n = {op('memref.dim', '%a, %zero', f'({s}, index) -> index')}"
    return function(f"%a: {s}, %b: {t}", "", *NUMBERS, size, whole, "")


def filled(*lines: str, at: str) -> ir.Operation:
    """%v stored in %a in a loop up to a bound that nothing ties to the size of %a."""
    body = [*lines, op("memref.store", f"%v, %a, {at}", f"(f32, {M}, index) -> ()")]
    return function(f"%a: {M}, %n: index, %v: f32", "f32", *NUMBERS, loop("%zero, %n, %one", "", "", *body), "%v")


VALID: dict[str, tuple[ir.Operation, ir.Operation]] = {
    "a sum is a reduction": (summed(), reduced()),
    "a reduction is a sum": (reduced(), summed()),
    "an empty loop": (
        summed("%two, %two, %one"), function(f"%t: {T}, %i: f32", "f32", *NUMBERS, SIZE, "%i")
    ),
    "a loop from the end on": (
        summed("%two, %zero, %one"), function(f"%t: {T}, %i: f32", "f32", *NUMBERS, SIZE, "%i")
    ),
    "elements one by one": (NEGATED, negated_by("%zero, %n, %one")),
    "elements one by one are all": (negated_by("%zero, %n, %one"), NEGATED),
    "tiles": (NEGATED, negated_in_tiles(4)),
    "a counter": (counted("%n"), doubled(0)),
    "elements of buffers": (by_linalg(), by_loop(LOAD, ADDED, stored("%k"))),
    "elements of buffers in any order": (by_linalg(), by_loop(LOAD, ADDED, stored("%k"), kind="scf.parallel")),
    "tiles of which the last may be shorter": (by_linalg(), in_affine_tiles(2)),
    "elements in reverse": (filled(at="%k"), filled(*REVERSED, at="%l")),
    "a branch": (branch("%p", "%q"), chosen("%p", "%q")),
    "a while loop that counts": (counted("%n"), counted_while("%one")),
    "a count in a while loop": (counted_while("%one"), counted("%n")),
    "a choice": (chosen("%p", "%q"), branch("%p", "%q")),
}  # fmt: skip
INVALID: dict[str, tuple[ir.Operation, ir.Operation]] = {
    "the first element is left out": (reduced(), summed("%one, %n, %one")),
    "every other element": (reduced(), summed("%zero, %n, %two")),
    "the first element stays": (NEGATED, negated_by("%one, %n, %one")),
    "tiles with gaps": (NEGATED, negated_in_tiles(3)),
    "a counter that may not run": (counted("%n"), doubled(-9)),
    "a counter that runs": (counted("%n"), doubled(1)),
    "elements of buffers in reverse": (by_linalg(), by_loop(*REVERSED, LOAD, ADDED, stored("%l"))),
    "twice": (by_linalg(), by_loop(LOAD, f"%f = {op('arith.negf', '%e', '(f32) -> f32')}", stored("%k"), times=2)),
    "a while loop that counts in larger steps": (counted("%n"), counted_while("%two")),
    "tiles that are too small": (by_linalg(), in_affine_tiles(1)),
    "the other branch": (branch("%p", "%q"), chosen("%q", "%p")),
}


@pytest.mark.parametrize("name", VALID)
def test_valid_pairs_are_proved(name: str) -> None:
    outcome = verdict(*VALID[name])
    assert outcome.status is Status.PROVED, outcome.reason


@pytest.mark.parametrize("name", INVALID)
def test_invalid_pairs_are_refuted(name: str) -> None:
    outcome = verdict(*INVALID[name])
    assert outcome.status is Status.REFUTED, outcome.reason


def test_what_is_done_twice_is_the_same_only_where_buffers_are_apart() -> None:
    """In place, elements would be doubled twice; linalg allows the operation in place."""
    twice = by_loop(LOAD, ADDED, stored("%k"), times=2)
    assert status(by_linalg(), twice) is not Status.PROVED
    assert status(by_linalg(), twice, Options(Reading(buffers_apart=True))) is Status.PROVED


def test_a_loop_over_buffers_that_may_overlap_has_no_meaning_as_a_source() -> None:
    once = by_loop(LOAD, ADDED, stored("%k"))
    outcome = verdict(once, once)
    assert outcome.status is Status.UNKNOWN
    assert re.sub(r"z3 [0-9.]+", "z3", outcome.reason) == (
        "not proved: scf.for at 9:1: buffers of which one is read and one is written must be apart in a loop; "
        "uninterpreted: z3 says sat; --buffers-apart says it of arguments"
    )
    assert status(once, once, Options(Reading(buffers_apart=True))) is Status.PROVED


def read_again(*, written_at_once: bool) -> ir.Operation:
    """Twice %a[0]; the first of two iterations, or an operation after them, writes %b[0], which may be the same."""
    one, add = "memref<1xi32>", "(i32, i32) -> i32"
    store = op("memref.store", "%d, %b, %zero", f"(i32, {one}, index) -> ()")
    if written_at_once:
        lines = [
            f"%x = {op('memref.load', '%a, %zero', f'({one}, index) -> i32')}",
            f"%y = {op('arith.addi', '%s, %x', add)}",
            f"%d = {op('arith.addi', '%x, %x', add)}",
            f"%c = {op('arith.cmpi', '%k, %zero', '(index, index) -> i1', 'predicate = 0 : i64')}",
            f'"scf.if"(%c) ({{\n{store}\n"scf.yield"() : () -> ()\n}}, {{\n}}) : (i1) -> ()',
        ]
        start = f"%i = {constant('0', 'i32')}"
        whole = loop("%zero, %two, %one", "%i", "i32", *lines, yields="%y", carried=", %s: i32")
        return function(f"%a: {one}, %b: {one}", "i32", *NUMBERS, start, f"%0 = {whole}", "%0")
    body = f'^bb0(%p: i32, %q: i32):\n%d = {op("arith.addi", "%p, %p", add)}\n"linalg.yield"(%d) : (i32) -> ()'
    doubled_ = generic("%a, %b", f"({one}, {one}) -> ()", ["(d0) -> (d0)"] * 2, "p", "1, 1", body)
    load = f"%x = {op('memref.load', '%a, %zero', f'({one}, index) -> i32')}"
    return function(
        f"%a: {one}, %b: {one}", "i32", *NUMBERS, load, f"%0 = {op('arith.addi', '%x, %x', add)}", doubled_, "%0"
    )


def test_what_is_written_in_place_must_be_read_in_that_iteration_alone() -> None:
    pair = read_again(written_at_once=False), read_again(written_at_once=True)
    assert status(*pair) is not Status.PROVED
    assert status(*pair, Options(Reading(buffers_apart=True))) is Status.PROVED


def diagonals() -> tuple[ir.Operation, ir.Operation]:
    """%a[0] + 2 %a[1] + %a[2], with the first two doubled in %b: each in turn, and in a nest that meets %a[1] twice."""
    two, add, index = "memref<8xi32>", "(i32, i32) -> i32", "(index, index) -> index"

    def load(name: str, at: str) -> str:
        return f"%{name} = {op('memref.load', f'%a, %{at}', f'({two}, index) -> i32')}"

    def sum_(name: str, a: str, b: str) -> str:
        return f"%{name} = {op('arith.addi', f'%{a}, %{b}', add)}"

    def store(name: str, at: str) -> str:
        return op("memref.store", f"%{name}, %b, %{at}", f"(i32, {two}, index) -> ()")

    body = '^bb0(%p: i32, %q: i32):\n"linalg.yield"(%q) : (i32) -> ()'
    kept = generic("%a, %b", f"({two}, {two}) -> ()", ["(d0) -> (d0)"] * 2, "p", "1, 1", body)  # apart, or the same
    places = enumerate(("zero", "one", "two"))
    values = [line for k, at in places for line in (load(f"l{k}", at), sum_(f"d{k}", f"l{k}", f"l{k}"))]
    total = [sum_("s", "l0", "l1"), sum_("t", "s", "l1"), sum_("r", "t", "l2")]
    flat = [kept, *values, *total, store("d0", "zero"), store("d1", "one")]
    source = function(f"%a: {two}, %b: {two}", "i32", *NUMBERS, *flat, "%r")
    inner = [
        f"%x = {op('arith.addi', '%i, %k', index)}", load("u", "x"), sum_("y", "s", "u"), sum_("w", "u", "u"),
        f"%c = {op('arith.cmpi', '%k, %zero', '(index, index) -> i1', 'predicate = 0 : i64')}",
        f'"scf.if"(%c) ({{\n{store("w", "x")}\n"scf.yield"() : () -> ()\n}}, {{\n}}) : (i1) -> ()',
    ]  # fmt: skip
    row = loop("%zero, %two, %one", "%o", "i32", *inner, yields="%y", carried=", %s: i32")
    outer = f'^bb0(%i: index, %o: i32):\n%r = {row}\n"scf.yield"(%r) : (i32) -> ()'
    whole = op("scf.for", "%zero, %two, %one, %n", "(index, index, index, i32) -> i32", "", outer)
    nest = [f"%n = {constant('0', 'i32')}", f"%e = {whole}"]
    return source, function(f"%a: {two}, %b: {two}", "i32", *NUMBERS, *nest, "%e")


def test_what_a_nest_reads_twice_it_must_not_write_between() -> None:
    assert status(*diagonals()) is not Status.PROVED
    assert status(*diagonals(), Options(Reading(buffers_apart=True))) is Status.PROVED


def test_a_region_at_the_end_of_a_block_has_no_meaning_without_its_operator() -> None:
    end = '"scf.yield"() ({\n^bb1(%p: f32):\n"scf.yield"(%p) : (f32) -> ()\n}) : () -> ()'
    whole = op("scf.for", "%zero, %two, %one", "(index, index, index) -> ()", "", f"^bb0(%k: index):\n{end}")
    program = function("%v: f32", "f32", *NUMBERS, whole, "%v")
    assert "a region at the end of a block has no meaning here" in verdict(program, program).reason


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (by_loop(LOAD, ADDED, stored("%zero"), kind="scf.parallel"), "iterations that may write the same element"),
        (counted_while("%s"), "a loop whose step may not be positive has no meaning here"),
        (counted_while("%one", flags="nuw"), "a loop that does not count up to a bound has no meaning here"),
        (by_loop(LOAD, ADDED, stored("%k"), op("memref.dealloc", "%b", f"({M}) -> ()")), "a loop that frees a buffer"),
        (
            by_loop(*REVERSED, f"%e = {op('memref.load', '%b, %l', f'({M}, index) -> f32')}", ADDED, stored("%k")),
            "an iteration that reads what others write",
        ),
    ],
)
def test_loops_without_a_meaning_are_named(program: ir.Operation, reason: str) -> None:
    outcome = verdict(program, program)
    assert outcome.status is Status.UNKNOWN
    assert reason in outcome.reason


def test_what_is_not_proved_is_said_once() -> None:
    numbers = "(index, index) -> index"
    turned_round = [  # the last one first
        f"%first = {op('arith.cmpi', '%k, %zero', '(index, index) -> i1', 'predicate = 0 : i64')}",
        f"%last = {op('arith.subi', '%n, %one', numbers)}",
        f"%before = {op('arith.subi', '%k, %one', numbers)}",
        f"%l = {op('arith.select', '%first, %last, %before', '(i1, index, index) -> index')}",
    ]
    outcome = verdict(filled(at="%k"), filled(*turned_round, at="%l"))
    assert outcome.status is Status.UNKNOWN
    assert re.sub(r"z3 [0-9.]+", "z3", outcome.reason) == (
        "not proved: an arbitrary element of memory (binary32) is the same afterwards; uninterpreted: it is defined: "
        "z3 says sat"
    )


def test_nests_and_loops_of_any_order_require_the_same() -> None:
    apart = Options(Reading(buffers_apart=True))
    assert status(turned(False), turned(True), apart) is status(turned(True), turned(False), apart) is Status.PROVED
    assert status(turned(False), turned(True, "%j, %j"), apart) is not Status.PROVED
