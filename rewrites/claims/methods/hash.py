"""One shape, with sums in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewrites.claims.method import SHAPE, Invariants, Method, Parameters, shape_of

if TYPE_CHECKING:
    from ila_lang.mapping import TensorMapping
    from smt_encodings.claims import Claim, Verdict
    from smt_encodings.discharge import Discharger


def _claim(mapping: TensorMapping, parameters: Parameters) -> Claim:
    from bmc.sums import claim_of

    return claim_of(mapping, shape_of(parameters))


def _prove(mapping: TensorMapping, parameters: Parameters, discharger: Discharger, seconds: float = 10.0) -> Verdict:
    from bmc.sums import prove

    return prove(mapping, shape_of(parameters), discharger=discharger, search_seconds=seconds)


def _regenerate(
    mapping: TensorMapping, parameters: Parameters, _: Invariants | None, discharger: Discharger
) -> Verdict:
    return _prove(mapping, parameters, discharger, seconds=0)


METHOD = Method(
    "hash",
    "one shape, with sums in any order: compared as multisets of summands, by hashes of them",
    "anything about other sizes than those above",
    _claim,
    _prove,
    _regenerate,
    (SHAPE,),
)
