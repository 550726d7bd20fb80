"""Texts that no verifier of MLIR has seen, and what stands beside functions: nothing that does not fit is proved."""

from __future__ import annotations

import pytest

from chc.translation.refine import refines
from ir_semantics.mlir.reader import read
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger
from tests.ir_semantics.mlir.mlir_text import PARALLEL, constant, function, generic, op

from .verdicts import verdict

II = "(i32, i32) -> i32"
INDICES = "tensor<2x3xindex>"
IDENTITY = "(d0, d1) -> (d0, d1)"
VERIFY = "; verify the text with mlir-opt, and correct it"


def index_of(dimension: int) -> str:
    """Indices of a dimension, as a tensor."""
    body = f'^bb0(%o: index):\n%i = "linalg.index"() <{{dim = {dimension} : i64}}> : () -> index\n'
    body += '"linalg.yield"(%i) : (index) -> ()'
    return f"%0 = {generic('%t', f'({INDICES}) -> {INDICES}', [IDENTITY], 'pp', '0, 1', body)}"


MISFITS = {
    "a result of another format": (
        "%a: i32, %b: i32", "i64", f"%0 = {op('arith.addi', '%a, %b', '(i32, i32) -> i64')}",
        f"arith.addi at 4:7: operands, attributes and types of the operation do not fit{VERIFY}",
    ),
    "a result of another rank": (
        "%t: tensor<1x2xf32>", "tensor<2xf32>",
        f"%0 = {op('arith.negf', '%t', '(tensor<1x2xf32>) -> tensor<2xf32>')}",
        f"arith.negf at 4:7: operands, attributes and types of the operation do not fit{VERIFY}",
    ),
    "an operand that is defined later": (
        "%a: i32, %b: i32", "i32", f"%0 = {op('arith.addi', '%a, %c', II)}\n%c = {op('arith.addi', '%a, %b', II)}",
        f"arith.addi at 4:7: %c must be defined before it is used{VERIFY}",
    ),
    "a callee in another module": (
        "%a: i32", "i32", f"%0 = {op('func.call', '%a', '(i32) -> i32', 'callee = @m::@g')}",
        "func.call at 4:7: the callee must be a function of the same module; name one",
    ),
    "a dimension before the first one": (
        f"%t: {INDICES}", INDICES, index_of(-1),
        f"linalg.index at 6:1: the attribute dim must be a dimension, from 0 to 1, not -1{VERIFY}",
    ),
}  # fmt: skip


