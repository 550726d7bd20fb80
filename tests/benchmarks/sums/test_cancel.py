"""What cancelling proves is what solvers prove from the full text; what it must not prove is left to them."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sums.cancel import difference, sums_within
from benchmarks.sums.encode import Data, Encoding, script
from benchmarks.sums.prove import NORMAL_FORM, Method, prove_sums
from benchmarks.sums.replay import Cancellation
from benchmarks.sums.terms import Constant, Product, Sum, SumClaim, Symbol, Term, dot, vector
from smt_encodings.claims import Status
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3
from tests.benchmarks.sums.sums_oracle import ATOMS, TERMS, UNIT, ZERO, X, Y, Z, add, doubled, equal, regrouped, sums_of

SUMS_OF_LEAVES = sums_of(ATOMS | sums_of(ATOMS, 3), 4)
"""Terms of which no factor is a sum."""


def both_solvers(claim: SumClaim, data: Data) -> set[str]:
    text = script(claim, Encoding.HASH, data)
    return {solver.check(text, 10.0).status for solver in (solver_z3, solver_cvc5)}


# ------------------------------------------------------------------------------------------- against solvers


@pytest.mark.proof
@pytest.mark.parametrize("data", Data)
@settings(deadline=None, max_examples=60, derandomize=True)
@given(left=TERMS, right=TERMS, seed=st.integers(0, 2**32))
def test_solvers_prove_from_the_full_text_whatever_cancels(data: Data, left: Term, right: Term, seed: int) -> None:
    for claim in (SumClaim(left, right), SumClaim(left, regrouped(left, random.Random(seed)))):
        if not difference(claim):
            assert both_solvers(claim, data) == {"unsat"}


@pytest.mark.proof
@settings(deadline=None, max_examples=60, derandomize=True)
@given(left=SUMS_OF_LEAVES, right=SUMS_OF_LEAVES)
def test_where_no_factor_is_a_sum_all_that_solvers_prove_cancels(left: Term, right: Term) -> None:
    claim = SumClaim(left, right)
    assert both_solvers(claim, Data.UNINTERPRETED) == ({"sat"} if difference(claim) else {"unsat"})


@settings(deadline=None, max_examples=150, derandomize=True)
@given(left=SUMS_OF_LEAVES, right=SUMS_OF_LEAVES, seed=st.integers(0, 2**32))
def test_where_no_factor_is_a_sum_equal_multisets_are_what_cancels(left: Term, right: Term, seed: int) -> None:
    for claim in (SumClaim(left, right), SumClaim(left, regrouped(left, random.Random(seed)))):
        assert (not difference(claim)) == equal(claim)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(left=TERMS, right=TERMS, seed=st.integers(0, 2**32))
def test_nothing_cancels_that_multisets_tell_apart(left: Term, right: Term, seed: int) -> None:
    for claim in (SumClaim(left, right), SumClaim(left, regrouped(left, random.Random(seed)))):
        assert difference(claim) or equal(claim)


# ------------------------------------------------------------------------------------------------ what is left

A, B = vector("a", 3), vector("b", 3)
LEFT = {
    "element replaced": (add(X, Y, Y), add(X, X, Y), {"x": -1, "y": 1}),
    "element twice": (add(X, Y), add(X, X, Y), {"x": -1}),
    "accumulator twice": (dot(A, B, X), add(dot(A, B, X), X), {"x": -1}),
    "a sum for its only element": (add(add(X)), X, {}),
    "units": (add(UNIT, X, add(), add(UNIT)), X, {}),
    "+0.0 is no unit": (add(X, ZERO), X, {0: 1}),
    "zeros of different sign": (ZERO, UNIT, {0: 1}),
    "a factor -0.0 stays": (Product(UNIT, X), Product(ZERO, X), None),
    "a product of units is no unit": (Product(UNIT, UNIT), UNIT, {frozenset((UNIT.exact,)): 1}),
    "a square is no factor": (Product(X, X), X, {frozenset("x"): 1, "x": -1}),
    "a square is no other product": (Product(X, X), Product(X, Y), {frozenset("x"): 1, frozenset("xy"): -1}),
    "a product is no sum": (Product(X, Y), add(X, Y), {frozenset("xy"): 1, "x": -1, "y": -1}),
    "a name is no number": (Symbol("1"), Constant(1), {"1": 1, 1: -1}),
    "a name is no number, as factor": (Product(Symbol("1"), X), Product(X, Constant(1)), None),
    "numbers of one value": (add(Constant(2), Constant(0.5)), add(Constant(0.5), Constant(2.0)), {}),
    "numbers of opposite sign": (Constant(2), Constant(-2), {2: 1, -2: -1}),
    "numbers are not added up": (add(Constant(1), Constant(2)), Constant(3), {1: 1, 2: 1, 3: -1}),
    "numbers are not multiplied": (Product(Constant(1), X), X, {frozenset((1, "x")): 1, "x": -1}),
    # counts are no residues: 2^64 is 0 modulo any power of two that a hash is as wide as
    "2^64 elements": (doubled(X, 64), add(), {"x": 2**64}),
    "2^12 elements, one more": (doubled(X, 12), add(doubled(X, 11), doubled(X, 11), X), {"x": -1}),
    "shared deeply": (doubled(X, 64), add(doubled(add(X, X), 62), doubled(X, 63)), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left(name: str) -> None:
    left, right, expected = LEFT[name]
    found = difference(SumClaim(left, right))
    if expected is None:
        assert sorted(found.values()) == [-1, 1]
    else:
        assert found == expected
    opposite = difference(SumClaim(right, left))
    assert opposite == {element: -n for element, n in found.items()}


def test_products_of_sums_cancel_only_with_themselves() -> None:
    factor = Product(add(X, Y), Z)
    assert difference(SumClaim(add(factor, X), add(X, factor))) == {}
    equal_factor = Product(Z, add(Y, X))
    assert difference(SumClaim(add(factor, X), add(X, equal_factor))) == {factor: 1, equal_factor: -1}
    other = Product(add(X, X), Z)
    assert difference(SumClaim(factor, other)) == {factor: 1, other: -1}


@pytest.mark.proof
def test_solvers_decide_products_of_sums() -> None:
    claim = SumClaim(add(Product(add(X, Y), Z), X), add(X, Product(Z, add(Y, X))))
    verdict = prove_sums(claim)
    assert verdict.status is Status.PROVED
    assert verdict.details["decided_by"] == f"{solver_z3.version()} and {solver_cvc5.version()}"
    assert verdict.reason == "" and len(verdict.obligations) == 1


def test_a_sum_that_both_sides_share_is_not_opened() -> None:
    shared = add(X, Product(add(Y), Z))
    assert difference(SumClaim(add(shared, add(shared)), add(add(shared, UNIT), shared))) == {}
    assert difference(SumClaim(shared, shared)) == difference(SumClaim(shared, add(shared))) == {}
    assert difference(SumClaim(add(shared, shared), shared)) == {"x": 1, shared.elements[1]: 1}


# ------------------------------------------------------------------------------------------------- verdicts


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("no solver must be asked")

    for solver in (solver_z3, solver_cvc5):
        monkeypatch.setattr(solver, "check", asked)


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize("data", Data)
def test_the_verdict_says_that_no_solver_was_asked(data: Data) -> None:
    verdict = prove_sums(SumClaim(dot(A[::-1], B[::-1], UNIT), dot(A, B), "backwards"), data=data)
    assert verdict.status is Status.PROVED and verdict.obligations == []
    assert verdict.details == {
        "decided_by": NORMAL_FORM,
        "derivation": Cancellation(
            (1, -1, 1, -1), tuple(("the same factors", ((2, i + 1), (3, 2 - i))) for i in range(3))
        ),
    }
    assert verdict.reason == (
        "decided by a derivation that was replayed, no solver was asked: both sides add up the same elements equally "
        "often, with sums among elements opened and -0.0 left out"
    )
    assert verdict.claim.statement == "sum of 4 elements = sum of 3 elements, whatever the symbols are"
    assert verdict.claim.assumptions[:2] == (
        "addition is commutative and associative with unit -0.0, in both sides",
        "multiplication is commutative",
    )


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize("options", [{"ask": True}, {"method": Method.MULTISET}, {"method": Method.UNROLLED}])
def test_other_ways_ask(options: dict[str, object]) -> None:
    claim = SumClaim(dot(A, B), dot(A, B))
    with pytest.raises(AssertionError, match="no solver must be asked"):
        prove_sums(claim, **options)  # type: ignore[arg-type]


@pytest.mark.usefixtures("no_solver")
def test_products_are_an_assumption_only_where_there_are_some() -> None:
    assert len(prove_sums(SumClaim(add(X, Y), add(Y, X))).claim.assumptions) == 1
    assert len(prove_sums(SumClaim(Product(X, Y), Product(Y, X))).claim.assumptions) == 2
    assert len(prove_sums(SumClaim(add(X, add(Product(X, Y))), add(Product(Y, X), X))).claim.assumptions) == 2


# --------------------------------------------------------------------------------------------------- order, time


def test_sums_come_after_those_among_their_elements() -> None:
    inner, factor = add(X), add(Y)
    middle = add(inner, Product(factor, Z), inner)
    outer = add(middle, inner)
    assert [id(s) for s in sums_within(outer, middle)] == [id(inner), id(middle), id(outer)]
    assert sums_within(X, Product(factor, Z)) == []


def test_time_is_linear_in_the_number_of_terms() -> None:
    # processor time, because the machine may be busy; it takes 0.7 s, and anything quadratic takes minutes
    start = time.process_time()
    left, right = doubled(X, 20_000), doubled(X, 19_999)
    assert difference(SumClaim(left, add(right, right))) == {}
    assert difference(SumClaim(left, right)) == {"x": 2**19_999}
    wide = Sum(vector("x", 20_000))
    assert difference(SumClaim(add(*[add(wide, Y)] * 20_000), add(*[wide] * 20_000))) == {"y": 20_000}
    assert time.process_time() - start < 5
