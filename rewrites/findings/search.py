"""Reproducible searches by Hypothesis: the same example on every run, whatever else has been imported."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

try:
    from hypothesis.internal.conjecture import providers
    from hypothesis.internal.constants_ast import Constants
except ImportError:  # older versions do not read source text
    providers = None  # type: ignore[assignment]

T = TypeVar("T")

_HOOK = "_get_local_constants"  # of Hypothesis


def simplest(
    strategy: st.SearchStrategy[T], condition: Callable[[T], bool], *, examples: int = 2000, shrink: bool = True
) -> T | None:
    """An example with a property, shrunk unless ``shrink`` is False; None if there is none among ``examples``.

    Starts from a fixed seed, and uses no stored examples.
    """
    chosen = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
    )
    with _without_local_constants():
        try:
            return find(strategy, condition, settings=chosen, random=random.Random(1))
        except NoSuchExample:
            return None


@contextmanager
def _without_local_constants() -> Iterator[None]:
    """Keeps Hypothesis from drawing numbers that it reads in the source text of imported modules.

    It has no switch for that; with these numbers, the example would change with every edit of any module.
    """
    original = getattr(providers, _HOOK, None)
    if original is None:
        # the result is still a counterexample, but not the same one everywhere
        yield
        return
    nothing = Constants()
    providers.CONSTANTS_CACHE.cache.clear()
    setattr(providers, _HOOK, lambda: nothing)
    try:
        yield
    finally:
        setattr(providers, _HOOK, original)
        providers.CONSTANTS_CACHE.cache.clear()
