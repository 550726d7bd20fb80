"""Index arithmetic and conditions against Python's integers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_semantics.tensors.conditions import (
    AtLeastZero,
    Condition,
    TruthOf,
    both,
    cleared,
    either,
    equal,
    holds,
    inside,
    le,
    lt,
    negation,
    substitute_condition,
    variables_of,
)
from ir_semantics.tensors.index import Index, index, product, size

VARIABLES = ("a", "b", "c")
POINTS = st.fixed_dictionaries({v: st.integers(-7, 9) for v in VARIABLES})
POSITIVE = st.fixed_dictionaries({v: st.integers(1, 6) for v in VARIABLES})


@st.composite
def polynomials(draw: st.DrawFn, depth: int = 3) -> tuple[Index, str]:
    """An index, and the same as Python text."""
    if depth == 0 or draw(st.booleans()):
        if draw(st.booleans()):
            name = draw(st.sampled_from(VARIABLES))
            return size(name), name
        value = draw(st.integers(-4, 4))
        return index(value), f"({value})"
    (x, left), (y, right) = draw(polynomials(depth - 1)), draw(polynomials(depth - 1))
    op = draw(st.sampled_from("+-*"))
    made = {"+": x + y, "-": x - y, "*": x * y}[op]
    return made, f"({left} {op} {right})"


@given(polynomials(), POINTS)
def test_polynomials_have_their_values(pair: tuple[Index, str], point: dict[str, int]) -> None:
    made, text = pair
    assert made.value(point) == eval(text, {}, dict(point))


DIVISORS = [
    size("a"),
    size("a") * size("b"),
    index(3),
    2 * size("c"),
    size("a") + size("b"),
    size("a") + 2 * size("c") - 1,
]


@given(polynomials(), st.sampled_from(DIVISORS), st.sampled_from(DIVISORS), POSITIVE)
def test_quotients_and_remainders_by_positive_divisors(
    pair: tuple[Index, str], first: Index, second: Index, point: dict[str, int]
) -> None:
    made, text = pair
    exact = eval(text, {}, dict(point))
    d, e = first.value(point), second.value(point)
    assert (made // first).value(point) == exact // d
    assert (made % first).value(point) == exact % d
    assert (made // first // second).value(point) == exact // d // e
    assert ((made // first + made) // second).value(point) == (exact // d + exact) // e
    assert ((made * first + 1) // first).value(point) == (exact * d + 1) // d


def test_digits_of_a_position_are_the_subscripts() -> None:
    i, j, h, w = map(size, "ijhw")
    position = (i * h + j) * w
    assert position // w // h == i + j // h
    assert position % w == index(0)
    assert str((2 * i * w + w) // w) == "2*i + 1"


def test_a_divisor_must_be_positive() -> None:
    with pytest.raises(ZeroDivisionError, match="a divisor must be positive, not -2"):
        size("a") // index(-2)
    with pytest.raises(ZeroDivisionError, match=r"the divisor of \(a\) // \(b\) must be positive, not 0"):
        (size("a") // size("b")).value({"a": 1, "b": 0})


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="a variable's name must be of letters"):
        size("a b")
    with pytest.raises(TypeError, match="an index must be an int or an Index, not True"):
        index(True)


def test_substitution_is_simultaneous() -> None:
    a, b = size("a"), size("b")
    assert (a + 2 * b).substitute({"a": b, "b": a}) == b + 2 * a
    assert (a // b).substitute({"b": index(1)}) == a
    assert product([a, b, 2]) == 2 * a * b


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> tuple[Condition, str]:
    if depth == 0 or draw(st.booleans()):
        (x, left), (y, right) = draw(polynomials(1)), draw(polynomials(1))
        op = draw(st.sampled_from(["<=", "<", "=="]))
        return {"<=": le, "<": lt, "==": equal}[op](x, y), f"({left} {op} {right})"
    (p, left), (q, right) = draw(conditions(depth - 1)), draw(conditions(depth - 1))
    match draw(st.sampled_from(["and", "or", "not"])):
        case "and":
            return both(p, q), f"({left} and {right})"
        case "or":
            return either(p, q), f"({left} or {right})"
    return negation(p), f"(not {left})"


@given(conditions(), POINTS)
def test_conditions_have_their_truth_values(pair: tuple[Condition, str], point: dict[str, int]) -> None:
    condition, text = pair
    expected = eval(text, {}, dict(point))
    assert holds(condition, point) is expected
    assert holds(negation(condition), point) is not expected
    moved = substitute_condition(condition, {v: size(v) + 0 for v in VARIABLES})
    assert holds(moved, point) is expected
    assert variables_of(condition) <= set(VARIABLES)


@given(polynomials(1), polynomials(1), st.sampled_from(DIVISORS), st.sampled_from([-1, 1]), POSITIVE)
def test_inequalities_without_their_quotients_are_equivalent(
    x: tuple[Index, str], y: tuple[Index, str], divisor: Index, sign: int, point: dict[str, int]
) -> None:
    condition = AtLeastZero(sign * (x[0] // divisor) + y[0])
    expected = sign * (x[0].value(point) // divisor.value(point)) + y[0].value(point) >= 0
    assert holds(condition, point) is expected
    assert holds(cleared(condition), point) is expected
    assert holds(cleared(negation(condition)), point) is not expected


def test_truth_values_of_boolean_tensors() -> None:
    condition = both(inside(size("i"), size("n")), TruthOf("m", (size("i"),)))
    mask = [True, False]
    assert holds(condition, {"i": 0, "n": 2}, lambda name, at: mask[at[0]])
    assert not holds(condition, {"i": 1, "n": 2}, lambda name, at: mask[at[0]])
    assert holds(negation(condition), {"i": 1, "n": 2}, lambda name, at: mask[at[0]])
    with pytest.raises(ValueError, match="the Boolean tensor m must be given"):
        holds(condition, {"i": 0, "n": 2})
