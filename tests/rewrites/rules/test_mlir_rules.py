"""Rules from MLIR: their terms mean what MLIR's operators mean, and rules written as functions are read back."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

import numpy as np
import pytest

from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.rule import TensorRule
from ir_semantics.mlir import ir
from ir_semantics.mlir.reader import read
from ir_semantics.mlir.semantics.values import NotCovered
from ir_semantics.tensors.conditions import holds
from ir_semantics.tensors.evaluate import evaluate
from ir_semantics.tensors.numbers import Binary32
from ir_semantics.tensors.terms import Tensor
from rewrites.rules.mlir.builder import NoFunction
from rewrites.rules.mlir.reading import rule_of, rules_of
from rewrites.rules.mlir.writing import text_of_rule
from rewrites.rules.tensor.catalogue import RULES
from smt_encodings.claims import Equality, Status
from tests.ir_semantics.mlir.mlir_text import constant, function, generic, op
from tests.ir_semantics.mlir.running import UB, run, same

UNKNOWN = object()
"""Stands for a size that the left function says to be another one."""
MATRIX, VECTOR, SCALAR = "tensor<?x?xf32>", "tensor<?xf32>", "tensor<f32>"


def writable() -> list[TensorRule]:
    found = []
    for rule in RULES:
        try:
            text_of_rule(rule)
        except NoFunction:
            continue
        found.append(rule)
    return found


def sizes_of(rule: TensorRule, most: int = 3) -> Iterator[dict[str, int]]:
    """Sizes that satisfy the premise, in an order that begins with some of every kind."""
    every = list(product(range(most + 1), repeat=len(rule.sizes)))
    random.Random(0).shuffle(every)
    for values in every[:4000]:
        sizes = dict(zip(rule.sizes, values, strict=True))
        if holds(rule.premise, sizes):
            yield sizes


def inputs_of(f: ir.Operation, rule: TensorRule, sizes: Mapping[str, int], draw: random.Random) -> list[object]:
    """Small whole numbers, of which sums are exact, for tensors; and the sizes that are arguments."""
    inputs: list[object] = []
    known = iter(range(1000))
    for number, argument in enumerate(f.regions[0].blocks[0].arguments):
        if argument.type == ir.IndexType():
            inputs.append(sizes.get(f"n{next(known)}", UNKNOWN))
            continue
        shape = argument.type.shape if isinstance(argument.type, ir.TensorType) else ()
        for _ in range(shape.count(None)):
            next(known)
        if f"x{number}" in rule.inputs:
            extents = [d.value(sizes) for d in rule.inputs[f"x{number}"].shape]
        else:
            extents = [2 if n is None else n for n in shape]
        data = np.array([draw.randint(-3, 3) for _ in range(int(np.prod(extents)))], np.float32).reshape(extents)
        inputs.append(data)
    return inputs


def where_defined(f: ir.Operation, inputs: Sequence[object]) -> list[object]:
    """The results, with numbers for unknown sizes for which behaviour is defined, if there are some."""
    unknown = sum(x is UNKNOWN for x in inputs)
    for numbers in product(range(6), repeat=unknown):
        left = iter(numbers)
        results = run(f, *(next(left) if x is UNKNOWN else x for x in inputs))
        if results != [UB]:
            break
    return results


def without_zeros(result: object) -> object:
    """Nested lists in which zeros have no sign: sums of terms start with their first element, MLIR's with +0.0."""
    array = np.asarray(result, dtype=object)
    return np.vectorize(lambda x: x + 0.0, otypes=[object])(array).tolist() if array.size else array.tolist()


def agrees(f: ir.Operation, rule: TensorRule, side: Tensor, count: int = 3) -> int:
    """Compares a side of a rule with the function that it was read from; the number of runs."""
    draw, runs = random.Random(1), 0
    for sizes in islice(sizes_of(rule), count):
        inputs = inputs_of(f, rule, sizes, draw)
        arrays = {
            f"x{k}": np.asarray(x).astype(float).astype(object) for k, x in enumerate(inputs) if f"x{k}" in rule.inputs
        }
        (result,) = where_defined(f, inputs)
        expected = evaluate(side, sizes, arrays, Binary32())
        assert same(*map(without_zeros, (result, expected))), (rule.statement, sizes, inputs)
        runs += 1
    return runs


