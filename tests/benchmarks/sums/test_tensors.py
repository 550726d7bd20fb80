"""Claims about tensors of sums: each element decided, by classes that are no coarser than renaming."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product as indices

import numpy as np
import pytest

from benchmarks.sums.prove import Method
from benchmarks.sums.tensors import (
    Index,
    Tensor,
    TensorClaim,
    axis_sum,
    convolution,
    element_classes,
    inputs,
    matmul,
    prove_tensors,
)
from benchmarks.sums.terms import Constant, Counterexample, Product, Sum, SumClaim, Symbol, Term, dot, evaluate
from smt_encodings.claims import Equality, Status
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

A, B = inputs("a", 3, 5), inputs("b", 5, 4)
X, W = inputs("x", 2, 7, 6), inputs("w", 3, 2, 3, 2)
T = inputs("t", 4, 5)
FILTER = list(indices(range(2), range(3), range(2)))
UNIT = Constant(-0.0)


def transposed(t: Tensor) -> Tensor:
    return Tensor(t.extents[::-1], lambda i, j: t[j, i])


def blocked(i: int, j: int) -> Term:
    """The first two and the last three products, each summed from -0.0."""
    parts = [Sum((UNIT, *(Product(A[i, k], B[k, j]) for k in block))) for block in (range(2), range(2, 5))]
    return Sum((UNIT, *parts))


RIGHT = {
    "matrices, backwards": TensorClaim(matmul(A, B), matmul(A, B, range(5)[::-1])),
    "matrices, in blocks from -0.0": TensorClaim(matmul(A, B), Tensor((3, 4), blocked)),
    "matrices, transposed": TensorClaim(matmul(A, B), transposed(matmul(transposed(B), transposed(A)))),
    "convolution, columns first": TensorClaim(
        convolution(X, W), convolution(X, W, order=sorted(FILTER, key=lambda i: i[::-1]))
    ),
    "convolution with stride, backwards": TensorClaim(convolution(X, W, 2), convolution(X, W, 2, FILTER[::-1])),
    "sums along axes, exchanged": TensorClaim(axis_sum(axis_sum(T, 0), 0), axis_sum(axis_sum(T, 1), 0)),
    "sums along an axis": TensorClaim(axis_sum(T, 0), axis_sum(transposed(T), 1)),
}


def twice(i: int, j: int) -> Term:
    return dot([A[i, k] for k in range(5)], [A[i, k] for k in range(5)])


def changed_at(index: Index) -> Tensor:
    """The product of matrices with one summand of one element changed."""
    right = matmul(A, B)

    def element(*at: int) -> Term:
        term = right[at]
        assert isinstance(term, Sum)
        return Sum((*term.elements[:-1], Product(A[0, 0], Symbol("z")))) if at == index else term

    return Tensor((3, 4), element)


WRONG: dict[str, TensorClaim] = {
    "one element changed": TensorClaim(matmul(A, B), changed_at((2, 1))),
    "one operand reversed": TensorClaim(
        matmul(A, B), matmul(Tensor((3, 5), lambda i, k: A[i, 4 - k]), B), "one operand reversed"
    ),
    "an operand used twice": TensorClaim(matmul(A, B), Tensor((3, 4), twice)),
    "another row": TensorClaim(matmul(A, B), matmul(Tensor((3, 5), lambda i, k: A[(i + 1) % 3, k]), B)),
    "a convolution turned round": TensorClaim(
        convolution(X, W), convolution(X, Tensor(W.extents, lambda f, c, i, j: W[f, c, 2 - i, 1 - j]))
    ),
    "+0.0 as the first accumulator": TensorClaim(
        axis_sum(T, 0), Tensor((5,), lambda j: Sum((Constant(0.0), axis_sum(T, 0)[(j,)])))
    ),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("ask", [False, True])
def test_right_claims_are_proved(name: str, ask: bool) -> None:
    verdict = prove_tensors(RIGHT[name], ask=ask)
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.claim.equality is Equality.UP_TO_REDUCTION_ORDER
    classes = verdict.details["classes"]
    assert isinstance(classes, list) and len(classes) == 1
    assert classes[0][1] == len(RIGHT[name].left.indices)
    if ask:
        assert verdict.details["decided_by"] == f"{solver_z3.version()} and {solver_cvc5.version()}"
        assert verdict.reason == "" and len(verdict.obligations) == 1
        assert all(len(o.answers) == 2 and o.discharged for o in verdict.obligations)
    else:
        assert verdict.details["decided_by"] == "normal form" and verdict.obligations == []
        assert verdict.reason == "no solver was asked about 1 of 1 classes of elements, decided by normal form"


@pytest.mark.proof
def test_some_classes_may_be_left_to_solvers() -> None:
    x, y, z = map(Symbol, "xyz")
    factors = (Product(Sum((x, y)), z), Product(z, Sum((y, x))))
    claim = TensorClaim(side(lambda i: (x, factors[0])[i]), side(lambda i: (x, factors[1])[i]))
    verdict = prove_tensors(claim)
    assert verdict.status is Status.PROVED and len(verdict.obligations) == 1
    assert verdict.reason == "no solver was asked about 1 of 2 classes of elements, decided by normal form"
    assert verdict.details["decided_by"] == f"normal form; {solver_z3.version()} and {solver_cvc5.version()}"


@pytest.mark.proof
def test_every_element_may_be_proved() -> None:
    verdict = prove_tensors(RIGHT["matrices, backwards"], every=True, ask=True)
    assert verdict.status is Status.PROVED and len(verdict.obligations) == 12
    assert len({o.smtlib for o in verdict.obligations}) == 12


@pytest.mark.proof
def test_other_methods() -> None:
    assert prove_tensors(RIGHT["matrices, backwards"], Method.UNROLLED).status is Status.UNKNOWN
    small = TensorClaim(axis_sum(inputs("s", 3, 2), 0), axis_sum(Tensor((3, 2), lambda i, j: _S[2 - i, j]), 0))
    assert prove_tensors(small, Method.MULTISET).status is Status.PROVED


_S = inputs("s", 3, 2)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_claims_are_refuted_at_an_element(name: str) -> None:
    claim = WRONG[name]
    verdict = prove_tensors(claim)
    assert verdict.status is Status.REFUTED, verdict.reason
    index, found = verdict.details["element"], verdict.details["counterexample"]
    assert isinstance(found, Counterexample) and isinstance(index, tuple)
    assert verdict.reason == f"element {index}: {found}"
    left, right = evaluate(claim.at(index), found.numbers)
    assert left != right


def test_the_one_changed_element_is_found() -> None:
    claim = WRONG["one element changed"]
    assert [(group[0], len(group)) for group in element_classes(claim)] == [((0, 0), 11), ((2, 1), 1)]
    assert prove_tensors(claim).details["element"] == (2, 1)


def side(term: Callable[[int], Term]) -> Tensor:
    return Tensor((2,), term)


@pytest.mark.parametrize(
    "left,right",
    [
        (lambda i: Symbol("x"), lambda i: Symbol("xy"[i])),
        (lambda i: Sum((Symbol("x"), Symbol("y"))), lambda i: Sum((Symbol("x"), Symbol("yz"[i])))),
        (lambda i: Constant(i), lambda i: Constant(0)),
        (lambda i: Constant(0), lambda i: Constant((0.0, -0.0)[i])),
        (lambda i: Symbol("x"), lambda i: (Product, lambda a, b: Sum((a, b)))[i](Symbol("x"), Symbol("x"))),
        (lambda i: Sum((Symbol("x"),) * (i + 1)), lambda i: Sum((Symbol("x"),) * 2)),
    ],
    ids=["names", "names in sums", "literals", "zeros", "operators", "lengths"],
)
def test_classes_tell_claims_apart(left: Callable[[int], Term], right: Callable[[int], Term]) -> None:
    """One of both elements is true, or another sort of false, so that one class would hide it."""
    assert len(element_classes(TensorClaim(side(left), side(right)))) == 2


def test_classes_do_not_depend_on_names_or_shared_terms() -> None:
    shared = Symbol("x")

    def term(i: int) -> Term:
        return Sum((shared, shared)) if i == 0 else Sum((Symbol("u"), Symbol("u")))

    assert len(element_classes(TensorClaim(side(term), side(term)))) == 1


def test_no_elements_are_nothing_proved() -> None:
    nothing = inputs("n", 0, 3)
    verdict = prove_tensors(TensorClaim(nothing, nothing))
    assert verdict.status is Status.VACUOUS and verdict.reason == "the tensors have no elements"
    # a sum of nothing is -0.0
    none = axis_sum(nothing, 0)
    assert evaluate(SumClaim(none[0,], UNIT), {})[0] == evaluate(SumClaim(UNIT, UNIT), {})[0]


def test_what_does_not_fit_is_said() -> None:
    cases: list[tuple[type[Exception], Callable[[], object], str]] = [
        (
            ValueError,
            lambda: matmul(A, A),
            "a product of matrices must be of m x k and k x n, not of 3 x 5 and 3 x 5; transpose or reshape one",
        ),
        (ValueError, lambda: axis_sum(T, 2), "an axis of 4 x 5 must be 0 to 1, not 2"),
        (
            ValueError,
            lambda: convolution(X, W, 0),
            "a convolution must be of c x h x w and f x c x h x w with a stride of 1 or more, "
            "not of 2 x 7 x 6 and 3 x 2 x 3 x 2 with stride 0",
        ),
        (
            ValueError,
            lambda: TensorClaim(A, B, "claim"),
            "the sides of claim must have the same extents, not 3 x 5 and 5 x 4",
        ),
        (IndexError, lambda: A[3, 0], "an index of a tensor must lie within 3 x 5, not (3, 0)"),
    ]
    for kind, build, message in cases:
        with pytest.raises(kind) as wrong:
            build()
        assert str(wrong.value) == message


def test_operators_on_numbers() -> None:
    """Against NumPy, on small integers."""
    rng = np.random.default_rng(1)
    names = {"a": (3, 5), "b": (5, 4), "x": (2, 7, 6), "w": (3, 2, 3, 2), "t": (4, 5)}
    arrays = {name: rng.integers(-9, 10, shape) for name, shape in names.items()}
    numbers = {
        ".".join([name, *map(str, index)]): int(value)
        for name, array in arrays.items()
        for index, value in np.ndenumerate(array)
    }

    def values(tensor: Tensor) -> np.ndarray:
        found = np.zeros(tensor.extents, int)
        for index in tensor.indices:
            found[index] = evaluate(SumClaim(tensor[index], UNIT), numbers)[0]
        return found

    a, b, x, w, t = (arrays[name] for name in names)
    assert np.array_equal(values(matmul(A, B)), a @ b)
    assert np.array_equal(values(axis_sum(T, 0)), t.sum(0)) and np.array_equal(values(axis_sum(T, 1)), t.sum(1))
    for stride in (1, 2, 3):
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (1, 2))[:, ::stride, ::stride]
        assert np.array_equal(values(convolution(X, W, stride)), np.einsum("crskl,fckl->frs", windows, w))
