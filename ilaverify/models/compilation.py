"""From a model and a directory of certificates to a compiled model.

The steps are those of other packages: import, gate, offload, calibration, code generation, memory plan.  Here they are
put in order, and every claim that the result rests on is collected with its certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ilaverify.catalogue import find_backends
from ilaverify.errors import require_proofs
from ilaverify.identity import prover_identity
from ilaverify.version import VERSION
from rewrites.claims.gate import Gate, open_gate
from rewrites.claims.names import joint_name, slug
from rewrites.claims.subjects.tensor import TensorSubject
from rewrites.compiler.artefact.model import Certified, Choices, Compiled, HostMemory, Imported, OnHost, Proof
from rewrites.compiler.artefact.sources.front_end import FRONT_ENDS, front_end_of
from rewrites.compiler.codegen import (
    Calibration,
    CannotOffload,
    Implementation,
    Options,
    accelerator_operator,
    calibrate,
    constants_of,
    host_plan,
    host_problem,
    implement,
    implementable,
    is_program_of,
    joints_of,
    operator_of,
    quantisation_of,
)
from rewrites.compiler.graph_rules.tensor_rewrites import claims_of
from rewrites.compiler.offload.backend import Backend
from rewrites.compiler.offload.compiler import Offloaded, offload
from rewrites.compiler.offload.rule_sets import is_rule_of
from rewrites.compiler.offload.settings import Settings
from rewrites.rules.rule_set import applied_rules

from .bounds import network_claims
from .datasets import dataset_of

if TYPE_CHECKING:
    from ir_semantics.graph.ir import Graph
    from ir_semantics.graph.types import Array
    from reports.store import ProofStore
    from reports.subjects import Entry

SEED = 0
"""The seed of inputs that are drawn where none are given to calibrate with."""


@dataclass(frozen=True)
class Request:
    """What is to be compiled, and how.

    ``targets`` are accelerators, the preferred one first; ``proofs`` is a directory of certificates, ``recheck`` names
    solvers that answer their obligations again, ``store`` knows what proofs asked.  ``calibration`` are inputs
    by name, see :func:`.datasets.dataset_of`.
    """

    model: Path
    targets: tuple[str, ...]
    proofs: Path
    dimensions: Mapping[str, int]
    calibration: Mapping[str, Array] | None = None
    exact: bool = False
    costs: str = "offload"
    options: Options = field(default_factory=Options)
    recheck: tuple[str, ...] = ()
    store: ProofStore | None = None


def claims_for(targets: Sequence[Backend], *, exact: bool = False) -> list[str]:
    """The names of all claims that compiling for these accelerators may use; lemmas of bounds are among them."""
    tensor_rules = [rule for target in targets for rule in (target.exact if exact else target.flexible)]
    tensor_rules += [] if exact else applied_rules()
    rules = [name for rule in tensor_rules for name in claims_of(rule)]
    operators = [operator for target in targets for operator in target.operators]
    mappings = [mapping.name for operator in operators for mapping in operator.mappings]
    mappings += [conversion.name for o in operators if o.code is not None for conversion in o.code.conversions]
    splits = [slug(rule.name) for operator in operators for rule in operator.splits]
    scalings = [scaling for o in operators if o.code is not None for scaling in o.code.scalings]
    splits += [slug(scaling.rule.name) for scaling in scalings if scaling.rule is not None]
    bounds = [name for o in operators for mapping in o.bounds for name in o.bound_claims(mapping)]
    joints = [joint_name(o.name, joint.mapping.name) for o in operators for joint in o.joints]
    networks = network_claims(operator.code for operator in operators if operator.code is not None)
    return list(dict.fromkeys([*rules, *mappings, *joints, *splits, *bounds, *networks]))


def compile_model(
    request: Request,
    entries: Mapping[str, Entry],
    progress: Callable[[str], None] = lambda step: None,
    within: Callable[[str], None] = lambda part: None,
) -> Compiled:
    """The compiled model; ``entries`` are all claims that are known, of which those needed pass the gate or do not.

    ``progress`` is told each step, and ``within`` how far a step of many parts is.

    Raises ArtefactError where no front end reads such files, GraphError where the model cannot be imported, and
    UsageError where there are no proofs and where calibration data do not fit.
    """
    require_proofs(request.proofs)
    targets, front_end = find_backends(request.targets), front_end_of(request.model)
    progress(f"reading {request.model}")
    graph, source = front_end.read(request.model, request.dimensions)
    samples = None
    if request.calibration is not None:
        dataset = dataset_of(graph, request.calibration, what="calibration data of", finite=True)
        samples = map(dataset.sample, range(dataset.count))
    needed = [name for name in claims_for(targets, exact=request.exact) if name in entries]
    progress(f"looking at {len(needed)} certificates in {request.proofs}")
    claims = {name: entries[name] for name in needed}
    places = {name: f"certificate {k} of {len(claims)}: {name}" for k, name in enumerate(claims, 1)}
    gate = open_gate(
        claims,
        request.proofs,
        request.recheck,
        prover=prover_identity,
        store=request.store,
        looking=lambda name: within(places[name]),
    )
    progress("rewriting by admitted rules")
    settings = Settings(not request.exact, request.costs, implementable, request.options)
    offloaded = offload(graph, gate, targets, settings)
    progress("calibrating number formats")
    with np.errstate(all="ignore"):  # ranges that are not finite are refused and reported one by one
        calibration = calibrate(offloaded.graph, samples, SEED)
    progress("generating programs")
    implementations, refused = _implementations(offloaded.graph, calibration, request.options, gate)
    programs = {
        number: tuple(implementation.described(k) for k in range(len(implementation.calls)))
        for number, implementation in implementations.items()
    }
    progress("planning memory")
    formats = _finite_json(calibration)
    return Compiled(
        model=Imported(
            source=source,
            name=request.model.name,
            dimensions=dict(request.dimensions),
            front_end=front_end.name,
            package=FRONT_ENDS.guest(front_end.name),
        ),
        choices=Choices(
            backends=targets,
            settings={
                "matching": "exact" if request.exact else "flexible",
                "costs": request.costs,
                "saturation": offloaded.saturation.stop.value,
                "cheapest_of_what_was_found": offloaded.optimal,
                "versions": {name: version(name) for name in ("numpy", *front_end.packages)},
            },
            options=request.options,
            calibration=formats if formats["given"] else {**formats, "seed": SEED},
        ),
        proof=Proof(
            rewritten=offloaded.extracted,
            explanations=offloaded.explanations,
            equality=offloaded.equality,
            certificates=_certificates(offloaded, implementations.values(), gate),
            left_out=dict(sorted(gate.left_out.items())),
        ),
        graph=offloaded.graph,
        implementations=implementations,
        programs=programs,
        host=(*refused, *(OnHost(h.operator, h.count, h.reason) for h in offloaded.host)),
        memory=HostMemory(host_problem(offloaded.graph), host_plan(offloaded.graph)),
        tool=f"ilaverify {VERSION}",
    )


def _finite_json(calibration: Calibration) -> dict[str, Any]:
    """The calibration as JSON, which has no infinities."""
    document = calibration.as_json()
    ranges = {node: {n: v if isfinite(v) else str(v) for n, v in r.items()} for node, r in document["ranges"].items()}
    return {**document, "ranges": ranges}


def _implementations(
    graph: Graph, calibration: Calibration, options: Options, gate: Gate
) -> tuple[dict[int, Implementation], list[OnHost]]:
    """The accelerator nodes that programs implement with their constant operands, and why the others stay."""
    implementations: dict[int, Implementation] = {}
    refused: list[OnHost] = []
    for number, node in enumerate(graph.nodes):
        if accelerator_operator(node.operator) is None:
            continue
        types = [graph.nodes[o].type for o in node.operands]
        try:
            implementation = implement(node, types, quantisation_of(node, calibration.ranges[number], options), options)
        except CannotOffload as error:
            refused.append(OnHost(node.operator, 1, f"node {number}: {error}"))
            continue
        joints = joints_of(implementation)
        missing = [name for name in (*implementation.claims, *joints) if name not in gate.admitted]
        if missing:
            reason = gate.left_out.get(missing[0], "the gate was not asked for it")
            refused.append(OnHost(node.operator, 1, f"node {number}: without {missing[0]} it must not run ({reason})"))
            continue
        programs = (*implementation.mappings, *implementation.conversions_used)
        other = [m.name for m in programs if not is_program_of(m, gate.admitted[m.name])]
        other += [name for rule in implementation.rules if not is_rule_of(rule, gate.admitted[name := slug(rule.name)])]
        wrong = next((f"{name}: {why}" for name, why in joints.items() if why), "")
        if wrong:
            refused.append(OnHost(node.operator, 1, f"node {number}: its program is none of {wrong}"))
            continue
        if other:
            reason = f"node {number}: its program is not the one that the certificate of {other[0]} is of"
            refused.append(OnHost(node.operator, 1, reason))
            continue
        try:
            implementation.bind(constants_of(graph, node.operands))
        except CannotOffload as error:
            refused.append(OnHost(node.operator, 1, f"node {number}: {error}"))
            continue
        implementations[number] = implementation
    return implementations, refused


def _claims(name: str, gate: Gate) -> tuple[str, ...]:
    subject = gate.admitted[name].subject
    return claims_of(subject.rule) if isinstance(subject, TensorSubject) else (name,)


def _certificates(
    offloaded: Offloaded, implementations: Collection[Implementation], gate: Gate
) -> dict[str, Certified]:
    """Every claim that the chain, a program or its bound rests on, with its certificate and the number of uses."""
    uses: dict[str, int] = {}
    for rule in offloaded.rules:
        claims = _claims(rule.claim, gate) if rule.claim else ()
        for name in (*claims, *filter(None, [rule.joint])):
            uses[name] = uses.get(name, 0) + rule.count
    for implementation in implementations:
        operator = operator_of(implementation)
        for mapping in implementation.host_programs:
            uses[mapping.name] = uses.get(mapping.name, 0) + 1
        for call in implementation.calls:
            bounds = [name for name in operator.bound_claims(call.mapping) if name in gate.admitted]
            joint = operator.joint(call.mapping)
            bounds += [] if joint is None else [joint.name]
            rules = [slug(rule.name) for rule in (*call.rules, *implementation.scaled_by)]
            for name in (call.mapping.name, *rules, *bounds):
                uses[name] = uses.get(name, 0) + 1
    for name in network_claims(implementations, offloaded.graph):
        if name in gate.admitted:
            uses[name] = uses.get(name, 0) + 1
    certificates = {}
    for name, count in sorted(uses.items()):
        admission = gate.admitted[name]
        claim = admission.claim
        certificates[name] = Certified(
            admission.subject.kind, admission.digest, claim.statement, claim.size_domain, claim.equality.value, count
        )
    return certificates
