"""Each check of the kernel is needed: without it, or with the comparison turned, some forged step is accepted.

Mutants are made of the kernel's own text: a statement that checks or asks is dropped, or a condition replaced.
"""

from __future__ import annotations

import ast
import re
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
MODULES = ("steps", "forms", "laws", "replay")
CHECKS = {"need", "ask", "regular", "fresh_in", "inhabited", "_premise", "divide", "_divisors"}
REDUNDANT = {
    "forms: inhabited without need(bool(always)": "then there is no least one",
    "laws: covering without divide(": "no map is applied to another one, and elements divide by positive numbers",
    "replay: replay without need(len(left.shape) == len(right.shape)": "shapes of different lengths are not compared",
    "forms: opened: isinstance(element, Reduce) and element.op == op and (element != unit) without element != unit": (
        "a sum of nothing has no points"
    ),
    "forms: terms: Choice(condition, yes, no) without self.monoid": "equal choices of equal elements",
    "forms: terms: Reduce('sum', name, extent, body) without self.monoid": "terms keep their places in the sum",
    "forms: terms: self.ring and math.isfinite(value) without math.isfinite(value)": "an infinity is no fraction",
    "laws: sides_of_choices: a != b and": "more is asked then",
}
"""Changes that no forged step is known to pass, by how their names begin, and why."""
DUCK = re.compile(r"without (isinstance\(.*|extent\.constant is not None)$")
"""Without these the kernel meets an object without the attribute, or None in a comparison, and rejects."""


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
    return _passes(modules["replay"].prove, forms, last)


def _passes(function: Callable[..., None], *arguments: object) -> bool:
    try:
        function(*arguments)
    except Exception:  # a mutant may fail in any way
        return False
    return True


def parsed() -> dict[str, ast.Module]:
    return {m: ast.parse((FOLDER / f"{m}.py").read_text(encoding="utf-8")) for m in MODULES}


def mutants() -> Iterator[tuple[str, dict[str, ast.Module]]]:
    """Each with its name: module, function, and what was changed."""
    for module in MODULES:
        for position in range(len(list(_changes(parsed()[module])))):
            texts = parsed()
            name, change = list(_changes(texts[module]))[position]
            change()
            yield f"{module}: {name}", {k: ast.fix_missing_locations(t) for k, t in texts.items()}


def _changes(tree: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    """A check dropped, a part of a conjunction dropped, or the guard of a form dropped."""
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        for node in ast.walk(function):
            for field_ in ("body", "orelse"):
                body = getattr(node, field_, None)
                for index, statement in enumerate(body if isinstance(body, list) else []):
                    if _is_check(statement):
                        text = f"{function.name} without {ast.unparse(statement)}"
                        yield (
                            text,
                            lambda b=body, i=index, s=statement: b.__setitem__(i, ast.copy_location(ast.Pass(), s)),
                        )  # type: ignore[misc]
            if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
                for part, value in enumerate(node.values):
                    text = f"{function.name}: {ast.unparse(node)} without {ast.unparse(value)}"
                    true = ast.copy_location(ast.Constant(True), value)
                    yield text, lambda n=node, p=part, t=true: n.values.__setitem__(p, t)  # type: ignore[misc]
            if isinstance(node, ast.match_case) and node.guard is not None:
                text = f"{function.name}: {ast.unparse(node.pattern)} without {ast.unparse(node.guard)}"
                yield text, lambda n=node: setattr(n, "guard", None)  # type: ignore[misc]


def _is_check(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    function = statement.value.func
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) in CHECKS


def survivors() -> Iterator[str]:
    for number, (name, texts) in enumerate(mutants()):
        modules = load(texts, f"kernel_mutant_{number}")
        if not any(accepts(modules, case) for case in (*CASES, *RULE_CASES) if not case.right):
            yield name


def test_the_kernel_itself_accepts_no_forged_step() -> None:
    modules = load(parsed(), "kernel_unchanged")
    assert [c.name for c in (*CASES, *RULE_CASES) if accepts(modules, c) is not c.right] == []


def test_each_check_rejects_a_forged_step_that_nothing_else_rejects() -> None:
    left = [name for name in survivors() if not name.startswith(tuple(REDUNDANT)) and not DUCK.search(name)]
    assert left == []
