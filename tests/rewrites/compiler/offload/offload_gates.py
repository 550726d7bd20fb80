"""Gates for tests: claims are admitted under made-up digests, apart from those that a test leaves out."""

from __future__ import annotations

from typing import cast

from ilaverify.catalogue import backends, find_backends, joint_entries
from reports.subjects import Subject
from rewrites.claims.gate import Admission, Gate
from rewrites.claims.registry import entries
from rewrites.compiler.graph_rules.tensor_rewrites import claims_of
from smt_encodings.claims import Claim

KNOWN = entries()
EVERY = find_backends(tuple(backends()))
OPERATORS = {operator.name: operator for backend in EVERY for operator in backend.operators}
RULES = tuple(dict.fromkeys(name for backend in EVERY for rule in backend.flexible for name in claims_of(rule)))
BOUNDS = tuple(dict.fromkeys(name for o in OPERATORS.values() for m in o.mappings for name in o.rests(m)))
MAPPINGS = tuple(dict.fromkeys(mapping.name for o in OPERATORS.values() for mapping in o.mappings))


def gate(*without: str) -> Gate:
    """Everything that offloading uses, but for some claims; of mappings only name and digest are there."""
    admitted = {}
    for name in (*RULES, *BOUNDS):
        subject = KNOWN[name].build()
        admitted[name] = Admission(name, subject, f"digest of {name}", subject.words(), {})
    for name in MAPPINGS:
        admitted[name] = Admission(name, cast(Subject, None), f"digest of {name}", cast(Claim, None), {})
    for name, entry in joint_entries().items():
        admitted[name] = Admission(name, entry.build(), f"digest of {name}", cast(Claim, None), {})
    left_out = dict.fromkeys(without, "there is no certificate")
    return Gate({n: a for n, a in admitted.items() if n not in without}, left_out)
