"""From a graph to one with accelerator operators: saturation, extraction, and an explanation that is checked.

What comes out is trusted for one reason: the checker of explanations found every step to be an instance of a rule that
passed the gate, of an accelerator operator's meaning, or of an operator's definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ir_semantics.graph.ir import Graph
from rewrites.claims.gate import Gate
from rewrites.compiler.codegen import accelerator_operator
from rewrites.compiler.graph_rules.tensor_rewrites import Constants, weakest_of
from rewrites.egraph import Explanation, Rule, extract
from rewrites.egraph.graph_checker import check_graphs
from rewrites.egraph.graphs import explain_outputs, from_graph, to_graph
from rewrites.egraph.rewrite import Rewrite, sides_of
from rewrites.egraph.saturation import Saturation, saturate
from smt_encodings.claims import Equality

from .backend import Backend, require_different
from .costs import Fixed, costs_for
from .folding import folded
from .reasons import LeftOnHost, left_on_host
from .rule_sets import RuleSet, rules_for
from .settings import DEFAULTS, Settings


@dataclass(frozen=True)
class RuleUse:
    """A rule that a compiled graph rests on: its claims (none for a definition), equality, certificate, and uses."""

    name: str
    claim: str
    certificate: str
    equality: Equality
    count: int
    joint: str = ""


@dataclass(frozen=True)
class Offloaded:
    """A graph with accelerator operators, and what it rests on.

    ``extracted`` is what the explanations lead to from ``source``, output by output; ``graph`` is that with what
    depends on constants alone computed.  ``missing`` are claims whose rules could not be used, with reasons.
    ``optimal`` says that no equal graph that was found costs less.
    """

    source: Graph
    extracted: Graph
    graph: Graph
    explanations: Mapping[str, Explanation]
    rules: tuple[RuleUse, ...]
    missing: Mapping[str, str]
    host: tuple[LeftOnHost, ...]
    equality: Equality
    costs: tuple[int, ...]
    optimal: bool
    saturation: Saturation
    rewrites: tuple[Rewrite, ...]

    @property
    def invocations(self) -> dict[str, int]:
        """How many nodes there are of each accelerator operator."""
        return {name: n for name, n in self.graph.operators().items() if accelerator_operator(name)}


def offload(
    graph: Graph,
    gate: Gate,
    backends: Sequence[Backend],
    settings: Settings = DEFAULTS,
    *,
    more: RuleSet | None = None,
) -> Offloaded:
    """The cheapest equal graph that was found, with operators of these accelerators, the preferred one first.

    ``more`` are further rules.  Raises ValueError for unknown costs, no accelerator or one twice, and EGraphError where
    an explanation does not convince the checker, which is a bug.
    """
    require_different(backends)
    priced = costs_for(settings.costs, backends, settings.implementable)
    constants = Constants(graph.constants)
    rules = rules_for(backends, gate, constants, flexible=settings.flexible, options=settings.options)
    if more is not None:
        rules = rules.joined(more)
    network = from_graph(graph, Fixed())
    saturation = saturate(network.egraph, rules.rewrites, settings.limits)
    extraction = extract(network.egraph, network.roots, priced)
    explanations = explain_outputs(network, extraction)
    extracted = to_graph(network, extraction, constants.data)
    check_graphs(graph, extracted, explanations, sides_of(rules.rewrites))
    used = _used(explanations, rules)
    weakest = weakest_of(u.equality for u in used)
    result = folded(extracted)
    return Offloaded(
        graph,
        extracted,
        result,
        explanations,
        used,
        rules.missing,
        left_on_host(result, backends, rules.missing, settings, network.egraph),
        weakest,
        extraction.costs,
        extraction.optimal,
        saturation,
        rules.rewrites,
    )


def _used(explanations: Mapping[str, Explanation], rules: RuleSet) -> tuple[RuleUse, ...]:
    """The rules in the explanations of outputs; lines that several outputs share are counted for each."""
    counts: dict[Rule, int] = {}
    for explanation in explanations.values():
        for rule, count in explanation.rules().items():
            counts[rule] = counts.get(rule, 0) + count
    ordered = sorted(counts, key=lambda rule: rule.name)
    return tuple(
        RuleUse(
            r.name,
            rules.claims.get(r.name, ""),
            r.certificate,
            rules.equalities[r.name],
            counts[r],
            rules.joints.get(r.name, ""),
        )
        for r in ordered
    )
