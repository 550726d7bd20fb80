"""Random rules on scalars over small formats, decided by all their values, against the prover.

``python -m tests.chc.scalar_rules.random_scalar_rules 3000 --seed 0`` prints a table.  Each rule is put to the prover
as users put it, and to each interpretation alone, where no value is tried before: what one proves must hold for all
values.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from chc.scalar_rules.prove import interpretations_of, prove_rule
from chc.scalar_rules.rule import ScalarRule
from ir_semantics.scalars.formats import BOOLEAN, Format, fixed_point, float_format, integer
from ir_semantics.scalars.terms import TRUE, Scalar, apply, cast, constant, select, variable
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.scalar_rules.attempts import proved_by
from tests.chc.scalar_rules.scalar_evaluator import NoValue, all_values, assignments, evaluate

NAMES = ("x", "y", "nan", "fp", "RNE", "add_2_3", "real_quotient", "to_real", "sec", "bvadd", "round_2_2", "match")
"""Few names, among them words of solvers and names that an encoding might use for itself."""

INTEGERS = [integer(w, signed=s, overflow=o) for w in (1, 2, 3) for s in (True, False) for o in ("wrap", "saturate")]
FIXED = [
    fixed_point(3, f, signed=s, rounding=r, overflow=o)
    for f in (1, 2, 4)
    for s in (True, False)
    for r in ("down", "nearest_up", "nearest_even", "toward_zero")
    for o in ("wrap", "saturate")
]
FLOATS = [float_format(2, 2), float_format(2, 3), float_format(3, 2)]

_COMMON = [
    ("neg", 1), ("abs", 1), ("add", 2), ("add", 2), ("sub", 2), ("mul", 2), ("mul", 2), ("fma", 3), ("floor", 1),
    ("ceil", 1), ("trunc", 1), ("maximum", 2), ("minimum", 2), ("maxnum", 2), ("minnum", 2), ("unsigned_zero", 1),
]  # fmt: skip
_WHOLE = [
    ("quotient", 2), ("floor_quotient", 2), ("remainder", 2), ("shift_left", 2), ("shift_right", 2), ("bit_and", 2),
    ("bit_or", 2), ("bit_xor", 2), ("bit_not", 1),
]  # fmt: skip
_RELATIONS = ["lt", "le", "eq", "same"]
_MOST_BITS = 10


@dataclass
class Generator:
    """Terms over one main format, with casts to another one now and then."""

    random: random.Random
    kind: Format
    other: Format
    names: dict[str, Scalar] = field(default_factory=dict)

    def leaf(self, kind: Format) -> Scalar:
        """A variable of the few that there are, or a literal."""
        known = [v for v in self.names.values() if v.format == kind]
        room = _MOST_BITS - sum(len(all_values(v.format)).bit_length() - 1 for v in self.names.values())
        if self.random.random() < 0.2:
            value = self.random.choice(all_values(kind))
            return constant(_literal(value), kind)
        if known and (self.random.random() < 0.5 or room < len(all_values(kind)).bit_length()):
            return self.random.choice(known)
        free = [n for n in NAMES if n not in self.names]
        if not free or room < len(all_values(kind)).bit_length() - 1:
            return constant(_literal(self.random.choice(all_values(kind))), kind)
        name = self.random.choice(free)
        self.names[name] = variable(name, kind)
        return self.names[name]

    def term(self, kind: Format, depth: int) -> Scalar:
        """A random term of a format."""
        if kind == BOOLEAN:
            return self.condition(depth)
        if depth == 0:
            return self.leaf(kind)
        roll = self.random.random()
        if roll < 0.12:
            return select(self.condition(depth - 1), self.term(kind, depth - 1), self.term(kind, depth - 1))
        if roll < 0.2:
            source = self.other if kind == self.kind else self.kind
            return cast(self.term(source, depth - 1), kind)
        operators = list(_COMMON)
        if kind.family == "integer":
            operators += _WHOLE
        if kind.family == "float":
            operators += [("div", 2), ("sqrt", 1)]
        name, arity = self.random.choice(operators)
        return apply(name, *(self.term(kind, depth - 1 if self.random.random() < 0.7 else 0) for _ in range(arity)))

    def condition(self, depth: int) -> Scalar:
        """A random Boolean."""
        kind = self.random.choice([self.kind, self.kind, self.other])
        relation = apply(self.random.choice(_RELATIONS), self.term(kind, max(depth - 1, 0)), self.leaf(kind))
        if relation.format != BOOLEAN or self.random.random() < 0.7:
            return relation
        return ~relation if self.random.random() < 0.5 else relation & self.condition(0)

    def rewritten(self, term: Scalar) -> Scalar:
        """The term with one place rewritten by a law that holds in many formats, and not in all."""
        if not term.args or self.random.random() < 0.4:
            return self._law(term)
        args = list(term.args)
        place = self.random.randrange(len(args))
        args[place] = self.rewritten(args[place])
        target = term.format if term.op == "cast" else None
        return apply(term.op, *args, target=target)

    def _law(self, term: Scalar) -> Scalar:
        if term.format == BOOLEAN:
            return ~~term if self.random.random() < 0.5 else term & term
        zero, one = constant(0, term.format), self.leaf(term.format)
        laws = [
            lambda: term + zero,
            lambda: apply("neg", apply("neg", term)),
            lambda: select(term.equals(term), term, zero),
            lambda: (term + one) - one,
            lambda: apply("maximum", term, term),
            lambda: apply("minimum", apply("maximum", term, one), term),
            lambda: apply("unsigned_zero", term),
            lambda: cast(cast(term, self.other), term.format),
            lambda: zero - term,
            lambda: apply("abs", term),
        ]
        if len(term.args) == 2 and term.op not in ("select", "cast"):
            x, y = term.args
            laws += [lambda: apply(term.op, y, x)] * 6
            if term.op == "sub":
                laws += [lambda: x + -y] * 4
            if term.op in ("add", "mul") and x.op == term.op:
                laws += [lambda: apply(term.op, x.args[0], apply(term.op, x.args[1], y))] * 4
            if term.op == "mul" and y.op in ("add", "sub"):
                laws += [lambda: apply(y.op, x * y.args[0], x * y.args[1])] * 4
        return self.random.choice(laws)()


def _literal(value: Any) -> Any:
    return float({"-0": "-0.0"}.get(value, value)) if isinstance(value, str) else value


def random_rule(seed: int) -> ScalarRule:
    """The rule of a seed."""
    source = random.Random(seed)
    family = source.choice([INTEGERS, FIXED, FLOATS, FLOATS])
    everything = [*INTEGERS, *FIXED, *FLOATS]
    kind = source.choice(family)
    maker = Generator(source, kind, source.choice([k for k in everything if k != kind]))
    depth = source.choice([1, 2, 2, 3])
    left = maker.term(kind, depth)
    right = maker.rewritten(left)
    for _ in range(source.randrange(2)):
        right = maker.rewritten(right)
    condition = maker.condition(1) if source.random() < 0.3 else TRUE
    return ScalarRule(f"random {seed}", left, right, kind, condition=condition)


def holds(rule: ScalarRule) -> tuple[bool, int]:
    """Whether a rule holds at all values, and at how many its condition does."""
    said = 0
    for values in assignments(rule.variables):
        if evaluate(rule.condition, values):
            said += 1
            if evaluate(rule.left, values) != evaluate(rule.right, values):
                return False, said
    return True, said


def wrong_answers(rule: ScalarRule, table: Counter[str], timeout: float = 3.0) -> Iterator[str]:
    """What the prover and its interpretations say of a rule that its values contradict."""
    try:
        truth, said = holds(rule)
    except NoValue:
        table["no value"] += 1
        return
    table["holds" if truth else "fails"] += 1
    verdict = prove_rule(rule, Discharger(timeout=timeout))
    table[verdict.status.value] += 1
    wrong = {
        Status.PROVED: not truth or not said,
        Status.REFUTED: truth,
        Status.VACUOUS: said > 0,
        Status.ERROR: True,
        Status.UNKNOWN: False,
    }
    if wrong[verdict.status]:
        yield f"{verdict.status.value} {verdict.reason}"
    for interpretation in interpretations_of(rule):
        if proved_by(rule, interpretation, Discharger(timeout=timeout)):
            table[f"{interpretation.value} proves"] += 1
            if not truth:
                yield f"{interpretation.value} proves it"


def main() -> None:
    """Runs many and prints what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rules", type=int)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    table: Counter[str] = Counter()
    start = time.perf_counter()
    for seed in range(chosen.seed, chosen.seed + chosen.rules):
        rule = random_rule(seed)
        for text in wrong_answers(rule, table):
            table["WRONG"] += 1
            print(f"seed {seed}: {text}\n  {rule.text}  ({rule.number})", flush=True)
    for name, count in sorted(table.items()):
        print(f"{name:32}{count:8}")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
