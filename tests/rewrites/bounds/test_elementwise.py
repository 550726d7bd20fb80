"""Bounds of single elements: they hold of the device's words, and lie below those at ranges of all elements."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from rewrites.bounds.bound_runs import Data, _both, _drawn, number
from rewrites.bounds.derivations.calculus import Operator
from rewrites.bounds.elementwise import FLOAT_ERROR, Bounded, bound_elements, bound_ranges, evaluate, ranges_of
from rewrites.bounds.kernel.formula import half_step, inverse_root, power_of_two, symbol
from rewrites.bounds.kernel.judgements import Rejected, indices_of
from rewrites.bounds.kernel.readings import LARGEST_AT_0, TINY_AT_0, Term
from rewrites.bounds.kernel.replay import replay
from rewrites.bounds.values import FLOATS, Values
from rewrites.campaigns.accelerators.device import quantise_fitting
from rewrites.claims.theorems import applied
from rewrites.claims.theorems.machines import CONVOLUTIONS
from rewrites.claims.theorems.operators import OPERATORS
from tests.rewrites.bounds.derivation import Derivation


def free(term: Term) -> set[str]:
    """The indices that a term's value depends on."""
    if isinstance(term, str):
        return set(indices_of(term))
    if term[0] in ("sum", "average", "max over", "zeros of"):
        return free(term[2]) - {str(term[1])}
    return set().union(*map(free, term[2:] if term[0] == "from the largest" else term[1:]))


IN_STEPS = [n for n, o in OPERATORS.items() if o.steps[-1].law != "growth"]


def first_element(operator: Operator, data: Data) -> Bounded:
    leaves, theorem = {}, operator.theorem
    for leaf, (form, bias, *_) in theorem.leaves.items():
        indices = indices_of(leaf)
        shape = [data.extents[i] for i in indices]
        value, error = np.zeros(shape), np.zeros(shape)
        for place, real in data.reals[leaf].items():
            value[place] = float(real)
            if form:
                error[place] = float(abs(real - number(data.words[leaf][place], form, data.biases.get(bias, 0))))
        leaves[leaf] = "".join(indices), Bounded(value, error)
    found = bound_elements(operator, "".join(sorted(free(theorem.result.real))), leaves, data.biases)
    return Bounded(found.value.ravel()[:1], found.error.ravel()[:1])


@pytest.mark.parametrize("name", IN_STEPS)
def test_the_devices_words_are_within_the_bounds_of_elements(name: str) -> None:
    operator, draw, stated = OPERATORS[name], random.Random(name), 0
    for attempt in range(60):
        data = _drawn(operator.theorem, draw, attempt)
        found = first_element(operator, data)
        if np.isinf(found.error):
            continue
        stated += 1
        device, real, _ = _both(operator.theorem, data)
        assert float(max(real.high - device, device - real.low)) <= found.error + 2.0**-40
        assert float(real.low) == pytest.approx(found.value[0], abs=FLOAT_ERROR)
        if stated == 12:
            break
    assert stated >= 3


def test_of_time_there_is_no_bound_of_elements() -> None:
    operator = OPERATORS["FlexASR RNN, T steps"]
    data = _drawn(operator.theorem, random.Random(0), 0)
    with pytest.raises(KeyError, match="steps"):
        first_element(operator, data)


def test_elements_are_bound_by_what_holds_of_all_of_them() -> None:
    generator = np.random.default_rng(1)
    x, w, b = (quantise_fitting(generator.uniform(-1, 1, shape)) for shape in ((3, 16), (5, 16), (5,)))
    theorem = applied.linear(x, w, b, 3)
    whole, error = theorem.whole().value, theorem.elements().error
    assert whole is not None
    assert error.max() == float(whole)  # the largest element has the ranges of all
    assert error.min() < error.max()


def test_ranges_are_those_of_all_elements_that_are_given() -> None:
    generator = np.random.default_rng(2)
    x, w, b = (quantise_fitting(generator.uniform(-1, 1, shape)) for shape in ((3, 16), (5, 16), (5,)))
    theorem = applied.linear(x, w, b, 3)
    found = ranges_of(theorem.operator, theorem.leaves, theorem.biases)
    sums = x.values @ w.values.T
    assert found == {
        "W": np.abs(w.values).sum(axis=1).max(), "X": np.abs(x.values).max(), "B": np.abs(b.values).max(),
        "S": np.abs(sums).max(), "Y": np.abs(sums + b.values).max(), "I": 16, "w": np.abs(w.values).max(),
        "b_w": w.bias, "b_x": x.bias, "b_y": 3,
    }  # fmt: skip
    without = {leaf: given for leaf, given in theorem.leaves.items() if leaf != "b"}
    assert found.keys() - ranges_of(theorem.operator, without, theorem.biases).keys() == {"B", "Y"}


