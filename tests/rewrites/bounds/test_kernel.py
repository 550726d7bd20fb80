"""The kernel of bounds: what it refuses, what its laws and readings rest on, and that no smaller formula is proved."""

from __future__ import annotations

import ast
import inspect
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.flexasr import numerics as flexasr_numerics
from ila_lang import compile_terms
from ir_semantics.scalars import intervals
from rewrites.bounds.bound_runs import FRACTION_BITS, Data, Device, beyond, survey_bound
from rewrites.bounds.catalogue import LEMMAS
from rewrites.bounds.derivations.calculus import Operator
from rewrites.bounds.derivations.names import Written
from rewrites.bounds.kernel import laws
from rewrites.bounds.kernel import replay as kernel
from rewrites.bounds.kernel.formula import Formula, constant, maximum, minimum, symbol
from rewrites.bounds.kernel.judgements import Rejected, Step
from rewrites.bounds.kernel.laws import AXIOMS
from rewrites.bounds.kernel.readings import ANY, READINGS, WIDTHS
from rewrites.bounds.kernel.replay import LAWS, replay
from rewrites.bounds.lemmas import real_rules
from rewrites.bounds.lemmas.network_rules import NETWORK_RULES
from rewrites.bounds.lemmas.real_rules import RULES, prove_rule
from rewrites.campaigns.accelerators.device import quantise_fitting, run_flexasr
from rewrites.claims.theorems.operators import OPERATORS
from rewrites.mappings.flexasr.operations import linear
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger

# -- what it is --------------------------------------------------------------------------------------------


def test_the_kernel_imports_nothing_of_what_writes_derivations() -> None:
    imports = [n for n in ast.walk(ast.parse(inspect.getsource(kernel))) if isinstance(n, ast.ImportFrom)]
    modules = {n.module for n in imports if n.level}
    assert modules == {None, "constants", "formula", "judgements", "readings"}  # and the laws
    assert {a.name for n in imports if n.module is None for a in n.names} == {"laws"}


@pytest.mark.parametrize("name", OPERATORS)
def test_theorems_rest_on_what_is_proved_or_an_axiom(name: str) -> None:
    theorem = OPERATORS[name].theorem
    assert set(theorem.rules) <= set(RULES)
    assert set(theorem.lemmas) <= set(LEMMAS)
    assert set(theorem.axioms) <= set(AXIOMS)
    assert len(theorem.judgements) == len(OPERATORS[name].steps)


def test_every_law_is_used_and_every_rule_is_of_some_law() -> None:
    assert {s.law for o in OPERATORS.values() for s in o.steps} == set(LAWS)
    assert {r for o in OPERATORS.values() for r in o.rules} == set(RULES)


# -- what it refuses -----------------------------------------------------------------------------------------

