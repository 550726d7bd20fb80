"""Pairs of functions that call others of which nothing is known."""

from __future__ import annotations

import pytest

from chc.translation.refine import refines
from ir_semantics.mlir import ir
from ir_semantics.mlir.reader import read
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.ir_semantics.mlir.mlir_text import constant, function, op

from .verdicts import verdict

FF, T = "(f32, f32) -> f32", "tensor<?xf32>"


def call(name: str, operands: str, types: str, callee: str = "g") -> str:
    return f"{name} = {op('func.call', operands, types, f'callee = @{callee}')}"


X, TX = "%a: f32, %b: f32", f"%t: {T}, %u: {T}, %v: f32"
G = "(f32) -> f32"
PLUS = f"%s = {op('arith.addf', '%a, %b', FF)}"
PLUS_TURNED = f"%s = {op('arith.addf', '%b, %a', FF)}"
SUM_T, SUM_U = (f"%s = {op('arith.addf', names, f'({T}, {T}) -> {T}')}" for names in ("%t, %u", "%u, %t"))
OF3 = call("%0", "%t", "(tensor<3xf32>) -> f32")
VALID: dict[str, tuple[ir.Operation, ir.Operation]] = {
    "sums of calls": (
        function(X, "f32", call("%x", "%a", G), call("%y", "%b", G), f"%0 = {op('arith.addf', '%x, %y', FF)}", "%0"),
        function(X, "f32", call("%x", "%a", G), call("%y", "%b", G), f"%0 = {op('arith.addf', '%y, %x', FF)}", "%0"),
    ),
    "an operand in another order": (
        function(X, "f32", PLUS, call("%0", "%s", G), "%0"),
        function(X, "f32", PLUS_TURNED, call("%0", "%s", G), "%0"),
    ),
    "a call that is not needed": (
        function(X, "f32", call("%0", "%a", G), "%b"),
        function(X, "f32", "%b"),
    ),
    "a tensor as operand and result": (
        function(TX, T, SUM_T, call("%0", "%s, %v", f"({T}, f32) -> {T}"), "%0"),
        function(TX, T, SUM_U, call("%0", "%s, %v", f"({T}, f32) -> {T}"), "%0"),
    ),
}
INVALID: dict[str, tuple[ir.Operation, ir.Operation]] = {
    "operands change places": (
        function(X, "f32", call("%0", "%a, %b", FF), "%0"),
        function(X, "f32", call("%0", "%b, %a", FF), "%0"),
    ),
    "another function": (
        function(X, "f32", call("%0", "%a", G), "%0"),
        function(X, "f32", call("%0", "%a", G, "h"), "%0"),
    ),
    "another tensor": (
        function(TX, T, call("%0", "%t, %v", f"({T}, f32) -> {T}"), "%0"),
        function(TX, T, call("%0", "%u, %v", f"({T}, f32) -> {T}"), "%0"),
    ),
    "a tensor of another size": (
        function("", "f32", f"%c = {constant('dense<0.0>', 'tensor<5xf32>')}",
                 f"%t = {op('tensor.cast', '%c', f'(tensor<5xf32>) -> {T}')}", call("%0", "%t", f"({T}) -> f32"), "%0"),
        function("", "f32", f"%c = {constant('dense<0.0>', 'tensor<3xf32>')}",
                 f"%t = {op('tensor.cast', '%c', f'(tensor<3xf32>) -> {T}')}", call("%0", "%t", f"({T}) -> f32"), "%0"),
    ),
    "a tensor that is nowhere defined": (
        function("", "f32", f"%t = {constant('dense<0.0>', 'tensor<3xf32>')}", OF3, "%0"),
        function("", "f32", f"%t = {op('tensor.empty', '', '() -> tensor<3xf32>')}", OF3, "%0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALID)
def test_valid_pairs_are_proved(name: str) -> None:
    outcome = verdict(*VALID[name])
    assert outcome.status is Status.PROVED, outcome.reason


@pytest.mark.parametrize("name", INVALID)
def test_invalid_pairs_are_refuted_for_some_function(name: str) -> None:
    outcome = verdict(*INVALID[name])
    assert outcome.status is Status.REFUTED, outcome.reason


def test_functions_with_a_body_are_not_taken_for_unknown_ones() -> None:
    text = """
    "func.func"() <{function_type = (f32) -> f32, sym_name = "g"}> ({
    ^bb0(%a: f32):
      "func.return"(%a) : (f32) -> ()
    }) : () -> ()
    """
    called = function(X, "f32", call("%0", "%a", G), "%0")
    outcome = refines(called, called, None, Discharger(), (read(text), read(text)))
    assert outcome.status is Status.UNKNOWN
    assert "a call of a function with a body has no meaning here; inline it" in outcome.reason


EMPTY = "() -> tensor<3xf32>"


def test_values_that_may_be_anything_are_not_equal_operands() -> None:
    """Two tensors that were never written, or two poisons, may be different ones."""
    lines = [f"%t = {op('tensor.empty', '', EMPTY)}", f"%u = {op('tensor.empty', '', EMPTY)}"]
    of3 = [call(name, operand, "(tensor<3xf32>) -> i32") for name, operand in (("%x", "%t"), ("%y", "%u"))]
    difference = function("", "i32", *lines, *of3, f"%0 = {op('arith.subi', '%x, %y', '(i32, i32) -> i32')}", "%0")
    none = function("", "i32", f"%0 = {constant('0', 'i32')}", "%0")
    assert verdict(none, difference).status is Status.REFUTED


def test_a_source_that_gives_what_may_be_undefined_to_a_call_is_not_covered() -> None:
    """The function may look away."""
    flags = "overflowFlags = #arith.overflow<nsw>"
    total = f"%s = {op('arith.addi', '%a, %a', '(i32, i32) -> i32', flags)}"
    source = function("%a: i32", "i32", total, call("%0", "%s", "(i32) -> i32"), "%0")
    outcome = verdict(source, source)
    assert outcome.status is Status.UNKNOWN
    assert "a source that gives to a call what may be undefined has no meaning here" in outcome.reason
    plain = total.replace("nsw", "none")
    target = function("%a: i32", "i32", plain, call("%0", "%s", "(i32) -> i32"), "%0")
    assert verdict(target, source).status is Status.REFUTED
    assert verdict(target, target).status is Status.PROVED
