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


def counting(step: str, predicate: int = 2, *, doubles: bool = False) -> str:
    """``scf.while`` that counts from %l to %h, and carries the sum of what it counts; both are its results."""
    grown = op("arith.addi", "%c, %c" if doubles else f"%c, {step}", XX)
    return f"""
    %0:2 = "scf.while"(%i, %l) ({{
    ^bb0(%a: index, %b: index):
      %m = {op("arith.cmpi", "%b, %h", "(index, index) -> i1", f"predicate = {predicate} : i64")}
      "scf.condition"(%m, %a, %b) : (i1, index, index) -> ()
    }}, {{
    ^bb0(%x: index, %c: index):
      %y = {op("arith.addi", "%x, %c", XX)}
      %d = {grown}
      "scf.yield"(%y, %d) : (index, index) -> ()
    }}) : (index, index) -> (index, index)
    """


@pytest.mark.parametrize("bounds", [(0, 5, 1), (1, 6, 2), (3, 3, 1), (4, 1, 3), (-5, 6, 4)])
def test_a_while_loop_that_counts(bounds: tuple[int, int, int]) -> None:
    program = function("%l: index, %h: index, %s: index, %i: index", "index, index", counting("%s"), "%0#0, %0#1")
    count, high, step = bounds
    total = 7
    while count < high:
        total, count = total + count, count + step
    assert run(program, *bounds, 7) == [total, count]


@pytest.mark.parametrize("text", [counting("%s", 1), counting("%s", 6), counting("%x"), counting("%s", doubles=True)])
def test_other_while_loops_are_named(text: str) -> None:
    program = function("%l: index, %h: index, %s: index, %i: index", "index", text, "%0#0")
    with pytest.raises(NotCovered, match="a loop that does not count up to a bound"):
        run(program, 0, 3, 1, 0)


def test_a_while_loop_over_words_is_named() -> None:
    text = counting("%s").replace("index", "i32")
    program = function("%l: i32, %h: i32, %s: i32, %i: i32", "i32", text, "%0#0")
    with pytest.raises(NotCovered, match="a loop over words has no meaning here"):
        run(program, 0, 3, 1, 0)


@pytest.mark.parametrize("n", range(-1, 5))
def test_an_affine_choice_is_made_by_all_constraints(n: int) -> None:
    holds = "condition = affine_set<(d0)[s0] : (d0 - 1 >= 0, s0 - d0 - 2 == 0)>"
    branches = '"affine.yield"(%p) : (i32) -> ()\n}, {\n"affine.yield"(%q) : (i32) -> ()'
    choice = f"%0 = {op('affine.if', '%n, %m', '(index, index) -> i32', holds, branches)}"
    program = function("%n: index, %m: index, %p: i32, %q: i32", "i32", choice, "%0")
    assert run(program, n, 4, 10, 20) == [10 if n >= 1 and 4 - n - 2 == 0 else 20]


def test_bounds_of_affine_parallel_loops_are_extremes_of_groups() -> None:
    """From max(0, n - 2) to min(6, n + 2) and from 1 to 4, in steps of 2 and 1."""
    memref = "memref<8x4xi32>"
    sizes = "operandSegmentSizes = array<i32: 0, 0>"
    bounds = (
        "lowerBoundsGroups = dense<[2, 1]> : tensor<2xi32>, lowerBoundsMap = affine_map<(d0) -> (0, d0 - 2, 1)>, "
        "upperBoundsGroups = dense<[2, 1]> : tensor<2xi32>, upperBoundsMap = affine_map<()[s0] -> (6, s0 + 2, 4)>, "
        "reductions = [], steps = [2, 1]"
    )
    store = op(
        "affine.store", "%v, %m, %j, %k", f"(i32, {memref}, index, index) -> ()", "map = affine_map<(a, b) -> (a, b)>"
    )
    fill = op("memref.store", "%z, %m, %x, %y", f"(i32, {memref}, index, index) -> ()")
    all_ = f'^bb0(%x: index, %y: index):\n{fill}\n"scf.reduce"() : () -> ()'
    program = function(
        "%n: index, %v: i32", "tensor<8x4xi32>", f"%m = {op('memref.alloc', '', f'() -> {memref}', sizes)}",
        *(f"%{c} = {constant(n, 'index')}" for c, n in (("o", "0"), ("e", "8"), ("f", "4"), ("i", "1"))),
        f"%z = {constant('0', 'i32')}",
        op("scf.parallel", "%o, %o, %e, %f, %i, %i", f"({', '.join(['index'] * 6)}) -> ()",
           "operandSegmentSizes = array<i32: 2, 2, 2, 0>", all_),
        op("affine.parallel", "%n, %n", "(index, index) -> ()", bounds,
           f'^bb0(%j: index, %k: index):\n{store}\n"affine.yield"() : () -> ()'),
        f"%0 = {op('bufferization.to_tensor', '%m', f'({memref}) -> tensor<8x4xi32>')}", "%0",
    )  # fmt: skip
    for n in (1, 3, 6):
        expected = np.zeros((8, 4), dtype=int)
        expected[max(0, n - 2) : min(6, n + 2) : 2, 1:4] = 5
        agrees(program, [n, 5], expected)


def reduction(body: str, operand: str = "%e") -> str:
    whole = f"^bb0(%k: index):\n%e = {op('tensor.extract', '%t, %k', f'({T}, index) -> i32')}\n"
    whole += f'"scf.reduce"({operand}) ({{\n^bb1(%p: i32, %q: i32):\n{body}\n}}) : (i32) -> ()'
    sizes = "operandSegmentSizes = array<i32: 1, 1, 1, 1>"
    return f"%0 = {op('scf.parallel', '%l, %h, %s, %i', '(index, index, index, i32) -> i32', sizes, whole)}"


RETURN = '"scf.reduce.return"(%r) : (i32) -> ()'
ANY = f"%l: index, %h: index, %s: index, %i: i32, %t: {T}"


def test_a_parallel_reduction_starts_once() -> None:
    program = function(ANY, "i32", reduction(f"%r = {op('arith.addi', '%q, %p', II)}\n{RETURN}"), "%0")
    assert run(program, 0, 5, 2, 100, [1, 2, 3, 4, 5, 6]) == [100 + 1 + 3 + 5]
    assert run(program, 3, 3, 1, 100, [1, 2, 3, 4, 5, 6]) == [100]


@pytest.mark.parametrize(
    "line",
    [
        f"%r = {op('arith.subi', '%p, %q', II)}",
        f"%r = {op('arith.addi', '%p, %p', II)}",
        f"%r = {op('arith.addi', '%p, %q', II, 'overflowFlags = #arith.overflow<nsw>')}",
        f"%r = {op('arith.addi', '%p, %e', II)}",
    ],
)
def test_reductions_whose_order_may_matter_are_named(line: str) -> None:
    program = function(ANY, "i32", reduction(f"{line}\n{RETURN}"), "%0")
    with pytest.raises(
        NotCovered, match="a parallel reduction must be one operator, of which the order does not matter"
    ):
        run(program, 0, 3, 1, 0, [1, 2, 3])
