"""Token order on VTA as a subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reports.subjects import Refutation, Required, Subject
from rewrites import vta_token_family, vta_tokens
from rewrites.vta_token_family import TokenRules
from rewrites.vta_tokens import prove_token_order, semantics, token_order_claim
from smt_encodings.claims import Claim, Verdict
from smt_encodings.discharge import Discharger, Requirements

from .sources import place_of
from .words import named, trust_lines, with_name

__all__ = ["TokenSubject"]


class TokenSubject(Subject):
    """That a family of programs with given tokens ends in every schedule as its sequential order does."""

    kind = "theorem"
    method = "token order"

    def __init__(self, name: str, rules: TokenRules) -> None:
        self.name, self.rules = name, rules

    def place(self) -> tuple[str, int]:
        """Where the theorem's name stands."""
        return place_of((vta_tokens, vta_token_family), vta_tokens.SUBJECT)

    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """The proof."""
        return (prove_token_order,)

    def claim(self, parameters: Mapping[str, Any]) -> Claim:
        """The claim; proofs have no parameters."""
        if parameters:
            raise ValueError(f"a proof of {self.name} must have no parameters")
        return named(token_order_claim(self.rules), self.name)

    def semantics(self) -> dict[str, str]:
        """Digests of the model, the tokens and the instructions' fields."""
        return semantics(self.rules)

    def trust(self, claim: Claim) -> str:
        """Claim, domain and assumptions."""
        return trust_lines(claim)

    def prove(self, discharger: Discharger) -> Verdict:
        """As :func:`rewrites.vta_tokens.prove_token_order`."""
        return with_name(prove_token_order(self.rules, discharger=discharger), self.name)

    def required(self, certificate: Mapping[str, Any]) -> Required | str:
        """The obligations and the invariant as they are now."""
        requirements = Requirements(second=False)
        verdict = prove_token_order(self.rules, discharger=requirements)
        if not requirements.complete:
            return f"{verdict.status.value}: {verdict.reason}"
        levels: Any = verdict.details["levels"]
        return Required(self.claim(certificate["parameters"]), requirements.required, levels)

    def refutation(self, verdict: Verdict) -> Refutation | None:
        """None: the verdict's reason names the schedule."""
        return None

    def replayed(self, document: str) -> Refutation | None:
        """None: nothing is kept of wrong tokens."""
        return None
