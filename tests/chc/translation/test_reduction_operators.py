"""Which operators have a free order, what parts start with, and summands that are not defined everywhere."""

from __future__ import annotations

import pytest

from chc.translation.refine import Options
from ir_semantics.mlir import ir
from smt_encodings.claims import Status
from tests.ir_semantics.mlir.mlir_text import constant, op

from .reduction_programs import DYNAMIC, Program, combine, tensor
from .verdicts import status

ANY_ORDER = Options(associative=True)
LOWEST = "0xFF800000"
"""Minus infinity, in f32."""


def vector(element: str, region: str, *, is_reversed: bool = False, operands: int = 1) -> ir.Operation:
    """All elements of vectors, combined in one order or in the other one."""
    p = Program(element)
    arguments = [p.argument("?") for _ in range(operands)]
    c = p.argument()
    arguments = [p.reverse(a, 0) if is_reversed else a for a in arguments]
    return p.done(p.loops(["(k) -> (k)"] * operands + ["(k) -> ()"], "r", *arguments, c, region=region))


@pytest.mark.parametrize(
    ("element", "name", "expected"),
    [
        ("i32", "arith.addi", Status.PROVED),
        ("i32", "arith.muli", Status.PROVED),
        ("i32", "arith.subi", Status.PROVED),
        ("i8", "arith.maxsi", Status.PROVED),
        ("i8", "arith.minui", Status.PROVED),
        ("i32", "arith.xori", Status.PROVED),
        ("i32", "arith.andi", Status.PROVED),
        ("i1", "arith.ori", Status.PROVED),
        ("i1", "arith.andi", Status.PROVED),
        ("i1", "arith.xori", Status.PROVED),
        ("index", "arith.addi", Status.PROVED),
        ("f32", "arith.maximumf", Status.PROVED),
        ("f32", "arith.minnumf", Status.PROVED),
        ("f32", "arith.addf", Status.REFUTED),
        ("f32", "arith.mulf", Status.REFUTED),
        ("i8", "arith.shli", Status.PROVED),
    ],
)
def test_operators_on_all_values(element: str, name: str, expected: Status) -> None:
    region = combine(element, name)
    assert status(vector(element, region), vector(element, region, is_reversed=True)) is expected


@pytest.mark.parametrize("name", ["arith.ori", "arith.andi"])
def test_joined_conditions_of_which_one_is_another(name: str) -> None:
    sides = []
    for is_moved in (False, True):
        p = Program("i1")
        argument, c = p.argument(4), p.argument()
        operand = p.reverse(p.moved(argument, 0, 1), 0) if is_moved else argument
        region = combine("i1", name)
        sides.append(p.done(p.loops(["(k) -> (k)", "(k) -> ()"], "r", operand, c, region=region)))
    assert status(*sides) is Status.REFUTED


def region_of(*lines: str, element: str = "i8", operands: str = "%p: i8, %r: i8") -> str:
    return "\n".join([f"^bb0({operands}):", *lines, f'"linalg.yield"(%u) : ({element}) -> ()'])


def test_steps_that_may_not_change_places() -> None:
    types = "(i8, i8) -> i8"
    two = f"%e = {constant('2', 'i8')}"
    horner = region_of(two, f"%s = {op('arith.muli', '%r, %e', types)}", f"%u = {op('arith.addi', '%s, %p', types)}")
    last = region_of(f"%s = {op('arith.andi', '%r, %p', types)}", f"%u = {op('arith.subi', '%p, %s', types)}")
    for region in (horner, last):
        assert status(vector("i8", region), vector("i8", region, is_reversed=True)) is Status.REFUTED


