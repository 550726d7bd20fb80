"""Which node of the imported model an accelerator operator belongs to, and names from models, for people."""

from __future__ import annotations

from ir_semantics.graph.ir import Graph

__all__ = ["origin_text", "printable"]


def origin_text(graph: Graph, number: int) -> str:
    """Where a node stems from; where it was made by rules, the first later node that has an origin and depends on it.

    The latter is told as "towards ...".  Empty where there is neither.
    """
    if graph.origins[number]:
        return printable(graph.origins[number])
    reached = {number}
    for later in range(number + 1, len(graph.nodes)):
        if reached.isdisjoint(graph.nodes[later].operands):
            continue
        if graph.origins[later]:
            return f"towards {printable(graph.origins[later])}"
        reached.add(later)
    return ""


def printable(text: str) -> str:
    """A text whose characters a terminal only shows: others, which a model's author may put into names, are spaces."""
    return "".join(c if c.isprintable() else " " for c in text)
