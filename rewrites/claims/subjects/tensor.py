"""Rewrite rules on tensors as subjects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chc.tensor_rules.check import required_obligations
from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.kernel.steps import Rejected
from chc.tensor_rules.mutants import mutants
from chc.tensor_rules.prove import METHOD, prove_tensor_rule
from chc.tensor_rules.refute import Counterexample, find_counterexample, replay
from chc.tensor_rules.rule import TensorRule
from chc.tensor_rules.runs import survey
from reports.subjects import Mutant, Refutation, Required
from rewrites.claims.documents import array_json, array_value, document, read_document
from rewrites.claims.sources import meaning_digest, place_of, text_digest
from rewrites.claims.words import with_name
from rewrites.rules.tensor.catalogue import MODULES
from smt_encodings.claims import Claim, Runs, Status, Verdict
from smt_encodings.discharge import Discharger

from .stated import StatedSubject


class TensorSubject(StatedSubject):
    """A rule on tensors of every size under a name of its own."""

    kind = "rule"
    method = METHOD
    evidence = Counterexample

    def __init__(self, name: str, rule: TensorRule) -> None:
        self.name, self.rule = name, rule

    def place(self) -> tuple[str, int]:
        """Where the rule's name stands."""
        return place_of([m for m in MODULES if self.rule in m.RULES], self.rule.name)

    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """The decision, and the kernel with its obligations."""
        return decide_tensor_rule, required_obligations

    def stated(self) -> Claim:
        """What the rule says."""
        return self.rule.claim

    def semantics(self) -> dict[str, str]:
        """Digests of both sides, element by element, and of the texts that say what operators on elements mean."""
        rule = self.rule
        left, right = (
            "\n".join(map(repr, (side, e))) for side, e in zip((rule.left, rule.right), rule.elements, strict=True)
        )
        relation = text_digest(repr(rule.premise), rule.equality.value, *sorted(rule.positive), repr(rule.masks))
        return {
            "left": text_digest(left),
            "right": text_digest(right),
            "relation": relation,
            "operators": meaning_digest(self.provers(self.method), "ir_semantics"),
        }

    def prove(self, discharger: Discharger) -> Verdict:
        """As :func:`chc.tensor_rules.decide.decide_tensor_rule`."""
        return with_name(decide_tensor_rule(self.rule, discharger), self.name)

    def survey(self) -> Runs:
        """Both sides evaluated on small data."""
        return survey(self.rule)

    def mutants(self, draw: Random) -> Iterator[Mutant]:
        """Rules whose right side's element has one thing changed."""
        for changed in mutants(self.rule, draw):
            yield Mutant(
                changed.name.removeprefix(f"{self.rule.name}, "), partial(_differs, changed), partial(_proof, changed)
            )

    def required(self, certificate: Mapping[str, Any]) -> Required | str:
        """The obligations of the certificate's derivation, which the kernel replays."""
        try:
            needed = required_obligations(self.rule, certificate["derivation"])
        except Rejected as error:
            return f"the kernel does not accept the derivation: {error}"
        return Required(self.claim(certificate["parameters"]), needed, derived=True)

    def replayed(self, document: str) -> Refutation | None:
        """Both sides evaluated again on the document's sizes and data."""
        counterexample = replay(self.rule, *self.evidence_of(document))
        return None if counterexample is None else self.shown(counterexample)

    def evidence_of(self, document: str) -> tuple[dict[str, int], dict[str, NDArray[np.object_]]]:
        """The sizes and data in a document; raises ValueError where there are others, or none."""
        content = read_document(document, self.name, {"sizes", "inputs"})
        sizes = content["sizes"]
        if set(sizes) != set(self.rule.sizes) or not all(type(n) is int and 0 <= n <= 1000 for n in sizes.values()):
            raise ValueError(f"a counterexample to {self.name} must have its sizes, as small natural numbers")
        return sizes, {n: array_value(a) for n, a in content["inputs"].items()}

    def shown(self, evidence: Counterexample) -> Refutation:
        """The sizes and data that were evaluated."""
        inputs = {name: array_json(array) for name, array in sorted(evidence.inputs.items())}
        return Refutation(str(evidence), document(self.name, {"sizes": dict(evidence.sizes), "inputs": inputs}))


def _differs(rule: TensorRule, seconds: float) -> str | None:
    try:
        counterexample = find_counterexample(rule, seconds)
    except IndexError as error:  # which no rule that people state does
        return f"the right side reads outside of an operand: {error}"
    return None if counterexample is None else str(counterexample)


def _proof(rule: TensorRule, discharger: Discharger) -> tuple[Status, str]:
    verdict = prove_tensor_rule(rule, discharger)
    return verdict.status, verdict.reason
