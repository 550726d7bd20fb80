"""Sums in any order: what is proved then, and what stays false over the reals."""

from __future__ import annotations

from chc.translation.refine import Options
from ir_semantics.mlir import ir
from smt_encodings.claims import Status
from tests.ir_semantics.mlir.mlir_text import constant, function, generic, op

from .verdicts import status, verdict

ANY_ORDER = Options(associative=True)
FF = "(f32, f32) -> f32"
MUL_ADD = (
    f'^bb0(%p: f32, %q: f32, %r: f32):\n%s = "arith.mulf"(%p, %q) : {FF}\n'
    f'%u = "arith.addf"(%r, %s) : {FF}\n"linalg.yield"(%u) : (f32) -> ()'
)
SEGMENTS = "operandSegmentSizes = array<i32: 2, 1>"


def summed(name: str, *lines: str) -> ir.Operation:
    """A function of three floats."""
    return function("%a: f32, %b: f32, %c: f32", "f32", *lines, name)


def add(name: str, a: str, b: str) -> str:
    return f"{name} = {op('arith.addf', f'{a}, {b}', FF)}"


def test_sums_of_three() -> None:
    left = summed("%1", add("%0", "%a", "%b"), add("%1", "%0", "%c"))
    right = summed("%1", add("%0", "%c", "%b"), add("%1", "%a", "%0"))
    twice = summed("%1", add("%0", "%c", "%b"), add("%1", "%c", "%0"))
    assert status(left, right) is Status.REFUTED
    outcome = verdict(left, right, ANY_ORDER)
    assert outcome.status is Status.PROVED
    assert "floats are added in any order, with -0.0 as unit, and are real numbers in counterexamples" in (
        outcome.claim.assumptions
    )
    assert status(left, twice, ANY_ORDER) is Status.REFUTED


def test_only_minus_zero_is_left_out() -> None:
    for zero, expected in (("-0.0", Status.PROVED), ("0.0", Status.UNKNOWN)):
        more = summed("%1", f"%z = {constant(zero, 'f32')}", add("%0", "%a", "%z"), add("%1", "%0", "%b"))
        assert status(more, summed("%0", add("%0", "%a", "%b")), ANY_ORDER) is expected


def dot(length: int, reversed_: bool, other: int = 0) -> ir.Operation:
    vector = f"tensor<{length}xf32>"
    turn = [f"%x = {op('tosa.reverse', '%a', f'({vector}) -> {vector}', 'axis = 0 : i32')}",
            f"%y = {op('tosa.reverse', '%b', f'({vector}) -> {vector}', 'axis = 0 : i32')}"]  # fmt: skip
    lines = turn if reversed_ else []
    if other:
        lines += [f"%i = {constant(str(other), 'index')}", f"%w = {constant('3.0', 'f32')}"]
        lines.append(f"%v = {op('tensor.insert', '%w, %a, %i', f'(f32, {vector}, index) -> {vector}')}")
    names = "%x, %y" if reversed_ else "%v, %b" if other else "%a, %b"
    dotted = op("linalg.dot", f"{names}, %c", f"({vector}, {vector}, tensor<f32>) -> tensor<f32>", SEGMENTS, MUL_ADD)
    return function(f"%a: {vector}, %b: {vector}, %c: tensor<f32>", "tensor<f32>", *lines, f"%0 = {dotted}", "%0")


def test_products_of_reversed_vectors() -> None:
    assert status(dot(40, False), dot(40, True), ANY_ORDER) is Status.PROVED
    assert status(dot(40, False), dot(40, True)) is Status.REFUTED
    for length in (40, 9000):  # as a run over the reals takes long, so does the one in floats
        assert status(dot(length, False), dot(length, False, 7), ANY_ORDER) is Status.REFUTED


