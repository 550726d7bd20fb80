"""Lines of the trust report about a claim that is no mapping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smt_encodings.claims import Claim, Verdict


def named(claim: Claim, name: str) -> Claim:
    """The claim under the name by which it is known."""
    return replace(claim, subject=name)


def trust_lines(claim: Claim, uses: Sequence[str] = ()) -> str:
    """The entry of a claim: what it says, over what, with what assumptions and ``uses`` (lemmas)."""
    lines = [claim.subject, f"  claim          {claim.statement}", f"  domain         {claim.size_domain}"]
    if claim.interpretations:
        lines.append(f"  data           {', '.join(i.value for i in claim.interpretations)}")
    lines += [f"  assumption     {text}" for text in claim.assumptions or ["none"]]
    lines += [f"  lemma          {text}" for text in uses]
    return "\n".join(lines) + "\n"


def with_name(verdict: Verdict, name: str) -> Verdict:
    """The verdict with its claim under the name by which it is known."""
    verdict.claim = named(verdict.claim, name)
    return verdict
