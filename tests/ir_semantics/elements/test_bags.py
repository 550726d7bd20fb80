"""Bags of terms: what they add up to, and how large they are."""

from __future__ import annotations

import random

from ir_semantics.elements.bags import families, operator_of
from ir_semantics.elements.evaluate import Budget, Evaluation
from ir_semantics.elements.operators import apply, choose
from ir_semantics.elements.terms import Term, fresh, new_terms, variable_of
from ir_semantics.scalars.formats import BOOLEAN, Format, Value

WORD = Format("integer", (8, "signed", "wrap"))


def value_of(term: Term, values: dict[Term, Value]) -> Value:
    symbols = {variable_of(t): v for t, v in values.items()}
    return Evaluation(symbols, lambda array, at: 0, Budget(10**6)).value(term)


def test_a_bag_of_choices_that_share_what_they_choose_among_is_small_and_means_the_same() -> None:
    draw = random.Random(0)
    for steps in (3, 8, 250):  # written as a tree, 2 ** steps summands
        with new_terms():
            total = fresh("t", WORD)
            values: dict[Term, Value] = {total: 5}
            for k in range(steps):
                condition, x, y = fresh(f"c{k}", BOOLEAN), fresh(f"x{k}", WORD), fresh(f"y{k}", WORD)
                values |= {condition: draw.random() < 0.5, x: draw.randint(-128, 127), y: draw.randint(-128, 127)}
                other = apply("add", y, total) if k % 2 else total
                total = choose(condition, apply("add", total, x), other)
            operator = operator_of(total)
            assert operator is not None
            bag = families(total, operator)
            assert len(bag) == 1 + steps + steps // 2
            kept = [value_of(f.summand, values) for f in bag if value_of(f.condition, values)]
            assert (sum(int(v) for v in kept) - int(value_of(total, values))) % 256 == 0
