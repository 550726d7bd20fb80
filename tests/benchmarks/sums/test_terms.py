"""Claims about sums against a comparison of multisets by brute force, and against what is known to be wrong."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sums import encode as sums_encode
from benchmarks.sums import prove as sums_prove
from benchmarks.sums.encode import Data, Encoding, script
from benchmarks.sums.prove import Method, prove_sums
from benchmarks.sums.terms import (
    NEGATIVE_ZERO,
    Constant,
    Counterexample,
    Number,
    Product,
    Sum,
    SumClaim,
    Symbol,
    Term,
    distinguish,
    dot,
    evaluate,
    vector,
)
from smt_encodings.claims import Answer, Equality, Status
from smt_encodings.reorder import hash_width
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3
from tests.benchmarks.sums.sums_oracle import ATOMS, TERMS, UNIT, ZERO, X, Y, Z, add, doubled, equal, regrouped, sums_of

SOLVERS = {
    Encoding.HASH: (solver_z3, solver_cvc5),
    Encoding.COUNTS: (solver_z3,),
    Encoding.BAGS: (solver_cvc5,),
}


def answers(claim: SumClaim, encoding: Encoding, data: Data) -> set[str]:
    text = script(claim, encoding, data)
    return {solver.check(text, 10.0).status for solver in SOLVERS[encoding]}


# ----------------------------------------------------------------------------------------------- properties


@pytest.mark.proof
@pytest.mark.parametrize("data", Data)
@settings(deadline=None, max_examples=40, derandomize=True)
@given(term=TERMS, seed=st.integers(0, 2**32))
def test_every_regrouping_is_proved(data: Data, term: Term, seed: int) -> None:
    claim = SumClaim(term, regrouped(term, random.Random(seed)))
    assert equal(claim)
    assert prove_sums(claim, data=data).status is Status.PROVED
    assert prove_sums(claim, data=data, ask=True).status is Status.PROVED


@pytest.mark.proof
@pytest.mark.parametrize("encoding", [Encoding.HASH, Encoding.COUNTS])
@settings(deadline=None, max_examples=60, derandomize=True)
@given(left=TERMS, right=TERMS, seed=st.integers(0, 2**32))
def test_encodings_say_what_multisets_say(encoding: Encoding, left: Term, right: Term, seed: int) -> None:
    # no numbers here: only what the solvers find in the text
    for claim in (SumClaim(left, right), SumClaim(left, regrouped(left, random.Random(seed)))):
        assert answers(claim, encoding, Data.UNINTERPRETED) == {"unsat" if equal(claim) else "sat"}


@pytest.mark.proof
@settings(deadline=None, max_examples=25, derandomize=True)
@given(left=sums_of(ATOMS, 3), right=sums_of(ATOMS, 3), seed=st.integers(0, 2**32))
def test_bags_say_what_multisets_say(left: Term, right: Term, seed: int) -> None:
    for claim in (SumClaim(left, right), SumClaim(left, regrouped(left, random.Random(seed)))):
        assert answers(claim, Encoding.BAGS, Data.UNINTERPRETED) == {"unsat" if equal(claim) else "sat"}


@pytest.mark.proof
@settings(deadline=None, max_examples=60, derandomize=True)
@given(symbols=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12), data=st.data())
def test_every_changed_multiset_is_refuted(symbols: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(symbols) - 1))
    changed = data.draw(st.permutations([*symbols[:place], *symbols[place + 1 :], *data.draw(st.lists(st.just("g")))]))
    claim = SumClaim(Sum(tuple(map(Symbol, symbols))), Sum(tuple(map(Symbol, changed))))
    verdict = prove_sums(claim)
    assert verdict.status is Status.REFUTED
    found = verdict.details["counterexample"]
    assert isinstance(found, Counterexample)
    left, right = (total([found.numbers[s] for s in side]) for side in (symbols, changed))
    assert (repr(found.left), repr(found.right)) == (repr(left), repr(right))
    assert repr(left) != repr(right)


def total(numbers: list[Number]) -> Number:
    """A sum by the laws of floats, added up from the left without the product's code."""
    result: Number = NEGATIVE_ZERO
    for number in numbers:
        if result is NEGATIVE_ZERO:
            result = number
        elif number is not NEGATIVE_ZERO:
            result = result + number
    return result


