"""Programs that Hypothesis draws: a few functions, each of a few operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
def functions(draw: st.DrawFn) -> Function:
    """A function; what no operation uses stays, for passes to remove."""
    draft = Draft(draw)
    names = draft.pick(_DIALECTS)
    last = draw(st.lists(_operation(draft, names), min_size=1, max_size=MOST_OPERATIONS))[-1]
    draft.draw = draw
    more = [v for v in draft.values if v not in draft.arguments and v != last and v.type.is_tensor]
    two = bool(more) and draft.whole(0, 2) == 2
    results = [last, draft.pick(more)] if two else [last]
    return Function("f", tuple(draft.arguments), tuple(draft.lines), tuple(results))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A program of some functions."""
    drawn = draw(st.lists(functions(), min_size=1, max_size=MOST_FUNCTIONS))
    return Program(tuple(replace(f, name=f"f{k}") for k, f in enumerate(drawn)))
