"""Terms over scalars: construction, sharing, text and refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from ir_semantics.scalars.concrete import Concrete, evaluate
from ir_semantics.scalars.formats import (
    BINARY16,
    BINARY32,
    BOOLEAN,
    NUMBER,
    Format,
    code_format,
    fixed_point,
    float_format,
    integer,
)
from ir_semantics.scalars.operators import OPERATORS
from ir_semantics.scalars.terms import (
    TRUE,
    NotInterpreted,
    Scalar,
    all_of,
    apply,
    cast,
    clamp,
    constant,
    divide_floor,
    fma,
    interpret,
    maximum,
    not_,
    postorder,
    relu,
    select,
    substitute,
    variable,
    variables,
)

x, y = variable("x"), variable("y")


def test_equal_terms_are_one_object() -> None:
    assert x + y is variable("x") + variable("y")
    assert x + y is not y + x
    assert x is not variable("x", BINARY16)
    assert constant(0.5) is constant(Fraction(1, 2))


def test_constants_are_told_apart_by_what_they_are() -> None:
    assert constant(0.0) is constant(0)
    assert constant(-0.0) is not constant(0.0)
    assert constant(math.nan) is constant(-math.nan)
    assert constant(math.inf) is not constant(-math.inf)
    assert constant(True) is TRUE
    assert constant(1) is not TRUE


def test_python_numbers_take_the_other_operands_format() -> None:
    n = variable("n", integer(8))
    assert (n + 1).args[1].format == integer(8)
    assert (1 - n).args[0] is constant(1, integer(8))
    assert select(n < 3, n, 0).format == integer(8)
    assert (2.5 * x).args[0].format == NUMBER


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (x + y * 2, "x + y * 2"),
        ((x + y) * 2, "(x + y) * 2"),
        (x - (y - 1), "x - (y - 1)"),
        (x - y - 1, "x - y - 1"),
        ((x + y) >> 1, "(x + y) >> 1"),
        (x + (y >> 1), "x + (y >> 1)"),
        (-(x + y), "-(x + y)"),
        (x > y, "y < x"),
        (~(x < y) & (x <= y) | TRUE, "not (x < y) and x <= y or true"),
        (select(x < 0, -x, x) + 1, "(if x < 0 then -x else x) + 1"),
        (x + constant(-0.0), "x + (-0.0)"),
        (x * 0.1, f"x * ({Fraction(0.1)})"),
        (x * 0.25, "x * 0.25"),
        (cast(x, BINARY16), "binary16(x)"),
        (fma(x, y, 1), "fma(x, y, 1)"),
        (divide_floor(x, 2), "x div 2"),
        (clamp(x, -1, 1), "minimum(maximum(x, -1), 1)"),
    ],
)
def test_text(term: Scalar, text: str) -> None:
    assert str(term) == text


def test_shared_terms_are_visited_once() -> None:
    term = x
    for _ in range(200):
        term = term + term  # a tree of 2^200 nodes
    assert len(list(postorder([term]))) == 201
    assert evaluate(term, {"x": Fraction(1)}, Format("real")) == 2**200


def test_variables_and_their_formats() -> None:
    n = variable("n", integer(8))
    assert variables(cast(n, BINARY32) < 1.5, x < 1) == {"n": integer(8), "x": NUMBER}
    with pytest.raises(TypeError, match=r"the variable x must have one format, not number and binary16"):
        variables(x < 1, variable("x", BINARY16) < 1)


def test_substitution() -> None:
    assert substitute(x + y * x, {x: constant(3)}) is 3 + y * constant(3)
    assert substitute((x + y) * x, {x + y: y}) is y * x
    with pytest.raises(TypeError, match=r"what replaces x must have the format number, not boolean"):
        substitute(x + 1, {x: TRUE})


def test_conjunctions_and_disjunctions_of_nothing() -> None:
    assert all_of([]) is TRUE
    assert all_of([x < 1, y < 1]) is (x < 1) & (y < 1)


def test_every_operator_has_a_meaning_in_words() -> None:
    for op in OPERATORS.values():
        assert op.doc.endswith("."), op
        assert op.result in ("same", "boolean", "target")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: variable("1x"),
            "a variable's name must be letters, digits and '_' after a letter, not '1x'; rename it",
        ),
        (
            lambda: variable("v.x"),
            "a variable's name must be letters, digits and '_' after a letter, not 'v.x'; rename it",
        ),
        (
            lambda: x + variable("h", BINARY16),
            "operands of add must have one format, not number and binary16; cast one of them",
        ),
        (lambda: apply("add", x), "add must be given 2 operands, not 1"),
        (lambda: x & y, "operands of and must be Booleans, not of the format number"),
        (lambda: TRUE + TRUE, "operands of add must be numbers, not Booleans; use select() to make numbers of them"),
        (lambda: select(x, y, y), "an operand of select must have the format boolean, not number (x)"),
        (
            lambda: apply("neg", x, target=BINARY16),
            "a target format must be given for casts, and only for them, not for neg",
        ),
        (lambda: bool(x < y), "the scalar x < y has no truth value; combine scalars with &, | and ~"),
        (lambda: Scalar(), "a scalar must be made by variable(), constant() or an operator"),
        (
            lambda: float_format(12, 20),
            "a float format must have 2..11 bits of exponent and 2..53 bits of significand, not 12 and 20; "
            "choose one within binary64",
        ),
        (
            lambda: integer(8, overflow="clip"),
            "the overflow of a format must be one of wrap, saturate, not 'clip'",
        ),
        (
            lambda: fixed_point(8, 4, rounding="up"),
            "the rounding of a format must be one of down, nearest_up, nearest_even, toward_zero, not 'up'",
        ),
        (lambda: fixed_point(8, 63), "the fraction bits of a fixed-point format must be in 0..62, not 63"),
        (lambda: code_format("c", 63), "the width of a machine format must be in 1..62 bits, not 63"),
    ],
)  # fmt: skip
def test_bad_terms_are_refused(build: object, message: str) -> None:
    assert callable(build)
    with pytest.raises((TypeError, ValueError)) as caught:
        build()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("term", "kind", "message"),
    [
        (
            x + 0.1,
            BINARY32,
            "0.1 is not representable in binary32; round it first",
        ),
        (
            x + Fraction(1, 3),
            BINARY32,
            "1/3 is not representable in binary32; choose one that it has, or round it",
        ),
        (x + 200, integer(8), "200 is not representable in int8; choose one that it has"),
        (
            x + constant(-0.0),
            integer(8),
            "the format int8 must be given a finite number, and 0 without a sign, not -0.0",
        ),
        (x / 3, integer(8), "the format int8 has no operator div; use divide_floor or divide_toward_zero"),
        (x + 1, NUMBER, "terms over the format number must be given a format of numbers to be evaluated"),
        (divide_floor(x, 1), BINARY16, "the format binary16 has no operator floor_quotient"),
        (x / 0, Format("real"), "a real number divided by 0 has no value"),
    ],
)
def test_what_a_format_does_not_have_is_refused(term: Scalar, kind: Format, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        evaluate(term, {"x": 1}, kind)
    assert str(caught.value) == message
    assert isinstance(caught.value, NotInterpreted) == (
        "operator" in message or "divided" in message or "over" in message
    )


def test_a_variable_without_a_value_is_refused() -> None:
    with pytest.raises(KeyError, match="y"):
        evaluate(x + y, {"x": 1}, integer(8))


def test_several_roots_share_their_values() -> None:
    values = interpret([relu(x), maximum(x, 0), not_(x < 0)], Concrete({"x": -2}), integer(8))
    assert values == [0, 0, False]
    assert interpret([cast(x < 0, integer(4))], Concrete({"x": -2}), integer(8)) == [1]
    assert (x < 0).format == BOOLEAN
