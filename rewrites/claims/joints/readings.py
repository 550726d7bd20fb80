"""That a primitive on signed integers is the operation that a joint reads it as: a question to solvers, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pysmt.shortcuts as smt

from ila_lang import BvSort, Expr, Function, const, ite, var
from ir_semantics.layers.layer import bits
from rewrites.bounds.kernel.readings import ANY, Term
from smt_encodings.claims import Obligation
from smt_encodings.environment import fresh_symbols
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.printer import script

from .instruction import Unread, require_functions

GROUP = "readings"
ADVICE = (
    "a reading is an operation on integers, rounded down: a primitive that rounds to nearest, or saturates where the "
    "result fits, has none, and what it computes is declared (leave the joint out)"
)
"""What helps where a primitive is not its operation."""


def operands_of(term: Term) -> int:
    """How many operands an operation has."""
    return 1 if term == ANY else 0 if isinstance(term, str) else sum(map(operands_of, term))


def obligations(readings: Mapping[Function, Term]) -> Iterator[Obligation]:
    """The questions, not yet asked; raises Unread for operations and functions that are not of integers."""
    require_functions(readings)
    for function, term in readings.items():
        with fresh_symbols():
            hypothesis, goal, meaning = _statement(function, term)
            encoding = BitEncoding()
            negated = [encoding.term(hypothesis), smt.Not(encoding.term(goal))]
            text = script(negated, comment=f"{GROUP}: {function.name}\n{meaning}")
        yield Obligation(function.name, GROUP, text, "unsat", meaning)


def where(function: Function, term: Term) -> str:
    """Of which operands a primitive is its operation."""
    count, fits = operands_of(term), f"where that fits {bits(function.result)} bits"
    if len(function.params) == count:
        return fits
    return f"rounded down, {fits}, and {_widest(function, count)} bits before it is shifted"


def _widest(function: Function, count: int) -> int:
    return max(map(bits, (function.result, *(p.sort for p in function.params[:count]))))


def _statement(function: Function, term: Term) -> tuple[Expr, Expr, str]:
    count = operands_of(term)
    data = [var(f"a{i}", p.sort) for i, p in enumerate(function.params[:count])]
    shifts = [var("shift", p.sort) for p in function.params[count:]]
    words = all(isinstance(v.sort, BvSort) for v in (*data, *shifts)) and isinstance(function.result, BvSort)
    if len(data) != count or len(shifts) > 1 or not words:
        raise Unread(f"{function.name} must have the {count} operands of its reading, and at most a shift besides")
    result, wide = function(*data, *shifts), _widest(function, count)
    operands = iter(data)

    def go(term: Term) -> Expr:
        """The operation in as many bits as hold it whatever the operands are."""
        if term == ANY:
            return next(operands)
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
    width = max(exact.width, wide, *(s.width for s in shifts))
    exact = exact.sext(width)
    moved = exact.ashr(shifts[0].zext(width)) if shifts else exact
    meaning = f"{function.name} is its operation on integers, {where(function, term)}"
    return _fits(exact, wide) & _fits(moved, result.width), result.sext(width) == moved, meaning


def _fits(value: Expr, width: int) -> Expr:
    least, largest = (
        const(n & ((1 << value.width) - 1), value.width) for n in (-1 << (width - 1), (1 << (width - 1)) - 1)
    )
    return least.sle(value) & value.sle(largest)
