"""The meaning of arith and math, against Python and NumPy, which share no code with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from ir_semantics.mlir import ir

from .mlir_text import function, op
from .running import UB, UNDEFINED, run, same


def wrapped(n: int, bits: int = 4) -> int:
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> (bits - 1) else n


def toward_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def divided(divide: Callable[[int, int], int]) -> Callable[[int, int], Any]:
    return lambda a, b: UB if b == 0 or (a, b) == (-8, -1) else wrapped(divide(a, b))


def of_unsigned(rule: Callable[[int, int], int]) -> Callable[[int, int], Any]:
    return lambda a, b: wrapped(rule(a & 15, b & 15))


INTEGERS: Mapping[str, Callable[[int, int], Any]] = {
    "addi": lambda a, b: wrapped(a + b),
    "subi": lambda a, b: wrapped(a - b),
    "muli": lambda a, b: wrapped(a * b),
    "divsi": divided(toward_zero),
    "floordivsi": divided(lambda a, b: a // b),
    "ceildivsi": divided(lambda a, b: -(-a // b)),
    "remsi": lambda a, b: UB if b == 0 else wrapped(a - b * toward_zero(a, b)),
    "divui": lambda a, b: UB if b == 0 else wrapped((a & 15) // (b & 15)),
    "ceildivui": lambda a, b: UB if b == 0 else wrapped(-(-(a & 15) // (b & 15))),
    "remui": lambda a, b: UB if b == 0 else wrapped((a & 15) % (b & 15)),
    "shli": lambda a, b: UNDEFINED if b & 15 >= 4 else wrapped(a << b),
    "shrsi": lambda a, b: UNDEFINED if b & 15 >= 4 else wrapped(a >> b),
    "shrui": lambda a, b: UNDEFINED if b & 15 >= 4 else wrapped((a & 15) >> b),
    "andi": of_unsigned(lambda a, b: a & b),
    "ori": of_unsigned(lambda a, b: a | b),
    "xori": of_unsigned(lambda a, b: a ^ b),
    "maxsi": max,
    "minsi": min,
    "maxui": of_unsigned(max),
    "minui": of_unsigned(min),
}


def all_pairs(program: ir.Operation, expected: Callable[[int, int], Any]) -> None:
    for a, b in product(range(-8, 8), repeat=2):
        (result,) = run(program, a, b)
        assert result == expected(a, b), (a, b, result)


@pytest.mark.parametrize("name", INTEGERS)
def test_operators_on_integers(name: str) -> None:
    program = function("%a: i4, %b: i4", "i4", f"%0 = {op(f'arith.{name}', '%a, %b', '(i4, i4) -> i4')}", "%0")
    all_pairs(program, INTEGERS[name])


FLAGS: Mapping[tuple[str, str], Callable[[int, int], bool]] = {
    ("addi", "nsw"): lambda a, b: -8 <= a + b <= 7,
    ("addi", "nuw"): lambda a, b: (a & 15) + (b & 15) <= 15,
    ("subi", "nsw"): lambda a, b: -8 <= a - b <= 7,
    ("subi", "nuw"): lambda a, b: (a & 15) >= (b & 15),
    ("muli", "nsw"): lambda a, b: -8 <= a * b <= 7,
    ("muli", "nuw"): lambda a, b: (a & 15) * (b & 15) <= 15,
    ("shli", "nsw"): lambda a, b: b & 15 < 4 and -8 <= a << b <= 7,
    ("shli", "nuw"): lambda a, b: b & 15 < 4 and (a & 15) << b <= 15,
}


@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_flags_make_poison_of_overflow(name: str, flag: str) -> None:
    flags = f"overflowFlags = #arith.overflow<{flag}>"
    program = function("%a: i4, %b: i4", "i4", f"%0 = {op(f'arith.{name}', '%a, %b', '(i4, i4) -> i4', flags)}", "%0")
    all_pairs(program, lambda a, b: INTEGERS[name](a, b) if FLAGS[name, flag](a, b) else UNDEFINED)


COMPARED: Sequence[Callable[[int, int], bool]] = (
    lambda a, b: a == b, lambda a, b: a != b,
    lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b,
    lambda a, b: a & 15 < b & 15, lambda a, b: a & 15 <= b & 15,
    lambda a, b: a & 15 > b & 15, lambda a, b: a & 15 >= b & 15,
)  # fmt: skip


@pytest.mark.parametrize("predicate", range(10))
def test_comparisons_of_integers(predicate: int) -> None:
    compare = op("arith.cmpi", "%a, %b", "(i4, i4) -> i1", f"predicate = {predicate} : i64")
    all_pairs(function("%a: i4, %b: i4", "i1", f"%0 = {compare}", "%0"), COMPARED[predicate])


def related(predicate: int, x: int, y: int) -> bool:
    relations = (x == y, x != y, x < y, x <= y, x > y, x >= y)
    return relations[predicate if predicate < 6 else predicate - 4]


@pytest.mark.parametrize("predicate", range(10))
def test_comparisons_of_indices_read_them_as_64_bits(predicate: int) -> None:
    compare = op("arith.cmpi", "%a, %b", "(index, index) -> i1", f"predicate = {predicate} : i64")
    program = function("%a: index, %b: index", "i1", f"%0 = {compare}", "%0")
    for a, b in product((-(1 << 63), -2, -1, 0, 1, 5, (1 << 63) - 1), repeat=2):
        x, y = (a, b) if predicate < 6 else (a % (1 << 64), b % (1 << 64))
        assert run(program, a, b) == [related(predicate, x, y)]


def test_comparisons_of_booleans_read_true_as_minus_one_or_one() -> None:
    for predicate, (a, b) in product(range(10), product((False, True), repeat=2)):
        compare = op("arith.cmpi", "%a, %b", "(i1, i1) -> i1", f"predicate = {predicate} : i64")
        x, y = (-int(a), -int(b)) if predicate < 6 else (int(a), int(b))
        program = function("%a: i1, %b: i1", "i1", f"%0 = {compare}", "%0")
        assert run(program, a, b) == [related(predicate, x, y)]


CONVERSIONS: Mapping[tuple[str, str, str], Callable[[int], Any]] = {
    ("extsi", "i4", "i8"): lambda a: a,
    ("extui", "i4", "i8"): lambda a: a & 15,
    ("trunci", "i4", "i2"): lambda a: wrapped(a, 2),
    ("trunci", "i4", "i1"): lambda a: bool(a & 1),
    ("index_cast", "i4", "index"): lambda a: a,
    ("index_castui", "i4", "index"): lambda a: a & 15,
    ("sitofp", "i4", "f32"): float,
    ("uitofp", "i4", "f32"): lambda a: float(a & 15),
}


@pytest.mark.parametrize(("name", "source", "target"), CONVERSIONS)
def test_conversions_of_integers(name: str, source: str, target: str) -> None:
    converted = op(f"arith.{name}", "%a", f"({source}) -> {target}")
    program = function(f"%a: {source}", target, f"%0 = {converted}", "%0")
    for a in range(-8, 8):
        assert run(program, a) == [CONVERSIONS[name, source, target](a)]


@pytest.mark.parametrize("name", ["maxsi", "minsi", "maxui", "minui"])
def test_extremes_of_indices(name: str) -> None:
    program = function(
        "%a: index, %b: index", "index", f"%0 = {op(f'arith.{name}', '%a, %b', '(index, index) -> index')}", "%0"
    )
    read = (lambda n: n % 2**64) if name.endswith("ui") else int
    for a, b in product((-(2**63), -2, -1, 0, 1, 5), repeat=2):
        assert run(program, a, b) == [(max if name.startswith("max") else min)(a, b, key=read)]


def test_an_index_becomes_a_word_by_its_lower_bits() -> None:
    program = function("%a: index", "i4", f"%0 = {op('arith.index_cast', '%a', '(index) -> i4')}", "%0")
    for a in (-9, -8, -1, 0, 7, 8, 15, 16, 1 << 40):
        assert run(program, a) == [wrapped(a)]


# -- floats --------------------------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.5, -2.75, 3.0, math.inf, -math.inf, math.nan, 3.4028234663852886e38, 1e-45, 0.1]
FLOATS = [float(np.float32(x)) for x in SPECIAL]

BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "remf": np.fmod,
}  # fmt: skip


@pytest.mark.parametrize("type_", ["f32", "f64", "f16"])
@pytest.mark.parametrize("name", BINARY)
def test_operators_on_floats(name: str, type_: str) -> None:
    kind = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[type_]
    applied = op(f"arith.{name}", "%a, %b", f"({type_}, {type_}) -> {type_}")
    program = function(f"%a: {type_}, %b: {type_}", type_, f"%0 = {applied}", "%0")
    with np.errstate(all="ignore"):
        for a, b in product([kind(x) for x in SPECIAL], repeat=2):
            (result,) = run(program, float(a), float(b))
            assert same(result, float(BINARY[name](a, b))), (a, b)


ORDER = ("false", "eq", "gt", "ge", "lt", "le", "ne", "ord", "eq", "gt", "ge", "lt", "le", "ne", "uno", "true")


@pytest.mark.parametrize("predicate", range(16))
def test_comparisons_of_floats(predicate: int) -> None:
    compare = op("arith.cmpf", "%a, %b", "(f32, f32) -> i1", f"predicate = {predicate} : i64")
    program = function("%a: f32, %b: f32", "i1", f"%0 = {compare}", "%0")
    for a, b in product(FLOATS, repeat=2):
        unordered = math.isnan(a) or math.isnan(b)
        holds = {
            "false": False, "true": True, "ord": not unordered, "uno": unordered, "eq": a == b, "gt": a > b,
            "ge": a >= b, "lt": a < b, "le": a <= b, "ne": a != b,
        }[ORDER[predicate]]  # fmt: skip
        if unordered and ORDER[predicate] not in ("false", "true", "ord", "uno"):
            holds = predicate >= 8
        assert run(program, a, b) == [holds], (a, b)


UNARY: Mapping[str, Callable[[Any], Any]] = {
    "arith.negf": np.negative,
    "math.absf": np.abs,
    "math.sqrt": np.sqrt,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_floats(name: str) -> None:
    program = function("%a: f32", "f32", f"%0 = {op(name, '%a', '(f32) -> f32')}", "%0")
    with np.errstate(all="ignore"):
        for a in FLOATS:
            assert same(run(program, a), [float(UNARY[name](np.float32(a)))]), a


@pytest.mark.parametrize("name", ["maximumf", "minimumf", "maxnumf", "minnumf"])
def test_extremes_of_floats(name: str) -> None:
    program = function("%a: f32, %b: f32", "f32", f"%0 = {op(f'arith.{name}', '%a, %b', '(f32, f32) -> f32')}", "%0")
    for a, b in product(FLOATS, repeat=2):
        if math.isnan(a) or math.isnan(b):
            expected = math.nan if "imum" in name else a if math.isnan(b) else b
        else:
            expected = sorted((a, b), key=lambda x: (x, math.copysign(1, x)))[-1 if "max" in name else 0]
        assert same(run(program, a, b), [expected]), (a, b)


def test_floats_become_integers_where_they_fit() -> None:
    for name, low, high in (("fptosi", -8, 7), ("fptoui", 0, 15)):
        program = function("%a: f32", "i4", f"%0 = {op(f'arith.{name}', '%a', '(f32) -> i4')}", "%0")
        for a in (*FLOATS, -8.0, -8.5, -9.0, 7.0, 7.9, 8.0, 15.9, 16.0, -0.9, -0.5):
            fits = math.isfinite(a) and low <= math.trunc(a) <= high
            assert run(program, a) == [wrapped(math.trunc(a)) if fits else UNDEFINED], (name, a)


def test_conversions_of_floats() -> None:
    narrow = function("%a: f64", "f32", f"%0 = {op('arith.truncf', '%a', '(f64) -> f32')}", "%0")
    wide = function("%a: f32", "f64", f"%0 = {op('arith.extf', '%a', '(f32) -> f64')}", "%0")
    with np.errstate(all="ignore"):
        for a in (*FLOATS, 1 + 2**-24, 1 + 2**-24 + 2**-50, 3.4028235677973366e38, 1e-46, 131072.01):
            assert same(run(narrow, a), [float(np.float32(a))])
    for a in FLOATS:
        assert same(run(wide, a), [a])
