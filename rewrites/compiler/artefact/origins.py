"""Which node of the imported model an accelerator operator belongs to, and names from models, for people."""

from __future__ import annotations

from ir_semantics.graph.ir import Graph


def origin_text(graph: Graph, number: int) -> str:
    """The origin of a node; for a node that rules introduced, that of the first later node that has one and depends on
    it.

    The latter reads "towards ...".  Empty where there is neither.
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
    """A text with spaces for control characters, which names in a model may contain."""
    return "".join(c if c.isprintable() else " " for c in text)
