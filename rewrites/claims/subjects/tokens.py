"""Token order on VTA as a subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from accel_models.vta.options import HLS
from chc.token_order import family as vta_token_family
from chc.token_order import theorem as vta_tokens
from chc.token_order.family import TokenRules
from chc.token_order.replay import compare
from chc.token_order.runs import ProductRun
from chc.token_order.theorem import blocked_product, prove_token_order, semantics, token_order_claim
from reports.subjects import Refutation, Required, Subject
from rewrites.claims.documents import document, read_document
from rewrites.claims.sources import place_of
from rewrites.claims.words import named, trust_lines, with_name
from smt_encodings.claims import Claim, Verdict
from smt_encodings.discharge import Discharger, Requirements

MOST_BLOCKS = 20
"""Blocks and rounds of products that are replayed."""


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
        """As :func:`chc.token_order.theorem.prove_token_order`."""
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
        """The schedule of a small product that a proof did not survive; what is REFUTED is named in its reason."""
        found = verdict.details.get("counterexample")
        return self._told(found) if isinstance(found, ProductRun) else None

    def replayed(self, document: str) -> Refutation | None:
        """The document's product executed again by its schedule."""
        made = read_document(document, self.name, {"product"})["product"]
        kinds = {"blocks": int, "rounds": int, "bias": bool, "schedule": list, "contents": int}
        if set(made) != set(kinds) or not all(type(made[name]) is kind for name, kind in kinds.items()):
            raise ValueError(f"a counterexample to {self.name} must have {', '.join(kinds)} of its product")
        if not (0 < made["blocks"] <= MOST_BLOCKS and 0 < made["rounds"] <= MOST_BLOCKS):
            raise ValueError(f"a counterexample to {self.name} must have 1 to {MOST_BLOCKS} blocks and rounds")
        program = blocked_product(self.rules, made["blocks"], made["rounds"], bias=made["bias"])
        last = len(program.words)
        if not all(type(n) is int and 1 <= n <= last for n in made["schedule"]):
            raise ValueError(f"a schedule of the counterexample to {self.name} must be of numbers from 1 to {last}")
        found = compare(program, made["schedule"], HLS, made["contents"])
        return None if found is None else self._told(ProductRun(made["blocks"], made["rounds"], made["bias"], found))

    def _told(self, run: ProductRun) -> Refutation:
        product: dict[str, Any] = {"blocks": run.blocks, "rounds": run.rounds, "bias": run.bias}
        product |= {"schedule": list(run.counterexample.schedule), "contents": run.counterexample.contents}
        return Refutation(run.counterexample.summary(), document(self.name, {"product": product}))
