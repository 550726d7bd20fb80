"""What the printer of obligations says is what conditions mean, on a grid; changed printers are caught."""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pysmt.shortcuts as smt
import pytest

from chc.tensor_rules import obligations
from ir_semantics.tensors.conditions import All, AtLeastZero, Condition, IsZero, OneOf, TruthOf
from ir_semantics.tensors.index import Index, Quotient
from smt_encodings.printer import script
from smt_encodings.solvers import z3 as solver_z3

A, B = Index({("a",): 1}), Index({("b",): 1})
BY_2, BY_B = (Index({(Quotient(A, divisor),): 1}) for divisor in (Index({(): 2}), B))
M = TruthOf("m", (A,))
Question = tuple[tuple[Condition, ...], Condition]
QUESTIONS: tuple[Question, ...] = (
    ((AtLeastZero(A - 1),), AtLeastZero(B - 1)),
    ((AtLeastZero(2 * A - 3 * B), AtLeastZero(A * B)), IsZero(A - B)),
    ((IsZero(BY_2 - B),), OneOf((IsZero(A - 2 * B), IsZero(A - 2 * B - 1)))),
    ((AtLeastZero(B),), IsZero(BY_B - 1)),
    ((All((AtLeastZero(A), IsZero(B))),), OneOf(())),
    ((OneOf((IsZero(A), AtLeastZero(B - 1))),), All((AtLeastZero(A), AtLeastZero(B)))),
    ((AtLeastZero(BY_2 - B),), AtLeastZero(A)),
    ((AtLeastZero(A), AtLeastZero(B), AtLeastZero(A - B)), AtLeastZero(A * A - B * B)),
    ((M,), TruthOf("m", (B,))),
    ((TruthOf("m", (A,), False),), TruthOf("m", (B,), False)),
    ((M,), TruthOf("m", (B,), False)),
    ((AtLeastZero(A),), IsZero(Index({}))),
)


def number(value: Index, at: Mapping[Any, int]) -> int:
    """The value of an index where quotients have the values that they are given."""
    total = 0
    for monomial, coefficient in value.terms:
        for atom in monomial:
            coefficient *= at[atom]
        total += coefficient
    return total


def true(condition: Condition, at: Mapping[Any, Any]) -> bool:
    """Whether a condition holds; Boolean tensors are functions of their subscripts."""
    match condition:
        case AtLeastZero(value):
            return number(value, at) >= 0
        case IsZero(value):
            return number(value, at) == 0
        case TruthOf(_, (i,), wanted):
            return at["m"][number(i, at)] is wanted
        case All(parts):
            return all(true(p, at) for p in parts)
        case OneOf(parts):
            return any(true(p, at) for p in parts)
    raise AssertionError(condition)


def falsified(question: Question, a: int, b: int) -> bool:
    """Whether hypotheses hold and the goal does not, for some truth values and quotients by what is not positive."""
    hypotheses, goal = question
    divided = [a // b] if b > 0 else range(-9, 10)
    for q, truths in itertools.product(divided, itertools.product((False, True), repeat=2)):
        m = {a: truths[0]} | {b: truths[1]} if a != b else {a: truths[0]}
        at: dict[Any, Any] = {"a": a, "b": b, Quotient(A, Index({(): 2})): a // 2, Quotient(A, B): q, "m": m}
        if all(true(h, at) for h in hypotheses) and not true(goal, at):
            return True
    return False


def differences(printer: types.ModuleType) -> Iterator[str]:
    """Points at which what is printed can be satisfied although it should not, or the reverse."""
    for hypotheses, goal in QUESTIONS:
        known = printer.extended((), *hypotheses)
        left = printer.remaining(known, goal)
        for a, b in itertools.product((-2, -1, 0, 1, 3), repeat=2):
            facts, lemmas = printer.assertions(known, left)
            fixed = [smt.Equals(smt.Symbol(n, smt.INT), smt.Int(v)) for n, v in (("a", a), ("b", b))]
            said = solver_z3.check(script([*facts, *lemmas, *fixed]), 5.0).status
            cleared = b > 0 or not any(BY_B.terms[0][0][0] in i.quotients for i in obligations.indices_of(goal))
            if cleared and said != ("sat" if falsified((hypotheses, goal), a, b) else "unsat"):
                yield f"{' and '.join(map(str, hypotheses))} give {goal}, at a = {a}, b = {b}: {said}"
    if solver_z3.check(script(printer.assertions((IsZero(B),), AtLeastZero(BY_B))[0]), 5.0).status != "sat":
        yield "a quotient by 0 is known"


TEXT = Path(str(obligations.__file__)).read_text(encoding="utf-8")
CHANGES = (
    ("return smt.GE(self.index(value), smt.Int(0))", "return smt.GT(self.index(value), smt.Int(0))"),
    ("return smt.Equals(self.index(value), smt.Int(0))", "return smt.GE(self.index(value), smt.Int(0))"),
    ("return term if positive else smt.Not(term)", "return term"),
    ("return smt.And([self", "return smt.Or([self"),
    ("return smt.Or([self", "return smt.And([self"),
    ("smt.Not(terms.condition(goal))", "terms.condition(goal)"),
    ("*map(terms.condition, known)", "*map(terms.condition, known[:1])"),
    ("*terms.definitions()", "*()"),
    ("smt.LE(smt.Times(b, q), a)", "smt.LT(smt.Times(b, q), a)"),
    ("smt.LT(a, smt.Plus(smt.Times(b, q), b))", "smt.LE(a, smt.Plus(smt.Times(b, q), b))"),
    ("smt.Implies(smt.GE(b, smt.Int(1)), inside)", "smt.Implies(smt.GE(b, smt.Int(0)), inside)"),
    ("smt.Implies(smt.GE(b, smt.Int(1)), inside)", "inside"),
    ("if coefficient != 1 or not factors", "if not factors"),
    ("if p not in hypotheses", "if p in hypotheses"),
    ("negative = [negation(AtLeastZero(f)) for f in (*factors, bound)]", "negative = []"),
    ("negative = [negation(AtLeastZero(f)) for f in (*factors, bound)]", "negative = [negation(AtLeastZero(bound))]"),
    ("flat = dict.fromkeys(hypotheses)", "flat = dict.fromkeys([*hypotheses, All((OneOf(()),))])"),
    ("else smt.Int(0)\n", "else smt.Int(1)\n"),
)
"""Places of the printer, and what makes them wrong."""


def test_what_is_printed_is_what_conditions_mean() -> None:
    assert list(differences(obligations)) == []


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c[1])
def test_a_changed_printer_is_caught(change: tuple[str, str]) -> None:
    assert change[0] in TEXT
    changed = types.ModuleType("chc.tensor_rules.changed")
    changed.__package__ = "chc.tensor_rules"
    exec(compile(TEXT.replace(*change), "changed", "exec"), changed.__dict__)
    assert next(differences(changed), None) is not None