def test_saturation_has_an_order_where_numbers_have_signs() -> None:
    wide = "(i16, i16) -> i16"

    def saturating(extension: str, *ends: tuple[str, str]) -> str:
        lines = [f"%{x} = {op(extension, f'%{y}', '(i8) -> i16')}" for x, y in (("a", "r"), ("b", "p"))]
        lines.append(f"%s0 = {op('arith.addi', '%a, %b', wide)}")
        for k, (name, end) in enumerate(ends):
            lines += [f"%e{k} = {constant(end, 'i16')}", f"%s{k + 1} = {op(name, f'%s{k}, %e{k}', wide)}"]
        return region_of(*lines, f"%u = {op('arith.trunci', f'%s{len(ends)}', '(i16) -> i8')}")

    signed = saturating("arith.extsi", ("arith.minsi", "127"), ("arith.maxsi", "-128"))
    unsigned = saturating("arith.extui", ("arith.minui", "255"))
    assert status(vector("i8", signed), vector("i8", signed, is_reversed=True)) is Status.REFUTED
    assert status(vector("i8", unsigned), vector("i8", unsigned, is_reversed=True)) is Status.PROVED


def in_rows(element: str, name: str, start: str | None, whole: str = "") -> ir.Operation:
    """A matrix, combined at once, or row by row from a start; ``whole`` is what all starts with, else an argument."""
    p = Program(element)
    a, c = p.argument("?", "?"), p.argument()
    if whole:
        c = p.filled([], whole)
    region = combine(element, name)
    if start is None:
        return p.done(p.loops(["(i, j) -> (i, j)", "(i, j) -> ()"], "rr", a, c, region=region))
    rows = p.loops(["(i, j) -> (i, j)", "(i, j) -> (i)"], "pr", a, p.filled([p.size(a, 0)], start), region=region)
    return p.done(p.loops(["(i) -> (i)", "(i) -> ()"], "r", rows, c, region=region))


@pytest.mark.parametrize(
    ("element", "name", "start", "whole", "expected"),
    [
        ("i32", "arith.addi", "0", "", Status.PROVED),
        ("i32", "arith.addi", "1", "", Status.REFUTED),
        ("i32", "arith.addi", "1", "1", Status.REFUTED),
        ("i8", "arith.muli", "1", "", Status.PROVED),
        ("i8", "arith.maxsi", "-128", "", Status.PROVED),
        ("i8", "arith.maxsi", "0", "", Status.REFUTED),
        ("i8", "arith.maxsi", "0", "0", Status.PROVED),
        ("i8", "arith.andi", "-1", "", Status.PROVED),
        ("f32", "arith.maximumf", LOWEST, "", Status.PROVED),
        ("f32", "arith.maximumf", "0.0", "", Status.REFUTED),
        ("f32", "arith.maximumf", "-3.40282347E+38", "-3.40282347E+38", Status.PROVED),
        ("f32", "arith.maximumf", "-3.40282347E+38", LOWEST, Status.REFUTED),
    ],
)
def test_parts_start_with_what_changes_nothing(
    element: str, name: str, start: str, whole: str, expected: Status
) -> None:
    assert status(in_rows(element, name, None, whole), in_rows(element, name, start, whole)) is expected


@pytest.mark.parametrize(
    ("start", "whole", "expected"),
    [
        ("-0.0", "", Status.PROVED),
        ("0.0", "0.0", Status.PROVED),
        ("0.0", "", Status.UNKNOWN),
        ("0.0", "-0.0", Status.UNKNOWN),
        ("-0.0", "0.0", Status.PROVED),
        ("1.0", "1.0", Status.REFUTED),
    ],
)
def test_zeros_that_sums_of_floats_start_with(start: str, whole: str, expected: Status) -> None:
    pair = in_rows("f32", "arith.addf", None, whole), in_rows("f32", "arith.addf", start, whole)
    assert status(*pair, ANY_ORDER) is expected
    assert status(*pair) is Status.REFUTED


