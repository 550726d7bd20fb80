"""Rewrite rules on scalars as subjects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from chc.scalar_rules.enclosures import replay_enclosed
from chc.scalar_rules.mutants import drawn_mutants
from chc.scalar_rules.prove import proof_of, prove_rule, require_rule
from chc.scalar_rules.rule import Counterexample, ScalarRule
from chc.scalar_rules.runs import survey
from chc.scalar_rules.search import find_among_all, find_counterexample, points, refutes_change
from ir_semantics.scalars.formats import Value
from ir_semantics.scalars.terms import NotInterpreted, Scalar, postorder
from reports.subjects import Mutant, Refutation, Required, Subject
from rewrites.claims.documents import document, read_document, value_json, value_of
from rewrites.claims.sources import meaning_digest, place_of, text_digest
from rewrites.claims.words import named, trust_lines, with_name
from rewrites.rules.scalar import floats as float_rules
from rewrites.rules.scalar import hardware as hardware_rules
from rewrites.rules.scalar import integers as integer_rules
from smt_encodings.claims import Claim, Runs, Verdict
from smt_encodings.discharge import Discharger, Requirements

_LANGUAGES = ("ir_semantics", "accel_models", "ila_lang", "chc.scalar_rules.formats")
"""What says what operators and formats mean."""


class ScalarSubject(Subject):
    """A rule on scalars under a name of its own."""

    kind = "rule"
    method = "rule"

    def __init__(self, name: str, rule: ScalarRule) -> None:
        self.name, self.rule = name, rule

    def place(self) -> tuple[str, int]:
        """Where the rule's row, or its name, stands."""
        modules = (float_rules, integer_rules, hardware_rules)
        own = [m for m in modules if any(self.rule in (r.wrong, *r.repaired, *r.still_wrong) for r in m.ROWS)]
        return place_of(own, self.rule.row or self.rule.name, self.rule.name)

    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """The proof, and its obligations made again."""
        return prove_rule, require_rule

    def claim(self, parameters: Mapping[str, Any]) -> Claim:
        """With the interpretations of a proof, its claim with what it assumes."""
        return named(require_rule(self.rule, parameters, Requirements(second=False)), self.name)

    def words(self) -> Claim:
        """The rule's words; interpretations and what they assume are found by the proof."""
        rule = self.rule
        over = f"all values of {', '.join(f'{n} ({k})' for n, k in rule.variables.items()) or 'no variable'}"
        return Claim(self.name, rule.text, over, rule.equality, (), ())

    def semantics(self) -> dict[str, str]:
        """Digests of the rule's terms and of the texts that say what their operators and formats mean."""
        return {
            "rule": text_digest(_structure(self.rule)),
            "operators": meaning_digest(self.provers(self.method), *_LANGUAGES),
        }

    def trust(self, claim: Claim) -> str:
        """Claim, data and assumptions, and the rules used as lemmas."""
        return trust_lines(claim, [lemma.text for lemma in self.rule.lemmas])

    def prove(self, discharger: Discharger) -> Verdict:
        """As :func:`chc.scalar_rules.prove.prove_rule`."""
        return with_name(prove_rule(self.rule, discharger), self.name)

    def parameters(self, verdict: Verdict) -> dict[str, Any]:
        """The interpretations of the rule and of its lemmas."""
        used: Any = verdict.details["used"]
        return dict(used)

    def survey(self) -> Runs:
        """Both sides evaluated at corners."""
        return survey(self.rule)

    def mutants(self, draw: Random) -> Iterator[Mutant]:
        """Rules with one thing changed on a side or in the condition."""
        for what, changed in drawn_mutants(self.rule, draw):
            yield Mutant(what, partial(_differs, self.rule, changed), partial(proof_of, changed))

    def required(self, certificate: Mapping[str, Any]) -> Required | str:
        """The rule's obligations in the certificate's interpretations."""
        requirements = Requirements(second=False)
        claim = require_rule(self.rule, certificate["parameters"], requirements)
        return Required(named(claim, self.name), requirements.required)

    def refutation(self, verdict: Verdict) -> Refutation | None:
        """The values that were evaluated."""
        evidence = verdict.details.get("counterexample")
        return self._shown(evidence) if isinstance(evidence, Counterexample) else None

    def replayed(self, document: str) -> Refutation | None:
        """Both sides evaluated again at the document's values."""
        content = read_document(document, self.name, {"values"})
        values: dict[str, Value] = {name: value_of(v) for name, v in content["values"].items()}
        if set(values) != set(self.rule.variables):
            raise ValueError(f"a counterexample to {self.name} must have values of its variables")
        try:
            counterexample = replay_enclosed(self.rule, values)
        except NotInterpreted:
            return None
        return None if counterexample is None else self._shown(counterexample)

    def _shown(self, counterexample: Counterexample) -> Refutation:
        in_order = replace(counterexample, values=dict(sorted(counterexample.values.items())))  # as in a document
        values = {name: value_json(v) for name, v in in_order.values.items()}
        return Refutation(str(in_order), document(self.name, {"values": values}))


def _differs(rule: ScalarRule, changed: ScalarRule, seconds: float) -> str | None:
    """Where a changed rule fails; the values that are tried are few and always the same."""
    counterexample = find_counterexample(changed, points(changed)) or find_among_all(changed)
    if counterexample is not None:
        return str(counterexample)
    return refutes_change(rule, changed, list(points(rule))) if changed.right is not rule.right else None


def _structure(rule: ScalarRule) -> str:
    """All that a rule says, as text that no two rules share."""
    numbers: dict[Scalar, int] = {}
    lines = []
    for term in postorder(rule.terms):
        numbers[term] = len(numbers)
        lines.append([term.op, [numbers[a] for a in term.args], repr(term.format), repr(term.payload)])
    roots = [numbers[t] for t in rule.terms]
    interpretation = rule.interpretation.value if rule.interpretation else None
    lemmas = [_structure(replace(lemma)) for lemma in rule.lemmas]
    return json.dumps([lines, roots, repr(rule.number), rule.zero_signs, interpretation, lemmas])
