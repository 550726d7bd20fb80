"""Runs that PROVED lemmas on primitives survive, on the scalar interpreter, and rules of errors, on exact fractions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from pysmt.fnode import FNode

from ila_lang import Function, compile_terms, inline, postorder
from ila_lang.interpreter.compile import compile_function
from smt_encodings.claims import Runs
from smt_encodings.environment import fresh_symbols
from smt_encodings.runs import corners

from .lemma import Every, Lemma, Statement, Words, names_of
from .real_rules import RealRule

BLOCKS, RANDOM = 4, 10
"""Blocks of arguments that operands are taken from, and random ones in each."""
MOST_STATEMENTS = 120
MOST_RULES, MOST_TRIES = 20, 1000
NUMBERS = tuple(Fraction(n, d) for n in (0, 1, -1, 2, -2, 3, 5, 1000, -1000) for d in (1, 2, 7, 1024))


def survey_lemma(lemma: Lemma) -> Runs:
    """Runs the primitive on corners and random operands, one by one, and compares with what the lemma allows."""
    proof = lemma.proof(lemma.function)
    if isinstance(proof, Every):
        return _enumerated(lemma.function, proof)
    return _stated(proof)


def _enumerated(function: Function, proof: Every) -> Runs:
    draw, count = random.Random(0), 0
    at: tuple[str, ...] = ()
    for block in islice(proof.arguments(), BLOCKS):
        size = block[0].size
        places = sorted({*corners((), size - 1), *(draw.randrange(size) for _ in range(RANDOM))})
        chosen = tuple(argument[places] for argument in block)
        at = at or tuple(_text(function, chosen, k) for k in (0, len(places) - 1))
        wrong = _wrong(function, proof, chosen)
        count += len(places)
        if wrong is not None:
            return Runs(count, (_text(function, chosen, wrong),), difference=_values(function, chosen, wrong))
    return Runs(count, (*at, "..."))


def _wrong(function: Function, proof: Every, arguments: tuple[Words, ...]) -> int | None:
    """The first place at which the scalar interpreter's result is further off than the lemma allows."""
    run = compile_function(function)
    masks = [(1 << p.width) - 1 for p in function.params]
    operands = zip(*(a.tolist() for a in arguments), strict=True)
    results = [int(run(*(a & m for a, m in zip(each, masks, strict=True)))) for each in operands]
    error, allowed = proof.error(np.array(results, dtype=np.int64), *arguments)
    wrong = np.broadcast_to(error > allowed, (len(results),))
    return int(np.argmax(wrong)) if wrong.any() else None


def _values(function: Function, arguments: tuple[Words, ...], place: int) -> dict[str, int]:
    return {name: int(a[place]) for name, a in zip(names_of(function), arguments, strict=True)}


def _text(function: Function, arguments: tuple[Words, ...], place: int) -> str:
    return ", ".join(f"{name} = {value}" for name, value in _values(function, arguments, place).items())


def _stated(statement: Statement) -> Runs:
    draw, count = random.Random(0), 0
    at: list[str] = []
    *premises, goal = [inline(r) for r in (*statement.hypotheses, statement.goal)]
    run = compile_terms(statement.variables, [*premises, goal])
    nodes = postorder([*premises, goal])
    literals = {n.value for n in nodes if n.op == "const" and not isinstance(n.value, bool)}
    choices = [corners(literals, (1 << v.width) - 1) for v in statement.variables]
    for values in _operands(choices, draw):
        *met, holds = run(*values)
        if not all(met):
            continue
        count += 1
        named = {v.name: value for v, value in zip(statement.variables, values, strict=True)}
        if count <= 2 or not holds:
            at.append(", ".join(f"{name} = {value}" for name, value in named.items()))
        if not holds:
            return Runs(count, tuple(at), difference=named)
        if count >= MOST_STATEMENTS:
            break
    return Runs(count, (*at, "..."), () if count else ("no operands that were tried meet the premises",))


def _operands(choices: list[list[int]], draw: random.Random) -> Iterator[tuple[int, ...]]:
    """Operands at one place in their lists of corners, then in random combination, then any."""
    for place in range(max(map(len, choices))):
        yield tuple(some[place % len(some)] for some in choices)
    for _ in range(MOST_TRIES):
        yield tuple(draw.choice(some) if draw.random() < 0.7 else draw.randint(0, some[-1]) for some in choices)


