"""Bounds that count: those whose lemmas hold a certificate, of operators on a run, and of a network for all inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ir_semantics.graph.ir import Graph
from rewrites.claims.names import slug
from rewrites.compiler.codegen import Bounds, Executed, Implementation, declared, joints_of, operator_of, without_lemma
from rewrites.compiler.composition.of_ranges import InRanges, in_ranges, ranges_of
from rewrites.compiler.composition.replay import Replay
from rewrites.compiler.composition.steps import PROOFS, Place, Places, Rejected, Step, laws_of, proofs_of


def bounds_of_run(implementation: Implementation, executed: Executed, certified: Collection[str] | None) -> Bounds:
    """The bounds of a run, unless a lemma that they are derived from holds no certificate.

    A theorem that is none on the kernels of the operator's programs proves nothing here, nor does one on codes of which
    no certificate says what numbers the host makes them of, or reads.
    """
    missing = _missing(implementation, certified)
    if missing:
        return Bounds(None, None, missing)
    bounds = implementation.bounds(executed)
    proved = _of_own_theorem(implementation, bounds) and _converts_as_proved(implementation, certified)
    return bounds if proved else replace(bounds, theorem="")


def _of_own_theorem(implementation: Implementation, bounds: Bounds) -> bool:
    """Whether a bound is of a theorem, and this is one on the kernels of the operator's programs."""
    theorems = [operator_of(implementation).theorems(mapping) for mapping in implementation.mappings]
    return bool(bounds.theorem) and all(bounds.theorem in of for of in theorems)


def _lemma_names(of: Implementation | type[Implementation]) -> list[str]:
    return [f"lemma-{slug(lemma)}" for lemmas in of.lemmas.values() for lemma in lemmas]


def _converts_as_proved(of: Implementation, certified: Collection[str] | None) -> bool:
    """Whether every conversion has a lemma, and these hold a certificate."""
    return not without_lemma(of) and (certified is None or {*_lemma_names(of)} <= {*certified})


def _missing(implementation: Implementation, certified: Collection[str] | None) -> str:
    """Why an operator's bound does not count: a claim that it rests on holds no certificate; empty where it counts."""
    operator = operator_of(implementation)
    claims = (name for mapping in implementation.mappings for name in operator.bound_claims(mapping))
    missing = next((name for name in claims if certified is not None and name not in certified), "")
    return missing and f"it would rest on {missing}, which holds no certificate"


def _refused(implementation: Implementation) -> str:
    """Why a call is none of its joint; empty where all are."""
    return next((f"{name}: {why}" for name, why in joints_of(implementation).items() if why), "")


def network_claims(
    implementations: Iterable[Implementation | type[Implementation]], graph: Graph | None = None
) -> list[str]:
    """The claims that bounds rest on beside those of operators: lemmas of conversions, and laws of networks.

    With a ``graph`` they are those of this network.
    """
    operators = list(implementations)
    lemmas = [name for of in operators for name in _lemma_names(of)]
    own = [of.laws for of in operators]
    composed = [*PROOFS.values()] if graph is None else [laws_of(graph)]
    laws = [f"error-{slug(law)}" for laws in (*composed, *own) for law in laws]
    return list(dict.fromkeys([*lemmas, *laws])) if lemmas else []


def bounds_in_ranges(
    graph: Graph,
    implementations: Mapping[int, Implementation],
    calibration: Mapping[int, Mapping[str, float]] | None,
    certified: Collection[str] | None,
    *,
    look: bool = True,
) -> list[InRanges]:
    """The bounds for all inputs in the ranges; none without ranges, or where a call is refused.

    The steps by which they follow are replayed.  What these rest on beside proofs is declared.  Whether calls are what
    is proved of them is not looked at without ``look``: then bounds hold if ``ilaverify check`` accepts them.
    """
    if calibration is None:
        return []
    for number, implementation in implementations.items():
        missing = _missing(implementation, certified) or (_refused(implementation) if look else "")
        if missing:
            return [InRanges(name, None, f"node {number}: {missing}") for name in graph.outputs]
    steps: list[Step] = []
    bounds = in_ranges(graph, implementations, calibration, steps)
    if any(bound.bound is None for bound in bounds):
        return bounds
    ranges = {i: ranges_of(calibration[i], of) for i, of in implementations.items()}
    own = {i: of.bounds_in(ranges[i]) for i, of in implementations.items()}
    stated = {i: of.on_quantised for i, of in own.items() if of.on_quantised is not None}
    try:
        Replay(graph, implementations, stated, ranges).take(steps)
    except Rejected as error:
        rests = [f"how errors compose ({error})"]
    else:
        rests = [*_unproved(implementations, own, certified), *_float32_functions(graph, implementations, steps)]
        rests += _laws_missing(graph, steps, implementations, certified)
    return [replace(bound, declared=tuple(dict.fromkeys(rests))) for bound in bounds]


def _unproved(
    implementations: Mapping[int, Implementation],
    own: Mapping[int, Bounds],
    certified: Collection[str] | None,
) -> Iterator[str]:
    """What accelerators add that no claim says."""
    for number, of in implementations.items():
        name = of.node.operator
        if not _of_own_theorem(of, own[number]):
            yield f"the bound of {name}"
        if own[number].declared:
            yield own[number].declared
        if not _converts_as_proved(of, certified):
            yield f"which numbers the host makes codes of, and reads, around programs of {name}"
    yield from declared(implementations.values())


def _float32_functions(
    graph: Graph, implementations: Mapping[int, Implementation], steps: Sequence[Step]
) -> Iterator[str]:
    """Functions that the host computes in float32, also in composite operators: no claim says how far they are off."""
    places = Places(graph, implementations)
    for place in (step.place for step in steps if step.law == "slope" and step.place[0] not in implementations):
        operator = _operator_at(places, place)
        if operator in ("sigmoid", "tanh"):
            yield f"float32 of {operator} on the host"


def _laws_missing(
    graph: Graph,
    steps: Sequence[Step],
    implementations: Mapping[int, Implementation],
    certified: Collection[str] | None,
) -> Iterator[str]:
    """The laws that steps and accelerators' own bounds rest on, and that hold no certificate."""
    places = Places(graph, implementations)
    used = [proofs_of(s.law, [_operator_at(places, s.place)] if s.law == "slope" else []) for s in steps]
    used += [of.laws for of in implementations.values()]
    names = dict.fromkeys(f"error-{slug(law)}" for laws in used for law in laws)
    for name in names:
        if certified is not None and name not in certified:
            yield f"{name}, which holds no certificate"


def _operator_at(places: Places, place: Place) -> str:
    within, at = places.graph_of(place)
    return within.nodes[at].operator
