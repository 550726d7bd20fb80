"""Every size, by constrained Horn clauses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewrites.claims.method import Invariants, Method, Parameters

if TYPE_CHECKING:
    from ila_lang.mapping import TensorMapping
    from smt_encodings.claims import Claim, Verdict
    from smt_encodings.discharge import Discharger


def _claim(mapping: TensorMapping, _: Parameters) -> Claim:
    from chc.mapping.prove import claim_of

    return claim_of(mapping)


def _regenerate(
    mapping: TensorMapping, _: Parameters, invariants: Invariants | None, discharger: Discharger
) -> Verdict:
    from chc.mapping.prove import prove

    return prove(mapping, discharger=discharger, invariants=invariants)


def _prove(mapping: TensorMapping, parameters: Parameters, discharger: Discharger) -> Verdict:
    return _regenerate(mapping, parameters, None, discharger)


METHOD = Method(
    "chc",
    "every size at once, without unrolling, by inferred loop invariants (constrained Horn clauses)",
    "anything about sizes outside the size domain above",
    _claim,
    _prove,
    _regenerate,
)
