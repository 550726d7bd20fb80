"""Joints as subjects: that an operator of the graph IR and the IR side of a mapping that executes it are one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from chc.tensor_rules.decide import decide_tensor_rule
from chc.tensor_rules.rule import TensorRule
from ir_semantics.graph.operator import Operator
from reports.subjects import Required, needed_by
from rewrites.claims.joints.instruction import Unread
from rewrites.claims.joints.joint import Joint
from rewrites.claims.joints.readings import obligations
from rewrites.claims.joints.runs import difference
from rewrites.claims.sources import text_digest
from rewrites.claims.words import with_name
from smt_encodings.claims import Claim, Equality, Interpretation, Status, Verdict
from smt_encodings.discharge import Discharger, NotDischarged

from .tensor import TensorSubject


class JointSubject(TensorSubject):
    """A joint under a name of its own."""

    kind = "joint"

    def __init__(self, name: str, joint: Joint, operator: Operator) -> None:
        self.name, self.joint, self.operator = name, joint, operator

    @cached_property
    def rule(self) -> TensorRule:  # type: ignore[override]
        """The claim as a rule on tensors; raises Unread where a side cannot be read."""
        return self.joint.rule(self.name, self.operator)

    def place(self) -> tuple[str, int]:
        """Not known."""
        return "", 0

    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """Those of a rule, and what reads both sides."""
        return *super().provers(method), Joint.rule, obligations, difference

    def claim(self, parameters: Mapping[str, Any]) -> Claim:
        """The claim of the rule, and what is assumed of numbers."""
        try:
            stated = super().claim(parameters)
        except Unread as unread:
            statement = f"{self.operator.name} is what the IR side of {self.joint.mapping.name} computes"
            return Claim(
                self.name, statement, f"none: {unread}", Equality.OVER_REALS, (Interpretation.UNINTERPRETED,), ()
            )
        return replace(stated, assumptions=(*stated.assumptions, *self._assumptions()))

    def _assumptions(self) -> list[str]:
        mapping = self.joint.mapping.name
        laid = ", ".join(f"{name} = {term}" for name, term in self.joint.memories.items())
        given = ", ".join(f"{name} = {value}" for name, value in self.joint.given.items())
        return [
            f"the host calls {mapping} with {laid}{f'; {given}' if given else ''}",
            f"indices of the kernel do not wrap, and its lemmas hold: obligations of the proof of {mapping}",
            "words stand for numbers; how far rounding, saturation and overflow lie from these, bounds say",
            *(
                f"{function.name} stands for the operation {term}, in the unit of its result"
                for function, term in self.joint.readings.items()
            ),
        ]

    def semantics(self) -> dict[str, str]:
        """As of a rule, and the readings of primitives as questions."""
        try:
            return {**super().semantics(), "readings": text_digest(*(o.smtlib for o in self._readings()))}
        except Unread as unread:
            return {"unread": text_digest(str(unread))}

    def _readings(self) -> list[Any]:
        return list(obligations(self.joint.readings))

    def prove(self, discharger: Discharger) -> Verdict:
        """Readings of primitives, then the rule; then both readings are run beside what they are readings of."""
        mark = len(discharger.obligations)
        try:
            for obligation in self._readings():
                discharger.ask_text(obligation)
            asked = discharger.obligations[mark:]
            verdict = with_name(decide_tensor_rule(self.rule, discharger), self.name)
            proved = verdict.status is Status.PROVED
            differs = difference(self.joint, self.operator, self.rule) if proved else ""
        except (NotDischarged, Unread, IndexError) as error:  # IndexError: a read outside of what lies in a memory
            reason = f"the kernel is not read: {error}" if isinstance(error, IndexError) else str(error)
            verdict = Verdict(Status.UNKNOWN, self.words(), self.method, 0.0, reason)
            verdict.obligations = discharger.obligations[mark:]
            return verdict
        verdict.claim = self.words()
        verdict.obligations = [*asked, *verdict.obligations]
        if differs:
            verdict.status, verdict.reason = Status.ERROR, f"the proof does not survive runs: {differs}"
        return verdict

    def required(self, certificate: Mapping[str, Any]) -> Required | str:
        """Those of the derivation, and of readings of primitives; both readings are run again, which guards them."""
        try:
            needed = super().required(certificate)
            differs = difference(self.joint, self.operator, self.rule)
        except Unread as unread:
            return str(unread)
        if isinstance(needed, str) or differs:
            return differs or needed
        asked = Verdict(Status.UNKNOWN, needed.claim, self.method, 0.0, "", self._readings())
        return replace(needed, obligations=[*needed_by(asked), *needed.obligations])
