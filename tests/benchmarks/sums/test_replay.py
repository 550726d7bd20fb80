"""The kernel of cancellation accepts no derivation of a claim that multisets tell apart, whoever wrote it."""

from __future__ import annotations

import ast
import inspect
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sums import prove as sums_prove
from benchmarks.sums import replay as sums_replay
from benchmarks.sums.cancel import cancellation
from benchmarks.sums.prove import prove_sums
from benchmarks.sums.replay import LAWS, Cancellation, Rejected, numbered, replay
from benchmarks.sums.terms import Constant, Product, Sum, SumClaim, Symbol, Term
from smt_encodings.claims import Status
from tests.benchmarks.sums.sums_oracle import TERMS, UNIT, ZERO, X, Y, Z, add, doubled, equal, regrouped


def accepted(claim: SumClaim, derivation: Cancellation) -> bool:
    try:
        replay(claim, derivation)
    except Rejected:
        return False
    return True


def test_the_kernel_imports_nothing_of_what_counts() -> None:
    imports = [n for n in ast.walk(ast.parse(inspect.getsource(sums_replay))) if isinstance(n, ast.ImportFrom)]
    assert {n.module for n in imports} == {"__future__", "dataclasses", "itertools", "terms"}


@settings(deadline=None, max_examples=300, derandomize=True)
@given(left=TERMS, seed=st.integers(0, 2**32))
def test_what_cancels_replays(left: Term, seed: int) -> None:
    claim = SumClaim(left, regrouped(left, random.Random(seed)))
    derivation = cancellation(claim)
    assert derivation is None or accepted(claim, derivation)


def changes(derivation: Cancellation, draw: random.Random) -> Iterator[Cancellation]:
    """Everything that a derivation says changed in one place; some changes leave it as it was."""
    times, classes = list(derivation.times), list(derivation.classes)
    for k in range(len(times)):
        yield replace(derivation, times=tuple(n + draw.choice((-1, 1)) if i == k else n for i, n in enumerate(times)))
    yield replace(derivation, times=derivation.times[:-1])
    for k, (law, at) in enumerate(classes):
        rest = classes[:k] + classes[k + 1 :]
        yield replace(derivation, classes=tuple(rest))
        yield replace(derivation, classes=(*rest, (draw.choice(list(LAWS)), at)))
        yield replace(derivation, classes=(*rest, (law, at[1:])))
        yield replace(derivation, classes=(*rest, (law, (*at, at[0]))))
        if rest:
            other = rest[0]
            yield replace(derivation, classes=(*rest[1:], (law, (*at, *other[1]))))
            yield replace(
                derivation,
                classes=(*rest[1:], (law, (*at[1:], other[1][0])), (other[0], (*other[1][1:], at[0]))),
            )


@settings(deadline=None, max_examples=200, derandomize=True)
@given(left=TERMS, right=TERMS, seed=st.integers(0, 2**32))
def test_no_derivation_proves_a_claim_that_multisets_tell_apart(left: Term, right: Term, seed: int) -> None:
    """Derivations of a true claim, and changed ones, are put to a claim with other sides."""
    draw = random.Random(seed)
    true = SumClaim(left, regrouped(left, draw))
    derivation = cancellation(true)
    if derivation is None:
        return
    for claim in (SumClaim(left, right), SumClaim(left, add(true.right, X)), true):
        for changed in (derivation, *changes(derivation, draw)):
            assert not accepted(claim, changed) or equal(claim)