X = Step("given", names=("x[i]", "code", "X", "0", "b_x"))
Y = Step("given", names=("y[i]", "code", "Y", "0", "b_y"))
H = Step("given", names=("h[i]", "code", "1", "e_h", "b_h"))
FIXED = Step("lemma", (1,), ("decode",))
SIGMOID = Step("lemma", (2,), ("sigmoid",))
ROW = ("i", "w[i]", "b_w", "W", "I", "w")
PRODUCT = (Step("product", (2, 5)), Step("lemma", (6,), ("product",)))
WORD = Step("given", names=("y[i]", "fixed", "Y", "e", ""))
TERMS = Step("repeated sum", (1,), ("sum",), ("i", "2"))
WRONG = {
    "no step": ([], "a derivation must have a step"),
    "a law that is none": ([Step("magic")], "there is no law 'magic'"),
    "a step of itself": ([X, Step("sum", (1, 2))], "step 2 must be of steps before it"),
    "a step of none": ([Step("sum", (0, 0))], "step 1 must be of steps before it"),
    "one operand for two": ([X, Step("sum", (1,))], None),
    "a lemma that is none": ([X, Step("lemma", (1,), ("magic",))], None),
    "a code for a number": (
        [X, Step("lemma", (1,), ("sigmoid",))],
        "lemma 'sigmoid' must be applied to fixed, not code",
    ),
    "a sum for a product": (
        [X, FIXED, Step("sum", (2, 2)), Step("lemma", (3,), ("product",))],
        "lemma 'product' must be applied to its operation",
    ),
    "two leaves of one name": (
        [X, replace(X, names=("x[i]", "code", "Z", "0", "b_x"))],
        "x[i] must be one thing, not two",
    ),
    "another bias": ([X, replace(X, names=("x[i]", "code", "X", "0", "b_y"))], "x[i] must be one thing, not two"),
    "inexact weights": (
        [H, replace(X, names=("w[i]", "code", "w", "e", "b_w")), Step("weighted sum", (1,), ("multiply codes",), ROW)],
        "w[i] must be one thing, not two",
    ),
    "weights of a number": (
        [X, FIXED, Step("weighted sum", (2,), ("multiply codes",), ROW)],
        "weighted sums must be of codes",
    ),
    "a complement of any number": (
        [X, FIXED, Step("complement", (2,))],
        "a complement must be of a number from 0 to 1",
    ),
    "an exponential of any number": ([X, FIXED, Step("lemma", (2,), ("exponential",))], None),
    "weights that add up to 2": (
        [X, FIXED, SIGMOID, Step("product", (2, 3)), Step("lemma", (4,), ("product",)), Step("sum", (5, 5)),
         Step("weighted mean", (6, 2, 2))],
        None,
    ),
    "weights of two gates": (
        [X, FIXED, SIGMOID, Step("complement", (3,)), Step("lemma", (4,), ("one less",)), *PRODUCT,
         Y, Step("lemma", (8,), ("decode",)), Step("lemma", (9,), ("sigmoid",)), Step("product", (2, 10)),
         Step("lemma", (11,), ("product",)), Step("sum", (7, 12)), Step("lemma", (13,), ("sum",)),
         Step("weighted mean", (14, 2, 2))],
        "the weights must add up to 1",
    ),
    "a mean of other numbers": (
        [X, FIXED, SIGMOID, Step("complement", (3,)), Step("lemma", (4,), ("one less",)), *PRODUCT,
         Step("product", (2, 3)), Step("lemma", (8,), ("product",)), Step("sum", (7, 9)),
         Step("lemma", (10,), ("sum",)), Y, Step("weighted mean", (11, 2, 12))],
        "a weighted mean must be of the operands",
    ),
    "an inexact shift": ([H, Step("shift", (1, 1))], "a shift must be of exact integers"),
    "an upper bound for a lower one": (
        [X, FIXED, Step("range", (2,), (), ("v",)), Step("inverse root", (3,), (), ("v",))],
        "v must be the name of one thing, not of a range and a lower bound",
    ),
    "a range times a number": (
        [X, Step("range", (1,), (), ("R", "1/1000"))],
        "step 2: range does not apply: too many values to unpack (expected 1)",
    ),
    "a sum of words that it does not add": (
        [X, Step("repeated sum", (1,), ("sum",), ("i", "I"))],
        "terms of a sum must be of the form fixed",
    ),
    "two numbers of terms": (
        [WORD, TERMS, replace(TERMS, names=("i", "1"))], "i must have one number of values, not 2 and 1",
    ),
    "half a term": ([WORD, replace(TERMS, names=("i", "1/2"))], "i must have a number of values, not 1/2"),
    "no terms": ([WORD, replace(TERMS, names=("i", "0"))], "i must have a number of values, not 0"),
    "a range of terms": ([WORD, replace(TERMS, names=("i", "2*n"))], "i must have a number of values, not 2*n"),
    "an average of sums of 8 numbers": (
        [WORD, replace(TERMS, names=("i", "8")), Step("average", (2,), (), ("v", "V"))],
        "an average must be of sums of 16 numbers",
    ),
    "a condition that never holds": (
        [replace(WORD, names=("y[i]", "fixed", "40", "0", "")), replace(TERMS, names=("i", "1"))],
        "40 < 32 must hold, for otherwise a vector's sum wraps in 20 bits",
    ),
    "a negative magnitude": (
        [replace(WORD, names=("y", "fixed", "-5", "0", ""))],
        "step 1: given does not apply: a name must be an identifier, not '-5'",
    ),
    "a range called 0": (
        [WORD, Step("range", (1,), (), ("0",))],
        "step 2: range does not apply: a name must be an identifier, not '0'",
    ),
    "an index that is a number": (
        [WORD, replace(TERMS, names=("0", "2"))],
        "step 2: repeated sum does not apply: a name must be an identifier, not '0'",
    ),
    "a leaf that is a number": (
        [replace(WORD, names=("1/2", "fixed", "1", "0", ""))],
        "a leaf must be a name, or one with indices, not '1/2'",
    ),
    "a leaf that is an index": (
        [replace(WORD, names=("i", "fixed", "1", "0", "")), WORD], "i must be a leaf or an index, not both",
    ),
    "an index of a sum that is a leaf": (
        [replace(WORD, names=("k", "fixed", "1", "0", "")), replace(TERMS, names=("k", "2"))],
        "k must be a leaf or an index, not both",
    ),
    "a leaf that is any operand": (
        [replace(WORD, names=("?", "fixed", "1", "0", ""))], "a leaf must be a name, or one with indices, not '?'",
    ),
    "a code without a bias": (
        [replace(X, names=("x", "code", "X", "0", ""))], "codes must have a bias, and other forms none",
    ),
    "half a word": ([WORD, Step("half", (1,))], "a half must be of a sum"),
    "half a sum as operands of a product": (
        [WORD, Step("sum", (1, 1)), Step("half", (2,)), Step("lemma", (3,), ("product",))],
        "lemma 'product' must be applied to its operation",
    ),
    "an operation that nothing does": (
        [WORD, Step("rectify", (1,)), Step("lemma", (2,), ("sigmoid",))],
        "operands must be words, not operations that no primitive does",
    ),
    "an operation on one that nothing does": (
        [WORD, Step("rectify", (1,)), Step("sum", (2, 2))],
        "operands must be words, not operations that no primitive does",
    ),
    "an operation at the end": ([WORD, Step("sum", (1, 1))], "a derivation must end with a word"),
    "a difference of codes": ([X, Step("difference", (1, 1))], "a difference must be of fixed-point numbers"),
    "growth of what does not grow so": (
        [H, Step("lemma", (1,), ("decode",)), Step("growth", (2,), (), ("e_h", "U", "G"))],
        "the error must be U e_h and what the step adds",
    ),
    "another bias in a pool": (
        [X, Y, Step("sum", (1, 2)), Step("lemma", (3,), ("add",), ("b_x",))],
        "codes that are pooled must have one bias",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_instance_of_a_law_is_refused(name: str) -> None:
    steps, reason = WRONG[name]
    with pytest.raises(Rejected) as caught:
        replay(steps)
    assert reason is None or str(caught.value) == reason


@pytest.mark.parametrize("name", ["FlexASR linear", "FlexASR GRU step", "FlexASR attention", "VTA dense"])
def test_derivations_changed_in_one_place_prove_nothing_false(name: str) -> None:
    """Each change is refused, or the theorem of what then stands there survives runs like any other."""
    operator, draw = OPERATORS[name], random.Random(0)
    refused = 0
    for _ in range(40):
        steps = list(operator.steps)
        at = draw.randrange(len(steps))
        step = steps[at]
        others = [s for s in steps if s is not step]
        change = draw.randrange(4)
        if change == 0:
            step = replace(step, law=draw.choice(others).law)
        elif change == 1 and step.of:
            step = replace(step, of=tuple(draw.randint(1, at) for _ in step.of))
        elif change == 2 and step.lemmas:
            step = replace(step, lemmas=(draw.choice(sorted(READINGS)),))
        elif change == 3 and len(step.names) > 1:
            names = list(step.names)
            draw.shuffle(names)
            step = replace(step, names=tuple(names))
        steps[at] = step
        try:
            replay(steps)
            changed = replace(operator, derivation=partial(Written, tuple(steps)))
            changed.theorem  # noqa: B018
        except (Rejected, ValueError):
            refused += 1
            continue
        if changed.theorem.result == operator.theorem.result:
            continue
        try:
            runs = survey_bound(changed)
        except (KeyError, IndexError, ValueError, AssertionError):  # the runs know the data of the catalogue only
            continue
        assert runs.difference is None, (step, runs.shown)
    assert refused >= 10


# -- formulas that are smaller are not proved ------------------------------------------------------------------


def less(formula: Formula) -> Formula:
    return formula * Fraction(1023, 1024)


def changed(right: Callable[..., Any], part: int) -> Callable[..., Any]:
    def smaller(*args: Any) -> Any:
        found = right(*args)
        if isinstance(found, tuple):
            return tuple(less(f) if k == part else f for k, f in enumerate(found))
        return less(found)

    return smaller


MUTANTS = [
    (name, part)
    for name, function in vars(laws).items()
    if name.startswith("of_")
    for part in ((0, 1) if "Pair" in inspect.signature(function).return_annotation else (0,))
]
IN_RULES = {"of_quotient_above": "above", "of_quotient_below": "below"}


@pytest.mark.parametrize(("name", "part"), MUTANTS)
def test_a_formula_that_is_a_thousandth_smaller_is_not_proved(
    name: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The functions that the kernel applies are those of the solvers' questions: each law breaks with its own."""
    target = IN_RULES.get(name, name)
    monkeypatch.setattr(laws, target, changed(getattr(laws, target), part))
    rebuilt = {**RULES, "shift and cut": NETWORK_RULES["shift and cut"]}
    for law in ("larger", "smaller"):  # these were given the function itself
        operation = maximum if law == "larger" else minimum
        rebuilt[law] = replace(rebuilt[law], build=real_rules._binary(operation, laws.of_choice))
    verdicts = [prove_rule(r, Discharger(timeout=5)) for r in rebuilt.values()]
    assert any(v.status is not Status.PROVED for v in verdicts)


# -- readings ---------------------------------------------------------------------------------------------------

OPERATIONS: dict[str, Callable[..., Fraction]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "max": max,
    "min": min,
    "half": lambda a: a / 2,
    "rectify": lambda a: max(a, Fraction(0)),
    "complement": lambda a: 1 - a,
    "shift": lambda a, b: Fraction(a // 2 ** int(b)),
}
BITS = {**WIDTHS, "fixed": 20, "sum": 32, "score": 26, "quotient": 32, "partial": 32, "total": 32, "products": 32}


def words_of(form: str, draw: random.Random) -> int:
    width = BITS[form]
    if form == "quotient":
        return draw.randrange(1024) << 12
    word = draw.choice((draw.randrange(1 << width), draw.randint(-300, 300) % (1 << width)))
    return word >> 8 << 8 if form == "byte weight" else word


def number_of(word: int, form: str, biases: list[int]) -> Fraction:
    width = 32 if form in ("score", "quotient") else BITS[form]
    if form == "code":
        return flexasr_numerics.value_of(word, biases[0])
    bits = 28 - sum(biases) if form == "products" else FRACTION_BITS[form]
    return Fraction(word - (word >> width - 1 << width), 1 << bits)


def value(operation: Any, numbers: list[Fraction]) -> Fraction:
    if operation == ANY:
        return numbers.pop(0)
    if isinstance(operation, str):
        return Fraction(operation)
    return OPERATIONS[operation[0]](*[value(o, numbers) for o in operation[1:]])


@pytest.mark.parametrize("name", [n for n, r in READINGS.items() if r.kind not in ("sigmoid", "tanh", "exp")])
def test_readings_are_what_the_primitives_do(name: str) -> None:
    """The compiled primitive on random words, in exact fractions; functions are compared in the lemmas' tests."""
    r, draw = READINGS[name], random.Random(1)
    function = LEMMAS[name].function
    assert (function.name, function.body is not None) == (r.primitive, True)
    (run,) = [compile_terms(function.params, [function.body])]
    within = 0
    for _ in range(400):
        unbiased = name in ("mean", "add", "maximum", "multiply codes")
        count = 1 if r.gives == "code" else r.biases
        biases = [0] if unbiased else [draw.randrange(8) for _ in range(count)]
        words = [words_of(f, draw) for f in r.takes]
        if r.primitive == "alu_shr_signed5":
            words[1] = draw.randrange(16)
        if r.primitive == "hlscnn_total":
            words = [0, *words]
        if r.below is not None:
            words = [w - (w >> 25 << 26) for w in words]
        codes = [] if unbiased else biases
        masks = [(1 << p.width) - 1 for p in function.params]
        (result,) = run(*(w & m for w, m in zip((*words, *codes), masks, strict=True)))
        taken = words[1:] if r.primitive == "hlscnn_total" else words
        numbers = [
            number_of(w % (1 << 32) if f == "score" else w, f, biases) for w, f in zip(taken, r.takes, strict=True)
        ]
        exact = value(r.operation, numbers)
        if r.primitive == "adpfloat_mul":  # biases only move the point
            got = number_of(result, "products", [0, 0])
        else:
            got = number_of(result, r.gives, biases)
        limit = r.limit if r.limit is not None else Fraction(1 << 32)
        if abs(exact) + r.amount >= limit:
            continue
        within += 1
        match r.kind:
            case "exact":
                assert got == exact
            case "down":
                assert got <= exact < got + r.amount
            case "nearest":
                assert abs(got - exact) <= r.amount
            case "cut":
                assert got == max(min(exact, r.amount), -r.amount)
            case "code":
                largest, tiny = (x * Fraction(2) ** biases[0] for x in (kernel.LARGEST_AT_0, kernel.TINY_AT_0))
                cut = max(min(exact, largest), -largest)
                size = abs(cut)
                step = Fraction(2) ** (len(bin(int(size * (1 << 30)))) - 3 - 30 - 5) if size else Fraction(0)
                assert abs(got - cut) <= (size if size <= tiny else step)
    assert within >= 40


# -- runs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATORS)
def test_bounds_survive_runs(name: str) -> None:
    runs = survey_bound(OPERATORS[name])
    assert runs.difference is None, runs.shown
    assert runs.count >= 6


@pytest.mark.parametrize("name", [n for n, o in OPERATORS.items() if o.error != constant(0)])
def test_a_bound_below_a_measured_error_does_not_survive(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Operator.bound

    def smaller(operator: Operator, values: Any) -> Any:
        found = right(operator, values)
        return found if found.value is None else replace(found, value=found.value / 512)

    monkeypatch.setattr(Operator, "bound", smaller)
    runs = survey_bound(OPERATORS[name])
    assert runs.difference is not None
    assert "not within" in runs.shown
    monkeypatch.undo()
    difference = runs.difference
    assert isinstance(difference, dict)
    assert beyond(OPERATORS[name], difference["data"]) == ""


def test_the_device_side_is_what_the_unit_computes() -> None:
    """FlexASR's linear layer: the term's words, against the simulator's codes."""
    draw = np.random.default_rng(0)
    x, w, b = (quantise_fitting(draw.uniform(-1, 1, shape)) for shape in ((2, 16), (64, 16), (64,)))
    got = run_flexasr(linear(x, w, b, output_bias=4))
    theorem = OPERATORS["FlexASR linear"].theorem
    biases = {"b_w": w.bias, "b_x": x.bias, "b_b": b.bias, "b_y": 4}
    for row, column in ((0, 0), (1, 5), (1, 63)):
        data = Data({"i": 16}, biases)
        data.words = {
            "x[i]": {(i,): int(x.codes[row, i]) for i in range(16)},
            "w[i]": {(i,): int(w.codes[column, i]) for i in range(16)},
            "b": {(): int(b.codes[column])},
        }
        word, _, _ = Device(theorem, data).word(theorem.result.device, {})
        assert word == int(got.codes[row, column])


# -- intervals -------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.fractions(min_value=-30, max_value=30))
def test_exponentials_and_logarithms_enclose_and_are_inverse(x: Fraction) -> None:
    power = intervals.exp(intervals.point(x))
    assert 0 < power.low <= power.high <= power.low * (1 + Fraction(1, 1 << 100))
    back = intervals.log(power)
    assert back.low <= x <= back.high
    assert back.high - back.low <= Fraction(1, 1 << 90)
    double = intervals.exp(intervals.point(2 * x))
    square = power * power
    assert square.low <= double.high and double.low <= square.high


def test_exponentials_have_digits_that_are_known() -> None:
    """e, to 40 places (Abramowitz and Stegun, table 1.1), and the logarithm of 2."""
    e = Fraction(27182818284590452353602874713526624977572, 10**40)
    found = intervals.exp(intervals.point(1))
    assert found.low - Fraction(1, 10**36) <= e <= found.high + Fraction(1, 10**36)
    log_2 = Fraction(6931471805599453094172321214581765680755, 10**40)
    found = intervals.log(intervals.point(2))
    assert found.low - Fraction(1, 10**36) <= log_2 <= found.high + Fraction(1, 10**36)
    with pytest.raises(ZeroDivisionError, match=r"^a logarithm must be of positive numbers$"):
        intervals.log(intervals.point(0))
    with pytest.raises(OverflowError, match=r"^the exponent must be at most 65536 in magnitude, not 7e\+04$"):
        intervals.exp(intervals.point(70000))


def test_symbols_are_magnitudes_in_growth() -> None:
    assert kernel._grows(symbol("U") * symbol("e") + maximum(symbol("e") - 1, 0), "e")
    assert not kernel._grows(-1 * symbol("e"), "e")
    assert not kernel._grows(constant(1) / symbol("e"), "e")
