"""Each check of the kernel is needed: without it, or with the comparison turned, some forged step is accepted.

Mutants are made of the kernel's own text: a statement that checks or asks is dropped, or a condition replaced.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from chc.tensor_rules import kernel
from chc.tensor_rules.obligations import Hypotheses, assertions, extended, remaining
from ir_semantics.tensors.conditions import TRUE, Condition
from smt_encodings.discharge import Discharger, NotDischarged
from tests.chc.tensor_rules.kernel_cases import CASES, RULE_CASES, Case, RuleCase

pytestmark = pytest.mark.slow

FOLDER = Path(str(kernel.__file__)).parent
MODULES = ("steps", "indices", "forms", "laws", "replay")
CHECKS = {"need", "ask", "regular", "fresh_in", "inhabited", "_premise", "_divisors", "_common", "has_digits"}
REDUNDANT = {
    "forms: without need(bool(always), 'an extremum must have a candidate')": "then there is no least one",
    "forms: extent.constant is not None and extent.constant <= MOST_WRITTEN_OUT without extent.constant is not None": (
        "None is not compared"
    ),
    "forms: extent.constant is not None and extent.constant <= MOST_WRITTEN_OUT without extent.constant <= "
    "MOST_WRITTEN_OUT": "it limits time",
    "laws: without _divisors(forms, within(step.hypotheses, bound, [guard]), f)": "what a map gives lies in a range",
    "laws: without _divisors(forms, within(step.hypotheses, other, [there]), g)": "what a map gives lies in a range",
    "laws: without forms.ask(at, le(1, divisor), f'{divisor} is positive')": "what a map gives lies in a range",
    "replay: without need(len(left.shape) == len(right.shape), 'both sides must have one rank')": (
        "shapes of different lengths are not compared"
    ),
    "replay: without need(name in dict(goal.ranges), f'{name} must be a subscript')": "then it has no range",
}
"""Changes that no forged step is known to pass, and why."""


@dataclass
class Answers:
    """Obligations and whether they hold, each put to the solvers once for all mutants."""

    found: dict[tuple[frozenset[Condition], Condition], bool] = field(default_factory=dict)

    def holds(self, hypotheses: Hypotheses, goal: Condition) -> bool:
        goal = remaining(hypotheses, goal)
        key = frozenset(hypotheses), goal
        if goal == TRUE:
            return True
        if key not in self.found:
            facts, lemmas = assertions(*key)
            try:
                Discharger(timeout=2.0).ask("mutant", "0", [*facts, *lemmas], "")
                self.found[key] = True
            except NotDischarged:
                self.found[key] = False
        return self.found[key]


ANSWERS = Answers()


def load(texts: Mapping[str, ast.Module], name: str) -> dict[str, types.ModuleType]:
    """The kernel's modules from other texts, under a package of another name."""
    package = types.ModuleType(name)
    package.__path__ = []
    sys.modules[name] = package
    found = {}
    try:
        for module in MODULES:
            made = types.ModuleType(f"{name}.{module}")
            made.__package__ = name
            sys.modules[f"{name}.{module}"] = made
            exec(compile(texts[module], f"{name}.{module}", "exec"), made.__dict__)
            found[module] = made
    finally:
        for key in [k for k in sys.modules if k == name or k.startswith(f"{name}.")]:
            del sys.modules[key]
    return found


def accepts(modules: Mapping[str, types.ModuleType], case: Case | RuleCase) -> bool:
    rejected = modules["steps"].Rejected

    def ask(hypotheses: Hypotheses, goal: Condition, meaning: str) -> None:
        if not ANSWERS.holds(hypotheses, goal):
            raise rejected(meaning)

    if isinstance(case, RuleCase):
        forms = modules["forms"].Forms(True, True, frozenset(), ask)
        premise = extended((), *case.premise)
        return _passes(modules["replay"].replay, forms, premise, *case.sides, case.derivation)
    forms = modules["forms"].Forms(*case.notion, frozenset({"p"}), ask)
    last = replace(case.last, hypotheses=extended(extended((), *case.premise), *case.last.hypotheses))
    goal = modules["replay"].Goal(last.hypotheses, (), last.left, last.right)
    return _passes(modules["replay"].prove, forms, goal, last)


def _passes(function: Callable[..., None], *arguments: object) -> bool:
    try:
        function(*arguments)
    except Exception:  # a mutant may fail in any way
        return False
    return True


def parsed() -> dict[str, ast.Module]:
    return {m: ast.parse((FOLDER / f"{m}.py").read_text(encoding="utf-8")) for m in MODULES}


def mutants() -> Iterator[tuple[str, dict[str, ast.Module]]]:
    """Each with its name: module, line, and what was changed."""
    for module in ("forms", "laws", "replay"):
        count = sum(1 for _ in _places(parsed()[module]))
        for position in range(count):
            texts = parsed()
            body, index = list(_places(texts[module]))[position]
            text = ast.unparse(body[index])
            body[index] = ast.copy_location(ast.Pass(), body[index])
            yield f"{module}: without {text}", {k: ast.fix_missing_locations(t) for k, t in texts.items()}
        parts = sum(1 for _ in _conditions(parsed()[module]))
        for position in range(parts):
            texts = parsed()
            node, part = list(_conditions(texts[module]))[position]
            whole, gone = ast.unparse(node), node.values[part]
            node.values[part] = ast.copy_location(ast.Constant(True), gone)
            yield (
                f"{module}: {whole} without {ast.unparse(gone)}",
                {k: ast.fix_missing_locations(t) for k, t in texts.items()},
            )


def _places(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], int]]:
    """Statements that are a check."""
    for node in ast.walk(tree):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            for index, statement in enumerate(body if isinstance(body, list) else []):
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                    function = statement.value.func
                    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                    if name in CHECKS:
                        yield body, index


def _conditions(tree: ast.Module) -> Iterator[tuple[ast.BoolOp, int]]:
    """Parts of the conjunctions that checks ask for."""
    for body, index in _places(tree):
        for node in ast.walk(body[index]):
            if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
                yield from ((node, part) for part in range(len(node.values)))


def survivors() -> Iterator[str]:
    for number, (name, texts) in enumerate(mutants()):
        modules = load(texts, f"kernel_mutant_{number}")
        if not any(accepts(modules, case) for case in (*CASES, *RULE_CASES) if not case.right):
            yield name


def test_the_kernel_itself_accepts_no_forged_step() -> None:
    modules = load(parsed(), "kernel_unchanged")
    assert [c.name for c in (*CASES, *RULE_CASES) if accepts(modules, c) is not c.right] == []


def test_each_check_rejects_a_forged_step_that_nothing_else_rejects() -> None:
    left = [name for name in survivors() if name not in REDUNDANT]
    assert left == []
