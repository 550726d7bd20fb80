"""Gates for tests: claims are admitted under made-up digests, apart from those that a test leaves out."""

from __future__ import annotations

from typing import cast

from reports.subjects import Subject
from rewrites.claims.gate import Admission, Gate
from rewrites.claims.registry import entries, slug
from rewrites.compiler.offload.rule_sets import FLEXIBLE
from rewrites.targets.flexasr.operators import ACCELERATOR_OPERATORS
from smt_encodings.claims import Claim

RULES = tuple(dict.fromkeys(slug(name) for names in FLEXIBLE.values() for name in names))
MAPPINGS = tuple(dict.fromkeys(name for o in ACCELERATOR_OPERATORS.values() for name in o.mappings))


def gate(*without: str) -> Gate:
    """Everything that offloading uses, but for some claims; of mappings only name and digest are there."""
    admitted = {}
    for name in RULES:
        subject = entries()[name].build()
        admitted[name] = Admission(name, subject, f"digest of {name}", subject.words())
    for name in MAPPINGS:
        admitted[name] = Admission(name, cast(Subject, None), f"digest of {name}", cast(Claim, None))
    left_out = dict.fromkeys(without, "there is no certificate")
    return Gate({n: a for n, a in admitted.items() if n not in without}, left_out)
