"""That a primitive on signed integers is the operation that a joint reads it as: a question to solvers, bit by bit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import pysmt.shortcuts as smt

from ila_lang import BvSort, Expr, Function, all_of, const, ite
from ila_lang.language.expr import private_var
from ir_semantics.layers.layer import bits
from rewrites.bounds.kernel.readings import ANY, Term
from smt_encodings.claims import Obligation
from smt_encodings.environment import fresh_symbols
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.printer import script

from .instruction import Unread, require_functions

GROUP = "readings"
ADVICE = (
    "a reading is an operation on integers, in units rounded down or up: a primitive that is further off, or saturates "
    "where the result fits, has none, and what it computes is declared (leave the joint out)"
)
"""What helps where a primitive is not its operation."""


def operands_of(term: Term) -> int:
    """How many operands an operation has."""
    return 1 if term == ANY else 0 if isinstance(term, str) else sum(map(operands_of, term))


Use: TypeAlias = "tuple[Function, tuple[Expr, ...]]"
"""A primitive, and what its parameters are that its operation does not take: in terms of the mapping's sizes."""


def obligations(readings: Mapping[Function, Term], uses: Iterable[Use]) -> Iterator[Obligation]:
    """The questions, not yet asked; raises Unread for operations and functions that are not of integers."""
    require_functions(readings)
    for number, (function, others) in enumerate(uses):
        with fresh_symbols():
            hypothesis, goal, meaning = _statement(function, readings[function], others)
            encoding = BitEncoding()
            negated = [encoding.term(hypothesis), smt.Not(encoding.term(goal))]
            text = script(negated, comment=f"{GROUP}: {function.name}\n{meaning}")
        yield Obligation(f"{function.name} {number}" if number else function.name, GROUP, text, "unsat", meaning)


def where(function: Function, term: Term) -> str:
    """Of which operands a primitive is its operation."""
    count, fits = operands_of(term), f"where that fits {bits(function.result)} bits"
    if len(function.params) == count:
        return fits
    return f"rounded down or up, {fits}, and with its parts {_widest(function, count)} bits before it is shifted"


def _widest(function: Function, count: int) -> int:
    return max(map(bits, (function.result, *(p.sort for p in function.params[:count]))))


def _statement(function: Function, term: Term, others: tuple[Expr, ...]) -> tuple[Expr, Expr, str]:
    count = operands_of(term)
    data = [private_var(f"a{i}", p.sort) for i, p in enumerate(function.params[:count])]
    words = all(isinstance(v.sort, BvSort) for v in (*data, *others)) and isinstance(function.result, BvSort)
    if len(data) != count or not words:
        raise Unread(f"{function.name} must have the {count} operands of its reading")
    result, wide = function(*data, *others), _widest(function, count)
    operands, parts = iter(data), list[Expr]()

    def go(term: Term) -> Expr:
        """The operation in as many bits as hold it whatever the operands are."""
        parts.append(next(operands) if term == ANY else of_parts(term))
        return parts[-1]

    def of_parts(term: Term) -> Expr:
        match term:
            case ("+" | "*" | "max" as op, first, second):
                a, b = go(first), go(second)
                width = a.width + b.width if op == "*" else max(a.width, b.width) + (op == "+")
                a, b = a.sext(width), b.sext(width)
                return a + b if op == "+" else a * b if op == "*" else ite(a.slt(b), b, a)
            case ("rectify", of):
                a = go(of)
                return ite(a.slt(0), const(0, a.width), a)
        raise Unread(f"the reading of {function.name} must consist of +, *, max and rectify")

    exact = go(term)
    width = max(exact.width, wide, *(s.width for s in others[-1:])) + 1
    exact = exact.sext(width)
    shift = others[-1].zext(width) if others else const(0, width)
    down = exact.ashr(shift)
    left = exact - (down << shift)
    up = ite(left == 0, down, down + 1)
    found = result.sext(width)
    meaning = f"{function.name} is its operation on integers, {where(function, term)}"
    fits = _fits(down, result.width) & _fits(up, result.width)
    if others:
        fits = all_of([fits, *(_fits(part, wide) for part in parts if part.width > wide)])
    return fits, (found == down) | (found == up), meaning


def _fits(value: Expr, width: int) -> Expr:
    least, largest = (
        const(n & ((1 << value.width) - 1), value.width) for n in (-1 << (width - 1), (1 << (width - 1)) - 1)
    )
    return least.sle(value) & value.sle(largest)
