"""Index terms that go to the language of guesses and back are the numbers that they were; against plain counting."""

from __future__ import annotations

from itertools import product

import hypothesis.strategies as st
from hypothesis import given, settings

from chc.mapping.dataflow import Context
from chc.mapping.proof import Proof
from chc.mapping.relate.subscripts import Subscripts
from chc.mapping.sampling.samples import samples_of
from chc.mapping.sampling.sizes import Tried
from ila_lang import compile_terms
from ir_semantics.elements.evaluate import Budget, Evaluation
from ir_semantics.elements.operators import at_most, both, equal, minus, negation, plus, quotient, remainder, times
from ir_semantics.elements.terms import Term, new_terms, number, variable_of
from smt_encodings.discharge import Discharger
from smt_encodings.environment import fresh_symbols
from tests.chc.mapping.toy import M, N, mapping

CLAIM = mapping()


def _context() -> Context:
    proof = Proof(CLAIM, Discharger(), 1.0, None)
    cell = CLAIM.coordinates
    for coordinate, extent in cell:
        proof.base.assume(extent > coordinate)
    return Context(proof, proof.base, cell, samples_of(proof.parameters, cell, Tried.of(CLAIM).own))


def _natural(data: st.DataObject, variables: list[Term]) -> Term:
    """A number that is not negative, as its signs show."""
    a, b, c = (data.draw(st.sampled_from([*variables, number(1), number(3)])) for _ in "abc")
    total = data.draw(st.sampled_from((plus(a, b, c), plus(times(a, b), c), times(a, b, c))))
    divisor = number(data.draw(st.sampled_from((1, 2, 4, 5))))
    return data.draw(st.sampled_from((quotient, remainder)))(total, divisor)


def _integer(data: st.DataObject, variables: list[Term]) -> Term:
    """Any number; what is divided is not negative, negated, or less by a constant."""
    natural = _natural(data, variables)
    negated = quotient(minus(number(data.draw(st.integers(0, 3))), natural), number(4))
    less = quotient(minus(natural, number(data.draw(st.integers(0, 9)))), number(4))
    return plus(*(data.draw(st.sampled_from((natural, negated, less, _natural(data, variables)))) for _ in "ab"))


def test_a_condition_says_the_same_of_all_numbers() -> None:
    with fresh_symbols():
        context = _context()

        @settings(max_examples=60)
        @given(st.data())
        def of_drawn(data: st.DataObject) -> None:
            with new_terms():
                subscripts = Subscripts()
                expressions = [M, N, *(c for c, _ in CLAIM.coordinates)]
                variables = [subscripts.variable(context, v) for v in expressions]
                a, b = _integer(data, variables), _integer(data, variables)
                term = both(at_most(a, b), negation(equal(plus(a, number(2)), b)))
                run = compile_terms(expressions, [subscripts.condition(term)])
                for at in product((0, 1, 2, 5), repeat=4):
                    values = dict(zip(map(variable_of, variables), at, strict=True))
                    expected = Evaluation(values, lambda *_: 0, Budget(10_000)).value(term)
                    assert bool(run(*at)[0]) == bool(expected), (str(term), at)

        of_drawn()
