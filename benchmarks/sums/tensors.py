"""Claims about tensors of which every element is a sum of its own: products of matrices, convolutions, sums along axes.

A tensor is its extents and a function from an index to the term of that element.  A claim about two tensors is one
claim about sums for each index.  Elements whose claims differ only in the names of their symbols say the same, because
a claim is about all values of its symbols; so one element of each such class is decided for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product as indices

from smt_encodings.claims import Claim, Equality, Interpretation, Obligation, Status, Verdict, conclude

from .encode import Data
from .prove import NORMAL_FORM, Method, prove_sums
from .terms import Constant, Product, Sum, SumClaim, Symbol, Term, dot, post_order

Index = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Tensor:
    """Terms by index; ``element`` is called with indices within the extents, one number for each."""

    extents: tuple[int, ...]
    element: Callable[..., Term]

    def __getitem__(self, index: Index) -> Term:
        if len(index) != len(self.extents) or any(not 0 <= i < n for i, n in zip(index, self.extents, strict=True)):
            raise IndexError(f"an index of a tensor must lie within {_shape(self.extents)}, not {index}")
        return self.element(*index)

    @property
    def indices(self) -> list[Index]:
        """All indices in row-major order."""
        return list(indices(*map(range, self.extents)))


def _shape(extents: Sequence[int]) -> str:
    return " x ".join(map(str, extents)) or "a scalar"


def inputs(name: str, *extents: int) -> Tensor:
    """A tensor of symbols ``name.i.j``..."""
    symbols = {i: Symbol(".".join([name, *map(str, i)])) for i in indices(*map(range, extents))}
    return Tensor(extents, lambda *index: symbols[index])


def matmul(left: Tensor, right: Tensor, order: Sequence[int] | None = None) -> Tensor:
    """The product of an m x k and a k x n tensor; ``order`` lists the k summands (default: 0, 1, ...).

    Raises ValueError where the tensors do not fit.
    """
    if len(left.extents) != 2 or len(right.extents) != 2 or left.extents[1] != right.extents[0]:
        raise ValueError(
            "a product of matrices must be of m x k and k x n, "
            f"not of {_shape(left.extents)} and {_shape(right.extents)}; transpose or reshape one"
        )
    summed = range(left.extents[1]) if order is None else order
    return Tensor(
        (left.extents[0], right.extents[1]),
        lambda i, j: dot([left[i, k] for k in summed], [right[k, j] for k in summed]),
    )


def axis_sum(tensor: Tensor, axis: int) -> Tensor:
    """The sums along an axis; the other axes remain.  Raises ValueError where there is no such axis."""
    if not 0 <= axis < len(tensor.extents):
        raise ValueError(f"an axis of {_shape(tensor.extents)} must be 0 to {len(tensor.extents) - 1}, not {axis}")
    extents = tensor.extents[:axis] + tensor.extents[axis + 1 :]
    return Tensor(
        extents,
        lambda *i: Sum(tuple(tensor[(*i[:axis], k, *i[axis:])] for k in range(tensor.extents[axis]))),
    )


def convolution(x: Tensor, w: Tensor, stride: int = 1, order: Sequence[Index] | None = None) -> Tensor:
    """The convolution of x [channels, rows, columns] with w [filters, channels, rows, columns], without padding.

    The result is [filters, rows, columns].  ``order`` lists the summands by indices (channel, row, column) into a
    filter (default: row-major).  Raises ValueError where the tensors do not fit.
    """
    if len(x.extents) != 3 or len(w.extents) != 4 or x.extents[0] != w.extents[1] or stride < 1:
        raise ValueError(
            "a convolution must be of c x h x w and f x c x h x w with a stride of 1 or more, "
            f"not of {_shape(x.extents)} and {_shape(w.extents)} with stride {stride}"
        )
    filters, channels, rows, columns = w.extents
    summed = list(indices(range(channels), range(rows), range(columns))) if order is None else order
    extents = (filters, *(max(0, (n - k) // stride + 1) for n, k in ((x.extents[1], rows), (x.extents[2], columns))))
    return Tensor(
        extents,
        lambda f, r, c: dot(
            [x[k, r * stride + i, c * stride + j] for k, i, j in summed], [w[f, k, i, j] for k, i, j in summed]
        ),
    )


@dataclass(frozen=True, eq=False)
class TensorClaim:
    """The claim that two tensors are equal, element by element, in whatever order sums are added up."""

    left: Tensor
    right: Tensor
    name: str = "tensors"

    def __post_init__(self) -> None:
        if self.left.extents != self.right.extents:
            shapes = f"{_shape(self.left.extents)} and {_shape(self.right.extents)}"
            raise ValueError(f"the sides of {self.name} must have the same extents, not {shapes}")

    def at(self, index: Index) -> SumClaim:
        """The claim about one element."""
        return SumClaim(self.left[index], self.right[index], f"{self.name}, element {index}")


def element_classes(claim: TensorClaim) -> list[list[Index]]:
    """The indices, grouped by claims that are equal up to the names of symbols, in order of first occurrence."""
    classes: dict[object, list[Index]] = {}
    for index in claim.left.indices:
        classes.setdefault(_pattern(claim.at(index)), []).append(index)
    return list(classes.values())


def _pattern(claim: SumClaim) -> object:
    """Both sides with numbers for symbols and for different terms: equal only for claims equal up to names."""
    names: dict[str, int] = {}
    known: dict[tuple[object, ...], int] = {}
    numbers: dict[int, int] = {}
    for term in post_order(claim.left, claim.right):
        match term:
            case Symbol(name=name):
                key: tuple[object, ...] = ("symbol", names.setdefault(name, len(names)))
            case Constant():
                key = ("literal", str(term.exact))
            case Product(left=left, right=right):
                key = ("product", numbers[id(left)], numbers[id(right)])
            case Sum(elements=elements):
                key = ("sum", *(numbers[id(e)] for e in elements))
        numbers[id(term)] = known.setdefault(key, len(known))
    return (*known, numbers[id(claim.left)], numbers[id(claim.right)])


def prove_tensors(
    claim: TensorClaim,
    method: Method = Method.HASH,
    data: Data = Data.UNINTERPRETED,
    timeout: float = 40.0,
    *,
    every: bool = False,
    ask: bool = False,
) -> Verdict:
    """Decides a claim about tensors; ``timeout`` is in seconds per solver and class, ``ask`` as in :func:`prove_sums`.

    PROVED: one element of each class is (or with ``every`` each element, so that nothing rests on the classes).
    The reason says how many classes no solver was asked about; ``details["decided_by"]`` names what decided, each once.
    REFUTED: an element is, by numbers that were evaluated (``details["counterexample"]``, ``details["element"]``).
    VACUOUS: there are no elements.  Otherwise the first element that is not proved says why.
    """
    start = time.perf_counter()
    groups = [[i] for i in claim.left.indices] if every else element_classes(claim)
    obligations: list[Obligation] = []
    details: dict[str, object] = {"classes": [(g[0], len(g)) for g in groups]}
    status, reason = Status.VACUOUS, "the tensors have no elements"
    assumptions: dict[str, None] = {}
    decided: list[str] = []
    for group in groups:
        verdict = prove_sums(claim.at(group[0]), method, data, timeout, ask=ask)
        assumptions.update(dict.fromkeys(verdict.claim.assumptions))
        same = f"; up to the names of symbols the claim of {len(group)} elements"
        obligations += [replace(o, meaning=o.meaning + same) for o in verdict.obligations]
        if verdict.status is not Status.PROVED:
            status, reason = verdict.status, f"element {group[0]}: {verdict.reason}"
            details |= {**verdict.details, "element": group[0]}
            break
        decided.append(str(verdict.details["decided_by"]))
    if groups and len(decided) == len(groups):
        details["decided_by"] = "; ".join(dict.fromkeys(decided))
        status, reason = conclude(obligations, details["decided_by"])
        if cancelled := decided.count(NORMAL_FORM):
            reason = (
                f"no solver was asked about {cancelled} of {len(groups)} classes of elements, decided by normal form"
            )
    statement = Claim(
        claim.name,
        "every element is the same on both sides, whatever the symbols are",
        f"{_shape(claim.left.extents)} elements, these lengths only",
        Equality.UP_TO_REDUCTION_ORDER,
        (Interpretation.UNINTERPRETED,),
        tuple(assumptions),
    )
    return Verdict(status, statement, method.value, time.perf_counter() - start, reason, obligations, {}, details)