@settings(deadline=None, max_examples=200, derandomize=True)
@given(left=TERMS, right=TERMS, seed=st.integers(0, 2**32))
def test_no_numbers_refute_what_multisets_prove(left: Term, right: Term, seed: int) -> None:
    assert distinguish(SumClaim(left, regrouped(left, random.Random(seed)))) is None
    if distinguish(SumClaim(left, right)) is not None:
        assert not equal(SumClaim(left, right))


# ---------------------------------------------------------------------------------------- single claims

A, B, C, D = (vector(n, 3) for n in "abcd")
TRUE = {
    "nested": SumClaim(add(add(*A), add(*B)), add(*B, *A)),
    "concatenated dots": SumClaim(add(dot(A, B), dot(C, D)), dot([*A, *C], [*B, *D])),
    "accumulator first or last": SumClaim(dot(A, B, X), add(dot(B, A), X)),
    "unit accumulator": SumClaim(dot(A, B, UNIT), dot(A, B)),
    "sum of one": SumClaim(add(X), X),
    "sum of none": SumClaim(add(), UNIT),
    "empty among others": SumClaim(add(X, add(), add(add()), Y), add(Y, X)),
    "sum as factor": SumClaim(Product(add(X, Y), Z), Product(Z, add(Y, X, UNIT))),
    "sum of one as factor": SumClaim(Product(add(X), Y), Product(Y, X)),
    "sum of none as factor": SumClaim(Product(add(), Y), Product(Y, UNIT)),
    "factors exchanged among sums": SumClaim(
        Product(add(X, Y), add(X, Z)), add(Product(add(Z, UNIT, X), add(Y, add(X))))
    ),
    "product of products": SumClaim(Product(Product(X, Y), Z), Product(Z, Product(Y, X))),
    "shared deeply": SumClaim(doubled(X, 64), add(doubled(add(X, X), 62), doubled(X, 63))),
}


@pytest.mark.proof
@pytest.mark.parametrize("data", Data)
@pytest.mark.parametrize("name", TRUE)
def test_true_claims_are_proved_by_hash(name: str, data: Data) -> None:
    verdict = prove_sums(TRUE[name], Method.HASH, data, ask=True)
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.details == {"decided_by": f"{solver_z3.version()} and {solver_cvc5.version()}"}
    assert verdict.claim.equality is Equality.UP_TO_REDUCTION_ORDER
    (obligation,) = verdict.obligations
    assert {a.solver.split()[0] for a in obligation.answers} == {"z3", "cvc5"}
    assert obligation.discharged


@pytest.mark.proof
@pytest.mark.parametrize("name", [n for n in TRUE if n not in ("shared deeply", "factors exchanged among sums")])
def test_true_claims_are_proved_by_multisets(name: str) -> None:
    verdict = prove_sums(TRUE[name], Method.MULTISET)
    assert verdict.status is Status.PROVED, verdict.reason
    assert [[a.solver.split()[0] for a in o.answers] for o in verdict.obligations] == [["z3"], ["cvc5"]]


FALSE = {
    # an accumulator must not be dropped, whatever product sums are encoded as
    "accumulators differ": SumClaim(dot(A, B, X), dot(A, B, Y)),
    "accumulator dropped": SumClaim(dot(A, B, X), dot(A, B)),
    "accumulator twice": SumClaim(dot(A, B, X), add(dot(A, B, X), X)),
    # a dot product that is symmetric because it is added to its mirror image would be twice itself
    "dot of a vector with itself": SumClaim(dot(A, A), add(dot(A, A), dot(A, A))),
    "dot of another pair": SumClaim(dot(A, B), dot(A, A)),
    "one operand reversed": SumClaim(dot(A, B), dot(A, B[::-1])),
    "element twice": SumClaim(add(X, Y), add(X, X, Y)),
    "element replaced": SumClaim(add(X, Y, Y), add(X, X, Y)),
    # an even number of elements that cancels modulo a power of two: as many as 65536 x 65536, whose product wraps
    "2^32 elements": SumClaim(doubled(X, 32), add()),
    "2^12 elements": SumClaim(doubled(X, 12), UNIT),
    # +0.0 is no unit: -0.0 + +0.0 = +0.0
    "+0.0 as unit": SumClaim(add(X, ZERO), X),
    "+0.0 for -0.0": SumClaim(dot(A, B, ZERO), dot(A, B, UNIT)),
    "zeros of different sign": SumClaim(ZERO, UNIT),
    "product for sum": SumClaim(Product(X, Y), add(X, Y)),
    "literals": SumClaim(add(Constant(1), Constant(2)), add(Constant(1), Constant(3))),
    "sign": SumClaim(Product(Constant(-2), X), Product(Constant(2), X)),
    "a product does not distribute over zeros": SumClaim(Product(add(X, Y), Z), add(Product(X, Z), Product(Y, Z))),
}


