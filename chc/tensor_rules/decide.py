"""Verdicts on rewrite rules between tensor terms: a proof for every size, or a counterexample that was replayed."""

from __future__ import annotations

import time
from dataclasses import replace

from ir_semantics.scalars.terms import variable
from ir_semantics.tensors.operators import map_, reverse
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger
from smt_encodings.runs import surviving

from .prove import METHOD, prove_tensor_rule
from .refute import find_counterexample
from .rule import TensorRule
from .runs import survey

FIRST_SEARCH = 0.5
"""Seconds of the search before the proof."""


def decide_tensor_rule(rule: TensorRule, discharger: Discharger | None = None, seconds: float = 4.0) -> Verdict:
    """PROVED, REFUTED with a replayed counterexample, UNKNOWN or VACUOUS; ``seconds`` is for the search.

    A short search comes first, so that no rule is proved that a few hundred small examples refute.  A rule is PROVED
    only where its first mutant (the right side plus 1) is refuted: else it may not speak of any element.
    """
    start = time.perf_counter()
    counterexample = find_counterexample(rule, min(seconds, FIRST_SEARCH))
    if counterexample is None:
        verdict = prove_tensor_rule(rule, discharger)
        if verdict.status is Status.UNKNOWN:
            counterexample = find_counterexample(rule, seconds, seed=1)
        if verdict.status is Status.PROVED and find_counterexample(mutants(rule)[0], seconds) is None:
            verdict.status, verdict.reason = Status.UNKNOWN, "1 more on the right side was not refuted"
        verdict.seconds = time.perf_counter() - start
        if counterexample is None:
            return surviving(verdict, lambda: survey(rule))
    refuted = Verdict(Status.REFUTED, rule.claim, METHOD, time.perf_counter() - start, str(counterexample))
    refuted.details = {"counterexample": counterexample}
    return refuted


def mutants(rule: TensorRule) -> list[TensorRule]:
    """Rules that differ from this one on the right: 1 added to every element, or an input reversed along an axis.

    A reversed input may leave a rule right (a sum does not depend on the order of its elements); 1 more does not.
    """
    one_more = map_(variable("x") + 1, x=rule.right)
    rules = [replace(rule, name=f"{rule.name} (right side plus 1)", right=one_more)]
    for axis in range(rule.right.rank):
        turned = reverse(rule.right, axis)
        rules.append(replace(rule, name=f"{rule.name} (right side reversed along {axis})", right=turned))
    return rules
