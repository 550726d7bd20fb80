"""One shape, with loops unrolled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rewrites.claims.method import SHAPE, Invariants, Method, Parameter, Parameters, shape_of

if TYPE_CHECKING:
    from ila_lang.mapping import TensorMapping
    from smt_encodings.claims import Claim, Verdict
    from smt_encodings.discharge import Discharger


def _claim(mapping: TensorMapping, parameters: Parameters) -> Claim:
    from bmc.prove import claim_at
    from smt_encodings.claims import Interpretation

    shape, interpretation = shape_of(parameters), Interpretation(parameters["data"])
    return claim_at(mapping, mapping.sizes_for(shape), shape, (interpretation,))


def _prove(mapping: TensorMapping, parameters: Parameters, discharger: Discharger, seconds: float = 10.0) -> Verdict:
    from bmc.prove import prove

    how: dict[str, Any] = {name: parameters[name] for name in ("data", "memory")}
    verdict = prove(mapping, shape_of(parameters), **how, discharger=discharger, search_seconds=seconds)
    verdict.details["parameters"] = {**parameters, "data": verdict.claim.interpretations[0].value}
    return verdict


def _regenerate(
    mapping: TensorMapping, parameters: Parameters, _: Invariants | None, discharger: Discharger
) -> Verdict:
    return _prove(mapping, parameters, discharger, seconds=0)


METHOD = Method(
    "bmc",
    "one shape, with all loops unrolled and arbitrary data (bounded model checking)",
    "anything about any other shape than the one above",
    _claim,
    _prove,
    _regenerate,
    (
        SHAPE,
        Parameter.choice("data", "data values", "auto", "uninterpreted", "bits"),
        Parameter.choice("memory", "memory encoding", "resolved", "arrays"),
    ),
)
