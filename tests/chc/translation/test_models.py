"""Pairs that are wrong for few inputs, which no draw meets: a solver's model is tried as an input."""

from __future__ import annotations

import pytest

from chc.translation.counterexample import Counterexample
from chc.translation.refine import Options, replay
from ir_semantics.mlir import ir
from smt_encodings.claims import Status
from tests.ir_semantics.mlir.mlir_text import constant, function, generic, op

from .verdicts import status, verdict

FAR = 123_456_789


def joined(operator: str, last: str) -> ir.Operation:
    """Twelve truth values, combined."""
    lines, total = [], "%a0"
    for k in range(1, 13):
        operand = last if k == 12 else f"%a{k}"
        lines.append(f"%s{k} = {op(f'arith.{operator}', f'{total}, {operand}', '(i1, i1) -> i1')}")
        total = f"%s{k}"
    return function(", ".join([*(f"%a{k}: i1" for k in range(13)), "%b: i1"]), "i1", *lines, total)


def unless(type_: str, lines: list[str], value: str, at: int, other: str) -> ir.Operation:
    """A function that returns a value, and another one where a number ``%k`` is one constant."""
    name, zero = ("arith.cmpi", 0)
    compared = op(name, "%k, %at", f"({type_}, {type_}) -> i1", f"predicate = {zero} : i64")
    chosen = op("arith.select", f"%is, {other}, {value}", f"(i1, {type_}, {type_}) -> {type_}")
    text = [*lines, f"%at = {constant(str(at), type_)}", f"%is = {compared}", f"%r = {chosen}"]
    return function(f"%x: {type_}, %y: {type_}", type_, *text, "%r")


def arithmetic(type_: str, name: str, operator: str, operands: str) -> str:
    return f"{name} = {op(f'arith.{operator}', operands, f'({type_}, {type_}) -> {type_}')}"


SUM, TRIPLE = arithmetic("i64", "%s", "addi", "%x, %y"), arithmetic("i32", "%k", "muli", "%x, %three")
THREE, TWO = f"%three = {constant('3', 'i32')}", f"%three = {constant('2', 'i32')}"


def extreme(name: str, *, by_comparison: bool) -> ir.Operation:
    """The larger one of two floats, or the smaller one; by a comparison zeros are taken as they come."""
    if not by_comparison:
        return function("%x: f32, %y: f32", "f32", f"%r = {op(f'arith.{name}', '%x, %y', '(f32, f32) -> f32')}", "%r")
    predicate = 2 if name == "maxnumf" else 4
    return function(
        "%x: f32, %y: f32", "f32",
        f"%c = {op('arith.cmpf', '%x, %y', '(f32, f32) -> i1', f'predicate = {predicate} : i64')}",
        f"%n = {op('arith.cmpf', '%y, %y', '(f32, f32) -> i1', 'predicate = 14 : i64')}",
        f"%o = {op('arith.ori', '%c, %n', '(i1, i1) -> i1')}",
        f"%r = {op('arith.select', '%o, %x, %y', '(i1, f32, f32) -> f32')}", "%r",
    )  # fmt: skip


def bounded(predicate: int) -> ir.Operation:
    """Whether three times a float is below a bound chooses what is returned."""
    return function(
        "%x: f32, %y: f32", "f32", f"%three = {constant('3.0', 'f32')}", f"%k = {constant('1234.5', 'f32')}",
        f"%m = {op('arith.mulf', '%x, %three', '(f32, f32) -> f32')}",
        f"%c = {op('arith.cmpf', '%m, %k', '(f32, f32) -> i1', f'predicate = {predicate} : i64')}",
        f"%r = {op('arith.select', '%c, %x, %y', '(i1, f32, f32) -> f32')}", "%r",
    )  # fmt: skip


V = "tensor<?xi32>"


