"""Subjects whose claims are known in full before the proof."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from reports.subjects import Refutation, Subject
from rewrites.claims.words import named, trust_lines
from smt_encodings.claims import Claim, Verdict


class StatedSubject(Subject):
    """A claim whose proofs have no parameters; ``evidence`` is the class of what refutes it."""

    evidence: type

    @abstractmethod
    def stated(self) -> Claim:
        """The claim, under any name."""

    @abstractmethod
    def shown(self, evidence: Any) -> Refutation:
        """What refutes it, with a document from which it replays."""

    def claim(self, parameters: Mapping[str, Any]) -> Claim:
        """The claim; proofs have no parameters."""
        if parameters:
            raise ValueError(f"a proof of {self.name} must have no parameters")
        return named(self.stated(), self.name)

    def trust(self, claim: Claim) -> str:
        """Claim, domain and assumptions."""
        return trust_lines(claim)

    def refutation(self, verdict: Verdict) -> Refutation | None:
        """The evidence, where the verdict has some."""
        evidence = verdict.details.get("counterexample")
        return self.shown(evidence) if isinstance(evidence, self.evidence) else None