@pytest.mark.parametrize("name", FALSE)
def test_false_claims_are_refuted(name: str) -> None:
    claim = FALSE[name]
    verdict = prove_sums(claim)
    assert verdict.status is Status.REFUTED
    found = verdict.details["counterexample"]
    assert isinstance(found, Counterexample)
    assert verdict.details["decided_by"] == "numbers"
    assert evaluate(claim, found.numbers) == (found.left, found.right)
    assert found.left != found.right


@pytest.mark.proof
@pytest.mark.parametrize("data", Data)
@pytest.mark.parametrize("name", FALSE)
def test_solvers_do_not_prove_false_claims_either(name: str, data: Data) -> None:
    assert answers(FALSE[name], Encoding.HASH, data) == {"sat"}


BEYOND = {
    "arithmetic on literals": SumClaim(add(Constant(1), Constant(2)), Constant(3)),
    "one as unit of products": SumClaim(Product(Constant(1), X), X),
    "associativity of products": SumClaim(Product(X, Product(Y, Z)), Product(Product(X, Y), Z)),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", BEYOND)
def test_what_needs_other_laws_is_unknown(name: str) -> None:
    verdict = prove_sums(BEYOND[name])
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.startswith("the encoding does not imply the claim (z3 ")


@pytest.mark.proof
@pytest.mark.parametrize("left", [(-2, 3), (-2, -3)])
def test_the_sign_of_a_product_is_known_of_signed_magnitudes(left: tuple[int, int]) -> None:
    same = SumClaim(Product(*map(Constant, left)), Product(Constant(-left[0]), Constant(-left[1])))
    assert prove_sums(same).status is Status.UNKNOWN
    assert prove_sums(same, data=Data.SIGN_MAGNITUDE).status is Status.PROVED
    other = SumClaim(same.left, Product(Constant(-left[0]), Constant(left[1])))
    assert answers(other, Encoding.HASH, Data.SIGN_MAGNITUDE) == {"sat"}


@pytest.mark.proof
def test_unrolled_sums_are_equal_in_identical_order_only() -> None:
    assert prove_sums(SumClaim(dot(A, B), dot(B, A)), Method.UNROLLED).status is Status.PROVED
    assert prove_sums(SumClaim(add(X, Y), add(Y, X)), Method.UNROLLED).status is Status.UNKNOWN
    assert prove_sums(SumClaim(add(X), X), Method.UNROLLED).status is Status.PROVED


@pytest.mark.proof
def test_unrolled_sums_with_laws() -> None:
    text = script(SumClaim(add(X, add(Y, Z), UNIT), add(Z, Y, X)), Encoding.UNROLLED_LAWS)
    assert {s.check(text, 20.0).status for s in (solver_z3, solver_cvc5)} == {"unsat"}
    wrong = script(SumClaim(add(X, X), X), Encoding.UNROLLED_LAWS)
    assert "unsat" not in {s.check(wrong, 1.0).status for s in (solver_z3, solver_cvc5)}


# ------------------------------------------------------------------------------------------------ the width


@pytest.mark.parametrize(("sums", "longest", "bits"), [(1, 1, 1), (2, 1, 2), (2, 5000, 15), (3, 7, 6), (2, 2**32, 34)])
def test_width_of_the_hash(sums: int, longest: int, bits: int) -> None:
    assert hash_width(sums, longest) == bits


@pytest.mark.proof
def test_lengths_as_written_would_prove_what_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why lengths count after sums are opened: 2^k times a hash of k bits is 0, the hash of -0.0."""
    claim = SumClaim(doubled(X, 12), UNIT)
    assert solver_z3.check(script(claim), 10.0).status == "sat"
    monkeypatch.setattr(sums_encode, "hash_width", lambda sums, _: hash_width(13, 2))
    assert solver_z3.check(script(claim), 10.0).status == "unsat"


def test_signed_magnitudes_have_a_code_for_every_term() -> None:
    chain = SumClaim(add(*vector("t", 16)), add(*vector("t", 16)))
    assert "(define-sort V () (_ BitVec 7))" in script(chain, data=Data.SIGN_MAGNITUDE)  # 34 terms and zero: 6 bits


# ------------------------------------------------------------------------------------------------ honesty


def test_disagreeing_solvers_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_cvc5, "check", lambda *_: Answer("sat", 0.0, "cvc5"))
    verdict = prove_sums(TRUE["nested"], ask=True)
    assert verdict.status is Status.ERROR
    assert "the solvers must agree" in verdict.reason
    assert "decided_by" not in verdict.details


def test_one_solver_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_cvc5, "check", lambda *_: Answer("unknown", 0.0, "cvc5", "timeout"))
    verdict = prove_sums(TRUE["nested"], ask=True)
    assert (verdict.status, verdict.reason) == (Status.UNKNOWN, "cvc5: unknown timeout")


def test_numbers_that_do_not_replay_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums_prove, "distinguish", lambda _: Counterexample({"x": 1, "y": 2, "z": 1}, 3, 4))
    verdict = prove_sums(SumClaim(add(X, Y), add(Y, Z)))
    assert verdict.status is Status.ERROR and "decided_by" not in verdict.details


def test_numbers_too_long_to_try_are_not_tried() -> None:
    power: Term = X
    for _ in range(40):
        power = Product(power, power)
    assert distinguish(SumClaim(power, X)) is None
    assert prove_sums(SumClaim(power, X)).status is Status.UNKNOWN


# ----------------------------------------------------------------------------------------------- arithmetic

VALUES: list[Number] = [NEGATIVE_ZERO, 0, 1, -1, 3, -2]


def as_float(value: Number) -> float:
    return -0.0 if value is NEGATIVE_ZERO else float(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("x", VALUES)
@pytest.mark.parametrize("y", VALUES)
def test_zeros_have_the_signs_of_floats(x: Number, y: Number) -> None:
    total, product = evaluate(SumClaim(add(X, Y), Product(X, Y)), {"x": x, "y": y})
    assert repr(as_float(total)) == repr(as_float(x) + as_float(y))
    assert repr(as_float(product)) == repr(as_float(x) * as_float(y))


def test_literals_are_exact() -> None:
    assert Constant(0.1).exact == Fraction(0.1)
    assert isinstance(Constant(4.0).exact, int)
    assert Constant(-0.0).exact is NEGATIVE_ZERO
    assert Constant(0.0).exact == 0
    tenth, third = Constant(0.1), Constant(Fraction(1, 3))
    assert evaluate(SumClaim(add(tenth, third), third), {}) == (Fraction(0.1) + Fraction(1, 3), Fraction(1, 3))


def test_a_counterexample_is_small_and_readable() -> None:
    a, b = vector("a", 100), vector("b", 100)
    found = distinguish(SumClaim(dot(a, b), dot(a, [*b[:99], X])))
    assert str(found) == "left = 0, right = 1 where a.99 = 1, x = 1, the other symbols = 0"
    assert str(distinguish(SumClaim(ZERO, UNIT))) == "left = 0, right = -0.0 (the sign of zero)"


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: Symbol("a b"), ValueError,
         "the name of a symbol must be letters, digits, '_' and '.', not 'a b'; rename the symbol"),
        (lambda: Constant(float("inf")), ValueError,
         "a literal must be a finite number, not inf; name it with a Symbol instead"),
        (lambda: Constant(True), TypeError, "a literal must be an int, a Fraction or a float, not True"),
        (lambda: Product(X, 2), TypeError, "a factor must be a Symbol, Constant, Product or Sum, not 2"),
        (lambda: Sum((X, "y")), TypeError, "an element of a sum must be a Symbol, Constant, Product or Sum, not 'y'"),
        (lambda: SumClaim(X, None), TypeError,
         "a side of a claim must be a Symbol, Constant, Product or Sum, not None"),
        (lambda: dot(A, B[:2]), ValueError, "the vectors of a dot product must have one length, not 3 and 2"),
        (
            lambda: script(SumClaim(doubled(X, 32), X), Encoding.COUNTS),
            ValueError,
            "a sum must have at most 100000 elements for an array of counts, not 4294967296; use the hash encoding",
        ),
        (
            lambda: script(SumClaim(X, X), Encoding.UNROLLED_LAWS, Data.SIGN_MAGNITUDE),
            ValueError,
            "unrolled sums with laws must be over uninterpreted data, not sign_magnitude",
        ),
    ],
)  # fmt: skip
def test_bad_input(build, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        build()
    assert str(caught.value) == message
