"""Pairs of functions that call others: what they do if they have a body, and else nothing is known of them."""

from __future__ import annotations

import pytest

from chc.translation.refine import refines
from ir_semantics.mlir import ir
from ir_semantics.mlir.reader import read
from smt_encodings.claims import Status, Verdict
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


def named(name: str, body: str, kind: str = "f32") -> str:
    """A function of a module, of a number; ``body`` gives %r."""
    return f"""
    "func.func"() <{{function_type = ({kind}) -> {kind}, sym_name = "{name}"}}> ({{
    ^bb0(%a: {kind}):
      {body}
      "func.return"(%r) : ({kind}) -> ()
    }}) : () -> ()
    """


NEGATED, CALLED = f"%r = {op('arith.negf', '%a', G)}", call("%r", "%a", G)
TWICE = f"{call('%x', '%a', G)}\n{call('%r', '%x', G)}"


def of_modules(before: str, after: str) -> Verdict:
    """What is said of the functions @f of two modules."""
    modules = read(before), read(after)
    functions = [next(s for s in m.symbols() if s.symbol == "f") for m in modules]
    return refines(functions[0], functions[1], None, Discharger(timeout=20), modules)


def test_a_function_with_a_body_does_what_its_body_says() -> None:
    inlined = named("f", f"%x = {op('arith.negf', '%a', G)}\n%r = {op('arith.negf', '%x', G)}")
    before = named("f", TWICE) + named("g", NEGATED)
    assert of_modules(before, inlined).status is Status.PROVED
    assert of_modules(inlined, before).status is Status.PROVED
    assert of_modules(before, named("f", NEGATED)).status is Status.REFUTED
    other = named("f", TWICE) + named("g", f"%r = {op('math.absf', '%a', G)}")
    assert of_modules(before, other).status is Status.REFUTED  # of each side it is its own


def test_a_function_whose_body_is_on_one_side_alone_is_not_taken_for_an_unknown_one() -> None:
    declared = (
        '"func.func"() <{function_type = (f32) -> f32, sym_name = "g", sym_visibility = "private"}> ({}) : () -> ()'
    )
    outcome = of_modules(named("f", CALLED) + declared, named("f", CALLED) + named("g", NEGATED))
    assert outcome.status is Status.UNKNOWN
    assert "a function that has a body elsewhere alone has no meaning here" in outcome.reason


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (named("f", CALLED) + named("g", call("%r", "%a", G, "f")), "a function that calls itself"),
        (named("f", CALLED) + named("g", '%r = "any.thing"(%a) : (f32) -> f32'), "any.thing"),
        (
            named("f", CALLED) + named("g", f"%r = {op('math.absf', '%a', '(f64) -> f64')}", "f64"),
            "operands must be of",
        ),
    ],
)
def test_calls_without_a_meaning_are_named(module: str, reason: str) -> None:
    outcome = of_modules(module, module)
    assert outcome.status is Status.UNKNOWN
    assert reason in outcome.reason


def test_a_buffer_of_the_stack_does_not_outlive_its_function() -> None:
    cell, sizes = "memref<f32>", "operandSegmentSizes = array<i32: 0, 0>"
    load, store = op("memref.load", "%m", f"({cell}) -> f32"), op("memref.store", "%a, %m", f"(f32, {cell}) -> ()")
    texts = {}
    for kind in ("alloc", "alloca"):
        body = f"%m = {op(f'memref.{kind}', '', f'() -> {cell}', sizes)}\n{store}"
        made = named("g", body).replace('"func.return"(%r) : (f32)', f'"func.return"(%m) : ({cell})')
        texts[kind] = named("f", f"%m = {op('func.call', '%a', f'(f32) -> {cell}', 'callee = @g')}\n%r = {load}")
        texts[kind] += made.replace("(f32) -> f32", f"(f32) -> {cell}")
    assert of_modules(named("f", f"%r = {op('arith.addf', '%a, %a', FF)}"), texts["alloc"]).status is Status.REFUTED
    same = named("f", f"%x = {op('arith.negf', '%a', G)}\n%r = {op('arith.negf', '%x', G)}")
    assert of_modules(same, texts["alloc"]).status is Status.PROVED
    assert "has buffers on its stack" in of_modules(same, texts["alloca"]).reason


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
