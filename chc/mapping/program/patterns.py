"""Forms of which terms may be instances, and instructions that iterations choose at samples: guesses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ila_lang import BOOL, Expr, For, Fragment, compile_terms, free_variables
from ila_lang.language.expr import rebuild, resize

from .writes import Loops


def chosen_at(
    possible: Mapping[str, Expr], parameters: Sequence[Expr], loops: Loops, samples: Sequence[Mapping[str, int]]
) -> set[str]:
    """The instructions that decode a command in some iteration at sample sizes; of long loops, both ends are tried."""
    counters = [c for c, _ in loops]
    run = compile_terms([*parameters, *counters], list(possible.values()))
    extents = [compile_terms([*parameters, *counters[:k]], [e]) for k, (_, e) in enumerate(loops)]
    chosen: set[str] = set()
    for sizes in samples:
        iterations: list[tuple[int, ...]] = [tuple(sizes[p.name] for p in parameters)]
        for extent in extents:
            iterations = [
                (*before, k)
                for before in iterations
                for k in sorted({0, 1, int(extent(*before)[0]) - 1})
                if 0 <= k < extent(*before)[0]
            ]
        for iteration in iterations:
            chosen |= {name for name, holds in zip(possible, run(*iteration), strict=True) if holds}
    return chosen


def changes_more(loop: For, fragment: Fragment, known: Mapping[Expr, Expr], unknown: Collection[Expr]) -> str:
    """Why what a loop changes differs between iterations of the loops around: the state that decides commands there."""
    instructions = fragment.ila.instructions.values()
    decides = free_variables(*(i.decode for i in instructions))
    followed = [s for s in fragment.ila.states.values() if s.name in decides and known.get(s) in unknown]
    texts = []
    for state in followed:
        updates = {i.name: i.updates[state.name] for i in instructions if state.name in i.updates}
        own = [name for name, update in updates.items() if state.name in free_variables(update)]
        texts.append(f"{state.name}, which {' or '.join(own or updates)} changes")
    return (
        f"loop {loop.counter.name} changes other state in some iterations of the loops around, as its instructions "
        f"are chosen by {' and by '.join(texts) or 'state'} there: this is not followed from iteration to iteration"
    )


def generalise(one: Expr, two: Expr, counter: Expr, at: int) -> Expr | None:
    """A term that is ``one`` where the counter is ``at`` and ``two`` where it is ``at + 1``."""
    if one is two:
        return one
    if one.is_const and two.is_const and one.sort != BOOL and one.sort == two.sort:
        step = two.value - one.value
        first = one.value - step * at
        if step <= 0 or first < 0:
            return None
        return resize(counter, one.width) * step + first
    if one.op != two.op or one.params != two.params or one.func is not two.func or len(one.args) != len(two.args):
        return None
    args = [generalise(a, b, counter, at) for a, b in zip(one.args, two.args, strict=True)]
    if any(a is None for a in args):
        return None
    return rebuild(one, tuple(a for a in args if a is not None))
