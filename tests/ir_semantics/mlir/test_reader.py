"""The reader and printer against prints of ``mlir-opt`` 22.1.8, and against texts that are wrong."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from ir_semantics.mlir import scanner
from ir_semantics.mlir.affine import AffineMap, Binary, Constant, Dimension, Symbol
from ir_semantics.mlir.ir import (
    ArrayAttribute,
    Attribute,
    Block,
    DenseElements,
    FloatType,
    IndexType,
    IntegerAttribute,
    IntegerType,
    MemRefType,
    Module,
    Operation,
    Position,
    SparseElements,
    StridedLayout,
    StringAttribute,
    SymbolReference,
    TensorType,
)
from ir_semantics.mlir.printer import text_of, text_of_attribute
from ir_semantics.mlir.reader import CustomForm, read
from ir_semantics.mlir.scanner import DEEPEST, MlirError

DATA = Path(__file__).parent / "data"
GENERIC = sorted((DATA / "generic").glob("*.mlir"))
INFINITY = 0x7F800000


def generic(name: str) -> Module:
    return read((DATA / "generic" / f"{name}.mlir").read_text(encoding="utf-8"))


def function(module: Module, name: str) -> Operation:
    [found] = [operation for operation in module.symbols() if operation.symbol == name]
    return found


def body(operation: Operation) -> Block:
    return operation.regions[0].blocks[0]


def attribute(text: str) -> Attribute:
    [operation] = read(f'"any.thing"() {{a = {text}}} : () -> ()').operations
    return operation.attributes["a"]


@pytest.mark.parametrize("path", GENERIC, ids=lambda path: path.stem)
def test_printing_gives_the_print_of_mlir_opt_again(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text_of(read(text)).rstrip() == text.rstrip()


def test_decimals_have_the_bits_that_mlir_opt_gives_them() -> None:
    """The decimals lie between two numbers of their formats or nearly so, or are too large."""
    written = read((DATA / "custom" / "floats.mlir").read_text(encoding="utf-8")).operations[0].attributes
    [module] = generic("floats").operations
    assert written == body(module).operations[0].attributes
    assert len(written) == 15


def test_operands_are_the_objects_that_results_and_arguments_are() -> None:
    block = body(function(generic("scalars"), "clamp"))
    x, y = block.arguments
    assert (x.type, y.type) == (IntegerType(8), FloatType("f32"))
    low, compare, kept, wide, _, _, _, call, back = block.operations
    assert compare.operands == (x, low.results[0])
    assert kept.operands == (compare.results[0], low.results[0], x)
    assert wide.operands == (y,)
    assert back.operands == call.results
    assert low.attributes["value"] == IntegerAttribute(-100, IntegerType(8))
    assert call.attributes["callee"] == SymbolReference("unknown")
    assert low.properties == {"value"}


def test_branches_lead_to_the_blocks_of_their_region() -> None:
    entry, head, rest, leave = function(generic("buffers"), "count").regions[0].blocks
    assert entry.operations[-1].successors == (head,)
    assert head.operations[-1].successors == (leave, rest)
    assert rest.operations[-1].successors == (head, leave)
    assert leave.operations[-1].operands == tuple(leave.arguments)


def test_layouts_and_memory_spaces() -> None:
    operations = body(function(generic("buffers"), "window")).operations
    [view] = [operation for operation in operations if operation.name == "memref.subview"]
    assert view.results[0].type == MemRefType((2, 3), FloatType("f32"), StridedLayout((None, 1), None))
    [alloc] = [operation for operation in operations if operation.name == "memref.alloc"]
    transposed = AffineMap(2, 0, (Dimension(1), Dimension(0)))
    space = IntegerAttribute(3, IntegerType(64))
    assert alloc.results[0].type == MemRefType((4, 4), IntegerType(1), transposed, space)


def test_affine_maps_keep_their_operators() -> None:
    [apply, *_] = body(function(generic("scalars"), "indices")).operations
    d, s = Dimension(0), Symbol(0)
    scaled = Binary("+", Binary("*", d, Constant(3)), Binary("*", s, Constant(-1)))
    total = Binary("+", Binary("floordiv", scaled, Constant(4)), Binary("mod", d, Constant(5)))
    assert apply.attributes["map"] == AffineMap(1, 1, (total,))


def test_constants_have_their_elements() -> None:
    values = [
        operation.attributes["value"]
        for operation in body(function(generic("constants"), "constants")).operations
        if operation.name == "arith.constant"
    ]
    dense = [value for value in values if isinstance(value, DenseElements)]
    assert dense[0].integers() == [1, -2, 3, 127]
    assert (dense[1].integers(), dense[1].is_splat) == ([1], True)
    assert dense[1].type.shape == (1000000, 1000000)
    assert dense[3].bit_patterns() == [0x3F800000, 0xC0000000, INFINITY]
    assert struct.unpack("<4d", dense[4].data)[:3] == (1.0, 2.0, -0.0)
    assert dense[5].bit_patterns() == []
    assert dense[7].integers() == [*range(64), -64, *range(-1, -39, -1)]
    sparse = [value for value in values if isinstance(value, SparseElements)]
    assert sparse[0].indices.integers() == [0, 0, 1, 3]
    assert isinstance(sparse[0].values, DenseElements)
    assert sparse[0].values.bit_patterns() == [0x3E00, 0x8000]


def test_resources_are_bytes() -> None:
    assert generic("constants").resources == {"builtin": {"weights": bytes([4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0])}}


def test_bits_of_one_bit_integers_are_packed_in_hexadecimal_data() -> None:
    constant = attribute('dense<"0x0501"> : tensor<9xi1>')
    assert isinstance(constant, DenseElements)
    assert constant.integers() == [1, 0, 1, 0, 0, 0, 0, 0, 1]
    assert text_of_attribute(constant) == (
        "dense<[true, false, true, false, false, false, false, false, true]> : tensor<9xi1>"
    )


def test_equal_elements_are_a_splat() -> None:
    assert attribute("dense<[[7, 7], [7, 7]]> : tensor<2x2xi8>") == attribute("dense<7> : tensor<2x2xi8>")
    assert attribute("dense<[0.0, -0.0]> : tensor<2xf32>") != attribute("dense<0.0> : tensor<2xf32>")


def test_strings_are_bytes_in_utf_8() -> None:
    assert attribute(r'"\C3\A9 \22\\\0A\n\t"') == StringAttribute('é "\\\n\n\t')
    assert text_of_attribute(attribute(r'"\FF"')) == r'"\FF"'


def test_a_value_may_be_used_before_its_definition() -> None:
    text = '"f"() ({\n  "a"()[^bb1] : () -> ()\n^bb2:\n  "b"(%0) : (i32) -> ()\n^bb1:\n'
    [operation] = read(text + '  %0 = "c"() : () -> i32\n  "d"()[^bb2] : () -> ()\n}) : () -> ()').operations
    _, use, definition = operation.regions[0].blocks
    assert use.operations[0].operands == definition.operations[0].results


def test_a_use_in_a_region_may_be_defined_outside_of_it_below() -> None:
    [outer] = read(
        '"f"() ({\n"a"()[^y] : () -> ()\n^x:\n"b"() ({\n"c"(%v#1) : (i8) -> ()\n}) : () -> ()\n^y:\n'
        '%v:2 = "d"()[^x] : () -> (i1, i8)\n}) : () -> ()'
    ).operations
    _, x, y = outer.regions[0].blocks
    assert body(x.operations[0]).operations[0].operands == (y.operations[0].results[1],)


def test_names_may_stand_again_in_functions_but_not_in_other_regions() -> None:
    text = '%0 = "a"() : () -> i32\n"{}"() ({{\n  %0 = "b"() : () -> i32\n}}) : () -> ()'
    _, operation = read(text.format("func.func")).operations
    assert len(body(operation).operations) == 1
    with pytest.raises(MlirError, match=r"^3:3: %0 must be defined only once$"):
        read(text.format("any.loop"))


def test_functions_do_not_see_what_is_outside() -> None:
    with pytest.raises(MlirError, match=r"^3:7: %0 must be defined where it is visible here$"):
        read('%0 = "a"() : () -> i32\n"func.func"() ({\n  "b"(%0) : (i32) -> ()\n}) : () -> ()')


def test_positions_are_those_of_the_named_file() -> None:
    text = '"a"() : () -> () loc(#loc1)\n"b"() : () -> () loc("f":7:8)\n"c"() : () -> () loc("g":1:1)\n'
    text += '#loc1 = loc("f":3:4)\n'
    assert [operation.position for operation in read(text, "f").operations] == [
        Position(3, 4),
        Position(7, 8),
        Position(3, 1),
    ]
    assert [operation.position.line for operation in read(text).operations] == [1, 2, 3]


def test_positions_of_operations_that_were_made_of_several() -> None:
    text = """"a"() : () -> () loc(#loc3)
"b"() : () -> () loc(fused<"name">["g":1:1, #loc1])
"c"() : () -> () loc(#loc4)
#loc1 = loc("f":7:8)
#loc2 = loc("name"(#loc1))
#loc3 = loc(fused[#loc2, "f":9:9])
#loc4 = loc(callsite(#loc4 at #loc4))
"""
    assert [str(operation.position) for operation in read(text, "f").operations] == ["7:8", "7:8", "3:1"]


def test_a_file_in_another_form_is_told_from_a_wrong_one() -> None:
    with pytest.raises(CustomForm) as complaint:
        read("module {\n}")
    assert str(complaint.value) == ('1:1: an operation must be in the generic form, as in "func.return"(), not module')


def nested(opening: str, inner: str, closing: str, depth: int) -> str:
    return opening * depth + inner + closing * depth


@pytest.mark.parametrize(
    "text",
    [
        nested('"a"() ({\n', "", "}) : () -> ()\n", DEEPEST),
        f'"a"() {{a = {nested("[", "unit", "]", DEEPEST - 1)}}} : () -> ()',
        f'"a"() : () -> {nested("tuple<", "i1", ">", DEEPEST - 1)}',
        f'"a"() {{a = affine_map<(d0) -> ({nested("(", "d0", ")", DEEPEST - 2)})>}} : () -> ()',
        f'"a"() {{a = affine_map<(d0) -> ({"d0 + " * 100}d0)>}} : () -> ()',
        f'"a"() {{a = dense<{nested("[", "1", "]", DEEPEST - 1)}> : tensor<{"1x" * (DEEPEST - 1)}i8>}} : () -> ()',
    ],
    ids=["regions", "arrays", "tuples", "parentheses", "sum", "lists"],
)
def test_deep_texts_are_read_and_printed(text: str) -> None:
    printed = text_of(read(text))
    assert text_of(read(printed)) == printed


WRONG = {
    '"a"() ({\n' * 2000: "101:8: types, attributes and regions must not be nested more than 100 deep",
    f'"a"() {{a = {"[" * 100000}': "1:112: types, attributes and regions must not be nested more than 100 deep",
    f'"a"() : () -> {"tuple<" * 100000}': (
        "1:615: types, attributes and regions must not be nested more than 100 deep"
    ),
    f'"a"() {{a = affine_map<(d0) -> ({"-" * 100000}': (
        "1:131: types, attributes and regions must not be nested more than 100 deep"
    ),
    f'"a"() {{a = affine_map<(d0) -> (d0{" + d0" * 101})>}}': (
        "1:539: an affine expression must have at most 100 operators"
    ),
    f'"a"() {{a = dense<{"[" * 100000}': "1:117: types, attributes and regions must not be nested more than 100 deep",
    f'"a"() {{a = #b.c<{"<" * 100000}': "1:16: '<' must be closed before the end of the text",
    "".join(f"!a{i} = tuple<{f'!a{i - 1}, ' * 9}i1>\n" for i in range(1, 9)).replace("!a0", "i1"): (
        "7:41: an operation must have at most 1048576 parts, with aliases written out"
    ),
    "".join(f"!a{i} = tuple<!a{i - 1}>\n" for i in range(1, 102)).replace("!a0", "i1"): (
        "100:19: types and attributes must not be nested more than 100 deep, with aliases written out"
    ),
    '"a"() {a = dense<[1, 2': "1:23: here must be ']', not the end of the text",
    '"a"() {a = "b': "1:12: here must be a string, not '\"b'",
    r'"a"() {a = "\q"}': (
        "1:12: in a string, a backslash must stand before n, t, a quotation mark, itself or two hex digits"
    ),
    '"a"': "1:4: here must be '(', not the end of the text",
    '"a"(%0) : () -> ()': "1:1: a must have a type for each of its 1 operands, not 0",
    '%0 = "a"() : () -> ()': "1:6: the 0 results must have a name each, or none",
    '%0:99999 = "a"() : () -> ()': "1:1: the number of results must be in 1 .. 65536, not 99999",
    '"a"(%0) : (i32) -> ()': "1:5: %0 must be defined where it is visible here",
    '%0 = "a"() : () -> i32\n"b"(%0) : (i64) -> ()': "2:5: %0 must be used with its type i32, not i64",
    '"b"(%0) : (i64) -> ()\n%0 = "a"() : () -> i32': "1:5: %0 must be used with its type i32, not i64",
    '%0 = "a"() : () -> i32\n"b"(%0#1) : (i32) -> ()': "2:5: %0#1 must be one of the 1 results of %0",
    '"b"(%0#1) : (i32) -> ()\n%0 = "a"() : () -> i32': "1:5: %0#1 must be one of the 1 results of %0",
    '%0 = "a"() : () -> i32\n%0 = "a"() : () -> i32': "2:1: %0 must be defined only once",
    '"a"() ({\n"b"()[^x] : () -> ()\n}) : () -> ()': (
        "2:7: the block ^x must be defined in the region that it is used in"
    ),
    '"a"() ({\n^x:\n^x:\n}) : () -> ()': "3:1: the block ^x must be defined only once",
    '"a"() <{b = 1}> {b = 2} : () -> ()': "1:1: 'b' must not be both a property and an attribute of a",
    '"a"() {b = 1, b = 2} : () -> ()': "1:15: the name 'b' must stand only once in a dictionary",
    '"a"() : () -> i16777216': "1:15: an integer type must have at most 16777215 bits, not 16777216",
    '"a"() : () -> f31': "1:15: here must be a type, not 'f31'",
    '"a"() : () -> !b': "1:15: the alias !b must be defined above",
    '"a"() {a = #b} : () -> ()': "1:12: the alias #b must be defined above",
    "!b = i1\n!b = i2": "2:1: the alias !b must be defined only once",
    '"a"() : () -> tensor<9223372036854775808xi1>': "1:22: a size must be less than 2**63, not 9223372036854775808",
    '"a"() : () -> vector<?xi1>': "1:24: a vector must have static sizes",
    '"a"() {a = 128 : si8} : () -> ()': "1:12: a number of si8 must be in -128 .. 127, not 128",
    '"a"() {a = -1 : ui8} : () -> ()': "1:12: a number of ui8 must be in 0 .. 255, not -1",
    '"a"() {a = 256 : i8} : () -> ()': "1:12: a number of i8 must be in -128 .. 255, not 256",
    f'"a"() {{a = {"9" * 5000}}} : () -> ()': "1:12: a number must have at most 1000 characters, not 5000",
    '"a"() {a = 1.5 : i8} : () -> ()': "1:12: a number of an integer type must be an integer, not 1.5",
    '"a"() {a = 1 : f32} : () -> ()': ("1:12: a number of f32 must have a decimal point or be hexadecimal, not 1"),
    '"a"() {a = 0x100000000 : f32} : () -> ()': "1:12: a pattern of f32 must have at most 32 bits, not 0x100000000",
    '"a"() {a = 1.0e999 : f32} : () -> ()': (
        "1:12: 1.0e999 must not be larger than the largest f64; write infinity as a hexadecimal pattern"
    ),
    '"a"() {a = 1.0 : f128} : () -> ()': "1:12: a number of f128 must be hexadecimal, not 1.0",
    '"a"() {a = dense<[1, 2]> : tensor<3xi8>} : () -> ()': ("1:12: 2 elements must be listed as the type says, 3"),
    '"a"() {a = dense<[[1, 2], [3]]> : tensor<2x2xi8>} : () -> ()': (
        "1:27: lists side by side must have equal lengths, not 2 and 1"
    ),
    '"a"() {a = dense<[1, [2]]> : tensor<2xi8>} : () -> ()': ("1:22: elements and lists must not stand side by side"),
    '"a"() {a = dense<1> : tensor<?xi8>} : () -> ()': "1:12: a dense constant must have static sizes",
    '"a"() {a = dense<1> : i8} : () -> ()': "1:23: a dense constant must be of a ranked tensor or vector type",
    '"a"() {a = dense<"0x01"> : tensor<1000000x1000000xi16>} : () -> ()': (
        "1:12: hexadecimal data must have 2000000000000 bytes here, or those of one element, not 1"
    ),
    '"a"() {a = dense<"0x10"> : tensor<1xi4>} : () -> ()': (
        "1:12: hexadecimal data of i4 must have zeros beyond each element's 4 bits"
    ),
    '"a"() {a = dense<"0x74"> : tensor<1xi1>} : () -> ()': (  # which mlir-opt reads as true
        "1:12: hexadecimal data of i1 must have zeros beyond the bits of its elements"
    ),
    '"a"() {a = dense<"0x012"> : tensor<1xi8>} : () -> ()': (
        "1:18: hexadecimal data must be at most 268435456 bytes of two digits each"
    ),
    f'"a"() {{a = dense<[{"1, " * 200}0]> : tensor<201xi16777215>}} : () -> ()': (
        "1:12: a constant must have at most 268435456 bytes"
    ),
    '"a"() {a = dense<[(1.0, 2.0)]> : tensor<1xf32>} : () -> ()': (
        "1:12: elements must be pairs in parentheses exactly if their type is complex"
    ),
    '"a"() {a = sparse<[[4]], 1> : tensor<4xi8>} : () -> ()': (
        "1:12: a subscript of axis 0 must be in 0 .. 4 - 1, not 4"
    ),
    '"a"() {a = sparse<[[0]], 1> : tensor<4x4xi8>} : () -> ()': (
        "1:12: indices must be rows of 2 subscripts, not of the shape 1x1"
    ),
    '"a"() {a = affine_map<(d0) -> (d1)>} : () -> ()': "1:32: d1 must be a dimension or symbol of the map's heading",
    '"a"() {a = affine_map<(d0, d0) -> (d0)>} : () -> ()': (
        "1:28: the name d0 must stand only once in a map's heading"
    ),
    '{-# dialect_resources: {b: {c: "04"}} #-}': '1:32: a resource must be hexadecimal, such as "0x04000000"',
}


@pytest.mark.parametrize(("text", "message"), WRONG.items(), ids=lambda part: re.sub(r"\s+", " ", part)[:40])
def test_what_is_wrong_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(MlirError) as complaint:
        read(text)
    assert str(complaint.value) == message
    line, column, _ = message.split(":", 2)
    assert complaint.value.position == Position(int(line), int(column))


def test_shapes_may_be_larger_than_any_memory() -> None:
    constant = attribute("dense<1.0> : tensor<1000000000x1000000000x1000000000xf32>")
    assert isinstance(constant, DenseElements)
    assert len(constant.data) == 4
    assert text_of_attribute(constant).startswith("dense<1.000000e+00>")


def test_long_lists_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "MOST_PARTS", 1000)
    for text in ("array<i8: {}1>", "[{}1]", "dense<[{}1]> : tensor<1000xi8>"):
        with pytest.raises(MlirError, match=r"must have at most 1000 parts, with aliases written out$"):
            attribute(text.format("1, " * 999))


def test_unknown_dialects_are_kept() -> None:
    text = '%0 = "my.op"() <{p = #my.attribute<"a>" -> [1]>}> : () -> !my<"type", {x = (y)}>\n'
    assert text_of(read(text)) == text


def test_empty_arrays() -> None:
    assert attribute("[]") == ArrayAttribute(())
    assert attribute("[1]") == ArrayAttribute((IntegerAttribute(1, IntegerType(64)),))
    assert attribute("3 : index") == IntegerAttribute(3, IndexType())
    assert attribute("dense<> : tensor<0xi8>") == DenseElements(TensorType((0,), IntegerType(8)), b"", False)
