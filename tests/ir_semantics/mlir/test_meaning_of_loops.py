"""Loops and choices on concrete values, beside Python's own."""

from __future__ import annotations

import numpy as np
import pytest

from ir_semantics.mlir.semantics.values import NotCovered

from .mlir_text import constant, function, op
from .running import UB, UNDEFINED, agrees, run

T = "tensor<?xi32>"
II, XX = "(i32, i32) -> i32", "(index, index) -> index"


def loop(starts: str, types: str, carried: str, yields: str, *lines: str, bounds: str = "%l, %h, %s") -> str:
    body = "\n".join([f"^bb0(%k: index{carried}):", *lines, f'"scf.yield"({yields}) : ({types}) -> ()'])
    return op("scf.for", f"{bounds}, {starts}", f"(index, index, index, {types}) -> ({types})", "", body)


@pytest.mark.parametrize("bounds", [(0, 5, 1), (1, 6, 2), (2, 2, 1), (4, 1, 3), (-5, 6, 4), (0, 1, 9)])
def test_bounds_and_steps(bounds: tuple[int, int, int]) -> None:
    weighted = [
        f"%j = {op('arith.index_cast', '%k', '(index) -> i32')}",
        f"%a = {op('arith.muli', '%x, %two', II)}",
        f"%y = {op('arith.addi', '%a, %j', II)}",
    ]
    whole = loop("%i", "i32", ", %x: i32", "%y", *weighted)
    program = function(
        "%l: index, %h: index, %s: index, %i: i32", "i32", f"%two = {constant('2', 'i32')}", f"%0 = {whole}", "%0"
    )
    expected = 3
    for k in range(*bounds):
        expected = 2 * expected + k
    agrees(program, [*bounds, 3], expected)


def test_a_step_must_be_positive() -> None:
    program = function(
        "%l: index, %h: index, %s: index, %i: i32", "i32", f"%0 = {loop('%i', 'i32', ', %x: i32', '%x')}", "%0"
    )
    assert run(program, 0, 3, 0, 1) == [UB]
    assert run(program, 0, 3, -1, 1) == [UB]
    assert run(program, 0, 3, 1, 1) == [1]


def test_what_one_carried_value_takes_from_another_is_that_of_the_iteration() -> None:
    lines = [f"%y = {op('arith.addi', '%x, %c', XX)}", f"%d = {op('arith.addi', '%c, %k', XX)}"]
    whole = loop("%l, %s", "index, index", ", %x: index, %c: index", "%y, %d", *lines)
    program = function("%l: index, %h: index, %s: index", "index, index", f"%0:2 = {whole}", "%0#0, %0#1")
    x, c = 1, 2
    for k in range(1, 9, 2):
        x, c = x + c, c + k
    assert run(program, 1, 9, 2) == [x, c]


def test_elements_that_are_inserted() -> None:
    lines = [
        f"%j = {op('arith.index_cast', '%k', '(index) -> i32')}",
        f"%e = {op('tensor.extract', '%x, %k', f'({T}, index) -> i32')}",
        f"%f = {op('arith.muli', '%e, %j', II)}",
        f"%y = {op('tensor.insert', '%f, %x, %k', f'(i32, {T}, index) -> {T}')}",
    ]
    program = function(
        f"%l: index, %h: index, %s: index, %t: {T}", T, f"%0 = {loop('%t', T, f', %x: {T}', '%y', *lines)}", "%0"
    )
    data = np.array([5, 6, 7, 8, 9, 10, 11])
    expected = data.copy()
    expected[1:6:2] *= np.arange(1, 6, 2)
    assert run(program, 1, 6, 2, data) == [expected.tolist()]
    assert run(program, 1, 8, 3, data) == [UB]  # 7 is outside
    assert run(program, 3, 3, 1, data) == [data.tolist()]


def test_what_is_inserted_into_an_empty_tensor_is_defined_and_nothing_else() -> None:
    empty = f"%t = {op('tensor.empty', '', '() -> tensor<4xi32>')}"
    insert = f"%y = {op('tensor.insert', '%v, %x, %k', '(i32, tensor<4xi32>, index) -> tensor<4xi32>')}"
    whole = loop("%t", "tensor<4xi32>", ", %x: tensor<4xi32>", "%y", insert)
    program = function("%l: index, %h: index, %s: index, %v: i32", "tensor<4xi32>", empty, f"%0 = {whole}", "%0")
    assert run(program, 0, 4, 2, 7) == [[7, UNDEFINED, 7, UNDEFINED]]


