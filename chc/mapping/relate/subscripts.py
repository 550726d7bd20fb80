"""Index terms of proofs as terms of :mod:`ir_semantics.elements`, in which maps of index sets are guessed, and back.

Both ways keep the number: an index is translated to integers first, with obligations that nothing wraps around, and
what comes back is an expression that is wide enough for all of its parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pysmt.shortcuts as smt
from pysmt.fnode import FNode

from chc.mapping.arithmetic.exact import equal, product, total
from chc.mapping.memory.contexts import Context
from ila_lang import Expr, all_of, const, false, resize, true
from ir_semantics.elements.operators import (
    at_most,
    atom,
    below,
    both,
    either,
    minus,
    negation,
    of_polynomial,
    plus,
    polynomial,
    quotient,
    remainder,
    times,
)
from ir_semantics.elements.operators import equal as equal_to
from ir_semantics.elements.terms import (
    Symbol,
    Term,
    fresh,
    integer_value,
    is_false,
    is_true,
    number,
    truth,
    variable_of,
)
from ir_semantics.scalars.formats import INTEGERS
from ir_semantics.tensors.index import Atom, Index, Quotient
from smt_encodings.claims import Unsupported
from smt_encodings.expressions.integers import IntegerEncoding


@dataclass
class Subscripts:
    """The variables of index terms, in both languages."""

    _terms: dict[FNode, Term] = field(default_factory=dict)
    _variables: dict[Symbol, Expr] = field(default_factory=dict)

    def variable(self, context: Context, variable: Expr) -> Term:
        """A size, coordinate or counter of a context."""
        symbol = context.encoding.symbol(variable)
        if symbol not in self._terms:
            self._terms[symbol] = term = fresh(variable.name, INTEGERS)
            self._variables[variable_of(term)] = variable
        return self._terms[symbol]

    def term(self, context: Context, index: FNode) -> Term:
        """An index of a context; raises Unsupported where it is more than sums, products and quotients."""
        for variable in (*context.samples.parameters, *(c for c, _ in context.ranges)):
            self.variable(context, variable)
        return self._term(context.encoding, index)

    def _term(self, encoding: IntegerEncoding, index: FNode) -> Term:
        if index.is_constant():
            return number(int(index.constant_value()))
        if index.is_symbol():
            return self._terms[index] if index in self._terms else self._divided(encoding, index)
        if not (index.is_plus() or index.is_times() or index.is_minus()):
            raise Unsupported("an index is a choice between others")
        args = [self._term(encoding, a) for a in index.args()]
        return plus(*args) if index.is_plus() else times(*args) if index.is_times() else minus(*args)

    def _divided(self, encoding: IntegerEncoding, symbol: FNode) -> Term:
        """What the symbol of a quotient or a remainder stands for."""
        for value, divisor, symbols in encoding.quotients():
            if symbol in symbols:
                by = number(divisor) if isinstance(divisor, int) else self._term(encoding, divisor)
                operator = quotient if symbol is symbols[0] else remainder
                return operator(self._term(encoding, value), by)
        raise Unsupported(f"an index depends on {symbol}, which is no size, coordinate or counter")

    def truth(self, context: Context, condition: FNode) -> Term:
        """A condition of a context on sizes, coordinates and counters."""
        self.term(context, smt.Int(0))  # variables of the context
        return self._truth(context.encoding, condition)

    def _truth(self, encoding: IntegerEncoding, term: FNode) -> Term:
        if term.is_bool_constant():
            return truth(bool(term.constant_value()))
        if term.is_and() or term.is_or():
            parts = [self._truth(encoding, a) for a in term.args()]
            return both(*parts) if term.is_and() else either(*parts)
        if term.is_not():
            return negation(self._truth(encoding, term.arg(0)))
        if not (term.is_le() or term.is_lt() or term.is_equals()):
            raise Unsupported("a condition on indices is more than comparisons of them")
        a, b = (self._term(encoding, x) for x in term.args())
        return equal_to(a, b) if term.is_equals() else at_most(a, b) if term.is_le() else below(a, b)

    # -- back ----------------------------------------------------------------------------------------------

    def index(self, term: Term) -> Expr:
        """An integer that is not negative."""
        more, less = self._parts(polynomial(term))
        width = max(more.width, less.width)
        return resize(more, width) - resize(less, width) if not less.is_const or less.value else more

    def condition(self, term: Term) -> Expr:
        """A condition on integers."""
        if is_true(term) or is_false(term):
            return true if is_true(term) else false
        match term.op:
            case "and":
                return all_of([self.condition(a) for a in term.args])
            case "not":
                return ~self.condition(term.args[0])
            case "le" | "eq" if integer_value(term.args[0]) == 0:
                more, less = self._parts(polynomial(term.args[1]))
                width = max(more.width, less.width)
                return equal(more, less) if term.op == "eq" else resize(less, width) <= resize(more, width)
        raise Unsupported(f"a condition on indices has the operator {term.op}")

    def _parts(self, value: Index) -> tuple[Expr, Expr]:
        """What an integer has with positive signs, and what it has with negative ones."""
        more: list[Expr] = []
        less: list[Expr] = []
        for monomial, coefficient in value.rebuild(_not_negative).terms:
            size = abs(coefficient)
            part = product([const(size, size.bit_length()), *map(self._factor, monomial)])
            (more if coefficient > 0 else less).append(part)
        return total(more), total(less)

    def _factor(self, factor: Atom) -> Expr:
        if isinstance(factor, str):
            term = atom(factor)
            if term.op != "symbol":
                raise Unsupported(f"an index depends on {term}, which is no size, coordinate or counter")
            return self._variables[variable_of(term)]
        dividend, divisor = (self.index(of_polynomial(x)) for x in (factor.dividend, factor.divisor))
        width = max(dividend.width, divisor.width)
        return resize(dividend, width) // resize(divisor, width)


def _not_negative(factor: Atom) -> Index | None:
    """A quotient by way of one whose dividend is not negative, as far as its signs tell; None for others.

    ``x // d`` is ``(x + m*d) // d - m``, and ``-x // d`` is ``-((x + d - 1) // d)``.
    """
    if isinstance(factor, str):
        return None
    dividend, divisor = factor.dividend, factor.divisor
    constant = dict(dividend.terms).get((), 0)
    signs = {c > 0 for m, c in dividend.terms if m}
    if signs == {False}:
        return -Index({(Quotient(divisor - 1 - dividend, divisor),): 1})
    if signs == {True} and constant < 0 and divisor.constant is not None:
        blocks = -(constant // divisor.constant)
        return Index({(Quotient(dividend + blocks * divisor, divisor),): 1}) - blocks
    return None