def operands_differ(lemma: Lemma, values: Mapping[str, int]) -> bool:
    """Whether these are operands inside the lemma's domain at which it does not hold.

    Raises ValueError on others than its operands: integers, and of statements words of their variables' widths.
    """
    proof = lemma.proof(lemma.function)
    if isinstance(proof, Statement):
        _require_operands(lemma.name, [v.name for v in proof.variables], values, int)
        for v in proof.variables:
            if not 0 <= values[v.name] < 1 << v.width:
                raise ValueError(f"the operand {v.name} of {lemma.name} must fit {v.width} bits, not {values[v.name]}")
        roots = [inline(r) for r in (*proof.hypotheses, proof.goal)]
        *met, holds = compile_terms(proof.variables, roots)(*(values[v.name] for v in proof.variables))
        return all(met) and not holds
    _require_operands(lemma.name, names_of(lemma.function), values, int)
    operands = [values[name] for name in names_of(lemma.function)]
    inside = (
        np.all([a == n for a, n in zip(block, operands, strict=True)], axis=0).any() for block in proof.arguments()
    )
    return any(inside) and _wrong(lemma.function, proof, tuple(np.array([n], np.int64) for n in operands)) is not None


def _require_operands(name: str, operands: Iterable[str], values: Mapping[str, object], kind: type) -> None:
    """Raises ValueError unless there are values of exactly these operands, all of one type."""
    if set(values) != set(operands):
        raise ValueError(f"operands of {name} must be {', '.join(operands)}")
    wrong = next((n for n, v in values.items() if type(v) is not kind), None)
    if wrong is not None:
        word = "an integer" if kind is int else "a fraction"
        raise ValueError(f"the operand {wrong} of {name} must be {word}, not {values[wrong]}")


# -- rules on real numbers ------------------------------------------------------------------------------------


def survey_rule(rule: RealRule) -> Runs:
    """Evaluates a rule on fractions: simple ones, ends of what its hypotheses allow, and random ones."""
    draw, count = random.Random(0), 0
    at: list[str] = []
    with fresh_symbols():
        hypotheses, goal = rule.build()
        names = _names(hypotheses, goal)
        for _ in range(MOST_TRIES):
            values = {n: draw.choice(NUMBERS) if draw.random() < 0.8 else _random(draw) for n in names}
            if not _met(hypotheses, values):
                continue
            count += 1
            if count <= 2:
                at.append(_shown(values))
            if not value_of(goal, values):
                return Runs(count, (_shown(values),), difference=values)
            if count >= MOST_RULES:
                break
    return Runs(count, (*at, "..."), () if count else ("no numbers that were tried meet the hypotheses",))


def values_differ(rule: RealRule, values: Mapping[str, Fraction]) -> bool:
    """Whether the hypotheses hold at these values, and the goal does not.

    Raises ValueError unless there is a fraction for each variable.
    """
    with fresh_symbols():
        hypotheses, goal = rule.build()
        _require_operands(rule.name, _names(hypotheses, goal), values, Fraction)
        return all(value_of(h, values) for h in hypotheses) and not value_of(goal, values)


def _names(hypotheses: Iterable[FNode], goal: FNode) -> list[str]:
    return sorted({s.symbol_name() for t in (*hypotheses, goal) for s in t.get_free_variables()})


def _shown(values: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _random(draw: random.Random) -> Fraction:
    return Fraction(draw.randint(-999, 999), draw.choice((1, 3, 64, 1000)))


def _met(hypotheses: Iterable[FNode], values: dict[str, Fraction]) -> bool:
    """Whether hypotheses hold at values; those that equate a symbol with a term set it first."""
    for hypothesis in hypotheses:
        if hypothesis.is_equals() and hypothesis.arg(0).is_symbol():
            values[hypothesis.arg(0).symbol_name()] = value_of(hypothesis.arg(1), values)
    return all(value_of(h, values) for h in hypotheses)


def value_of(term: FNode, values: Mapping[str, Fraction]) -> Any:
    """A term of a rule at given values: a fraction or a truth value."""
    if term.is_symbol():
        return values[term.symbol_name()]
    if term.is_real_constant():
        return Fraction(term.constant_value())
    if term.is_ite():
        return value_of(term.arg(1 if value_of(term.arg(0), values) else 2), values)
    args = [value_of(a, values) for a in term.args()]
    if term.is_and():
        return all(args)
    if term.is_or():
        return any(args)
    if term.is_not():
        return not args[0]
    if term.is_implies():
        return not args[0] or args[1]
    if term.is_le():
        return args[0] <= args[1]
    if term.is_lt():
        return args[0] < args[1]
    if term.is_equals():
        return args[0] == args[1]
    if term.is_plus():
        return sum(args, Fraction(0))
    if term.is_minus():
        return args[0] - args[1]
    if term.is_times():
        product = Fraction(1)
        for a in args:
            product *= a
        return product
    raise ValueError(f"a rule on real numbers must be of sums, products and comparisons, not {term}")
