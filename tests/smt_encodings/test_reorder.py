"""Terms with sums against a comparison of multisets that shares no code, and operators whose laws do not hold."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ila_lang import Expr, Function, bv, const, ite, primitive, uninterpreted, var
from ila_lang.mapping import Reduction
from smt_encodings.discharge import Discharger
from smt_encodings.environment import fresh_symbols
from smt_encodings.reorder import LawFails, Sums, hash_script, hash_width, prove_laws
from smt_encodings.solvers import cvc5 as solver_cvc5
from smt_encodings.solvers import z3 as solver_z3

WORD = bv(16)
A, B, C, X, Y = (var(n, WORD) for n in "abcxy")
F, G = uninterpreted("f", WORD, u=WORD), uninterpreted("g", WORD, u=WORD, v=WORD)
KEEP = frozenset({"f", "g"})


@primitive(WORD, a=WORD, b=WORD)
def plus(a: Expr, b: Expr) -> Expr:
    """Wraps."""
    return a + b


@primitive(WORD, a=WORD, b=WORD)
def largest(a: Expr, b: Expr) -> Expr:
    """Associative and commutative, and no single operator of the language."""
    return ite(a < b, b, a)


@primitive(WORD, a=WORD, b=WORD)
def clamped(a: Expr, b: Expr) -> Expr:
    """The signed sum, saturated: -1 + (1 + 32767) is not (-1 + 1) + 32767."""
    wide = a.sext(17) + b.sext(17)
    low, high = const((1 << 17) - (1 << 15), 17), const((1 << 15) - 1, 17)
    return ite(wide.slt(low), low, ite(high.slt(wide), high, wide))[15:0]


@primitive(WORD, a=WORD, b=WORD)
def capped(a: Expr, b: Expr) -> Expr:
    """The unsigned sum, saturated, which is associative: both sides are the smaller of the exact sum and 65535."""
    wide = a.zext(17) + b.zext(17)
    return ite(wide[16] == 1, const(0xFFFF, 16), wide[15:0])


@primitive(WORD, a=WORD, b=WORD)
def minus(a: Expr, b: Expr) -> Expr:
    """Not commutative."""
    return a - b


PLUS, LARGEST = Reduction(plus, 0), Reduction(largest, 0)


def answers(left: Expr, right: Expr, *sums: Reduction) -> tuple[str, str]:
    text = hash_script([(left, right)], Sums(sums or (PLUS,)), keep=KEEP)
    return solver_z3.check(text, 10).status, solver_cvc5.check(text, 10).status


PROVED, OPEN = ("unsat", "unsat"), ("sat", "sat")


# -- an oracle: canonical forms of terms, equal where the laws make the terms equal -----------------------------


def key(term: Expr) -> object:
    if term.op == "bvadd":
        bag = Counter(summands(term))
        bag.pop(("const", 0), None)
        if not bag:
            return ("const", 0)
        if bag.total() == 1:
            return next(iter(bag))
        return ("sum", frozenset(bag.items()))
    if term.op == "apply":
        assert term.func is not None
        return (term.func.name, *(key(a) for a in term.args))
    return (term.op, term.params[0])


def summands(term: Expr) -> list[object]:
    return [k for a in term.args for k in summands(a)] if term.op == "bvadd" else [key(term)]


def random_term(source: random.Random, depth: int) -> Expr:
    kind = source.randrange(6) if depth else 0
    if kind < 2:
        return source.choice([X, Y, const(0, 16)])
    if kind == 2:
        return F(random_term(source, depth - 1))
    return random_term(source, depth - 1) + random_term(source, depth - 1)


def shuffled(source: random.Random, term: Expr) -> Expr:
    """An equal term: sums are taken apart and joined anew, in random order and nesting."""
    if term.op == "apply":
        assert term.func is not None
        return term.func(*(shuffled(source, a) for a in term.args))
    if term.op != "bvadd":
        return term
    parts, stack = list[Expr](), [term]
    while stack:
        node = stack.pop()
        if node.op == "bvadd":
            stack += node.args
        else:
            parts.append(shuffled(source, node))
    while len(parts) > 1:
        first = parts.pop(source.randrange(len(parts)))
        second = parts.pop(source.randrange(len(parts)))
        parts.append(first + second)
    return parts[0]


@pytest.mark.proof
def test_the_encoding_says_what_the_oracle_says() -> None:
    source, seen = random.Random(1), Counter[bool]()
    for _ in range(150):
        left = random_term(source, 4)
        right = shuffled(source, left) if source.random() < 0.5 else random_term(source, 3)
        equal = key(left) == key(right)
        seen[equal] += 1
        text = hash_script([(F(left), F(right))], Sums([PLUS]), keep=KEEP)
        assert solver_z3.check(text, 10).status == ("unsat" if equal else "sat"), (left, right)
    assert min(seen.values()) > 30


# -- what is proved, and what must not be ------------------------------------------------------------------------


@pytest.mark.proof
@pytest.mark.parametrize(
    "left,right,wanted",
    [
        (A + B + C, C + (B + A), PROVED),
        (F(A + B + C), F(B + (C + A)), PROVED),
        (F(A + B) + C, C + F(B + A), PROVED),
        (F(F(A + B) + C) + A, A + F(C + F(B + A)), PROVED),
        (G(A, B) + G(B, C), G(B, C) + G(A, B), PROVED),
        (F(plus(A, const(0, 16)) + B), F(B + A), PROVED),
        (A + A + B, B + A + A, PROVED),
        (A + A + B, A + B + B, OPEN),
        (A + B, A, OPEN),
        (A + B, A + C, OPEN),
        (F(A + B) + C, F(A + C) + B, OPEN),
        (G(A, B) + C, G(B, A) + C, OPEN),
        (F(A) + F(B), F(A + B), OPEN),
    ],
    ids=str,
)
def test_sums_in_any_order(left: Expr, right: Expr, wanted: tuple[str, str]) -> None:
    assert answers(left, right) == wanted


@pytest.mark.proof
def test_operators_that_are_recognised_by_name() -> None:
    three, turned = largest(largest(A, B), C), largest(C, largest(B, A))
    assert answers(F(three), F(turned), LARGEST) == PROVED
    assert answers(F(three), F(largest(A, B)), LARGEST) == OPEN
    # the unit counts only where it is declared
    assert answers(F(largest(A, const(0, 16))), F(A), LARGEST) == PROVED
    assert answers(F(largest(A, const(0, 16))), F(A), Reduction(largest)) == OPEN
    # two operators do not mix, and each has its own sums inside the other's
    both = (PLUS, LARGEST)
    assert answers(largest(A + B, C) + A, A + largest(C, B + A), *both) == PROVED
    assert answers(largest(A, B) + C, largest(A, C) + B, *both) == OPEN
    assert answers(F(largest(A, B)), F(A + B), *both) == OPEN


@pytest.mark.proof
def test_the_width_of_the_hash_counts_opened_sums() -> None:
    doubled = X
    for _ in range(12):
        doubled = doubled + doubled
    # 4096 x is not 0 in 16 bits; with the 3 bits that sums of two elements need, its hash would be
    assert hash_width(2, 2) < 12
    assert answers(F(doubled), F(const(0, 16))) == OPEN


def test_names_of_sums_meet_no_variable() -> None:
    """A variable called sum is not the sum that is called so."""
    taken = var("sum", WORD)
    with fresh_symbols():
        texts = [hash_script([(F(A + B), F(b + A))], Sums([PLUS]), keep=KEEP) for b in (B, taken)]
    assert [solver_z3.check(text, 20).status for text in texts] == ["unsat", "sat"]


# -- laws --------------------------------------------------------------------------------------------------------


@pytest.mark.proof
@pytest.mark.parametrize("reduction", [PLUS, LARGEST, Reduction(capped, 0)], ids=lambda r: r.operator.name)
def test_laws_are_proved_by_both_solvers(reduction: Reduction) -> None:
    discharger = Discharger()
    prove_laws(discharger, [reduction])
    assert [o.name.partition(" is ")[2] for o in discharger.obligations] == [
        "commutative",
        "associative",
        "unchanged by 0x0",
    ]
    assert all(len(o.answers) == 2 and o.discharged for o in discharger.obligations)


ADVICE = "its operands must stay in their order, so use --method bmc or chc, which keep it"


@pytest.mark.proof
@pytest.mark.parametrize(
    "reduction,law",
    [
        (Reduction(clamped, 0), "associative"),
        (Reduction(minus, 0), "commutative"),
        (Reduction(plus, 1), "unchanged by 0x1"),
        (Reduction(largest, 0xFFFF), "unchanged by 0xffff"),
    ],
    ids=["saturating", "difference", "wrong unit", "another wrong unit"],
)
def test_an_operator_without_the_laws_is_refused_with_operands(reduction: Reduction, law: str) -> None:
    with pytest.raises(LawFails) as refused:
        prove_laws(Discharger(), [reduction])
    name, message = reduction.operator.name, str(refused.value)
    assert message.startswith(f"the sum {name} is not {law}: for a = 0x")
    advice = "give its unit, or None" if law.startswith("unchanged") else ADVICE
    assert message.endswith(f"; {advice}") and " and " in message


def test_an_operator_without_a_body_is_refused() -> None:
    with pytest.raises(LawFails) as refused:
        prove_laws(Discharger(), [Reduction(G)])
    assert str(refused.value) == (
        "Operator g of a sum must have a body, of which its laws are proved, and g has none; "
        "give it one, or use --method bmc or chc, which keep the order of sums"
    )


def test_an_operator_that_calls_a_function_without_a_body_is_refused() -> None:
    calling = primitive(WORD, name="calling", a=WORD, b=WORD)(lambda a, b: F(a + b))
    with pytest.raises(LawFails, match="calling of a sum must have a body, of which its laws are proved, and f has"):
        prove_laws(Discharger(), [Reduction(calling)])


@pytest.mark.proof
def test_operators_of_any_sort_beside_sums() -> None:
    """Where one side has a sum below an operator, the other may have a term of another sort there."""
    narrow, wide = var("n", bv(8)), var("w", bv(24))
    left = ite(A + B == C, X, Y) + ite(narrow == 3, X, Y)
    right = ite(narrow == 3, X, Y) + ite(B + A == C, X, Y)
    assert answers(left, right) == PROVED
    assert answers((A + B).zext(24) + wide, (B + A).zext(24) + wide) == PROVED
    assert answers((A + B).zext(24) + wide, narrow.zext(24) + wide) == OPEN
    # a summand alone, at the place of a sum with a unit
    assert answers(F(plus(A, const(0, 16))) + F(B), F(B) + F(A)) == PROVED


def test_what_cannot_be_a_sum() -> None:
    with pytest.raises(TypeError) as wrong:
        Reduction(F)
    assert str(wrong.value) == (
        "Operator f of a reduction must add two bit-vectors of one width to a third one, not (bv16) -> bv16"
    )
    with pytest.raises(ValueError) as large:
        Reduction(plus, 1 << 16)
    assert str(large.value) == "Unit of reduction plus must fit 16 bits, not 65536"
    with pytest.raises(TypeError):
        Reduction(Function("h", {"a": WORD, "b": bv(8)}, WORD, None))