SLICE = '%0 = "tensor.extract_slice"(%t, %i) <{{operandSegmentSizes = array<i32: {}>, static_offsets = array<i64: {}>, '
SLICE += "static_sizes = array<i64: 2>, static_strides = array<i64: 1>}}>"
SLICED, EXPANDED = "(tensor<4xf32>, index) -> tensor<2xf32>", "(tensor<4xf32>) -> tensor<2x2xf32>"
SHAPES = "static_output_shape = array<i64: 2, 2>"
ADDED = '^bb0(%x: f32, %y: f64):\n"linalg.yield"(%x) : (f32) -> ()'
MAPS = ["(d0) -> (d0)"] * 2
MISFITS |= {
    "groups of more operands than there are": (
        "%t: tensor<4xf32>, %i: index", "tensor<2xf32>", f"{SLICE.format('1, 1, 1, 0', -(1 << 63))} : {SLICED}",
        f"tensor.extract_slice at 4:7: operandSegmentSizes must group 2 operands, not 3{VERIFY}",
    ),
    "an offset for which there is no place": (
        "%t: tensor<4xf32>, %i: index", "tensor<2xf32>", f"{SLICE.format('1, 1, 0, 0', 0)} : {SLICED}",
        f"tensor.extract_slice at 4:7: there must be a dynamic size for each operand{VERIFY}",
    ),
    "a dimension that is a type": (
        "%t: tensor<4xf32>", "tensor<2x2xf32>",
        f"%0 = {op('tensor.expand_shape', '%t', EXPANDED, f'reassociation = [[0, i64, 1]], {SHAPES}')}",
        f"tensor.expand_shape at 4:7: the attribute reassociation must be lists of dimensions{VERIFY}",
    ),
    "an argument of a block of another format": (
        "%t: tensor<4xf32>", "tensor<4xf32>",
        f"%0 = {generic('%t, %t', '(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>', MAPS, 'p', '1, 1', ADDED)}",
        f"linalg.generic at 4:7: the arguments of the block must be of the types of what they stand for{VERIFY}",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "result", "lines", "message"), MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_is_named_with_its_place(arguments: str, result: str, lines: str, message: str) -> None:
    outcome = verdict(function(arguments, result, lines, "%0"), function(arguments, result, lines, "%0"))
    assert outcome.status is Status.UNKNOWN
    assert outcome.reason == message


def test_a_dimension_that_is_there_has_its_index() -> None:
    rows, columns = (function(f"%t: {INDICES}", INDICES, index_of(k), "%0") for k in (0, 1))
    assert verdict(rows, rows).status is Status.PROVED
    assert verdict(rows, columns).status is Status.REFUTED
    assert PARALLEL in index_of(0)


def test_the_type_of_a_function_is_that_of_its_arguments_and_results() -> None:
    text = """"func.func"() <{function_type = (i8) -> i32, sym_name = "f"}> ({
    ^bb0(%a: i32):
      "func.return"(%a) : (i32) -> ()
    }) : () -> ()"""
    outcome = compared(text, text)
    assert outcome.status is Status.UNKNOWN
    assert "function_type must be the types of arguments and results" in outcome.reason
    assert compared(text.replace("i8", "i32"), text.replace("i8", "i32")).status is Status.PROVED


def compared(source: str, target: str) -> Verdict:
    """What is said of the functions @f of two modules."""
    modules = read(source), read(target)
    functions = [next(s for s in m.symbols() if s.symbol == "f") for m in modules]
    return refines(*functions, discharger=Discharger(timeout=20), modules=modules)


def caller(size: int, declared: int) -> str:
    """A function that takes the first element of what @g gives, a tensor of a size."""
    type_ = f"tensor<{size}xf32>"
    return f"""
    "func.func"() <{{function_type = () -> tensor<{declared}xf32>, sym_name = "g", sym_visibility = "private"}}> ({{
    }}) : () -> ()
    "func.func"() <{{function_type = () -> f32, sym_name = "f"}}> ({{
      %i = {constant("0", "index")}
      %t = "func.call"() <{{callee = @g}}> : () -> {type_}
      %x = {op("tensor.extract", "%t, %i", f"({type_}, index) -> f32")}
      "func.return"(%x) : (f32) -> ()
    }}) : () -> ()
    """


def test_a_function_of_two_types_is_not_one_function() -> None:
    assert compared(caller(4, 4), caller(4, 4)).status is Status.PROVED
    outcome = compared(caller(4, 4), caller(5, 5))
    assert outcome.status is Status.UNKNOWN
    assert "a function that has two types has no meaning here; give it the same one" in outcome.reason


def laid_out(layout: str, lines: str) -> str:
    """A module with a layout of data, and in it a function from an index to i64 that gives %0."""
    attribute = f" {{dlti.dl_spec = #dlti.dl_spec<{layout}>}}" if layout else ""
    return f"""
    "builtin.module"() ({{
      "func.func"() <{{function_type = (index) -> i64, sym_name = "f"}}> ({{
      ^bb0(%a: index):
        {lines}
        "func.return"(%0) : (i64) -> ()
      }}) : () -> ()
    }}){attribute} : () -> ()
    """


def test_modules_in_which_an_index_has_other_than_64_bits_are_not_covered() -> None:
    large = str(1 << 32)
    cast = op("arith.index_cast", "%s", "(index) -> i64")
    in_indices = (
        f"%c = {constant(large, 'index')}\n%s = {op('arith.addi', '%a, %c', '(index, index) -> index')}\n%0 = {cast}"
    )
    cast = op("arith.index_cast", "%a", "(index) -> i64")
    in_words = f"%s = {cast}\n%c = {constant(large, 'i64')}\n%0 = {op('arith.addi', '%s, %c', '(i64, i64) -> i64')}"
    for layout in ("", "index = 64 : i32", "i128 = dense<128> : vector<2xi64>"):
        assert compared(laid_out(layout, in_indices), laid_out(layout, in_words)).status is Status.PROVED, layout
    narrow = "index = 32 : i32"
    for layout, where in {
        narrow: str,
        "#dlti.dl_entry<index, 32 : i32>": str,
        "index = 32": lambda text: f'"builtin.module"() ({{{text}}}) : () -> ()',
        "": lambda text: text.replace("}) :", f"}}) {{dlti.dl_spec = #dlti.dl_spec<{narrow}>}} :", 1),
        "#narrow": lambda text: f"#narrow = #dlti.dl_entry<index, 32 : i32>\n{text}",
        "index = #bits": lambda text: f"#bits = 32 : i32\n{text}",
        "!number = 32 : i32": lambda text: f"!number = index\n{text}",
    }.items():
        outcome = compared(where(laid_out(layout, in_indices)), where(laid_out(layout, in_words)))
        assert outcome.status is Status.UNKNOWN
        assert outcome.reason.endswith(
            "values of type index must have 64 bits here; say so in dlti.dl_spec, or say nothing of index"
        )


@pytest.mark.parametrize("width", [0, 4097])
def test_integers_without_bits_and_of_very_many_are_not_covered(width: int) -> None:
    """Of the wide ones Python refuses to write decimal numbers."""
    same = function(f"%x: i{width}", f"i{width}", "%x")
    assert f"an argument of the type i{width} has no meaning here" in refines(same, same).reason
