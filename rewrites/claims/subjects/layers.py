"""Rules on layers as subjects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from chc.tensor_rules.check import Asking, Writing
from chc.tensor_rules.kernel.steps import Rejected
from chc.tensor_rules.obligations import Hypotheses, extended
from ir_semantics.tensors.conditions import Condition
from reports.subjects import Required
from rewrites.claims.joints.layers import LayerRule, by_induction, difference
from rewrites.claims.sources import place_of, text_digest
from smt_encodings.claims import Claim, Status, Verdict
from smt_encodings.discharge import Discharger
from smt_encodings.environment import fresh_symbols

from .tensor import TensorSubject

GROUP = "steps"


class LayerSubject(TensorSubject):
    """A rule on layers under a name of its own."""

    def __init__(self, name: str, rule: LayerRule) -> None:
        super().__init__(name, rule)
        self.layered = rule

    def place(self) -> tuple[str, int]:
        """Where the rule's name is put together."""
        from rewrites.claims.joints import scaled, sequences, zeros

        name, *_ = self.rule.name.rpartition(f"{self.layered.layers[1].operator} layers")
        return place_of([scaled, sequences, zeros], name)

    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """Those of a rule, and what makes one of a layer."""
        return *super().provers(method), by_induction, difference, Asking, Writing

    def stated(self) -> Claim:
        """What is said of the layers, and how it follows from that of one iteration."""
        left, right = self.layered.sides
        step = super().stated()
        statement = f"{left} = {right}, by induction over iterations: {step.statement}, whatever states come before"
        return replace(step, statement=statement)

    def semantics(self) -> dict[str, str]:
        """As of a rule, and what must hold in every iteration."""
        return {
            **super().semantics(),
            "steps": text_digest(*map(str, self.layered.sides), *map(repr, self.layered.requires)),
        }

    def _conditions(self, ask: Callable[[Hypotheses, Condition, str], None]) -> None:
        with fresh_symbols():
            for obligation in self.layered.requires:
                ask(extended((), self.rule.premise, *obligation.hypotheses), obligation.goal, obligation.meaning)

    def prove(self, discharger: Discharger) -> Verdict:
        """That every iteration is well formed, then the rule; then layers are run.

        An iteration that differs between some states does not refute a claim on layers, which may never have these.
        """
        mark = len(discharger.obligations)
        try:
            self._conditions(Asking(GROUP, discharger=discharger))
        except Rejected as error:
            return Verdict(Status.UNKNOWN, self.words(), self.method, 0.0, str(error), discharger.obligations[mark:])
        asked = discharger.obligations[mark:]
        verdict = super().prove(discharger)
        verdict.claim, verdict.obligations = self.words(), [*asked, *verdict.obligations]
        differs = difference(self.layered) if verdict.status is Status.PROVED else ""
        if differs:
            verdict.status, verdict.reason = Status.ERROR, f"the proof does not survive runs: {differs}"
        if verdict.status is Status.REFUTED:
            found = verdict.details.pop("counterexample", None)
            verdict.status, verdict.reason = Status.UNKNOWN, f"a step differs between some states: {found}"
        return verdict

    def required(self, certificate: Mapping[str, Any]) -> Required | str:
        """Those of the derivation, and that every iteration is well formed."""
        needed, differs = super().required(certificate), difference(self.layered)
        if isinstance(needed, str) or differs:
            return differs or needed
        writing = Writing(GROUP)
        self._conditions(writing)
        return replace(needed, obligations=[*writing.required, *needed.obligations])
