"""Claims about sums as SMT-LIB text: hashes of sums, multisets of their elements, and chains of an uninterpreted add.

Every encoding speaks of the sums whose *value* occurs: both sides of the claim and sums that are factors of products.
A sum that is only an element of other sums is opened there.  With ``C_i`` what an encoding collects of the elements of
sum ``s_i``, its axioms are ``s_i != s_j => C_i != C_j`` for all pairs, that is: what collects the same is the same sum.

* *hash*: ``C_i`` is the bit-vector sum of ``h(e)`` over its elements for one uninterpreted ``h`` with ``h(-0.0) = 0``;
* *counts*: an array from values to the number of times each is an element (for z3);
* *bags*: the bag of the elements (for cvc5).

*Unrolled* sums are instead chains ``add(add(e_0, e_1), e_2)`` of an uninterpreted ``add``, which are equal only in
identical order; *unrolled with laws* states that ``add`` is associative and commutative with unit -0.0, by quantifiers.

docs/explanation/reductions.md says why a claim is true if the answer is "unsat", and what the hash's width is for.
The text is
written directly, because building terms takes longer than solving them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from fractions import Fraction
from itertools import combinations

from smt_encodings.reorder import hash_sum, hash_width

from .terms import Constant, NegativeZero, Number, Product, Sum, SumClaim, Symbol, Term, flat_lengths, post_order


class Encoding(Enum):
    """How sums become terms."""

    HASH = "hash"
    COUNTS = "counts"
    BAGS = "bags"
    UNROLLED = "unrolled"
    UNROLLED_LAWS = "unrolled with laws"


class Data(Enum):
    """What the values of terms are."""

    UNINTERPRETED = "uninterpreted"
    """A sort of its own; the product is a commutative function, literals are distinct values."""
    SIGN_MAGNITUDE = "sign_magnitude"
    """A sign bit and a magnitude code, wide enough for every term of the claim to have a code of its own; a product has
    the exclusive or of the signs and a commutative function of the magnitudes.  Zero is the magnitude code 0; literals
    have the codes 1, 2, ... in the order of their magnitudes."""


LOGIC = {
    Encoding.HASH: "QF_UFBV",
    Encoding.COUNTS: "ALL",
    Encoding.BAGS: "HO_ALL",
    Encoding.UNROLLED: "QF_UFBV",
    Encoding.UNROLLED_LAWS: "ALL",
}

MOST_ELEMENTS = 100_000
"""Most elements of a sum that a multiset encoding writes out."""


def script(claim: SumClaim, encoding: Encoding = Encoding.HASH, data: Data = Data.UNINTERPRETED) -> str:
    """The question whether the sides of a claim can differ: "unsat" proves the claim.

    COUNTS is text for z3 (constant arrays), BAGS for cvc5 (bags), the others are for both.
    Raises ValueError where a sum has more than :data:`MOST_ELEMENTS` elements for COUNTS and where UNROLLED_LAWS is
    asked of data other than UNINTERPRETED (its quantifiers are hopeless there).
    """
    return _Writer(claim, encoding, data).write()


class _Writer:
    """The text of one claim."""

    def __init__(self, claim: SumClaim, encoding: Encoding, data: Data) -> None:
        if encoding is Encoding.UNROLLED_LAWS and data is not Data.UNINTERPRETED:
            raise ValueError(f"unrolled sums with laws must be over uninterpreted data, not {data.value}")
        self.encoding, self.data = encoding, data
        self.unrolled = encoding in (Encoding.UNROLLED, Encoding.UNROLLED_LAWS)
        # a side that is no sum is the sum of itself
        self.sides = [t if isinstance(t, Sum) else Sum((t,)) for t in (claim.left, claim.right)]
        self.order = post_order(*self.sides)
        self.sums = [t for t in self.order if isinstance(t, Sum)]
        self.number = {id(s): i for i, s in enumerate(self.sums)}
        self.lengths = flat_lengths(self.order)
        self.text: dict[int, str] = {}
        self.products: list[str] = []
        self.values = self._values()
        self.place = {i: place for place, i in enumerate(self.values)}
        self.longest = max([1, *(self.lengths[id(s)] for s in self.sums if id(s) in self.values)])
        self.width = hash_width(len(self.values), self.longest)

    def _values(self) -> dict[int, Term]:
        """The sums whose value occurs, and factors beside such sums, which may be equal to them; by identity."""
        values: dict[int, Term] = {id(s): s for s in self.sides}
        products = [t for t in self.order if isinstance(t, Product)]
        factors = [f for p in products for f in (p.left, p.right)]
        if any(isinstance(f, Sum) for f in factors):
            seen: set[object] = set()
            for factor in factors:
                key = factor.name if isinstance(factor, Symbol) else id(factor)
                if key not in seen:
                    seen.add(key)
                    values[id(factor)] = factor
        return values

    def write(self) -> str:
        constants = self._constants()
        lines = [f"(set-logic {LOGIC[self.encoding]})", *self._sorts()]
        symbols = dict.fromkeys(t.name for t in self.order if isinstance(t, Symbol))
        lines += [f"(declare-const x.{name} V)" for name in symbols]
        lines += constants
        lines += self._unrolled() if self.unrolled else self._collected()
        left, right = (self._value(s) for s in self.sides)
        return "\n".join([*lines, f"(assert (not (= {left} {right})))", "(check-sat)", ""])

    # ------------------------------------------------------------------------------------------------ data

    def _sorts(self) -> list[str]:
        multiplies = any(isinstance(t, Product) for t in self.order)
        if self.data is Data.UNINTERPRETED:
            return ["(declare-sort V 0)", *["(declare-fun mul (V V) V)"] * multiplies]
        v = self._magnitude_bits
        lines = [f"(define-sort V () (_ BitVec {v + 1}))"]
        if multiplies:
            m = f"(_ BitVec {v})"
            signs = f"(bvxor ((_ extract {v} {v}) a) ((_ extract {v} {v}) b))"
            magnitudes = f"(mag ((_ extract {v - 1} 0) a) ((_ extract {v - 1} 0) b))"
            lines.append(f"(declare-fun mag ({m} {m}) {m})")
            lines.append(f"(define-fun mul ((a V) (b V)) V (concat {signs} {magnitudes}))")
        return lines

    @property
    def _magnitude_bits(self) -> int:
        """Zero, and a code for each term that may have a magnitude of its own."""
        return max(1, len(self.order).bit_length())

    def _constants(self) -> list[str]:
        """Literals as declared, distinct values or as codes; also enters the text of leaves."""
        literals = {t.exact: None for t in self.order if isinstance(t, Constant)}
        names = self._codes(literals) if self.data is Data.SIGN_MAGNITUDE else self._names(literals)
        for term in self.order:
            if isinstance(term, Symbol):
                self.text[id(term)] = f"x.{term.name}"
            elif isinstance(term, Constant):
                self.text[id(term)] = names[term.exact]
        if self.data is Data.SIGN_MAGNITUDE:
            return [f"(define-fun unit () V {self._code(1, 0)})"]
        lines = ["(declare-const unit V)"]
        declared = [n for n in names.values() if n != "unit"]
        lines += [f"(declare-const {n} V)" for n in declared]
        if declared:
            lines.append(f"(assert (distinct unit {' '.join(declared)}))")
        return lines

    @staticmethod
    def _names(literals: dict[Number, None]) -> dict[Number, str]:
        return {c: "unit" if isinstance(c, NegativeZero) else f"c.{i}" for i, c in enumerate(literals)}

    def _codes(self, literals: dict[Number, None]) -> dict[Number, str]:
        numbers: list[int | Fraction] = [c for c in literals if not isinstance(c, NegativeZero)]
        sizes: set[int | Fraction] = {_size(c) for c in numbers if c != 0}
        code = {size: i + 1 for i, size in enumerate(sorted(sizes))}
        names: dict[Number, str] = {c: self._code(int(c < 0), code.get(_size(c), 0)) for c in numbers}
        return {c: "unit" if isinstance(c, NegativeZero) else names[c] for c in literals}

    def _code(self, sign: int, magnitude: int) -> str:
        bits = self._magnitude_bits
        return f"(_ bv{(sign << bits) | magnitude} {bits + 1})"

    def _multiply(self, product: Product, number: int) -> str:
        """The text of a product whose factors have theirs; products of other than leaves become definitions."""
        left, right = self._value(product.left), self._value(product.right)
        if isinstance(product.left, Symbol | Constant) and isinstance(product.right, Symbol | Constant):
            # one of both orders, the same one for the same factors, is all that commutativity says of leaves
            return f"(mul {left} {right})" if left <= right else f"(mul {right} {left})"
        name = f"p.{number}"
        self.products.append(f"(define-fun {name} () V (mul {left} {right}))")
        self.products.append(f"(assert (= {name} (mul {right} {left})))")
        return name

    def _value(self, term: Term) -> str:
        """The text of a term's value; a sum's is the constant ``s.i``, or its chain where sums are unrolled."""
        if not isinstance(term, Sum):
            return self.text[id(term)]
        return self.text.get(id(term), f"s.{self.number[id(term)]}")

    def _product_lines(self, term: Product, number: int) -> list[str]:
        """Names a product's value; the lines that define it."""
        self.text[id(term)] = self._multiply(term, number)
        lines, self.products = self.products, []
        return lines

    # ------------------------------------------------------------------------------------- hash and multisets

    def _collected(self) -> list[str]:
        lines = [f"(declare-const s.{self.number[i]} V)" for i in self.values if i in self.number]
        lines += self._collector()
        for number, term in enumerate(self.order):
            if isinstance(term, Product):
                lines += self._product_lines(term, number)
            elif isinstance(term, Sum):
                if self.encoding is not Encoding.COUNTS:
                    lines.append(self._definition(term))
                elif id(term) in self.values:
                    lines += self._counted(term)
        lines += self._singletons()
        for a, b in combinations(self.values.values(), 2):
            lines.append(
                f"(assert (=> (not (= {self._value(a)} {self._value(b)})) "
                f"(not (= {self._collection(a)} {self._collection(b)}))))"
            )
        return lines

    def _collector(self) -> list[str]:
        if self.encoding is Encoding.HASH:
            return [
                f"(define-sort C () (_ BitVec {self.width}))",
                "(declare-fun h (V) C)",
                f"(assert (= (h unit) (_ bv0 {self.width})))",
            ]
        if self.encoding is Encoding.BAGS:
            return ["(define-sort C () (Bag V))"]
        if self.longest > MOST_ELEMENTS:
            raise ValueError(
                f"a sum must have at most {MOST_ELEMENTS} elements for an array of counts, not {self.longest}; "
                "use the hash encoding"
            )
        width = self.longest.bit_length()
        return [
            f"(define-sort C () (Array V (_ BitVec {width})))",
            f"(define-fun none () C ((as const C) (_ bv0 {width})))",
            f"(define-fun insert ((c C) (e V)) C (store c e (bvadd (select c e) (_ bv1 {width}))))",
        ]

    def _definition(self, term: Sum) -> str:
        """What a sum collects, in terms of what the sums among its elements collect."""
        parts = [
            f"C.{self.number[id(e)]}" if isinstance(e, Sum) else self._one(self.text[id(e)])
            for e in term.elements
            if self.encoding is Encoding.HASH or not _is_unit(e)
        ]
        return f"(define-fun C.{self.number[id(term)]} () C {self._joined(parts)})"

    def _one(self, element: str) -> str:
        return f"(h {element})" if self.encoding is Encoding.HASH else f"(bag {element} 1)"

    def _joined(self, parts: Sequence[str]) -> str:
        if len(parts) == 1:
            return parts[0]
        if self.encoding is Encoding.HASH:
            return hash_sum(parts, self.width) if parts else "(h unit)"
        return f"(bag.union_disjoint {' '.join(parts)})" if parts else "(as bag.empty C)"

    def _counted(self, term: Sum) -> Iterator[str]:
        """An array of counts, one definition per element."""
        name, before = f"C.{self.number[id(term)]}", "none"
        for i, element in enumerate(_opened(term)):
            if not _is_unit(element):
                now = f"{name}.{i}"
                yield f"(define-fun {now} () C (insert {before} {self.text[id(element)]}))"
                before = now
        yield f"(define-fun {name} () C {before})"

    def _singletons(self) -> Iterator[str]:
        """What a sum of one factor collects."""
        for term in self.values.values():
            if not isinstance(term, Sum) and self.encoding is Encoding.COUNTS:
                before = "none" if _is_unit(term) else f"(insert none {self.text[id(term)]})"
                yield f"(define-fun C.of.{self.place[id(term)]} () C {before})"

    def _collection(self, term: Term) -> str:
        if isinstance(term, Sum):
            return f"C.{self.number[id(term)]}"
        if self.encoding is Encoding.COUNTS:
            return f"C.of.{self.place[id(term)]}"
        if self.encoding is Encoding.BAGS and _is_unit(term):
            return "(as bag.empty C)"
        return self._one(self.text[id(term)])

    # --------------------------------------------------------------------------------------------- unrolled

    def _unrolled(self) -> list[str]:
        lines = ["(declare-fun add (V V) V)"]
        if self.encoding is Encoding.UNROLLED_LAWS:
            lines += [
                "(assert (forall ((a V) (b V)) (= (add a b) (add b a))))",
                "(assert (forall ((a V) (b V) (c V)) (= (add (add a b) c) (add a (add b c)))))",
                "(assert (forall ((a V)) (= (add a unit) a)))",
            ]
        for number, term in enumerate(self.order):
            if isinstance(term, Product):
                lines += self._product_lines(term, number)
            elif isinstance(term, Sum):
                before = self._value(term.elements[0]) if term.elements else "unit"
                for i, element in enumerate(term.elements[1:], 1):
                    now = f"s.{self.number[id(term)]}.{i}"
                    lines.append(f"(define-fun {now} () V (add {before} {self._value(element)}))")
                    before = now
                self.text[id(term)] = before
        return lines


def _size(number: int | Fraction) -> int | Fraction:
    return -number if number < 0 else number


def _is_unit(term: Term) -> bool:
    return isinstance(term, Constant) and isinstance(term.exact, NegativeZero)


def _opened(term: Sum) -> Iterator[Term]:
    """The elements of a sum, sums among them opened."""
    stack: list[Term] = list(term.elements[::-1])
    while stack:
        element = stack.pop()
        if isinstance(element, Sum):
            stack.extend(element.elements[::-1])
        else:
            yield element
