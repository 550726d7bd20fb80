"""Bounds that count: those whose lemmas hold a certificate, of operators on a run, and of a network for all inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ir_semantics.graph.ir import Graph
from rewrites.compiler.codegen import Bounds, Executed, Implementation, operator_of
from rewrites.compiler.composition.of_ranges import InRanges, in_ranges


def bounds_of_run(implementation: Implementation, executed: Executed, certified: Collection[str] | None) -> Bounds:
    """The bounds of a run, unless a lemma that they are derived from holds no certificate.

    A theorem that is none on the kernels of the operator's programs proves nothing here.
    """
    operator, missing = operator_of(implementation), _missing(implementation, certified)
    if missing:
        return Bounds(None, None, missing)
    bounds = implementation.bounds(executed)
    own = bounds.theorem and all(bounds.theorem in operator.theorems(mapping) for mapping in implementation.mappings)
    return bounds if own else replace(bounds, theorem="")


def _missing(implementation: Implementation, certified: Collection[str] | None) -> str:
    """Why an operator's bound does not count: a claim that it rests on holds no certificate; empty where it counts."""
    operator = operator_of(implementation)
    claims = (name for mapping in implementation.mappings for name in operator.bound_claims(mapping))
    missing = next((name for name in claims if certified is not None and name not in certified), "")
    return missing and f"it would rest on {missing}, which holds no certificate"


def bounds_in_ranges(
    graph: Graph,
    implementations: Mapping[int, Implementation],
    calibration: Mapping[int, Mapping[str, float]] | None,
    certified: Collection[str] | None,
) -> list[InRanges]:
    """The bounds for all inputs in the ranges; none without ranges."""
    if calibration is None:
        return []
    for number, implementation in implementations.items():
        missing = _missing(implementation, certified)
        if missing:
            return [InRanges(name, None, f"node {number}: {missing}") for name in graph.outputs]
    return in_ranges(graph, implementations, calibration)