def test_parts_in_a_narrower_format_are_other_sums() -> None:
    def program(in_parts: bool) -> ir.Operation:
        p = Program("i8")
        a, c = p.argument("?", "?"), p.argument()
        low = [f"%s = {op('arith.trunci', '%p', '(i8) -> i4')}", f"%t = {op('arith.extsi', '%s', '(i4) -> i8')}"]
        add = f"%u = {op('arith.addi', '%r, %t', '(i8, i8) -> i8')}"
        if not in_parts:
            return p.done(p.loops(["(i, j) -> (i, j)", "(i, j) -> ()"], "rr", a, c, region=region_of(*low, add)))
        p.element = "i4"
        zeros = p.filled([p.size(a, 0)])
        narrow = region_of(low[0], f"%u = {op('arith.addi', '%r, %s', '(i4, i4) -> i4')}", element="i4",
                           operands="%p: i8, %r: i4")  # fmt: skip
        rows = p.loops(["(i, j) -> (i, j)", "(i, j) -> (i)"], "pr", a, zeros, region=narrow)
        wide = region_of(f"%t = {op('arith.extsi', '%p', '(i4) -> i8')}", add, operands="%p: i4, %r: i8")
        return p.done(p.loops(["(i) -> (i)", "(i) -> ()"], "r", rows, c, region=wide))

    assert status(program(False), program(True)) is Status.REFUTED


def test_what_is_undefined_in_one_summand() -> None:
    def quotients(name: str) -> str:
        lines = f"%s = {op(name, '%p, %q', '(i8, i8) -> i8')}", f"%u = {op('arith.addi', '%r, %s', '(i8, i8) -> i8')}"
        return region_of(*lines, operands="%p: i8, %q: i8, %r: i8")

    def doubled(flags: str) -> str:
        types, flag = "(i8, i8) -> i8", f"overflowFlags = #arith.overflow<{flags}>"
        return region_of(f"%s = {op('arith.addi', '%p, %p', types, flag)}", f"%u = {op('arith.addi', '%r, %s', types)}")

    signed, unsigned = quotients("arith.divsi"), quotients("arith.divui")
    assert status(vector("i8", signed, operands=2), vector("i8", signed, is_reversed=True, operands=2)) is Status.PROVED
    other = vector("i8", unsigned, is_reversed=True, operands=2)
    assert status(vector("i8", signed, operands=2), other) is Status.REFUTED
    poison, none = doubled("nsw"), doubled("none")
    assert status(vector("i8", poison), vector("i8", poison, is_reversed=True)) is Status.PROVED
    assert status(vector("i8", poison), vector("i8", none, is_reversed=True)) is Status.PROVED
    assert status(vector("i8", none), vector("i8", poison, is_reversed=True)) is Status.REFUTED


def padded(element: str, way: str, padding: str = "0") -> ir.Operation:
    """A sum over a vector, over it and padding up to a multiple of 4, or over that in blocks of 4."""
    p = Program(element)
    x, c = p.argument("?"), p.argument()
    if way == "plain":
        return p.done(p.loops(["(k) -> (k)", "(k) -> ()"], "r", x, c))

    def integer(name: str, *operands: str) -> str:
        return p.line(op(f"arith.{name}", ", ".join(operands), "(index, index) -> index"), "index")

    four, three = (p.line(constant(n, "index"), "index") for n in ("4", "3"))
    size = p.size(x, 0)
    blocks = integer("floordivsi", integer("addi", size, three), four)
    high = integer("subi", integer("muli", blocks, four), size)
    region = f'^bb0(%i: index):\n"tensor.yield"({p.line(constant(padding, element), element)}) : ({element}) -> ()'
    attributes = (
        f"static_low = array<i64: 0>, static_high = array<i64: {DYNAMIC}>, operandSegmentSizes = array<i32: 1, 0, 1>"
    )
    line = tensor(element, "?")
    x = p.line(op("tensor.pad", f"{x}, {high}", f"({line}, index) -> {line}", attributes, region), line)
    if way == "blocks":
        to = tensor(element, "?", 4)
        attributes = f"reassociation = [[0, 1]], static_output_shape = array<i64: {DYNAMIC}, 4>"
        x = p.line(op("tensor.expand_shape", f"{x}, {blocks}", f"({line}, index) -> {to}", attributes), to)
        x = p.loops(["(i, j) -> (i, j)", "(i, j) -> (i)"], "pr", x, p.filled([blocks]))
    return p.done(p.loops(["(k) -> (k)", "(k) -> ()"], "r", x, c))


