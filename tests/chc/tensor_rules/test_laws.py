"""Every step of derivations holds on numbers: instances of laws, evaluated at small sizes by an evaluator of its own.

Over the reals a value is a fraction, an infinity or None (no value).  exp(x) is 2^x, which has all laws of exp that the
kernel uses, and tanh(0) is 0.  Up to reduction order addition is that of integers, bit by bit it is commutative and
nothing else; other functions are any functions.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from chc.tensor_rules.kernel.replay import in_order
from chc.tensor_rules.kernel.steps import Step, variables_in
from chc.tensor_rules.obligations import extended
from chc.tensor_rules.portable import read_derivation
from chc.tensor_rules.prove import prove_tensor_rule
from chc.tensor_rules.rule import Kind, TensorRule
from ir_semantics.tensors.conditions import Condition, TruthOf, holds, variables_of
from ir_semantics.tensors.elements import Apply, Choice, Element, IndexValue, Number, Read, Reduce
from rewrites.rules.tensor.catalogue import RULES
from smt_encodings.claims import Equality, Status
from tests.chc.tensor_rules.kernel_cases import BITS, CASES, REALS, Case

INF = float("inf")
NEGATIVE = {"log", "sqrt"}
SYMMETRIC = {"add", "mul", "maximum", "minimum"}
Env = Mapping[str, int]


class Unknown(Exception):
    """A value that is irrational, or takes too long."""


def scrambled(*parts: object) -> int:
    """Any function of its arguments."""
    return zlib.crc32(repr(parts).encode()) % 2003 - 1000


@dataclass
class Evaluator:
    """Evaluates elements; ``reals`` and ``ordered`` say which laws its numbers have."""

    reals: bool
    ordered: bool
    positive: frozenset[str]
    seed: int
    steps: int = 0

    def truth(self, name: str, at: Any) -> bool:
        return scrambled("truth", self.seed, name, tuple(at)) % 2 == 0

    def holds(self, condition: Condition, env: Env) -> bool:
        return holds(condition, env, self.truth)

    def value(self, element: Element, env: Env) -> Any:
        self.steps += 1
        if self.steps > 60_000:
            raise Unknown
        match element:
            case Read(name, at):
                number = scrambled(self.seed, name, *(i.value(env) for i in at)) % 9 - 4
                return self.number(abs(number) + 1 if name in self.positive else number)
            case Number(value):
                return value if self.reals else scrambled("literal", element.key) if abs(value) != INF else value
            case IndexValue(value):
                return self.number(value.value(env)) if self.reals else scrambled("size", value.value(env))
            case Choice(condition, yes, no):
                return self.value(yes if self.holds(condition, env) else no, env)
            case Apply(op, args):
                return self.apply(op, [self.value(a, env) for a in args])
            case Reduce(op, name, extent, body):
                unit = {"max": -INF, "min": INF, "sum": self.number(0)}[op]
                found = [self.value(body, {**env, name: i}) for i in range(extent.value(env))]
                total = found[0] if found else unit
                for item in found[1:]:
                    total = self.apply({"sum": "add", "max": "maximum", "min": "minimum"}[op], [total, item])
                return total

    def number(self, value: int) -> Any:
        return Fraction(value) if self.reals else value

    def apply(self, op: str, args: list[Any]) -> Any:
        if any(a is None for a in args):
            return None
        if op in ("maximum", "minimum"):
            return max(args) if op == "maximum" else min(args)
        if not self.reals:
            if op == "add" and not self.ordered:
                return sum(args)
            return scrambled(op, *(sorted(args) if op in SYMMETRIC else args))
        match op, args:
            case "select", [condition, yes, no]:
                return yes if condition else no
            case (("lt" | "le" | "eq"), [a, b]):
                return {"lt": a < b, "le": a <= b, "eq": a == b}[op]
            case "add", [a, b]:
                return None if abs(a) == abs(b) == INF and a != b else a + b
            case "sub", [a, b]:
                return self.apply("add", [a, -b])
            case "neg", [a]:
                return -a
            case "mul", [a, b]:
                if INF in (abs(a), abs(b)):
                    return None if 0 in (a, b) else INF if (a > 0) == (b > 0) else -INF
                return a * b
            case "div", [a, b]:
                return None if b == 0 else self.apply("mul", [a, Fraction(0) if abs(b) == INF else 1 / b])
            case "fma", [a, b, c]:
                return self.apply("add", [self.apply("mul", [a, b]), c])
            case "exp", [a]:
                if abs(a) == INF:
                    return Fraction(0) if a < 0 else INF
                if a.denominator != 1 or abs(a) > 200:
                    raise Unknown
                return Fraction(2) ** int(a)
            case "tanh", [Fraction(numerator=0)]:
                return Fraction(0)
        if op in NEGATIVE and args[0] < 0:
            return None
        if op == "sqrt":
            return INF if args[0] == INF else Fraction(scrambled(op, *args) % 4)
        return Fraction(scrambled(op, *args) % 7 - 3)


def points(step: Step, draw: random.Random, largest: int) -> list[dict[str, int]]:
    """Values of all variables that satisfy a step's hypotheses, apart from those on data."""
    names = sorted(frozenset().union(*map(variables_of, step.hypotheses), *_variables(step)))
    tested = [h for h in step.hypotheses if not _on_data(h)]
    found: list[dict[str, int]] = []
    for _ in range(150):
        point: dict[str, int] = {n: draw.randint(0, largest) for n in names}
        try:
            if all(holds(h, point) for h in tested):
                found.append(point)
        except ZeroDivisionError:
            continue
        if len(found) == 3:
            break
    return found


