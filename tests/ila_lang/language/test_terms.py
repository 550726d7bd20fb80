"""Expressions: simplification at construction, compiled code on integers and on arrays."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ila_lang as il
from ila_lang import BOOL, BvSort, Expr, MemSort, bv, const, mem, var
from ila_lang.interpreter.compile import loads_resolved
from tests.ila_lang.oracle import (
    ARITHMETIC,
    COMPARISONS,
    MEMORY,
    Raw,
    build_raw,
    environments,
    evaluate,
    evaluate_raw,
    meaning,
    raw_any,
    raw_terms,
    raw_variables,
    width_of,
)

Q = bv(2)
X, Y, Z1, P = (("var", (), (n,), s) for n, s in (("x", Q), ("y", Q), ("z", bv(1)), ("p", BOOL)))
ZERO1: Raw = ("const", (), (0,), bv(1))


def c2(value: int) -> Raw:
    return ("const", (), (value,), Q)


#: Operands of two bits, of every shape that a rule looks for.
SHAPES: list[Raw] = [
    X,
    Y,
    *(c2(i) for i in range(4)),
    ("zext", (Z1,), (2,), Q),
    ("sext", (Z1,), (2,), Q),
    ("concat", (Z1, Z1), (), Q),
    ("concat", (ZERO1, Z1), (), Q),
    ("concat", (Z1, ("const", (), (1,), bv(1))), (), Q),
    ("bvadd", (X, c2(1)), (), Q),
    ("bvadd", (c2(3), X), (), Q),
    ("bvnot", (X,), (), Q),
    ("ite", (P, X, c2(2)), (), Q),
    ("ite", (("not", (P,), (), BOOL), c2(1), c2(2)), (), Q),
]
TRUTHS: list[Raw] = [
    P,
    ("not", (P,), (), BOOL),
    ("const", (), (True,), BOOL),
    ("const", (), (False,), BOOL),
    ("eq", (X, Y), (), BOOL),
    ("bvult", (("zext", (Z1,), (2,), Q), c2(2)), (), BOOL),
]
WIDE: list[Raw] = [
    ("concat", (X, Y), (), bv(4)),
    ("concat", (X, c2(2)), (), bv(4)),
    ("concat", (("concat", (Z1, c2(1)), (), bv(3)), ZERO1), (), bv(4)),
    ("concat", (("extract", (X,), (1, 1), bv(1)), ("extract", (X,), (0, 0), bv(1))), (), Q),
    ("zext", (X,), (4,), bv(4)),
    ("zext", (("zext", (Z1,), (2,), Q),), (4,), bv(4)),
    ("sext", (X,), (4,), bv(4)),
    ("ite", (P, ("zext", (X,), (4,), bv(4)), ("const", (), (9,), bv(4))), (), bv(4)),
]


def assert_same(raw: Raw) -> None:
    """The term built through the package means what the raw term means, for all values of its variables."""
    built = build_raw(raw)
    assert built.sort == raw[3]
    sorts = raw_variables(raw)
    for choice in itertools.product(*(range(2 ** max(1, width_of(s))) for s in sorts.values())):
        env: dict[str, Any] = {n: bool(v) if s == BOOL else v for (n, s), v in zip(sorts.items(), choice, strict=True)}
        assert evaluate(built, env) == evaluate_raw(raw, env), (raw, built, env)


@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS])
def test_every_binary_rule_by_enumeration(op: str) -> None:
    result = BOOL if op in COMPARISONS else Q
    for left, right in itertools.product(SHAPES, SHAPES):
        assert_same((op, (left, right), (), result))


@pytest.mark.parametrize("op", ["and", "or", "xor", "eq"])
def test_every_boolean_rule_by_enumeration(op: str) -> None:
    for left, right in itertools.product(TRUTHS, TRUTHS):
        assert_same((op, (left, right), (), BOOL))
        assert_same(("not", ((op, (left, right), (), BOOL),), (), BOOL))


def test_every_conditional_rule_by_enumeration() -> None:
    for condition, then, otherwise in itertools.product(TRUTHS, SHAPES[:8], SHAPES[:8]):
        assert_same(("ite", (condition, then, otherwise), (), Q))
    for condition, then, otherwise in itertools.product(TRUTHS, TRUTHS, TRUTHS):
        assert_same(("ite", (condition, then, otherwise), (), BOOL))


def test_every_bit_selection_rule_by_enumeration() -> None:
    for inner in [*SHAPES, *WIDE]:
        width = width_of(inner[3])
        for lo, hi in itertools.combinations_with_replacement(range(width), 2):
            part: Raw = ("extract", (inner,), (hi, lo), bv(hi - lo + 1))
            assert_same(part)
            assert_same(("zext", (part,), (6,), bv(6)))
            assert_same(("sext", (part,), (6,), bv(6)))
            for deeper in range(hi - lo + 1):
                assert_same(("extract", (part,), (hi - lo, deeper), bv(hi - lo - deeper + 1)))
    for left, right in itertools.product([*SHAPES, *WIDE], SHAPES):
        assert_same(("concat", (left, right), (), bv(width_of(left[3]) + 2)))


def test_every_comparison_of_wide_terms_with_literals_by_enumeration() -> None:
    for op, left, value in itertools.product([*COMPARISONS, *ARITHMETIC], WIDE, range(16)):
        width = width_of(left[3])
        if value < 2**width:
            literal: Raw = ("const", (), (value,), bv(width))
            result = BOOL if op in COMPARISONS else bv(width)
            assert_same((op, (left, literal), (), result))
            assert_same((op, (literal, left), (), result))


@given(raw_any(), st.data())
@settings(max_examples=150)
def test_building_keeps_the_meaning(raw: Raw, data: st.DataObject) -> None:
    built = build_raw(raw)
    assert built.sort == raw[3]
    for _ in range(4):
        env = data.draw(environments(raw_variables(raw)))
        left, right = evaluate(built, env), evaluate_raw(raw, env)
        if isinstance(raw[3], MemSort):
            left, right = ([m.get(i, 0) for i in range(4)] for m in (left, right))
        assert left == right


@given(st.integers(1, 6).flatmap(lambda w: raw_terms(bv(w))), st.data())
@settings(max_examples=200)
def test_substitution_is_evaluation(raw: Raw, data: st.DataObject) -> None:
    built = build_raw(raw)
    env = data.draw(environments(raw_variables(raw)))
    literals = {}
    for name, variable in il.free_variables(built).items():
        if variable.sort == BOOL:
            literals[variable] = il.true if env[name] else il.false
        elif not isinstance(variable.sort, MemSort):
            literals[variable] = const(env[name], variable.width)
    assert evaluate(il.substitute(built, literals), env) == evaluate_raw(raw, env)


@given(st.lists(st.integers(1, 6).flatmap(lambda w: raw_terms(bv(w))), max_size=4), st.data())
@settings(max_examples=60)
def test_substitution_in_several_terms_is_that_in_each(raws: list[Raw], data: st.DataObject) -> None:
    built = [build_raw(r) for r in raws]
    variables = [v for v in il.free_variables(*built).values() if isinstance(v.sort, BvSort)]
    # one for another, all at once
    moved = {v: data.draw(st.sampled_from([w for w in variables if w.sort == v.sort])) for v in variables}
    found = il.substitute_all(built, moved)
    assert len(found) == len(built)
    assert all(a is il.substitute(b, moved) for a, b in zip(found, built, strict=True))
    for variable in variables:
        with pytest.raises(TypeError, match="cannot be replaced by a term of sort"):
            il.substitute_all(built, {variable: const(0, variable.width + 1)})


@given(st.lists(st.integers(1, 6).flatmap(lambda w: raw_terms(bv(w))), min_size=1, max_size=3), st.data())
@settings(max_examples=80)
def test_compiled_terms_on_integers_and_on_arrays(raws: list[Raw], data: st.DataObject) -> None:
    built = [build_raw(r) for r in raws]
    sorts: dict[str, il.Sort] = {}
    for raw in raws:
        sorts |= raw_variables(raw)
    parameters = [var(n, s) for n, s in sorts.items()]
    cases = data.draw(st.lists(environments(sorts), min_size=3, max_size=3))
    expected = [[evaluate_raw(r, env) for r in raws] for env in cases]

    scalar = il.compile_terms(parameters, built)
    for env, wanted in zip(cases, expected, strict=True):
        arguments = [il.Memory(0, env[n]) if isinstance(env[n], dict) else env[n] for n in sorts]
        assert list(scalar(*arguments)) == wanted

    if any(isinstance(s, MemSort) for s in sorts.values()):
        return
    columns = [np.array([env[n] for env in cases]) for n in sorts]
    results = il.compile_terms(parameters, built, vector=True)(*columns)
    for at, result in enumerate(results):
        assert np.broadcast_to(result, 3).tolist() == [wanted[at] for wanted in expected]


@given(raw_terms(bv(3)), st.data())
def test_loads_resolved_leave_no_store(raw: Raw, data: st.DataObject) -> None:
    resolved = loads_resolved(build_raw(raw))
    assert not any(n.op == "store" for n in il.postorder([resolved]))
    env = data.draw(environments(raw_variables(raw)))
    assert evaluate(resolved, env) == evaluate_raw(raw, env)


def test_array_operators_at_the_widest_width() -> None:
    values = [0, 1, 2, 61, 62, 63, 2**61, 2**61 - 1, 2**62 - 1, 0x1234567890ABCDEF]
    a, b = var("a", bv(62)), var("b", bv(62))
    pairs = [(x % 2**62, y % 2**62) for x in values for y in values]
    left, right = (np.array(column) for column in zip(*pairs, strict=True))
    for op in [*ARITHMETIC, *COMPARISONS]:
        from tests.ila_lang.oracle import BUILD

        (result,) = il.compile_terms([a, b], [BUILD[op](a, b)], vector=True)(left, right)
        assert result.tolist() == [meaning(op, list(p), [62, 62], (), 62) for p in pairs], op


def test_functions_of_one_name_are_not_confused() -> None:
    x = var("x", bv(8))
    first = il.primitive(a=bv(8), name="f")(lambda a: a + 1)
    second = il.primitive(a=bv(8), name="f")(lambda a: a + 2)
    assert il.compile_terms([x], [first(x), second(x)])(10) == (11, 12)


def test_equal_terms_are_one_object() -> None:
    x = var("x", bv(8))
    assert (x + 1) * 2 is (x + 1) * 2
    assert x.load is not None and var("x", bv(8)) is x and var("x", bv(9)) is not x


def test_loads_meet_their_stores() -> None:
    m, i, v = var("m", MEMORY), var("i", bv(2)), var("v", bv(3))
    assert m.store(i, v).load(i) is v
    assert m.store(0, v).store(1, 5).load(0) is v
    assert m.store(0, v).load(1) is m.load(1)
    assert m.store(i, v).load(0).op == "load"


def test_bytes_are_little_endian() -> None:
    m = var("m", il.mem(8, 8))
    stored = il.store_bytes(m, const(4, 8), 2, const(0x1234, 16))
    assert evaluate(stored, {"m": {}}) == {4: 0x34, 5: 0x12}
    assert il.load_bytes(stored, const(4, 8), 2) is const(0x1234, 16)


def refuses(kind: type[Exception], message: str, make: Any) -> None:
    with pytest.raises(kind) as caught:
        make()
    assert str(caught.value) == message


A8, B9, T = var("a", bv(8)), var("b", bv(9)), var("t", BOOL)
M = var("m", il.mem(4, 8))
F = il.uninterpreted("f", bv(8), x=bv(8), y=bv(9))


def three(a: Expr) -> Any:
    return 3


@pytest.mark.parametrize(
    ("kind", "message", "make"),
    [
        (TypeError, "Operands of 'bvadd' must have the same sort, not bv8 (a) and bv9 (b)", lambda: A8 + B9),
        (TypeError, "Operands of 'eq' must have the same sort, not bv8 (a) and bool (t)", lambda: A8 == T),
        (TypeError, "Operands of 'bvadd' must be bit-vectors, not bool (t)", lambda: T + T),
        (
            TypeError,
            "Operands of 'eq' must be bit-vectors, not mem8x8 (m)",
            lambda: var("m", mem(8, 8)) == var("k", mem(8, 8)),
        ),
        (TypeError, "Operand of 'bvadd' must be an expression of sort bv8, not 'one'", lambda: A8 + "one"),
        (TypeError, "Operand of 'bvadd' must be an expression of sort bv8, not True", lambda: A8 + True),
        (ValueError, "Constant must fit in 8 bits unsigned, not 256", lambda: A8 + 256),
        (TypeError, "Constant of 8 bits must be an integer, not 1.5", lambda: const(1.5, 8)),  # type: ignore[arg-type]
        (TypeError, "Constant of 8 bits must be an integer, not '3'", lambda: const("3", 8)),  # type: ignore[arg-type]
        (TypeError, "Constant of 1 bits must be an integer, not True", lambda: const(True, 1)),
        (
            ValueError,
            "Constant must fit in 4 bits unsigned, not -8; its bits as a signed number are -8 & 0xf",
            lambda: const(-8, 4),
        ),
        (ValueError, "Constant must fit in 4 bits unsigned, not -9", lambda: const(-9, 4)),
        (TypeError, "A word of memory m must be read as x.load(address), not x[address]", lambda: M[0]),
        (
            TypeError,
            "A bit must be selected as x[i] with an integer, not a; (x >> i)[0] has any",
            lambda: B9[A8],  # type: ignore[index]
        ),
        (ValueError, "Bits [8:0] must satisfy 0 <= lo <= hi < 8, the width of a", lambda: A8[8:0]),
        (ValueError, "Bits [2:3] must satisfy 0 <= lo <= hi < 8, the width of a", lambda: A8[2:3]),
        (ValueError, "Extension of b must reach at least 9 bits, not 8", lambda: B9.zext(8)),
        (TypeError, "Only a bit-vector has a width, not t of sort bool", lambda: -T),
        (TypeError, "f must be given 2 arguments, not 1", lambda: F(A8)),
        (TypeError, "Argument f.y must have sort bv9, not bv8 (a)", lambda: F(A8, A8)),
        (TypeError, "Data of 'store' must have sort bv8, not bv9", lambda: M.store(0, B9)),
        (TypeError, "Address of 'load' must have sort bv4, not bv8", lambda: M.load(A8)),
        (TypeError, "'load' must be given a memory, not a of sort bv8", lambda: A8.load(0)),
        (TypeError, "Condition of 'ite' must be a Boolean, not a", lambda: il.ite(A8, A8, A8)),
        (TypeError, "Branches of 'ite' must have the same sort, not bv8 and bv9", lambda: il.ite(T, A8, B9)),
        (TypeError, "a is not iterable; use x[hi:lo] for bits and memory.load(address)", lambda: list(A8)),
        (ValueError, "Name of a variable must be an identifier, not '2x'", lambda: var("2x", BOOL)),
        (ValueError, "Width of a bit-vector must be a positive integer, not 0", lambda: bv(0)),
        (TypeError, "Body of three must be an expression, not 3", lambda: il.primitive(name="three", a=bv(8))(three)),
        (TypeError, "Body of three must be an expression, not 3", lambda: il.primitive(bv(8), a=bv(8))(three)),
        (ValueError, "Function f is uninterpreted: it has no body to unfold", lambda: F.unfold((A8, B9))),
    ],
)
def test_messages(kind: type[Exception], message: str, make: Any) -> None:
    refuses(kind, message, make)


def test_an_expression_in_an_if() -> None:
    def decide() -> Expr:
        return A8 if A8 < 3 else A8 + 1

    refuses(
        TypeError,
        "The truth of 'bvult' is not known while a model is built; use ite(...), & and | instead of if, and, or",
        decide,
    )