def test_padding_that_changes_nothing() -> None:
    plain, floats = padded("i32", "plain"), padded("f32", "plain")
    assert status(plain, padded("i32", "padded")) is Status.PROVED
    assert status(plain, padded("i32", "blocks")) is Status.PROVED
    assert status(plain, padded("i32", "padded", "1")) is Status.REFUTED
    assert status(floats, padded("f32", "blocks", "-0.0"), ANY_ORDER) is Status.PROVED
    assert status(floats, padded("f32", "padded", "0.0"), ANY_ORDER) is Status.UNKNOWN


VECTOR = ["(k) -> (k)", "(k) -> ()"]


def joined(element: str, way: str, *sizes: object) -> ir.Operation:
    """The sum over two vectors that are joined, or over one after the other."""
    p = Program(element)
    a, b, c = p.argument(sizes[0]), p.argument(sizes[1]), p.argument()
    match way:
        case "apart":
            return p.done(p.loops(VECTOR, "r", a, p.loops(VECTOR, "r", b, c)))
        case "first twice":
            return p.done(p.loops(VECTOR, "r", a, p.loops(VECTOR, "r", a, c)))
    to = tensor(element, "?" if "?" in sizes else sum(map(int, map(str, sizes))))
    whole = p.line(op("tensor.concat", f"{a}, {b}", f"({p.types[a]}, {p.types[b]}) -> {to}", "dim = 0 : i64"), to)
    return p.done(p.loops(VECTOR, "r", p.reverse(whole, 0) if way == "reversed" else whole, c))


def halves(element: str, way: str) -> ir.Operation:
    """The sum over a vector, or over its halves, of which the second one may be longer by one."""
    p = Program(element)
    a, c = p.argument("?"), p.argument()
    if way == "whole":
        return p.done(p.loops(VECTOR, "r", a, c))
    size = p.size(a, 0)
    zero, two = (p.line(constant(n, "index"), "index") for n in ("0", "2"))
    half = p.line(op("arith.floordivsi", f"{size}, {two}", "(index, index) -> index"), "index")
    rest = p.line(op("arith.subi", f"{size}, {half}", "(index, index) -> index"), "index")
    to = p.types[a]
    attributes = (
        f"static_offsets = array<i64: {DYNAMIC}>, static_sizes = array<i64: {DYNAMIC}>, "
        "static_strides = array<i64: 1>, operandSegmentSizes = array<i32: 1, 1, 1, 0>"
    )
    parts = ((zero, half if way == "halves" else rest), (half, rest if way != "last left out" else half))
    for start, length in parts:
        part = p.line(
            op("tensor.extract_slice", f"{a}, {start}, {length}", f"({to}, index, index) -> {to}", attributes), to
        )
        c = p.loops(VECTOR, "r", part, c)
    return p.done(c)


@pytest.mark.parametrize(("element", "options"), [("i32", None), ("f32", ANY_ORDER)])
def test_sums_of_several_parts(element: str, options: Options | None) -> None:
    for sizes in (("?", "?"), (50, 60)):
        for way in ("joined", "reversed"):
            assert status(joined(element, way, *sizes), joined(element, "apart", *sizes), options) is Status.PROVED
    assert (
        status(joined(element, "joined", "?", "?"), joined(element, "first twice", "?", "?"), options) is Status.REFUTED
    )
    assert status(halves(element, "whole"), halves(element, "halves"), options) is Status.PROVED
    assert status(halves(element, "whole"), halves(element, "overlapping"), options) is Status.REFUTED
    assert status(halves(element, "whole"), halves(element, "last left out"), options) is Status.REFUTED
