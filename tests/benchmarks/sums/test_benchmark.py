"""The benchmark's pairs are right, its twins are wrong, and 5,000 elements are not slow."""

from __future__ import annotations

import time
from typing import Any

import pytest

from benchmarks.sums.measure import COLUMNS, best, measure, repeated
from benchmarks.sums.pairs import PAIRS, RIGHT, TWINS, dots_of_variables
from benchmarks.sums.prove import NORMAL_FORM, prove_sums
from benchmarks.sums.published import published
from benchmarks.sums.report import DECIDED, HASHES, MULTISETS, markdown
from benchmarks.sums.terms import Constant, Counterexample, Product, Sum, SumClaim, Symbol, dot, evaluate, vector
from smt_encodings.claims import Status
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

SMALL = [pair for pair in PAIRS if not pair.endswith(("500", "5000"))]


def test_the_benchmark_has_all_pairs() -> None:
    assert len(PAIRS) == 14
    assert tuple(COLUMNS) == (*HASHES, "z3 counts", "cvc5 bags", "z3 published", "cvc5 published")
    assert set(MULTISETS) == set(COLUMNS) - set(HASHES)


@pytest.mark.parametrize("pair", PAIRS)
def test_right_pairs_are_decided_without_a_solver(pair: str) -> None:
    verdict = prove_sums(PAIRS[pair][RIGHT]())
    assert verdict.status is Status.PROVED
    assert verdict.details["decided_by"] == NORMAL_FORM


@pytest.mark.proof
@pytest.mark.parametrize("pair", SMALL)
def test_solvers_prove_right_pairs(pair: str) -> None:
    verdict = prove_sums(PAIRS[pair][RIGHT](), ask=True)
    assert verdict.status is Status.PROVED and len(verdict.obligations[0].answers) == 2


@pytest.mark.parametrize("pair", PAIRS)
def test_wrong_twins_are_refuted(pair: str) -> None:
    twins = [name for name in TWINS if name in PAIRS[pair]]
    assert len(twins) == (3 if pair.startswith("dot") else 2)
    for name in twins:
        claim = PAIRS[pair][name]()
        verdict = prove_sums(claim)
        assert verdict.status is Status.REFUTED, name
        found = verdict.details["counterexample"]
        assert isinstance(found, Counterexample)
        left, right = evaluate(claim, found.numbers)
        assert left != right


@pytest.mark.proof
def test_solvers_prove_the_largest_pair_in_linear_time() -> None:
    # processor time, because the machine may be busy; it takes about 0.8 s, and anything quadratic takes minutes
    start = time.process_time()
    assert prove_sums(dots_of_variables(5000)[RIGHT](), ask=True).status is Status.PROVED
    assert time.process_time() - start < 5


def test_the_largest_pair_is_decided_in_a_fraction_of_a_second() -> None:
    # it takes about 0.02 s of processor time
    start = time.process_time()
    assert prove_sums(dots_of_variables(5000)[RIGHT]()).status is Status.PROVED
    assert time.process_time() - start < 0.5


# ------------------------------------------------------------------------------------- multisets as published


X, Y, Z = (Symbol(name) for name in "xyz")
A, B = vector("a", 3), vector("b", 3)
UNIT = Constant(-0.0)
PUBLISHED_TRUE = {
    "sum": SumClaim(Sum((UNIT, X, Y, Z)), Sum((Z, X, Y))),
    "literals": SumClaim(Sum((Constant(1), Constant(-2))), Sum((Constant(-2.0), Constant(1)))),
    "dot": SumClaim(dot(A[::-1], B[::-1]), dot(A, B, UNIT)),
    "concatenated": SumClaim(Sum((Sum((UNIT, X)), Sum((Y, Z)))), Sum((Z, Y, X))),
    "none": SumClaim(Sum((UNIT,)), Sum(())),
}
PUBLISHED_FALSE = {
    "another element": SumClaim(Sum((X, Y, Z)), Sum((X, Y, Y))),
    "another length": SumClaim(Sum((X, Y)), Sum((X, Y, Y))),
    "sign": SumClaim(Sum((Constant(2), X)), Sum((Constant(-2), X))),
    "another literal": SumClaim(Sum((Constant(2), X)), Sum((Constant(3), X))),
    "zeros": SumClaim(Sum((Constant(0), X)), Sum((UNIT, X))),
    "one reversed": SumClaim(dot(A[::-1], B), dot(A, B)),
    "concatenated with another": SumClaim(Sum((Sum((X,)), Sum((Y,)))), Sum((X, X))),
}
SOLVERS = [(solver_z3.check, False), (lambda text, limit: solver_z3.check(text, limit, alone=limit), False),
           (solver_cvc5.check, True)]  # fmt: skip


