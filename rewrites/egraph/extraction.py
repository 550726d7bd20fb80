"""Extraction: the cheapest terms of the classes of given e-nodes, where what is shared is paid once.

Costs are integers, so sums are exact. Several cost functions are compared in order: a later one decides among what the
earlier ones hold for equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .egraph import EGraph, ENode
from .search import solve
from .selection import Option, Problem, union
from .terms import EGraphError

Cost: TypeAlias = Callable[[EGraph, ENode], int | None]
"""What an e-node costs, its operands left out: not negative, or None where it must not be chosen.

It may depend on the symbol, and on types of and facts about the classes of the operands.
"""


@dataclass(frozen=True)
class Extraction:
    """The e-node chosen for each class that the roots need, operands first.

    ``costs`` has the sum of each cost function over ``chosen``; ``optimal`` says that no choice has less.
    """

    roots: tuple[int, ...]
    chosen: Mapping[int, ENode]
    costs: tuple[int, ...]
    optimal: bool

    def numbers(self, egraph: EGraph) -> tuple[int, ...]:
        """The chosen terms of the roots as e-nodes, by which ``EGraph.explain`` says why they equal the roots."""
        numbers: dict[int, int] = {}
        for c, node in self.chosen.items():
            numbers[c] = egraph.add(node.symbol, [numbers[o] for o in node.classes])
        return tuple(numbers[egraph.find(root)] for root in self.roots)


def extract(egraph: EGraph, roots: Sequence[int], costs: Sequence[Cost], budget: int = 20_000) -> Extraction:
    """The cheapest terms equal to those of the roots, or the cheapest that were found.

    It never costs more than the roots' own terms. The budget bounds the search in each independent part, so that the
    result does not depend on the machine's speed. The e-graph must be rebuilt before. Raises EGraphError where no
    finite cost is possible.
    """
    if not costs:
        raise EGraphError("extraction must be given a cost function; none was given")
    classes_needed = _reachable(egraph, roots)
    prices = {n.number: _price(egraph, n, costs) for nodes in classes_needed.values() for n in nodes}
    joined = _joined(prices, classes_needed, len(costs))
    places = {c: place for place, c in enumerate(classes_needed)}
    options: dict[int, list[Option]] = {}
    for c, nodes in classes_needed.items():
        usable = [n for n in nodes if n.number in joined]
        options[places[c]] = [
            Option(joined[n.number], union(1 << places[o] for o in n.classes), ((places[c], n.number),)) for n in usable
        ]
    root_places = union(1 << places[egraph.find(root)] for root in roots)
    solution = solve(Problem(options, root_places), budget)
    by_number = {n.number: n for nodes in classes_needed.values() for n in nodes}
    classes = list(classes_needed)
    chosen = {classes[place]: by_number[number] for place, number in solution.picks.items()}
    original = _original(egraph, roots, by_number)
    optimal = solution.optimal
    if all(n.number in joined for n in original.values()):
        own = sum(joined[n.number] for n in original.values())
        if own < solution.cost:
            chosen = original
    ordered = _ordered(egraph, roots, chosen)
    sums = [prices[n.number] for n in ordered.values()]
    return Extraction(
        tuple(roots),
        ordered,
        tuple(sum(price[i] for price in sums if price is not None) for i in range(len(costs))),
        optimal,
    )


def _reachable(egraph: EGraph, roots: Sequence[int]) -> dict[int, list[ENode]]:
    """The classes that the roots may need, in increasing order, with their e-nodes."""
    reachable: dict[int, list[ENode]] = {}
    stack = [egraph.find(root) for root in roots]
    while stack:
        c = stack.pop()
        if c not in reachable:
            reachable[c] = list(egraph.nodes(c))
            stack += [o for n in reachable[c] for o in n.classes]
    return dict(sorted(reachable.items()))


def _price(egraph: EGraph, node: ENode, costs: Sequence[Cost]) -> tuple[int, ...] | None:
    """What an e-node costs by each function, or None where it must not be chosen."""
    price = []
    for cost in costs:
        value = cost(egraph, node)
        if value is None:
            return None
        if not isinstance(value, int) or value < 0:
            raise EGraphError(f"a cost must be an integer that is not negative, not {value!r} (of {node.symbol})")
        price.append(value)
    return tuple(price)


def _joined(
    prices: Mapping[int, tuple[int, ...] | None], classes: Mapping[int, Sequence[ENode]], count: int
) -> dict[int, int]:
    """One integer for several costs, whose sums over selections compare as the costs do in order.

    Each function weighs more than the sum of the dearest e-node of all classes under those after it.
    """
    finite = {number: price for number, price in prices.items() if price is not None}
    result = dict.fromkeys(finite, 0)
    weight = 1
    for i in reversed(range(count)):
        for number, price in finite.items():
            result[number] += weight * price[i]
        most = sum(
            max((finite[n.number][i] for n in nodes if n.number in finite), default=0) for nodes in classes.values()
        )
        weight *= most + 1
    return result


def _original(egraph: EGraph, roots: Sequence[int], nodes: Mapping[int, ENode]) -> dict[int, ENode]:
    """For each class in the roots' own terms, the first e-node of these terms that is in it.

    Operands have smaller numbers than nodes, so the first e-node of a class needs only classes whose first ones are
    earlier, and the choice has no cycle.
    """
    chosen: dict[int, ENode] = {}
    for number in egraph.below(roots):
        chosen.setdefault(egraph.find(number), nodes[egraph.original(number)])
    return chosen


def _ordered(egraph: EGraph, roots: Sequence[int], chosen: Mapping[int, ENode]) -> dict[int, ENode]:
    """What the roots need of a choice, operands first."""
    ordered: dict[int, ENode] = {}
    for root in roots:
        stack = [(egraph.find(root), False)]
        while stack:
            c, ready = stack.pop()
            if ready:
                ordered[c] = chosen[c]
            elif c not in ordered:
                stack.append((c, True))
                stack += [(o, False) for o in reversed(chosen[c].classes) if o not in ordered]
    return ordered
