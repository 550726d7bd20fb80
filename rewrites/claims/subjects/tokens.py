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
from reports.subjects import Refutation, Required
from rewrites.claims.documents import document, read_document
from rewrites.claims.sources import place_of
from rewrites.claims.words import with_name
from smt_encodings.claims import Claim, Verdict
from smt_encodings.discharge import Discharger, Requirements

from .stated import StatedSubject

MOST_BLOCKS = 20
"""Blocks and rounds of products that are replayed."""


class TokenSubject(StatedSubject):
    """That a family of programs with given tokens ends in every schedule as its sequential order does."""

    kind = "theorem"
    method = "token order"
    evidence = ProductRun

    def __init__(self, name: str, rules: TokenRules) -> None:
        self.name, self.rules = name, rules

    def place(self) -> tuple[str, int]:
        """Where the theorem's name stands."""
        return place_of((vta_tokens, vta_token_family), vta_tokens.SUBJECT)

    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """The proof."""
        return (prove_token_order,)

    def stated(self) -> Claim:
        """What the theorem says."""
        return token_order_claim(self.rules)

    def semantics(self) -> dict[str, str]:
        """Digests of the model, the tokens and the instructions' fields."""
        return semantics(self.rules)

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

    def replayed(self, document: str) -> Refutation | None:
        """The document's product executed again by its schedule."""
        product = read_document(document, self.name, {"product"})["product"]
        kinds = {"blocks": int, "rounds": int, "bias": bool, "schedule": list, "contents": int}
        if set(product) != set(kinds) or not all(type(product[name]) is kind for name, kind in kinds.items()):
            raise ValueError(f"a counterexample to {self.name} must have {', '.join(kinds)} of its product")
        if not (0 < product["blocks"] <= MOST_BLOCKS and 0 < product["rounds"] <= MOST_BLOCKS):
            raise ValueError(f"a counterexample to {self.name} must have 1 to {MOST_BLOCKS} blocks and rounds")
        program = blocked_product(self.rules, product["blocks"], product["rounds"], bias=product["bias"])
        last = len(program.words)
        if not all(type(n) is int and 1 <= n <= last for n in product["schedule"]):
            raise ValueError(f"a schedule of the counterexample to {self.name} must be of numbers from 1 to {last}")
        difference = compare(program, product["schedule"], HLS, product["contents"])
        if difference is None:
            return None
        return self.shown(ProductRun(product["blocks"], product["rounds"], product["bias"], difference))

    def shown(self, evidence: ProductRun) -> Refutation:
        """The schedule of a small product that a proof did not survive; what is REFUTED is named in its reason."""
        run = evidence.counterexample
        product: dict[str, Any] = {"blocks": evidence.blocks, "rounds": evidence.rounds, "bias": evidence.bias}
        product |= {"schedule": list(run.schedule), "contents": run.contents}
        return Refutation(run.summary(), document(self.name, {"product": product}))
