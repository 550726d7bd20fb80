"""Better graphs by proved rules: saturation, extraction, and an explanation of every output that is checked.

What comes out is trusted for one reason: the checker of explanations found every step to be an instance of a rule that
passed the gate (or of an operator's definition).  Neither saturation nor extraction is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ir_semantics.graph.ir import Graph
from ir_semantics.graph.types import TensorType
from rewrites.claims.gate import Admission
from rewrites.claims.names import slug
from rewrites.egraph import Cost, EGraph, ENode, Rule, extract
from rewrites.egraph.graph_checker import check_graphs
from rewrites.egraph.graphs import explain_outputs, from_graph, to_graph
from rewrites.egraph.rewrite import Rewrite, sides_of
from rewrites.egraph.saturation import Limits, Saturation, saturate
from rewrites.rules.tensor.matching import RULES as MATCHING
from smt_encodings.claims import Equality

from .definitions import definitions
from .tensor_rewrites import Constants, rewrites_of

__all__ = ["Optimised", "computed_elements", "optimise"]


STRENGTH = (Equality.BIT_EXACT, Equality.UP_TO_REDUCTION_ORDER, Equality.OVER_REALS)
"""Equality notions that chains of rules keep, the strongest first: each implies those after it.  Bounds add up."""

LIMITS = Limits(nodes=20_000, iterations=12, seconds=30.0)
"""What saturation may use, where nothing else is said."""


@dataclass(frozen=True)
class Optimised:
    """A graph, the rules that it rests on with the number of their uses, its equality to the original, and how it came.

    ``costs`` are those of the graph; ``optimal`` says that no equal graph that was found has less.
    """

    graph: Graph
    rules: Mapping[Rule, int]
    equality: Equality
    costs: tuple[int, ...]
    optimal: bool
    saturation: Saturation


def computed_elements(egraph: EGraph, node: ENode) -> int:
    """A cost: the elements of results, of which inputs and constants have none, and one for each node.

    Broadcasts of scalars count as one element, for nothing has to be computed or moved.
    """
    symbol = node.symbol
    if symbol.operator in ("input", "constant"):
        return 0
    if not isinstance(symbol.type, TensorType) or symbol.operator == "broadcast":
        return 1
    return 1 + symbol.type.elements


def optimise(
    graph: Graph,
    admitted: Mapping[str, Admission],
    *,
    equalities: Sequence[Equality] = STRENGTH,
    costs: Sequence[Cost] = (computed_elements,),
    limits: Limits = LIMITS,
    budget: int = 20_000,
) -> Optimised:
    """The cheapest equal graph that was found, by admitted rules of these equality notions and by definitions.

    Rules of :mod:`rewrites.rules.tensor.matching` are not used: they make graphs longer, for accelerators.
    The equality to the original is that of the weakest rule in use.  Raises ValueError for a notion that is not one of
    STRENGTH, and EGraphError where an output's explanation does not convince the checker, which is a bug.
    """
    if not set(equalities) <= set(STRENGTH):
        raise ValueError(f"equality notions must be among {', '.join(e.value for e in STRENGTH)}")
    constants = Constants(graph.constants)
    longer = {slug(rule.name) for rule in MATCHING}
    taken = rewrites_of({n: a for n, a in admitted.items() if n not in longer}, constants, equalities)
    rewrites: list[Rewrite] = [*taken.values(), *definitions(constants).values()]
    network = from_graph(graph)
    saturation = saturate(network.egraph, rewrites, limits)
    found = extract(network.egraph, network.roots, costs, budget)
    explanations = explain_outputs(network, found)
    result = to_graph(network, found, constants.data)
    check_graphs(graph, result, explanations, sides_of(rewrites))
    rules: dict[Rule, int] = {}
    for explanation in explanations.values():
        for rule, count in explanation.rules().items():
            rules[rule] = rules.get(rule, 0) + count
    notions = [taken[rule.name].equality for rule in rules if rule.name in taken]
    weakest = max(notions, key=STRENGTH.index, default=Equality.BIT_EXACT)
    return Optimised(result, rules, weakest, found.costs, found.optimal, saturation)