def test_memory_of_a_loop() -> None:
    """Buffers of its own: filled in one loop, added up in another; a block that each iteration allocates is new."""
    memref, size = "memref<6xi32>", "operandSegmentSizes = array<i32: 0, 0>"
    one = "memref<i32>"
    fill = [f"%j = {op('arith.index_cast', '%k', '(index) -> i32')}", f"%q = {op('arith.muli', '%j, %j', II)}"]
    fill.append(op("memref.store", "%q, %m, %k", f"(i32, {memref}, index) -> ()"))
    first = op(
        "scf.for",
        "%l, %h, %s",
        "(index, index, index) -> ()",
        "",
        "\n".join(["^bb0(%k: index):", *fill, '"scf.yield"() : () -> ()']),
    )
    add = [
        f"%w = {op('memref.alloc', '', f'() -> {one}', size)}",
        f"%e = {op('memref.load', '%m, %k', f'({memref}, index) -> i32')}",
        op("memref.store", "%e, %w", f"(i32, {one}) -> ()"),
        f"%g = {op('memref.load', '%w', f'({one}) -> i32')}",
        op("memref.dealloc", "%w", f"({one}) -> ()"),
        f"%y = {op('arith.addi', '%x, %g', II)}",
    ]
    second = f"%0 = {loop('%i', 'i32', ', %x: i32', '%y', *add)}"
    alloc = f"%m = {op('memref.alloc', '', f'() -> {memref}', size)}"
    program = function("%l: index, %h: index, %s: index, %i: i32", "i32", alloc, first, second, "%0")
    assert run(program, 0, 6, 2, 100) == [100 + 4 + 16]
    assert run(program, 0, 7, 2, 100) == [UB]
    stale = [*add[:1], *add[3:]]  # nothing is stored
    program = function(
        "%l: index, %h: index, %s: index, %i: i32", "i32", f"%0 = {loop('%i', 'i32', ', %x: i32', '%y', *stale)}", "%0"
    )
    assert run(program, 0, 2, 1, 100) == [UNDEFINED]


@pytest.mark.parametrize(("condition", "expected"), [(True, [3, 5]), (False, [4])])
def test_branches(condition: bool, expected: list[int]) -> None:
    """Shapes are those of the branch; what the other one requires does not matter."""
    cut = (
        "static_offsets = array<i64: 0>, static_sizes = array<i64: {}>, static_strides = array<i64: 1>, "
        "operandSegmentSizes = array<i32: 1, 0, 0, 0>"
    )
    branches = [
        f"%a{n} = {op('tensor.extract_slice', v, f'({T}) -> tensor<{n}xi32>', cut.format(n))}\n"
        f'%b{n} = {op("tensor.cast", f"%a{n}", f"(tensor<{n}xi32>) -> {T}")}\n"scf.yield"(%b{n}) : ({T}) -> ()'
        for n, v in ((2, "%t"), (1, "%u"))
    ]
    both = f'%0 = "scf.if"(%c) ({{\n{branches[0]}\n}}, {{\n{branches[1]}\n}}) : (i1) -> {T}'
    program = function(f"%c: i1, %t: {T}, %u: {T}", T, both, "%0")
    assert run(program, condition, [3, 5, 7], [4, 6]) == [expected]
    assert run(program, condition, [3], [4]) == ([UB] if condition else [[4]])


def test_values_that_need_each_other_are_named() -> None:
    lines = [f"%y = {op('arith.addi', '%x, %c', XX)}"]
    whole = loop("%l, %s", "index, index", ", %x: index, %c: index", "%y, %x", *lines)
    program = function("%l: index, %h: index, %s: index", "index", f"%0:2 = {whole}", "%0#0")
    with pytest.raises(NotCovered, match="values that need each other from one iteration to the next"):
        run(program, 0, 3, 1)
    scan = [
        f"%p = {op('arith.subi', '%k, %s', XX)}",
        f"%e = {op('tensor.extract', '%x, %p', f'({T}, index) -> i32')}",
        f"%y = {op('tensor.insert', '%e, %x, %k', f'(i32, {T}, index) -> {T}')}",
    ]
    program = function(
        f"%l: index, %h: index, %s: index, %t: {T}", T, f"%0 = {loop('%t', T, f', %x: {T}', '%y', *scan)}", "%0"
    )
    with pytest.raises(NotCovered, match="an iteration that needs another element of what it changes"):
        run(program, 1, 3, 1, [1, 2, 3])
