"""Multisets of sums as mlir-tv publishes them, in its pull requests 125, 150 and 283: what hashes are compared with.

:func:`published` writes a claim as that encoding has it, for z3 and for cvc5:

* a value is a bit-vector: a sign and a magnitude code of v = ceil(log2(8 n + 10)) bits, for n elements.  -0.0 and +0.0
  have the magnitude 0; the absolute value of every other literal is a variable, and these are in order, below the code
  2^v - 3 of the largest finite float;
* a product has the exclusive or of the signs, and an uninterpreted function of the magnitudes;
* a sum that is built from a vector is a constant.  Its elements are collected in an array from values to counts of 32
  bits, by one store of a count that is one more for each element (z3), or in a bag (cvc5);
* sums i < j with equal multisets are equal; sums p < q < i of which p and q are together as long as i have
  ``add(p, q) = i`` if the multisets of p and q together are that of i;
* an addition of two sums is the uninterpreted ``add``.

Left out are the special cases of NaN, infinity, one and zero in products, and the one form of NaN as an element.  They
would only make the terms longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

from benchmarks.sums.terms import (
    NEGATIVE_ZERO,
    Constant,
    NegativeZero,
    Product,
    Sum,
    SumClaim,
    Symbol,
    Term,
    post_order,
)

COUNT_BITS = 32


def published(claim: SumClaim, *, bags: bool) -> str:
    """The question whether the sides can differ, with bags for cvc5 or with arrays of counts for z3.

    Raises ValueError where a side is neither a sum of leaves and products of leaves nor a sum of two such sums.
    """
    return _Published(claim, bags).write()


class _Published:
    """The text of one claim."""

    def __init__(self, claim: SumClaim, bags: bool) -> None:
        self.bags = bags
        self.vectors: list[list[Term]] = []
        self.sides = [self._side(side) for side in (claim.left, claim.right)]
        self.bits = (8 * max(map(len, self.vectors)) + 10 - 1).bit_length()
        terms = post_order(claim.left, claim.right)
        self.symbols = dict.fromkeys(t.name for t in terms if isinstance(t, Symbol))
        numbers = [t.exact for t in terms if isinstance(t, Constant)]
        sizes: set[int | Fraction] = {size(n) for n in numbers if not isinstance(n, NegativeZero) and n != 0}
        self.codes = {size: f"c.{i}" for i, size in enumerate(sorted(sizes))}

    def _side(self, term: Term) -> str:
        """The text of a side's value; enters its vectors, without elements -0.0."""
        if isinstance(term, Sum) and len(term.elements) == 2 and all(isinstance(e, Sum) for e in term.elements):
            return f"(add {self._vector(term.elements[0])} {self._vector(term.elements[1])})"
        return self._vector(term)

    def _vector(self, term: Term) -> str:
        if not isinstance(term, Sum) or any(isinstance(part, Sum) for part in post_order(*term.elements)):
            raise ValueError("a side must be a sum of leaves and products of leaves, or a sum of two such sums")
        self.vectors.append([e for e in term.elements if not (isinstance(e, Constant) and e.exact is NEGATIVE_ZERO)])
        return f"s.{len(self.vectors) - 1}"

    def write(self) -> str:
        left, right = self.sides
        lines = [*self._data(), *self._collections(), *self._axioms()]
        return "\n".join([*lines, f"(assert (not (= {left} {right})))", "(check-sat)", ""])

    def _data(self) -> Iterator[str]:
        v = self.bits
        yield f"(set-logic {'HO_ALL' if self.bags else 'ALL'})"
        yield f"(define-sort V () (_ BitVec {v + 1}))"
        yield f"(define-sort M () (_ BitVec {v}))"
        yield "(declare-fun mag (M M) M)"
        sign, magnitude = (f"((_ extract {high} {low}) %s)" for high, low in ((v, v), (v - 1, 0)))
        yield (
            f"(define-fun mul ((a V) (b V)) V (concat (bvxor {sign % 'a'} {sign % 'b'}) "
            f"(mag {magnitude % 'a'} {magnitude % 'b'})))"
        )
        yield "(declare-fun add (V V) V)"
        for name in self.symbols:
            yield f"(declare-const x.{name} V)"
        below = f"(_ bv0 {v})"
        for code in self.codes.values():
            yield f"(declare-const {code} M)"
            yield f"(assert (bvult {below} {code}))"
            below = code
        if self.codes:
            yield f"(assert (bvult {below} (_ bv{2**v - 3} {v})))"

    def _value(self, term: Term) -> str:
        if isinstance(term, Symbol):
            return f"x.{term.name}"
        if isinstance(term, Product):
            return f"(mul {self._value(term.left)} {self._value(term.right)})"
        assert isinstance(term, Constant)
        number = term.exact
        if isinstance(number, NegativeZero) or number == 0:
            return f"(_ bv{isinstance(number, NegativeZero) << self.bits} {self.bits + 1})"
        return f"(concat #b{int(number < 0)} {self.codes[size(number)]})"

    def _collections(self) -> Iterator[str]:
        """The multiset ``C.i`` of each vector and the constant ``s.i`` of its sum."""
        zero, one = (f"(_ bv{n} {COUNT_BITS})" for n in (0, 1))
        if self.bags:
            yield "(define-sort C () (Bag V))"
        else:
            yield f"(define-sort C () (Array V (_ BitVec {COUNT_BITS})))"
            yield f"(define-fun insert ((c C) (e V)) C (store c e (bvadd (select c e) {one})))"
        for i, elements in enumerate(self.vectors):
            values = [self._value(e) for e in elements]
            if self.bags:
                parts = ["(as bag.empty C)"] * (2 - len(values)) + [f"(bag {value} 1)" for value in values]
                whole = f"(bag.union_disjoint {' '.join(parts)})"
            else:
                whole = f"((as const C) {zero})"
                for j, value in enumerate(values):
                    yield f"(define-fun C.{i}.{j} () C (insert {whole} {value}))"
                    whole = f"C.{i}.{j}"
            yield f"(define-fun C.{i} () C {whole})"
            yield f"(declare-const s.{i} V)"

    def _axioms(self) -> Iterator[str]:
        for i, j in combinations(range(len(self.vectors)), 2):
            yield f"(assert (=> (= C.{i} C.{j}) (= s.{i} s.{j})))"
        for p, q, i in combinations(range(len(self.vectors)), 3):
            if len(self.vectors[p]) + len(self.vectors[q]) == len(self.vectors[i]):
                both = f"(lambda ((x V)) (bvadd (select C.{p} x) (select C.{q} x)))"
                if self.bags:
                    both = f"(bag.union_disjoint C.{p} C.{q})"
                yield f"(assert (=> (= {both} C.{i}) (= (add s.{p} s.{q}) s.{i})))"


def size(number: int | Fraction) -> int | Fraction:
    return -number if number < 0 else number
