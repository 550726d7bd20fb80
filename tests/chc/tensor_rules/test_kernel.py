"""The kernel accepts instances of its laws, and nothing else."""

from __future__ import annotations

import ast
import importlib
from dataclasses import replace
from pathlib import Path

import pytest

from chc.tensor_rules import kernel
from chc.tensor_rules.check import Asking
from chc.tensor_rules.kernel.forms import Forms
from chc.tensor_rules.kernel.laws import LAWS
from chc.tensor_rules.kernel.replay import in_order, prove, replay
from chc.tensor_rules.kernel.steps import Rejected, Step
from chc.tensor_rules.obligations import extended
from ir_semantics.tensors.conditions import Condition, inside, le
from ir_semantics.tensors.elements import Element
from smt_encodings.discharge import Discharger
from tests.chc.tensor_rules.kernel_cases import CASES, RULE_CASES, Case, M, N, RuleCase, at, number, op, over, v
from tests.repository.trusted import code_lines

FOLDER = Path(str(kernel.__file__)).parent


def accept(case: Case) -> None:
    forms = Forms(*case.notion, frozenset({"p"}), Asking(discharger=Discharger(timeout=2.0)))
    premise = extended((), *case.premise)
    last = replace(case.last, hypotheses=extended(premise, *case.last.hypotheses))
    prove(forms, last)


@pytest.mark.parametrize("case", [c for c in CASES if c.right], ids=lambda c: c.name)
def test_an_instance_of_a_law_is_accepted(case: Case) -> None:
    accept(case)


@pytest.mark.parametrize("case", [c for c in CASES if not c.right], ids=lambda c: c.name)
def test_a_forged_step_is_rejected(case: Case) -> None:
    with pytest.raises(Rejected):
        accept(case)


@pytest.mark.parametrize("case", RULE_CASES, ids=lambda c: c.name)
def test_a_derivation_is_of_its_rule(case: RuleCase) -> None:
    forms = Forms(True, True, frozenset(), Asking(discharger=Discharger(timeout=2.0)))
    arguments = forms, extended((), *case.premise), *case.sides, case.derivation
    if case.right:
        replay(*arguments)
    else:
        with pytest.raises(Rejected):
            replay(*arguments)


def whole(left: Element, right: Element, last: Step, premise: tuple[Condition, ...] = ()) -> None:
    """Checks a derivation of two elements of vectors of n, at the subscript o."""
    assert (last.left, last.right) == (left, right)
    forms = Forms(True, True, frozenset(), Asking(discharger=Discharger(timeout=2.0)))
    prove(forms, replace(last, hypotheses=extended((), *premise, inside(v("o"), N))))


def test_a_maximum_that_may_be_empty_cancels_in_no_part() -> None:
    top = over("k.1", M, at("a", "k.1"), "max")
    twice = op("sub", op("mul", top, number(2)), top)
    for premise, accepted in (((), False), ((le(1, M),), True)):
        step = Step("sums of products", extended((), *premise), top, twice)
        if accepted:
            whole(top, twice, step, premise)
        else:
            with pytest.raises(Rejected):
                whole(top, twice, step, premise)


def test_exponents_of_both_signs_are_finite() -> None:
    top = over("k.1", M, at("a", "k.1"), "max")
    doubled, less = op("mul", top, number(2)), op("neg", top)
    left, right = op("exp", top), op("mul", op("exp", doubled), op("exp", less))
    for premise, accepted in (((), False), ((le(1, M),), True)):
        under = extended((), *premise)
        sum_ = op("add", doubled, less)
        inner = Step("sums of products", under, top, sum_)
        first = Step("parts", under, left, op("exp", sum_), (inner,))
        step = Step("exponential", under, op("exp", sum_), right)
        last = Step("chain", under, left, right, (first, step), (False, False))
        if accepted:
            whole(left, right, last, premise)
        else:
            with pytest.raises(Rejected):
                whole(left, right, last, premise)


def test_a_fact_about_the_subscript_is_not_one_about_a_bound_variable() -> None:
    """That y is not 0 at the subscript says nothing of the other y, over which a sum with its name runs."""
    subscript = extended((), inside(v("o"), N))
    y = at("y", "o")
    left = op("div", at("x", "o"), y)
    fact = Step("divisor of the left side", subscript, y, None, (Step("chain", subscript, y, y),))
    ratios, ones = over("o", N, op("div", y, y)), over("o", N, number(1))
    cancelled = Step("sums of products", (), ratios, ones, (fact,))
    right = op("add", left, op("sub", over("k.1", N, op("div", at("y", "k.1"), at("y", "k.1"))), ones_over("k.2")))
    renamed = [
        Step("renamed", (), ratios, over("k.1", N, op("div", at("y", "k.1"), at("y", "k.1")))),
        Step("renamed", (), ones, ones_over("k.2")),
    ]
    sums = Step(
        "chain", (), renamed[0].right, renamed[1].right, (renamed[0], cancelled, renamed[1]), (True, False, False)
    )  # type: ignore[arg-type]
    nothing = op("add", left, op("sub", ones_over("k.2"), ones_over("k.2")))
    inner = Step("parts", (), right.args[1], nothing.args[1], (sums,))
    outer = Step("parts", (), right, nothing, (inner,))
    last = Step("chain", (), left, right, (Step("sums of products", (), nothing, left), outer), (True, True))
    with pytest.raises(Rejected, match="must not be free and bound"):
        whole(left, right, last)


def ones_over(name: str) -> Element:
    return over(name, N, number(1))


def test_every_law_has_right_and_forged_instances() -> None:
    for right in (True, False):
        used = {s.law for c in CASES if c.right is right for s in in_order(c.last)[-1:]}
        assert used >= LAWS.keys(), sorted(LAWS.keys() - used)


def test_the_kernel_is_small_and_its_lines_are_stated() -> None:
    lines = sum(map(code_lines, FOLDER.glob("*.py")))
    assert lines <= 600
    root = FOLDER.parents[2]
    assert f"{lines} lines of code" in (root / "docs/explanation/tensor_rules.md").read_text(encoding="utf-8")


def test_the_kernel_imports_the_language_and_the_printer_only() -> None:
    allowed = ("ir_semantics.tensors", "chc.tensor_rules.obligations", "chc.tensor_rules.kernel")
    own = (
        "ila_lang",
        "ir_semantics",
        "accel_models",
        "smt_encodings",
        "bmc",
        "chc",
        "reports",
        "rewrites",
        "ilaverify",
    )
    found = set()
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                name = "chc.tensor_rules.kernel" if node.level else str(node.module)
                found.add(name)
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
    assert [n for n in sorted(found) if n.split(".")[0] in own and not n.startswith(allowed)] == []
    assert importlib.import_module("chc.tensor_rules.kernel.laws").LAWS is LAWS