def test_rules_that_are_written_mean_the_same_when_they_are_read() -> None:
    rules = writable()
    assert len(rules) > 130
    runs = 0
    for rule in rules[::8]:
        text = text_of_rule(rule)
        (again,) = rules_of(read(text), "unnamed")
        assert (again.name, again.equality) == (rule.name, rule.equality)
        (module,) = read(text).operations
        left, right = module.regions[0].blocks[0].operations
        runs += agrees(left, again, again.left, 2)
        if again.equality is Equality.BIT_EXACT and rule.kind.value != "wrong":
            agrees(right, again, again.right, 1)
    assert runs > 15


@pytest.mark.proof
@pytest.mark.parametrize("name", ["pads of one value merge", "transpose of concat", "slice undoes pad"])
def test_rules_that_are_read_back_are_proved(name: str) -> None:
    rule = next(r for r in RULES if r.name == name)
    (again,) = rules_of(read(text_of_rule(rule)), "unnamed")
    assert decide_tensor_rule(again).status is Status.PROVED


ROWS = "(i, j) -> (i, j)"
CASES = {
    "a broadcast bias, by loops": (
        f"%x: {MATRIX}, %b: {VECTOR}, %m: index, %n: index",
        MATRIX,
        f"%e = {op('tensor.empty', '%m, %n', f'(index, index) -> {MATRIX}')}",
        "%r = "
        + generic(
            "%x, %b, %e", f"({MATRIX}, {VECTOR}, {MATRIX}) -> {MATRIX}", [ROWS, "(i, j) -> (j)", ROWS], "pp", "2, 1",
            "^bb0(%p: f32, %q: f32, %o: f32):\n"
            '%s = "arith.addf"(%p, %q) : (f32, f32) -> f32\n"linalg.yield"(%s) : (f32) -> ()',
        ),
        "%r",
    ),
    "loops that transpose": (
        f"%x: {MATRIX}, %m: index, %n: index",
        MATRIX,
        f"%e = {op('tensor.empty', '%m, %n', f'(index, index) -> {MATRIX}')}",
        "%r = "
        + generic(
            "%x, %e", f"({MATRIX}, {MATRIX}) -> {MATRIX}", ["(i, j) -> (j, i)", ROWS], "pp", "1, 1",
            '^bb0(%p: f32, %o: f32):\n%s = "arith.negf"(%p) : (f32) -> f32\n"linalg.yield"(%s) : (f32) -> ()',
        ),
        "%r",
    ),
    "a slice with a stride, and a dimension less": (
        "%x: tensor<5x7xf32>",
        "tensor<3xf32>",
        "%r = " + op("tensor.extract_slice", "%x", "(tensor<5x7xf32>) -> tensor<3xf32>",
                     "operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 2, 1>, "
                     "static_sizes = array<i64: 1, 3>, static_strides = array<i64: 1, 2>"),
        "%r",
    ),
    "dimensions that are put together, and apart again": (
        "%x: tensor<?x3xf32>, %n: index",
        "tensor<?x3xf32>",
        "%c = " + op("tensor.collapse_shape", "%x", f"(tensor<?x3xf32>) -> {VECTOR}", "reassociation = [[0, 1]]"),
        "%r = " + op("tensor.expand_shape", "%c, %n", f"({VECTOR}, index) -> tensor<?x3xf32>",
                     "reassociation = [[0, 1]], static_output_shape = array<i64: -9223372036854775808, 3>"),
        "%r",
    ),
    "TOSA's sum with a broadcast size": (
        f"%x: {MATRIX}, %b: tensor<1x?xf32>",
        MATRIX,
        "%r = " + op("tosa.add", "%x, %b", f"({MATRIX}, tensor<1x?xf32>) -> {MATRIX}"),
        "%r",
    ),
    "TOSA's product, difference and clamp": (
        f"%x: {MATRIX}, %y: {MATRIX}",
        MATRIX,
        "%z = " + op("tosa.const", "", "() -> tensor<1xi8>", "values = dense<0> : tensor<1xi8>"),
        "%p = " + op("tosa.mul", "%x, %y, %z", f"({MATRIX}, {MATRIX}, tensor<1xi8>) -> {MATRIX}"),
        "%d = " + op("tosa.sub", "%p, %y", f"({MATRIX}, {MATRIX}) -> {MATRIX}"),
        "%r = " + op("tosa.clamp", "%d", f"({MATRIX}) -> {MATRIX}", "min_val = -1.0 : f32, max_val = 2.0 : f32"),
        "%r",
    ),
    "TOSA's sums of rows": (
        f"%x: {MATRIX}",
        "tensor<?x1xf32>",
        "%r = " + op("tosa.reduce_sum", "%x", f"({MATRIX}) -> tensor<?x1xf32>", "axis = 1 : i32"),
        "%r",
    ),
    "TOSA's slice, pad, reverse and transpose": (
        "%x: tensor<4x?xf32>",
        "tensor<?x4xf32>",
        "%s = " + op("tosa.const_shape", "", "() -> !tosa.shape<2>", "values = dense<[1, 0]> : tensor<2xindex>"),
        "%n = " + op("tosa.const_shape", "", "() -> !tosa.shape<2>", "values = dense<[3, -1]> : tensor<2xindex>"),
        "%c = "
        + op("tosa.slice", "%x, %s, %n", "(tensor<4x?xf32>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<3x?xf32>"),
        "%a = " + op("tosa.const_shape", "", "() -> !tosa.shape<4>", "values = dense<[0, 1, 2, 0]> : tensor<4xindex>"),
        "%v = " + op("tosa.const", "", "() -> tensor<1xf32>", "values = dense<5.0> : tensor<1xf32>"),
        "%p = " + op("tosa.pad", "%c, %a, %v", "(tensor<3x?xf32>, !tosa.shape<4>, tensor<1xf32>) -> tensor<4x?xf32>"),
        "%q = " + op("tosa.reverse", "%p", "(tensor<4x?xf32>) -> tensor<4x?xf32>", "axis = 1 : i32"),
        "%r = " + op("tosa.transpose", "%q", "(tensor<4x?xf32>) -> tensor<?x4xf32>", "perms = array<i32: 1, 0>"),
        "%r",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_terms_are_what_functions_mean(name: str) -> None:
    f = function(*CASES[name])
    rule = rule_of("itself", f, f)
    assert agrees(f, rule, rule.left, 6) >= 1


def test_what_the_left_function_requires_is_the_domain() -> None:
    f = function(*CASES["a broadcast bias, by loops"])
    rule = rule_of("bias", f, f)
    assert rule.sizes == ("n0", "n1") and rule.size_domain == "all natural numbers n0, n1; x0[n0, n1], x1[n1]"
    x, b = np.zeros((2, 3), np.float32), np.zeros(3, np.float32)
    assert run(f, x, b, 2, 4) == [UB] and run(f, x, b, 2, 3) != [UB]


def both(*functions: ir.Operation) -> TensorRule:
    return rule_of("rule", *functions)


def refused(*functions: ir.Operation) -> str:
    with pytest.raises(NotCovered) as error:
        rule_of("rule", *functions)
    return error.value.why


IDENTITY = function(f"%x: {MATRIX}", MATRIX, "%x")
NEGATED = function(f"%x: {MATRIX}", MATRIX, f'%r = "arith.negf"(%x) : ({MATRIX}) -> {MATRIX}', "%r")


def total(start: str) -> ir.Operation:
    body = '^bb0(%a: f32, %s: f32):\n%t = "arith.addf"(%s, %a) : (f32, f32) -> f32\n"linalg.yield"(%t) : (f32) -> ()'
    return function(
        f"%x: {VECTOR}",
        SCALAR,
        f"%z = {constant(f'dense<{start}>', SCALAR)}",
        "%r = "
        + op("linalg.reduce", "%x, %z", f"({VECTOR}, {SCALAR}) -> {SCALAR}", "dimensions = array<i64: 0>", body),
        "%r",
    )


def test_sums_start_with_plus_zero() -> None:
    """Another start is another value, and the sum of a term says nothing of it."""
    assert both(total("0.0"), total("0.0")).statement == "sum(x0, axes=[0]) = sum(x0, axes=[0])"
    for start in ("-0.0", "1.0"):
        assert refused(total(start), total("0.0")) == "the sum must start with 0, in all elements"


def test_what_is_no_rule() -> None:
    other = function(f"%x: {VECTOR}", VECTOR, "%x")
    assert refused(NEGATED, other) == "both functions of a rule must have the same arguments"
    assert refused(IDENTITY, NEGATED) == "the left side of a rule must have an operator"
    whole = function("%x: i32", "i32", "%x")
    assert refused(whole, whole).startswith("an argument of a rule must be an index, or a float")
    flags = function(
        f"%x: {MATRIX}", MATRIX,
        f'%r = "arith.negf"(%x) <{{fastmath = #arith.fastmath<nnan>}}> : ({MATRIX}) -> {MATRIX}', "%r",
    )  # fmt: skip
    assert refused(flags, IDENTITY) == "the flags arith.fastmath<nnan> have no meaning here"
    unknown = function(f"%x: {MATRIX}", MATRIX, f'%r = "math.tanh"(%x) : ({MATRIX}) -> {MATRIX}', "%r")
    assert refused(unknown, IDENTITY) == "the operator has no term"
    mixed = function("%x: f32, %y: f64", "f32", '%r = "arith.negf"(%x) : (f32) -> f32', "%r")
    assert refused(mixed, mixed) == "the arguments of a rule must have elements of one type"


def test_the_right_function_must_not_require_more() -> None:
    arguments = f"%x: {MATRIX}, %n: index"
    left = function(arguments, MATRIX, f'%r = "arith.negf"(%x) : ({MATRIX}) -> {MATRIX}', "%r")
    right = function(
        arguments, MATRIX,
        '%zero = "arith.constant"() <{value = 0 : index}> : () -> index',
        f'%m = "tensor.dim"(%x, %zero) : ({MATRIX}, index) -> index',
        f"%e = {op('tensor.empty', '%m, %n', f'(index, index) -> {MATRIX}')}",
        "%r = "
        + generic(
            "%x, %e", f"({MATRIX}, {MATRIX}) -> {MATRIX}", [ROWS, ROWS], "pp", "1, 1",
            '^bb0(%p: f32, %o: f32):\n%s = "arith.negf"(%p) : (f32) -> f32\n"linalg.yield"(%s) : (f32) -> ()',
        ),
        "%r",
    )  # fmt: skip
    expected = "sizes must satisfy n1 = n2, which does not follow from what the left function says"
    assert refused(left, right) == expected
    assert both(right, left).sizes == ("n0", "n1")  # the other way round it is the rule's domain


def test_attributes_of_a_rule() -> None:
    rule = next(r for r in RULES if r.name == "batch normalisation folded with the mean left out")
    text = text_of_rule(rule)
    assert 'rule.equality = "over_reals"' in text and "rule.domain = affine_set<" in text
    for wrong in ('"over_the_moon"', "1 : i64"):
        with pytest.raises(NotCovered) as error:
            rules_of(read(text.replace('"over_reals"', wrong)), "")
        assert error.value.why.startswith(
            "the attribute rule.equality is none of a rule, or has no such value; a rule may have"
        )


def test_rules_that_cannot_be_written() -> None:
    reasons = {}
    for rule in RULES:
        try:
            text_of_rule(rule)
        except NoFunction as error:
            reasons[rule.name] = str(error)
    assert reasons["upsampling twice"] == "MLIR has no operator for upsample of the rule upsampling twice"
    assert reasons["relu of a positive multiple"].endswith(
        "holds for some data only, which a pair of functions cannot say"
    )