def incremented(size: int | None, *, squared: bool = False) -> ir.Operation:
    """A vector plus one, but for vectors of one size."""
    lines = [f"%zero = {constant('0', 'index')}", f"%one = {constant('1', 'i32')}"]
    lines += [f"%n = {op('tensor.dim', '%a, %zero', f'({V}, index) -> index')}"]
    if squared:
        lines.append(f"%m = {op('arith.muli', '%n, %n', '(index, index) -> index')}")
    lines.append(f"%k = {constant(str(size or 0), 'index')}")
    same = op("arith.cmpi", "%m, %k" if squared else "%n, %k", "(index, index) -> i1", "predicate = 0 : i64")
    lines.append(f"%e = {constant('false', 'i1') if size is None else same}")
    body = (
        f"^bb0(%x: i32, %o: i32):\n%s = {op('arith.addi', '%x, %one', '(i32, i32) -> i32')}\n"
        f'%t = {op("arith.select", "%e, %x, %s", "(i1, i32, i32) -> i32")}\n"linalg.yield"(%t) : (i32) -> ()'
    )
    lines.append(f"%r = {generic('%a, %a', f'({V}, {V}) -> {V}', ['(i) -> (i)'] * 2, 'p', '1, 1', body)}")
    return function(f"%a: {V}", V, *lines, "%r")


def element(*, wrong_at: int | None) -> ir.Operation:
    """An element of a vector, but for one place 0."""
    lines = [f"%v = {op('tensor.extract', '%a, %i', f'({V}, index) -> i32')}"]
    if wrong_at is None:
        return function(f"%a: {V}, %i: index", "i32", *lines, "%v")
    lines += [f"%z = {constant('0', 'i32')}", f"%k = {constant(str(wrong_at), 'index')}"]
    lines += [f"%e = {op('arith.cmpi', '%i, %k', '(index, index) -> i1', 'predicate = 0 : i64')}"]
    lines += [f"%r = {op('arith.select', '%e, %z, %v', '(i1, i32, i32) -> i32')}"]
    return function(f"%a: {V}, %i: index", "i32", *lines, "%r")


def stored(place: int, more: int) -> ir.Operation:
    """A number is stored to a place of a buffer, and perhaps another number to a place far away."""
    m, lines = "memref<?xi32>", [f"%i = {constant(str(place), 'index')}", f"%k = {constant(str(more), 'i32')}"]
    lines.append(f"%w = {op('arith.addi', '%v, %k', '(i32, i32) -> i32')}")
    return function(f"%a: {m}, %v: i32", "", *lines, op("memref.store", "%w, %a, %i", f"(i32, {m}, index) -> ()"), "")