@pytest.mark.proof
@pytest.mark.parametrize(("check", "bags"), SOLVERS, ids=["z3", "z3 once", "cvc5"])
def test_published_multisets_prove_what_is_true_only(check: Any, bags: bool) -> None:
    for name, claim in PUBLISHED_TRUE.items():
        assert check(published(claim, bags=bags), 10.0).status == "unsat", name
    for name, claim in PUBLISHED_FALSE.items():
        assert check(published(claim, bags=bags), 10.0).status == "sat", name


def test_published_multisets_have_the_published_sizes() -> None:
    text = published(PAIRS["dot reversed, 5"][RIGHT](), bags=False)
    # 8 * 5 + 10 codes of magnitudes, and a sign; 32 bits of counts
    assert "(define-sort V () (_ BitVec 7))" in text and "(define-sort C () (Array V (_ BitVec 32)))" in text
    assert text.count("(insert ") == 2 * 5 and "(lambda" not in text
    concatenated = published(PAIRS["sum concatenated, 5 + 5"][RIGHT](), bags=False)
    assert (
        "(assert (=> (= (lambda ((x V)) (bvadd (select C.0 x) (select C.1 x))) C.2) (= (add s.0 s.1) s.2)))"
    ) in concatenated
    literals = published(PAIRS["sum reversed, 10 constants"][RIGHT](), bags=True)
    assert "(assert (bvult (_ bv0 7) c.0))\n" in literals and "(assert (bvult c.9 (_ bv125 7)))" in literals


@pytest.mark.parametrize("left", [Sum((Sum((X,)), Y)), Sum((Sum((Sum((X,)), Y)), Sum((Z,)))), Product(X, Y),
                                  Sum((Product(Sum((X, Y)), Z), X))])  # fmt: skip
def test_what_the_published_encoding_does_not_state(left: Any) -> None:
    with pytest.raises(ValueError) as caught:
        published(SumClaim(left, X), bags=True)
    assert str(caught.value) == "a side must be a sum of leaves and products of leaves, or a sum of two such sums"


# ------------------------------------------------------------------------------------------------ measuring


@pytest.mark.proof
def test_a_cell_is_measured_in_a_process() -> None:
    found = measure(["--cell", "dot reversed, 5", DECIDED], 40.0)
    assert (found["answer"], found["by"], found["runs"]) == ("PROVED", NORMAL_FORM, 300)
    assert 0 < found["seconds"] <= found["median"]


@pytest.mark.slow
def test_a_cell_beyond_the_limit_is_ended() -> None:
    assert best("dot reversed, 100", "cvc5 published", 1.0)["answer"] == "timeout"


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
def test_each_column_has_the_answer_of_its_solver(column: str) -> None:
    found = best("dot reversed, 5 constants", column, 40.0)
    assert found["answer"] == "unsat" and len(found["ways"]) == len(COLUMNS[column])
    assert found["seconds"] == min(found["ways"])


def test_answers_that_differ_are_an_error() -> None:
    answers = iter(["unsat", *["sat"] * 300])
    with pytest.raises(RuntimeError, match="repeated runs must have one answer"):
        repeated(lambda: {"answer": next(answers), "seconds": 0.0})


def test_the_page_counts_what_was_measured() -> None:
    def row(**multisets: float) -> dict[str, Any]:
        found: dict[str, Any] = {
            "load": 1.5,
            DECIDED: {"answer": "PROVED", "seconds": 0.001, "by": "x", "first": 0.004},
        }
        found |= {column: {"answer": "unsat", "seconds": 0.01} for column in HASHES}
        for column in MULTISETS:
            seconds = multisets.get(column.replace(" ", "_"))
            found[column] = {"answer": "unsat", "seconds": seconds} if seconds else {"answer": "timeout", "seconds": 40}
        return found

    cells = {"one": row(z3_published=0.1, z3_counts=0.05), "two": row(z3_published=2.0)}
    page = markdown({"cells": cells, "empty": {"z3": 0.0005, "cvc5": 0.001}, "limit": 40, "machine": {"cores": "2"}})
    assert "| z3 published | 2 of 2 | 2 | 1 | 2 |" in page
    assert "| z3 counts | 1 of 2 | 0 | 0 | 1 |" in page
    assert "| cvc5 bags | 0 of 2 | 0 | 0 | 0 |" in page
    assert "* one, z3 counts: 0.050000 s, 50 times as long\n" in page and "one, z3 published: " not in page
    assert "| two | z3 published | 2.000 | 2,000 | 200 |" in page
    assert "| one | 0.001000 | 0.010000 | 0.010000 | 0.100 | > 40 | 0.050000 | > 40 |" in page
    assert "took up to 4.0 times the shortest one" in page
