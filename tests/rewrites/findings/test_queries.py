"""Smallest counterexamples and proofs, on claims small enough to be enumerated."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ila_lang import Expr, bv, compile_terms, const, var
from rewrites.findings import queries
from rewrites.findings.finding import NotFound
from rewrites.findings.queries import prove, smallest_counterexample

A, B = var("a", bv(4)), var("b", bv(4))


def smallest_by_enumeration(claim: Expr, measures: list[Expr]) -> list[int] | None:
    """The smallest measures of all values that violate the claim, or None."""
    run = compile_terms([A, B], [claim, *measures])
    found = [rest for holds, *rest in (run(a, b) for a, b in product(range(16), repeat=2)) if not holds]
    return min(found, default=None)


@given(st.integers(0, 15), st.integers(0, 15), st.sampled_from(["a", "b", "a-b", "a*b"]), st.booleans())
@settings(max_examples=25)
def test_no_counterexample_is_smaller(low: int, shift: int, kind: str, swapped: bool) -> None:
    claim = ((A + shift) * B < const(low, 4)) | (A ^ B).slt(shift)
    measures = [{"a": A, "b": B, "a-b": A - B, "a*b": A * B}[kind], B if swapped else A]
    expected = smallest_by_enumeration(claim, measures)
    if expected is None:
        with pytest.raises(NotFound, match="needs the answer sat"):
            smallest_counterexample("claim", claim, measures)
        return
    found = smallest_counterexample("claim", claim, measures)
    holds, *values = compile_terms([A, B], [claim, *measures])(found.get("a", 0), found.get("b", 0))
    assert not holds
    assert values == expected


def test_proofs_need_the_claim_to_hold() -> None:
    prove("sum", A + B == B + A)
    with pytest.raises(NotFound, match=re.escape("'sum' (findings) needs the answer unsat; z3")):
        prove("sum", A + B == A)


def test_both_solvers_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from smt_encodings.claims import Answer
    from smt_encodings.solvers import cvc5 as solver_cvc5

    monkeypatch.setattr(solver_cvc5, "check", lambda text, timeout, patience: Answer("unknown", 0.0, "cvc5", "bored"))
    with pytest.raises(NotFound, match="cvc5: unknown bored"):
        prove("sum", A + B == B + A)
    with pytest.raises(NotFound, match="cvc5: unknown bored"):
        smallest_counterexample("sum", A + B == A, [A])


def test_an_undecided_search_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    from smt_encodings.claims import Answer

    monkeypatch.setattr(queries, "_ask", lambda *args: None)
    monkeypatch.setattr(queries.solver_z3, "check", lambda text, timeout: Answer("unknown", 0.0, "z3", "timeout"))
    with pytest.raises(NotFound, match="claim: z3 does not know: timeout"):
        smallest_counterexample("claim", A == B, [A])


def test_a_counterexample_must_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "_ask", lambda *args: None)
    monkeypatch.setattr(queries, "_model", lambda *args: {"a": 3, "b": 3})
    with pytest.raises(NotFound, match=r"claim: the counterexample \{'a': 3, 'b': 3\} does not replay"):
        smallest_counterexample("claim", A == B, [])
