"""Programs that Hypothesis draws: a few functions, each of a few operations."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from . import operations, tosa_operations
from .drafts import Draft, Function, Program, Value

MAKERS = {**operations.MAKERS, **tosa_operations.MAKERS}
MOST_FUNCTIONS, MOST_OPERATIONS = 3, 5
_DIALECTS = (tuple(tosa_operations.MAKERS), tuple(operations.MAKERS), tuple(MAKERS))


@st.composite
def _operation(draw: st.DrawFn, draft: Draft, names: Sequence[str]) -> Value:
    """An operation with what it needs: a part of its own, which Hypothesis can leave out."""
    draft.draw = draw
    return MAKERS[draft.pick(names)](draft)


@st.composite
def functions(draw: st.DrawFn, name: str) -> Function:
    """A function; what no operation uses stays, for passes to remove."""
    draft = Draft(draw)
    names = draft.pick(_DIALECTS)
    last = draw(_operation(draft, names))
    for _ in range(1, MOST_OPERATIONS):
        if not draw(st.integers(0, 3)):
            break
        last = draw(_operation(draft, names))
    draft.draw = draw
    more = [v for v in draft.values if v not in draft.arguments and v != last and v.type.is_tensor]
    two = bool(more) and draft.whole(0, 2) == 2
    results = [last, draft.pick(more)] if two else [last]
    return Function(name, tuple(draft.arguments), tuple(draft.lines), tuple(results))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A program of some functions."""
    drawn = [draw(functions("f0"))]
    while len(drawn) < MOST_FUNCTIONS and draw(st.booleans()):
        drawn.append(draw(functions(f"f{len(drawn)}")))
    return Program(tuple(drawn))
