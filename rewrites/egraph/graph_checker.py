"""The checker of rewritten graphs: explanations must lead from each output of the one graph to that of the other.

Like ``checker`` it knows nothing of the e-graph. Graphs become terms node by node; a constant's term has the digest of
its data, so digests are recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping

from ir_semantics.graph.ir import Graph, digest_of

from .checker import Sides, check_explanation
from .explanation import Explanation
from .terms import EGraphError, Symbol, Term, term


def terms_of(graph: Graph) -> list[Term]:
    """The terms of a graph's nodes, in their order; raises EGraphError where an operand is no earlier node."""
    terms: list[Term] = []
    for number, node in enumerate(graph.nodes):
        if any(not 0 <= o < number for o in node.operands):
            raise EGraphError(f"the operands of node {number} must be earlier nodes, not {list(node.operands)}")
        symbol = Symbol(node.operator, node.attributes, node.type)
        terms.append(term(symbol, [terms[o] for o in node.operands]))
    return terms


def check_graphs(before: Graph, after: Graph, explanations: Mapping[str, Explanation], sides: Sides) -> None:
    """Returns if the explanations show that two graphs have equal outputs; raises EGraphError otherwise.

    The two must have the same inputs, outputs of the same names, and an explanation for each of these. What "equal"
    means, is for the certificates of the rules to say; a chain of rules is as strong as its weakest one.
    """
    old, new = terms_of(before), terms_of(after)
    if set(before.inputs) != set(after.inputs):
        raise EGraphError(f"the inputs must stay {', '.join(before.inputs)}; they are {', '.join(after.inputs)}")
    for name in before.inputs:
        if old[before.inputs[name]] is not new[after.inputs[name]]:
            raise EGraphError(f"the input {name} must stay what it is")
    if not set(before.outputs) == set(after.outputs) == set(explanations):
        raise EGraphError(f"the outputs must stay {', '.join(before.outputs)}, each with an explanation")
    for graph in (before, after):
        for digest, array in graph.constants.items():
            if digest_of(array) != digest:
                raise EGraphError(f"the data of the constant {digest[:12]} must have that digest; it has another one")
    for name, explanation in explanations.items():
        try:
            check_explanation(explanation, old[before.outputs[name]], new[after.outputs[name]], sides)
        except EGraphError as error:
            raise EGraphError(f"output {name}: {error}") from error