def _on_data(condition: Condition) -> bool:
    return isinstance(condition, TruthOf) or any(map(_on_data, getattr(condition, "parts", ())))


def _variables(step: Step) -> list[frozenset[str]]:

    return [variables_in(e) for e in (step.left, step.right) if e is not None]


def differences(evaluator: Evaluator, last: Step, draw: random.Random, largest: int = 2) -> tuple[int, list[str]]:
    """How many steps were evaluated, and those whose sides differ where the last left side has a value."""
    compared, found = 0, []
    for step in in_order(last):
        for point in points(step, draw, largest):
            evaluator.seed, evaluator.steps = draw.randint(0, 10**6), 0
            try:
                if not all(evaluator.holds(h, point) for h in step.hypotheses):
                    continue
                if _whole(evaluator, last, point) is None:
                    continue
                left = evaluator.value(step.left, point)
                right = left if step.right is None else evaluator.value(step.right, point)
            except (Unknown, ZeroDivisionError):
                continue
            compared += 1
            if left != right or (step.right is None and left in (None, 0)):
                found.append(f"{step.law}: {step.left} = {step.right} at {point}: {left}, {right}")
    return compared, found


def _whole(evaluator: Evaluator, last: Step, point: Mapping[str, int]) -> Any:
    """The value of the last left side at the point, or where it has other subscripts nothing in particular."""
    try:
        return evaluator.value(last.left, point)
    except KeyError:
        return 0


def checked(rule: TensorRule, draw: random.Random) -> int:
    verdict = prove_tensor_rule(rule)
    assert verdict.status is Status.PROVED, verdict.reason
    content: Any = verdict.details["derivation"]
    derivation = read_derivation({k: v for k, v in content.items() if k != "example"})
    reals = rule.equality is Equality.OVER_REALS
    evaluator = Evaluator(reals, rule.equality is Equality.BIT_EXACT, rule.positive, 0)
    compared, found = differences(evaluator, derivation.last, draw)
    assert found == []
    return compared


RIGHT = [r for r in RULES if r.kind is not Kind.WRONG]
SECONDS = {"convolution with bias as windows times filters with bias"}
"""Rules of which the proof takes seconds; slow tests have them."""


@pytest.mark.parametrize("rule", [r for r in RIGHT[::9] if r.name not in SECONDS], ids=lambda r: r.name)
def test_steps_hold_on_numbers(rule: TensorRule) -> None:
    checked(rule, random.Random(1))


@pytest.mark.slow
def test_steps_of_all_rules_hold_on_numbers() -> None:
    draw = random.Random(2)
    assert sum(checked(rule, draw) for rule in RIGHT) > 5 * len(RIGHT)


@pytest.mark.parametrize("case", [c for c in CASES if c.right], ids=lambda c: c.name)
def test_right_instances_hold_on_numbers(case: Case) -> None:
    evaluator = Evaluator(case.notion == REALS, case.notion == BITS, frozenset({"p"}), 0)
    last = case.last
    premise = extended((), *case.premise)
    under = Step(last.law, extended(premise, *last.hypotheses), last.left, last.right, last.premises, last.data)
    draw = random.Random(3)
    for _ in range(20):
        _, found = differences(evaluator, under, draw, 3)
        assert found == []


def test_the_evaluator_sees_wrong_equations() -> None:
    """Of forged steps at least two in five are wrong on numbers; others are right for another reason, or incomplete."""
    draw, seen, forged = random.Random(4), 0, [c for c in CASES if not c.right]
    for case in forged:
        evaluator = Evaluator(case.notion == REALS, case.notion == BITS, frozenset({"p"}), 0)
        last = case.last
        under = Step(last.law, extended(extended((), *case.premise), *last.hypotheses), last.left, last.right)
        tries: list[Callable[[], list[str]]] = [lambda e=evaluator, u=under: differences(e, u, draw, 3)[1]] * 10
        seen += any(attempt() for attempt in tries)
    assert seen >= 2 * len(forged) / 5, seen
