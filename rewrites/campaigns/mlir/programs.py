"""Programs that Hypothesis draws: a few functions, each of a few operations."""

from __future__ import annotations

from hypothesis import strategies as st

from . import operations, tosa_operations
from .drafts import Draft, Function, Program

MAKERS = {**operations.MAKERS, **tosa_operations.MAKERS}
MOST_FUNCTIONS, MOST_OPERATIONS = 3, 5
_DIALECTS = (tuple(tosa_operations.MAKERS), tuple(operations.MAKERS), tuple(MAKERS))


@st.composite
def functions(draw: st.DrawFn, name: str) -> Function:
    """A function; what no operation uses stays, for passes to remove."""
    draft = Draft(draw)
    names = draft.pick(_DIALECTS)
    last = [MAKERS[draft.pick(names)](draft) for _ in range(draft.whole(1, MOST_OPERATIONS))][-1]
    more = [v for v in draft.values if v not in draft.arguments and v != last and v.type.is_tensor]
    results = [last, draft.pick(more)] if more and draft.pick((False, False, True)) else [last]
    return Function(name, tuple(draft.arguments), tuple(draft.lines), tuple(results))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A program of some functions."""
    count = draw(st.integers(1, MOST_FUNCTIONS))
    return Program(tuple(draw(functions(f"f{k}")) for k in range(count)))
