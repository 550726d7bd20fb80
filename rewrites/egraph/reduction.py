"""Making selection problems smaller without losing a cheapest selection.

Most of what rewriting adds to a network is a local choice: this chain of operators, or that one, between the same two
tensors. Such choices do not interact, and the steps here decide them:

* An option that needs its own class, at whatever choice below, is dropped. So most cycles disappear.
* What every selection needs is paid anyway. Needing it is free, unless it may in turn need the one that needs it.
* An option is dropped if another one of its class costs no more, together with all that it needs and the first one does
  not, where there is no choice in that and it is not paid anyway.
* A class that only one other class has use for becomes part of that one's options.
* What is left falls apart into components that are solved alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from .selection import Option, Problem, bits, union
from .terms import EGraphError

MOST_OPTIONS = 64
"""Options of a class up to which another class becomes part of it. A bound of this implementation, against products."""


def necessary(problem: Problem) -> dict[int, int]:
    """For each class that can be got, the classes that every selection with it has, itself included.

    The greatest solution of: a class needs itself and what all of its options need. By induction over the height of a
    class in a selection, the selection has all of them.
    """
    users: dict[int, list[int]] = {}
    for c, options in problem.options.items():
        for need in bits(union(o.needs for o in options)):
            users.setdefault(need, []).append(c)
    known: dict[int, int] = {}
    work = dict.fromkeys(c for c, options in problem.options.items() if any(not o.needs for o in options))
    while work:
        c = next(iter(work))
        del work[c]
        common: int | None = None
        for option in problem.options[c]:
            if all(need in known for need in bits(option.needs)):
                below = union(known[need] for need in bits(option.needs))
                if not below >> c & 1:
                    common = below if common is None else common & below
        if common is None:
            continue
        needs = common | 1 << c
        if c in known:
            needs &= known[c]
        if known.get(c) != needs:
            known[c] = needs
            work.update(dict.fromkeys(users.get(c, ())))
    return known


def reduced(problem: Problem) -> Problem:
    """A problem with the same least cost, whose options name what they stand for in the given one.

    Raises EGraphError where a root cannot be selected.
    """
    while True:
        smaller = _inlined(_freed(_pruned(problem)))
        if smaller == problem:
            return problem
        problem = smaller


def _pruned(problem: Problem) -> Problem:
    """Without options that cannot be chosen, and without classes that nothing needs."""
    always = necessary(problem)
    options: dict[int, tuple[Option, ...]] = {}
    for c in problem.options:
        if c in always:
            options[c] = tuple(
                o
                for o in problem.options[c]
                if all(n in always for n in bits(o.needs)) and not union(always[n] for n in bits(o.needs)) >> c & 1
            )
    live, work = 0, problem.roots
    while work:
        for c in bits(work):
            if c not in options:
                raise EGraphError("what is extracted must have a node of finite cost that does not depend on itself")
        live |= work
        work = union(o.needs for c in bits(work) for o in options[c]) & ~live
    return Problem({c: options[c] for c in bits(live)}, problem.roots)


def _freed(problem: Problem) -> Problem:
    """With all classes that are always needed as roots, and without needs that these pay and dominated options."""
    always = necessary(problem)
    paid = union(always[c] for c in bits(problem.roots))
    knots = _knots(problem)
    options = {}
    for c in problem.options:
        free = paid & ~knots[c]
        kept: list[Option] = []
        for option in sorted(problem.options[c], key=lambda o: (o.cost, o.needs.bit_count(), o.needs, o.picks)):
            needs = option.needs & ~free
            available = union(always[n] for n in bits(needs)) | free
            if not any(
                _adds(problem, always, other.needs & ~available, available, option.cost - other.cost) for other in kept
            ):
                kept.append(Option(option.cost, needs, option.picks))
        options[c] = tuple(kept)
    return Problem(options, paid)


def _adds(problem: Problem, always: Mapping[int, int], needs: int, there: int, most: int) -> bool:
    """Whether classes, with all that they need besides what is there, have no choice and add at most so much."""
    more = union(always[n] for n in bits(needs)) & ~there
    options = [problem.options[c] for c in bits(more)]
    return all(len(each) == 1 for each in options) and sum(each[0].cost for each in options) <= most


def _knots(problem: Problem) -> dict[int, int]:
    """For each class, those that may need it and that it may need (strongly connected components, by Tarjan)."""
    needs = {c: union(o.needs for o in options) for c, options in problem.options.items()}
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_: list[int] = []
    knots: dict[int, int] = {}
    for start in needs:
        if start in index:
            continue
        stack = [(start, bits(needs[start]))]
        index[start] = low[start] = len(index)
        open_.append(start)
        while stack:
            at, rest = stack[-1]
            for need in rest:
                if need not in index:
                    index[need] = low[need] = len(index)
                    open_.append(need)
                    stack.append((need, bits(needs[need])))
                    break
                if need not in knots:
                    low[at] = min(low[at], index[need])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[at])
                if low[at] == index[at]:
                    place = open_.index(at)
                    members = union(1 << c for c in open_[place:])
                    for c in open_[place:]:
                        knots[c] = members
                    del open_[place:]
    return knots


def _inlined(problem: Problem) -> Problem:
    """With classes that only one other class needs made part of its options, where that stays small."""
    options = dict(problem.options)
    users: dict[int, set[int]] = {}
    for c in options:
        for need in bits(union(o.needs for o in options[c])):
            users.setdefault(need, set()).add(c)
    for c in sorted(options):
        owners = users.get(c, set())
        if problem.roots >> c & 1 or len(owners) != 1:
            continue
        (owner,) = owners
        count = sum(len(options[c]) if o.needs >> c & 1 else 1 for o in options[owner])
        if owner == c or count > max(MOST_OPTIONS, len(options[owner])):
            continue
        joined: list[Option] = []
        for option in options[owner]:
            if not option.needs >> c & 1:
                joined.append(option)
                continue
            for part in options[c]:
                needs = (option.needs | part.needs) & ~(1 << c)
                if not needs >> owner & 1:
                    joined.append(Option(option.cost + part.cost, needs, (*option.picks, *part.picks)))
        for need in bits(union(o.needs for o in options[c])):
            users[need].discard(c)
            users[need].add(owner)
        options[owner] = tuple(joined)
        del options[c]
    return Problem(options, problem.roots)


def components(problem: Problem) -> list[Problem]:
    """The problem's parts that have no class in common."""
    groups: dict[int, int] = {}
    for c, options in problem.options.items():
        group = 1 << c | union(o.needs for o in options)
        for member in bits(group):
            group |= groups.get(member, 0)
        for member in bits(group):
            groups[member] = group
    return [
        Problem({c: problem.options[c] for c in bits(group)}, problem.roots & group)
        for group in dict.fromkeys(groups[c] for c in sorted(groups))
    ]
