"""Uninterpreted operators, lemmas, and machine numbers as bit-vectors."""

from __future__ import annotations

import pytest

from ir_semantics.scalars.concrete import evaluate, values_of
from ir_semantics.scalars.formats import BINARY32, REALS, Format, integer
from ir_semantics.scalars.machine import MachineExpressions
from ir_semantics.scalars.terms import Scalar, cast, constant, interpret, maximum, select, variable
from smt_encodings.environment import fresh_symbols
from smt_encodings.interpretations import CannotInterpret, MachineBits, Symbols
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

x, y, z = variable("x"), variable("y"), variable("z")


def proved(claim: Scalar, *laws: Scalar, number: Format = BINARY32) -> bool:
    with fresh_symbols():
        encoding = Symbols()
        (goal,) = interpret([~claim], encoding, number)
        for law in laws:
            encoding.lemma(interpret([law], encoding, number)[0], str(law))
        assert encoding.assumptions == tuple(map(str, laws))
        text = encoding.script([goal])
    answers = {s.check(text, 10).status for s in (solver_z3, solver_cvc5)}
    return answers == {"unsat"}


def test_congruence_and_choice_need_no_lemma() -> None:
    assert proved((x + y).same(x + y))
    assert proved(select(x < y, x, y).same(select(~(x < y), y, x)))
    assert proved(~x.same(y) | (x * z).same(y * z))


def test_nothing_is_known_of_operators() -> None:
    assert not proved((x + y).same(y + x))
    assert not proved((x + 0).same(x))
    assert not proved((x < y) | (y <= x))


def test_a_lemma_holds_for_all_values() -> None:
    commutes = maximum(x, y).same(maximum(y, x))
    assert proved(maximum(z, maximum(x, y)).same(maximum(maximum(y, x), z)), commutes)
    associates = maximum(maximum(x, y), z).same(maximum(x, maximum(y, z)))
    assert not proved(associates, commutes)
    assert proved(maximum(maximum(x, y), z).same(maximum(maximum(z, x), y)), commutes, associates)


def test_constants_differ_and_keep_their_formats() -> None:
    assert proved(~constant(0, REALS).same(constant(1, REALS)))
    assert proved(~constant(0.0).same(constant(-0.0)))
    assert not proved(cast(constant(0), REALS).same(constant(0, REALS)))


@pytest.mark.parametrize("kind", [integer(4), integer(4, signed=False, overflow="saturate")], ids=str)
def test_bits_say_what_evaluation_says(kind: Format) -> None:
    """One question for all operands: the term with variables, at each value, is what evaluation gives."""
    p, q = variable("x", kind), variable("y", kind)
    term = (p + q) * p - maximum(q, 3)
    with fresh_symbols():
        encoding = MachineBits(MachineExpressions())
        wrong = constant(False)
        for a in values_of(kind)[::2]:
            for b in values_of(kind)[::3]:
                value = evaluate(term, {"x": a, "y": b})
                wrong = wrong | (p.equals(int(a)) & q.equals(int(b)) & ~term.equals(int(value)))
        text = encoding.script(interpret([wrong], encoding, kind))
    assert "(set-logic QF_BV)" in text
    assert {s.check(text, 20).status for s in (solver_z3, solver_cvc5)} == {"unsat"}


def test_only_machine_numbers_are_bits() -> None:
    with pytest.raises(CannotInterpret, match=r"bit-vectors must be machine numbers, not binary32"):
        interpret([x + y], MachineBits(MachineExpressions()), BINARY32)