WRONG: dict[str, tuple[ir.Operation, ir.Operation]] = {
    "one of many disjuncts": (joined("ori", "%a12"), joined("ori", "%b")),
    "one of many conjuncts": (joined("andi", "%a12"), joined("andi", "%b")),
    "one product": (
        function("%x: i32, %y: i32", "i32", THREE, TRIPLE, "%k"),
        unless("i32", [THREE, TRIPLE], "%k", FAR, "%y"),
    ),
    "one exclusive disjunction": (
        function("%x: i64, %y: i64", "i64", SUM, "%s"),
        unless("i64", [SUM, arithmetic("i64", "%k", "xori", "%x, %y")], "%s", FAR * FAR, "%x"),
    ),
    "zeros of a maximum": (extreme("maxnumf", by_comparison=False), extreme("maxnumf", by_comparison=True)),
    "zeros of a minimum": (extreme("minnumf", by_comparison=False), extreme("minnumf", by_comparison=True)),
    "a bound that is met": (bounded(4), bounded(5)),
    "one size": (incremented(None), incremented(123_457)),
    "one size that is squared": (incremented(None), incremented(FAR * FAR, squared=True)),
    "one place": (element(wrong_at=None), element(wrong_at=5000)),
    "a place of memory": (stored(5000, 0), stored(5000, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_model_becomes_a_counterexample(name: str) -> None:
    source, target = WRONG[name]
    outcome = verdict(source, target)
    assert outcome.status is Status.REFUTED, outcome.reason
    found = outcome.details["counterexample"]
    assert isinstance(found, Counterexample)
    assert str(replay(source, target, Options(), found)) == str(found)
    assert status(source, source) is Status.PROVED


def test_words_of_indices() -> None:
    """An index is cut to 32 bits, and then is not as large as a bound that fits 64."""

    def returned(bound: int | None) -> ir.Operation:
        lines = [f"%m = {op('arith.muli', '%i, %j', '(index, index) -> index')}"]
        lines += [f"%l = {op('arith.index_cast', '%m', '(index) -> i32')}"]
        lines += [f"%h = {op('arith.index_cast', '%i', '(index) -> i64')}", f"%z = {constant('0', 'i32')}"]
        lines += [f"%k = {constant(str(bound or 0), 'i64')}"]
        lines += [f"%c = {op('arith.cmpi', '%h, %k', '(i64, i64) -> i1', 'predicate = 5 : i64')}"]
        lines += [f"%r = {op('arith.select', '%c, %z, %l', '(i1, i32, i32) -> i32')}"]
        return function("%i: index, %j: index", "i32", *lines, "%l" if bound is None else "%r")

    outcome = verdict(returned(None), returned(1 << 32))
    assert outcome.status is Status.REFUTED, outcome.reason
    found = outcome.details["counterexample"]
    assert isinstance(found, Counterexample)
    i, j = (int(v) for v in found.scalars.values())
    assert i >= 1 << 32
    assert abs(i * j) < 1 << 63


def product_into(type_: str, *, guarded: bool) -> ir.Operation:
    """The product of two vectors, times a number; and another number where that is one constant."""
    kind, v = type_[0], f"tensor<?x{type_}>"
    add, mul = (f"arith.{name}{kind}" for name in ("add", "mul"))
    start, at = ("0", "123456789") if kind == "i" else ("0.0", "1234.5")
    compared, equal = ("arith.cmpi", 0) if kind == "i" else ("arith.cmpf", 1)
    two = f"({type_}, {type_}) -> {type_}"
    body = (
        f"^bb0(%x: {type_}, %y: {type_}, %o: {type_}):\n%p = {op(mul, '%x, %y', two)}\n"
        f"%q = {op(mul, '%p, %w', two)}\n%s = {op(add, '%o, %q', two)}\n" + f'"linalg.yield"(%s) : ({type_}) -> ()'
    )
    maps = ["(i) -> (i)", "(i) -> (i)", "(i) -> ()"]
    types = f"({v}, {v}, tensor<{type_}>) -> tensor<{type_}>"
    lines = [f"%zero = {constant(f'dense<{start}>', f'tensor<{type_}>')}"]
    lines += [f"%t = {generic('%a, %b, %zero', types, maps, 'r', '2, 1', body)}"]
    lines += [f"%n = {op('tensor.extract', '%t', f'(tensor<{type_}>) -> {type_}')}", f"%k = {constant(at, type_)}"]
    lines += [f"%e = {op(compared, '%n, %k', f'({type_}, {type_}) -> i1', f'predicate = {equal} : i64')}"]
    lines += [f"%r = {op('arith.select', '%e, %z, %n', f'(i1, {type_}, {type_}) -> {type_}')}"]
    arguments = f"%a: {v}, %b: {v}, %w: {type_}, %z: {type_}"
    return function(arguments, type_, *lines, "%r" if guarded else "%n")


@pytest.mark.parametrize("type_", ["i32", pytest.param("f32", marks=pytest.mark.slow)])
def test_sums_are_written_out_at_small_sizes(type_: str) -> None:
    assert status(product_into(type_, guarded=False), product_into(type_, guarded=True)) is Status.REFUTED


def test_no_multiple_of_two_is_odd() -> None:
    double = function("%x: i32, %y: i32", "i32", TWO, TRIPLE, "%k")
    assert status(double, unless("i32", [TWO, TRIPLE], "%k", FAR, "%y")) is Status.PROVED


def test_indices_of_a_counterexample_stay_in_64_bits() -> None:
    """Arithmetic on indices is taken not to leave 64 bits, so that the second one never returns %j."""

    def returned(is_beyond: bool) -> ir.Operation:
        sums = [
            f"%s0 = {op('arith.addi', '%i, %j', '(index, index) -> index')}",
            f"%h = {constant(str(1 << 62), 'index')}",
        ]
        sums += [f"%s{k + 1} = {op('arith.subi', f'%s{k}, %h', '(index, index) -> index')}" for k in (0, 1)]
        sums += [f"%z = {constant('0', 'index')}"]
        sums += [f"%c = {op('arith.cmpi', '%s2, %z', '(index, index) -> i1', 'predicate = 5 : i64')}"]
        sums += [f"%r = {op('arith.select', '%c, %j, %i', '(i1, index, index) -> index')}"]
        return function("%i: index, %j: index", "index", *sums, "%r" if is_beyond else "%i")

    assert status(returned(False), returned(True)) is Status.UNKNOWN