A = Product(X, Y)
FALSE = {
    "another symbol": (X, Y, "one symbol"),
    "another literal": (Constant(1), Constant(2), "one literal"),
    "+0.0 for -0.0": (add(ZERO, ZERO), add(ZERO, UNIT), "one literal"),
    "a square for a product": (Product(X, X), Product(X, Y), "the same factors"),
    "a product for a square": (Product(X, Y), Product(Y, Y), "the same factors"),
    "a factor exchanged": (Product(X, Y), Product(X, Z), "the same factors"),
    "products of other sums": (Product(add(X), Y), Product(add(Z), Y), "one product"),
    "a name for a literal": (Symbol("1"), Constant(1), "one literal"),
    "one element more": (add(X, X), add(X), "one symbol"),
    "a doubling more": (doubled(X, 64), doubled(X, 63), "one symbol"),
    "2^64 elements for none": (doubled(X, 64), add(), "one symbol"),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_claim_has_no_derivation(name: str) -> None:
    """Whatever the numbers are, with all places in one class and with each in its own."""
    left, right, law = FALSE[name]
    claim = SumClaim(left, right)
    assert cancellation(claim) is None
    sums = numbered(claim)
    for times in (
        (1, -1) + (1,) * (len(sums) - 2),
        (1, -1) + (0,) * (len(sums) - 2),
        (0,) * len(sums),
        true_times(sums),
    ):
        places = [
            (i, j) for i, s in enumerate(sums) if times[i] for j, e in enumerate(s.elements) if not isinstance(e, Sum)
        ]
        kept = [(i, j) for i, j in places if getattr(sums[i].elements[j], "exact", 0) is not UNIT.exact]
        for classes in (((law, tuple(kept)),), tuple((law, (p,)) for p in kept), ()):
            assert not accepted(claim, Cancellation(times, classes))


def true_times(sums: list[Sum]) -> tuple[int, ...]:
    """How often each sum stands on the left, less how often on the right, by walking all ways down to it."""
    found = {id(s): 0 for s in sums} | {id(sums[0]): 1, id(sums[1]): -1}
    order: list[Sum] = []

    def visit(term: Sum) -> None:
        if not any(term is known for known in order):
            for e in term.elements:
                if isinstance(e, Sum):
                    visit(e)
            order.append(term)

    visit(sums[0])
    visit(sums[1])
    for term in reversed(order):
        for e in term.elements:
            if isinstance(e, Sum):
                found[id(e)] += found[id(term)]
    return tuple(found[id(s)] for s in sums)


WRONG = {
    "no number for a sum": (Cancellation((1, -1), ()), "there must be a number for each of 4 sums, not 2"),
    "a number too large": (Cancellation((1, -1, 2, -1), ()), "sum 2 stands 1 times, not 2"),
    "nothing opened": (Cancellation((0, 0, 0, 0), ()), "sum 0 stands 1 times, not 0"),
    "a place left out": (
        Cancellation((1, -1, 1, -1), (("one symbol", ((2, 0), (3, 1))),)),
        "every place of an opened sum must be in one class, and no other place",
    ),
    "an unknown law": (
        Cancellation((1, -1, 1, -1), (("magic", ((2, 0), (3, 1))), ("one symbol", ((2, 1), (3, 0))))),
        "the law of a class with a place must be one of one symbol, one literal, the same factors, one product, "
        "not 'magic'",
    ),
    "other elements": (
        Cancellation((1, -1, 1, -1), (("one symbol", ((2, 0), (3, 0))), ("one symbol", ((2, 1), (3, 1))))),
        "the elements of a class must be one symbol",
    ),
    "one side only": (
        Cancellation(
            (1, -1, 1, -1), (("one symbol", ((2, 0),)), ("one symbol", ((2, 1), (3, 0))), ("one symbol", ((3, 1),)))
        ),
        "the elements of a class must stand on both sides equally often",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_kernel_says_what_is_wrong(name: str) -> None:
    derivation, reason = WRONG[name]
    with pytest.raises(Rejected) as caught:
        replay(SumClaim(add(X, Y), add(Y, X)), derivation)
    assert str(caught.value) == reason


def test_a_derivation_that_is_wrong_is_an_error_not_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums_prove, "cancellation", lambda _: Cancellation((1, -1), ()))
    verdict = prove_sums(SumClaim(X, Y))
    assert verdict.status is Status.ERROR
    assert verdict.reason == (
        "the kernel must accept the derivation of what cancels: "
        "every place of an opened sum must be in one class, and no other place"
    )