def test_sums_of_products_are_those_of_their_terms() -> None:
    generator = np.random.default_rng(3)
    shapes = (
        ((2, 1, 5), (1, 4, 5)),
        ((2, 4, 5), (2, 4, 5)),
        ((2, 1, 5), (1, 4, 1)),
        ((1, 1, 1), (2, 1, 5)),
        ((1,) * 3,) * 2,
    )
    for first, second in shapes:
        a, b = generator.integers(-9, 9, first) / 4, generator.integers(-9, 9, second) / 8
        values = Values({"a": a, "b": b}, {"i": 2}, (2, 4, 5), FLOATS)
        terms = np.broadcast_to(a * b, (*np.broadcast_shapes(first, second)[:2], 5))
        assert np.array_equal(values.of(("sum", "i", ("*", "a", "b"))), terms.sum(axis=2, keepdims=True))


def test_an_element_is_transposed_as_its_axes_say() -> None:
    x = quantise_fitting(np.arange(6.0).reshape(2, 3) / 8)
    pair = {"x0": ("tf", x.values), "x1": ("tf", x.values + 1)}
    operator = OPERATORS["FlexASR add pooling"]
    right, turned = (bound_elements(operator, axes, pair, {"b": 4}) for axes in ("tf", "ft"))
    assert np.array_equal(turned.error, right.error.T)
    assert np.array_equal(right.value, 2 * x.values + 1)


@pytest.mark.parametrize("value", [Fraction(1, 1000), Fraction(1), Fraction(3, 2), Fraction(40)])
def test_formulas_on_arrays_are_those_on_fractions(value: Fraction) -> None:
    x, y = symbol("x"), symbol("y")
    formulas = [half_step(x), power_of_two(y), x / (x + y), 3 * x - y, inverse_root(x)]
    values = {"x": value, "y": Fraction(2)}
    for formula in formulas:
        found = evaluate(formula, {n: np.array(float(v)) for n, v in values.items()})
        assert found == pytest.approx(float(formula.evaluate(values)), rel=1e-11)


def test_what_is_undefined_has_no_bound() -> None:
    x = {"x": np.array([-1.0, 0.0, 1.0])}
    with np.errstate(all="ignore"):
        assert np.isnan(evaluate(inverse_root(symbol("x")), x)).tolist() == [True, True, False]
        assert np.isnan(evaluate(symbol("x") / symbol("x"), x)).tolist() == [
            True, True, False,
        ]  # fmt: skip


def test_ranges_of_arrays_have_the_bound_of_each() -> None:
    operator = CONVOLUTIONS[16]
    sums = [1.0, 200.0, 255.99, 300.0]
    found = bound_ranges(operator, {"n": 9, "x": 1, "w": 1, "M": np.array(sums)})
    for each, bound in zip(sums, found, strict=True):
        value = operator.bound({"n": 9, "x": 1, "w": 1, "M": each}).value
        assert bound == (np.inf if value is None else float(value))


def test_a_number_that_cannot_become_zero_needs_a_lower_bound() -> None:
    d = Derivation()
    d.lemma("encode", d("given", names=["x", "fixed", "X", "e", ""]), "b", "least")
    theorem = replay(d.steps)
    values = {"X": Fraction(1, 8), "e": Fraction(0), "b": Fraction(3), "least": Fraction(1, 8)}
    assert theorem.result.error.evaluate(values) == Fraction(1, 256)
    (condition,) = theorem.conditions
    assert condition.reason == "a number may become zero"
    assert condition.left.evaluate(values) == TINY_AT_0 * 8 < LARGEST_AT_0
    d = Derivation()
    d.lemma("encode", d("given", names=["x", "fixed", "X", "e", ""]), "b", "any size", "least")
    with pytest.raises(Rejected):
        replay(d.steps)


def test_what_is_left_out_is_at_most_what_the_theorem_says() -> None:
    x, gamma, beta = (quantise_fitting(np.ones(shape) / 2) for shape in ((2, 16), (16,), (16,)))
    for epsilon in (0.0, 1e-5):
        assert applied.layer_norm(x, gamma, beta, epsilon).elements().value.shape == (2, 1, 16)
    told = "^epsilon of FlexASR layer norm must be at most 1/99999 in magnitude, not 0.001$"
    with pytest.raises(ValueError, match=told):
        applied.layer_norm(x, gamma, beta, 1e-3).whole()


def test_nothing_is_said_of_what_has_another_sign_than_the_theorem_is_about() -> None:
    """The unit shifts to the left by a negative number."""
    operator = OPERATORS["VTA shift"]
    for by, bounded in ((2.0, True), (-8.0, False)):
        leaves = {"a": ("", np.array(3.0)), "by": ("", np.array(by))}
        assert np.isfinite(bound_elements(operator, "", leaves, {}).error).all() == bounded
        if bounded:
            assert ranges_of(operator, leaves, {})["A"] == 3.0
        else:
            with pytest.raises(ValueError, match=r"^what VTA shift shifts by or cuts at must have the signs that its "):
                ranges_of(operator, leaves, {})
