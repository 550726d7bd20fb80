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
from chc.tensor_rules.kernel.replay import Goal, in_order, prove, replay
from chc.tensor_rules.kernel.steps import Rejected
from chc.tensor_rules.obligations import extended
from smt_encodings.discharge import Discharger
from tests.chc.tensor_rules.kernel_cases import CASES, RULE_CASES, Case, RuleCase

FOLDER = Path(str(kernel.__file__)).parent


def accept(case: Case) -> None:
    forms = Forms(*case.notion, frozenset({"p"}), Asking(discharger=Discharger(timeout=2.0)))
    premise = extended((), *case.premise)
    last = replace(case.last, hypotheses=extended(premise, *case.last.hypotheses))
    assert last.right is not None
    prove(forms, Goal(last.hypotheses, (), last.left, last.right), last)


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


def test_every_law_has_right_and_forged_instances() -> None:
    for right in (True, False):
        used = {s.law for c in CASES if c.right is right for s in in_order(c.last)[-1:]}
        assert used >= LAWS.keys() - {"equal indices"}, sorted(LAWS.keys() - used)


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