def matmul(columns: str) -> ir.Operation:
    m = "tensor<?x6xf32>"
    maps = [f"(i, j, k) -> (i, {columns})", f"(i, j, k) -> ({columns}, j)", "(i, j, k) -> (i, j)"]
    types = f"({m}, tensor<6x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>"
    loops = generic("%a, %b, %c", types, [*maps[:2], maps[2]], "ppr", "2, 1", MUL_ADD)
    return function(f"%a: {m}, %b: tensor<6x?xf32>, %c: tensor<?x?xf32>", "tensor<?x?xf32>", f"%0 = {loops}", "%0")


def with_extent(columns: str) -> ir.Operation:
    """As :func:`matmul`, with an operand that says how long the last loop is."""
    maps = [f"(i, j, k) -> (i, {columns})", f"(i, j, k) -> ({columns}, j)", "(i, j, k) -> (k)", "(i, j, k) -> (i, j)"]
    body = MUL_ADD.replace("%q: f32, ", "%q: f32, %g: f32, ")
    types = "(tensor<?x6xf32>, tensor<6x?xf32>, tensor<6xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>"
    loops = generic("%a, %b, %e, %c", types, maps, "ppr", "3, 1", body)
    arguments = "%a: tensor<?x6xf32>, %b: tensor<6x?xf32>, %e: tensor<6xf32>, %c: tensor<?x?xf32>"
    return function(arguments, "tensor<?x?xf32>", f"%0 = {loops}", "%0")


def test_products_of_matrices_with_the_reduction_reversed_for_every_other_size() -> None:
    forwards, backwards = with_extent("k"), with_extent("k * -1 + 5")
    assert status(forwards, backwards, ANY_ORDER) is Status.PROVED
    assert status(forwards, backwards) is Status.REFUTED
    mixed = with_extent("k")
    assert status(matmul("k"), matmul("k"), ANY_ORDER) is Status.PROVED
    assert status(mixed, with_extent("5"), ANY_ORDER) is Status.REFUTED


def cast_choice(*, late: bool) -> ir.Operation:
    """One of two constants as f32, converted after the choice or before."""
    kind = "f64" if late else "f32"
    lines = [f"%{n} = {constant(value, kind)}" for n, value in (("x", "0.1"), ("y", "0.2"))]
    lines.append(f"%0 = {op('arith.select', '%c, %x, %y', f'(i1, {kind}, {kind}) -> {kind}')}")
    lines += [f"%1 = {op('arith.truncf', '%0', '(f64) -> f32')}"] if late else []
    return function("%c: i1", "f32", *lines, "%1" if late else "%0")


def absorbed(*, is_known: bool) -> ir.Operation:
    """Whether 1e30 and a byte are 1e30: always, as floats."""
    lines = [f"%k = {constant('1.0e30', 'f32')}", f"%x = {op('arith.sitofp', '%i', '(i8) -> f32')}",
             add("%s", "%x", "%k"),
             f"%0 = {op('arith.cmpf', '%s, %k', '(f32, f32) -> i1', 'predicate = 1 : i64')}"]  # fmt: skip
    return function("%i: i8", "i1", *([f"%0 = {constant('true', 'i1')}"] if is_known else lines), "%0")


def of_constants(*order: str) -> ir.Operation:
    """A sum of three constants in an order."""
    numbers = {"big": "1.0e30", "less": "-1.0e30", "one": "1.0"}
    lines = [f"%{name} = {constant(value, 'f32')}" for name, value in numbers.items()]
    first, second, third = order
    return summed("%1", *lines, add("%0", f"%{first}", f"%{second}"), add("%1", "%0", f"%{third}"))


def test_what_is_equal_as_floats_or_in_another_order_is_not_refuted_over_the_reals() -> None:
    for pair in (
        (cast_choice(late=True), cast_choice(late=False)),
        (absorbed(is_known=False), absorbed(is_known=True)),
    ):
        assert status(*pair) is Status.PROVED
        assert status(*pair, ANY_ORDER) is not Status.REFUTED
    in_orders = of_constants("big", "less", "one"), of_constants("less", "one", "big")
    assert status(*in_orders) is Status.REFUTED  # 1 and 0
    assert status(*in_orders, ANY_ORDER) is not Status.REFUTED
