"""Buffers that are returned: what new ones hold, whether they are alive, and whose block they are."""

from __future__ import annotations

import pytest

from ir_semantics.mlir import ir
from smt_encodings.claims import Status
from tests.ir_semantics.mlir.mlir_text import constant, function, op

from .verdicts import status, verdict

M = "memref<4xf32>"
ARGUMENTS = f"%a: {M}, %v: f32, %w: f32"
AT = [f"%{k} = {constant(str(n), 'index')}" for n, k in enumerate(("zero", "one", "two", "three"))]


def made(*names: str) -> list[str]:
    sizes = "operandSegmentSizes = array<i32: 0, 0>"
    return [f"{n} = {op('memref.alloc', '', f'() -> {M}', sizes)}" for n in names]


def store(value: str, buffer: str, at: str) -> str:
    return op("memref.store", f"{value}, {buffer}, {at}", f"(f32, {M}, index) -> ()")


def filled(buffer: str, *values: str) -> list[str]:
    return [store(v, buffer, at) for v, at in zip(values, ("%zero", "%one", "%two", "%three"), strict=True)]


def copy(one: str, other: str) -> str:
    return op("memref.copy", f"{one}, {other}", f"({M}, {M}) -> ()")


def free(buffer: str) -> str:
    return op("memref.dealloc", buffer, f"({M}) -> ()")


def one(*lines: str, result: str = "%b") -> ir.Operation:
    """A function that returns a buffer."""
    return function(ARGUMENTS, M, *AT, *lines, result)


def two(*lines: str, results: str = "%b, %c") -> ir.Operation:
    """A function that returns two."""
    return function(ARGUMENTS, f"{M}, {M}", *AT, *lines, results)


def view(*lines: str) -> ir.Operation:
    """A function that returns the first two elements of a buffer."""
    type_, groups = "memref<2xf32, strided<[1]>>", "operandSegmentSizes = array<i32: 1, 0, 0, 0>"
    part = "static_offsets = array<i64: 0>, static_sizes = array<i64: 2>, static_strides = array<i64: 1>"
    made_of = op("memref.subview", "%b", f"({M}) -> {type_}", f"{groups}, {part}")
    return function(ARGUMENTS, type_, *AT, *lines, f"%d = {made_of}", "%d")


B, BC = made("%b"), made("%b", "%c")
FULL = filled("%b", "%v", "%w", "%v", "%w")
BOTH = [*filled("%b", *["%v"] * 4), *filled("%c", *["%w"] * 4)]
RIGHT = {
    "stores in another order": (one(*B, *FULL), one(*B, *reversed(FULL))),
    "a buffer that is copied once more": (
        one(*B, *FULL),
        one(*made("%c", "%b"), *filled("%c", "%v", "%w", "%v", "%w"), copy("%c", "%b"), free("%c")),
    ),
    "what was never written may be anything": (one(*B, store("%v", "%b", "%one")), one(*B, *filled("%b", *["%v"] * 4))),
    "an argument": (one(store("%v", "%a", "%one"), result="%a"), one(store("%v", "%a", "%one"), result="%a")),
    "two that are made in another order": (two(*BC, *BOTH), two(*made("%c", "%b"), *BOTH)),
    "a view": (view(*B, *FULL), view(*B, *reversed(FULL))),
    "what was never written around a view": (view(*B, *FULL[:2]), view(*B, *FULL)),
    "one that is returned twice": (two(*B, *FULL, results="%b, %b"), two(*BC, *FULL, results="%b, %b")),
}
WRONG = {
    "another element": (one(*B, *FULL), one(*B, *filled("%b", "%v", "%w", "%v", "%v"))),
    "an element that is not written": (one(*B, *FULL), one(*B, *FULL[:3])),
    "an element around a view": (view(*B, *FULL), view(*B, *FULL[:2], *filled("%b", "%v", "%w", "%w", "%w"))),
    "written afterwards": (one(*B, *FULL), one(*B, *FULL, store("%v", "%b", "%one"))),
    "freed before it is returned": (one(*B, *FULL), one(*B, *FULL, free("%b"))),
    "freed, and nothing is in it": (one(*B), one(*B, free("%b"))),
    "an argument in place of its copy": (one(*B, copy("%a", "%b")), one(result="%a")),
    "a copy in place of an argument": (one(result="%a"), one(*B, copy("%a", "%b"))),
    "one buffer in place of two": (two(*BC, *BOTH[:4], copy("%b", "%c")), two(*B, *BOTH[:4], results="%b, %b")),
    "two buffers in place of one": (two(*B, *BOTH[:4], results="%b, %b"), two(*BC, *BOTH[:4], copy("%b", "%c"))),
    "two that are exchanged": (two(*BC, *BOTH), two(*BC, *BOTH, results="%c, %b")),
    "another argument's element is written, too": (one(*B, *FULL), one(*B, *FULL, store("%v", "%a", "%one"))),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_caller_cannot_tell_apart_is_proved(name: str) -> None:
    outcome = verdict(*RIGHT[name])
    assert outcome.status is Status.PROVED, outcome.reason


@pytest.mark.parametrize("name", WRONG)
def test_what_a_caller_can_tell_apart_is_refuted(name: str) -> None:
    outcome = verdict(*WRONG[name])
    assert outcome.status is Status.REFUTED, outcome.reason


def test_a_view_of_all_of_a_buffer_cannot_be_freed() -> None:
    wide, groups = "memref<2x2xf32>", "reassociation = [[0, 1]]"
    shape = f"{groups}, static_output_shape = array<i64: 2, 2>"
    expanded = f"%e = {op('memref.expand_shape', '%b', f'({M}) -> {wide}', shape)}"
    collapsed = f"%d = {op('memref.collapse_shape', '%e', f'({wide}) -> {M}', groups)}"
    whole, view = one(*B, *FULL), one(*B, *FULL, expanded, collapsed, result="%d")
    assert status(view, whole) is Status.PROVED
    assert status(whole, view) is Status.REFUTED
