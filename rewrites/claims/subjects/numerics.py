"""Lemmas on primitives, and the rules by which errors compose, as subjects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ila_lang.text.portable import digest
from reports.subjects import Refutation, Required
from rewrites.bounds.lemmas import activations, codes, host, machine, network_rules, real_rules
from rewrites.bounds.lemmas.lemma import EVERY_ARGUMENT, Lemma, lemma_claim, prove_lemma
from rewrites.bounds.lemmas.network_rules import NETWORK_RULES
from rewrites.bounds.lemmas.real_rules import RealRule, prove_rule, rule_claim
from rewrites.bounds.lemmas.runs import operands_differ, survey_lemma, survey_rule, values_differ
from rewrites.claims.documents import document, read_document, value_json, value_of
from rewrites.claims.sources import code_digest, meaning_digest, place_of, text_digest
from rewrites.claims.words import with_name
from smt_encodings.claims import Claim, Runs, Status, Verdict
from smt_encodings.discharge import Discharger, Requirements
from smt_encodings.runs import surviving

from .stated import StatedSubject


class _Numerics(StatedSubject):
    """What lemmas and rules have in common; false ones have no counterexample that the store keeps."""

    kind = "lemma"
    evidence = dict

    def __init__(
        self,
        name: str,
        proof: Callable[[Discharger], Verdict],
        survey: Callable[[], Runs],
        differs: Callable[[Mapping[str, Any]], bool],
    ) -> None:
        """``proof`` is before the runs of ``survey``; ``differs`` says whether operands contradict it.

        The last one raises ValueError where they are not its operands.
        """
        self.name = name
        self._proof, self._survey, self._differs = proof, survey, differs

    def prove(self, discharger: Discharger) -> Verdict:
        """On every argument, or by two solvers."""
        return with_name(surviving(self._proof(discharger), self._survey), self.name)

    def survey(self) -> Runs:
        """Corners and random operands."""
        return self._survey()

    def required(self, certificate: Mapping[str, Any]) -> Required | str:
        """The questions as they are now; what was run on every argument is run again."""
        requirements = Requirements(second=False)
        verdict = self._proof(requirements)
        enumerated = verdict.method == "enumeration" and verdict.status is Status.PROVED
        if not (enumerated or requirements.complete):
            return f"{verdict.status.value}: {verdict.reason}"
        enumerations: Any = verdict.details.get("enumerations", [])
        return Required(self.claim(certificate["parameters"]), requirements.required, {}, enumerations)

    def replayed(self, document: str) -> Refutation | None:
        """The lemma or rule evaluated again at the document's operands."""
        content = read_document(document, self.name, {"operands"})
        operands = {name: value_of(v) for name, v in content["operands"].items()}
        return self.shown(operands) if self._differs(operands) else None

    def shown(self, evidence: Mapping[str, Any]) -> Refutation:
        """The operands that contradict it."""
        values = {name: value_json(v) for name, v in sorted(evidence.items())}
        operands = ", ".join(f"{name} = {value}" for name, value in sorted(evidence.items()))
        return Refutation(f"{operands}: outside of what is allowed", document(self.name, {"operands": values}))


class LemmaSubject(_Numerics):
    """A lemma on a primitive."""

    def __init__(self, name: str, lemma: Lemma) -> None:
        super().__init__(
            name, partial(prove_lemma, lemma), partial(survey_lemma, lemma), partial(operands_differ, lemma)
        )
        self.lemma = lemma
        self.method = "enumeration" if lemma.method == EVERY_ARGUMENT else "lemma"

    def place(self) -> tuple[str, int]:
        """Where the lemma's name stands."""
        return place_of((codes, activations, machine, host), self.lemma.name)

    def semantics(self) -> dict[str, str]:
        """Digests of the primitive, and of the texts that say what the lemma's words mean."""
        return {
            "primitive": digest(self.lemma.function),
            "statement": text_digest(self.lemma.statement, self.lemma.domain),
            "comparison": meaning_digest([self.lemma.proof], "rewrites.bounds", "accel_models", "ila_lang"),
        }

    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """The proof with its runs, and what says of each argument how far off the primitive may be."""
        return prove_lemma, survey_lemma, self.lemma.proof

    def stated(self) -> Claim:
        """What the lemma says."""
        return lemma_claim(self.lemma)


class ErrorRuleSubject(_Numerics):
    """A rule by which errors compose."""

    method = "lemma"

    def __init__(self, name: str, rule: RealRule) -> None:
        super().__init__(name, partial(prove_rule, rule), partial(survey_rule, rule), partial(values_differ, rule))
        self.rule = rule
        self._module = network_rules if NETWORK_RULES.get(rule.name) is rule else real_rules

    def place(self) -> tuple[str, int]:
        """Where the rule's name stands."""
        return place_of((real_rules, network_rules), self.rule.name)

    def semantics(self) -> dict[str, str]:
        """Digests of the statement and of the text that puts it into a formula."""
        return {"statement": text_digest(self.rule.statement), "formula": code_digest(self._module)}

    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """The proof, and its runs."""
        return prove_rule, survey_rule

    def stated(self) -> Claim:
        """What the rule says."""
        return rule_claim(self.rule)
