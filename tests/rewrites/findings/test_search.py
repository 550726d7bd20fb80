"""Searches do not depend on what has been imported."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from rewrites.findings.search import simplest

NUMBERS = st.lists(st.integers(0, 1 << 40), min_size=1, max_size=5)


def test_the_simplest_example_is_found() -> None:
    assert simplest(NUMBERS, lambda x: max(x) >= 1234) == [1234]


def test_no_example_is_none() -> None:
    assert simplest(NUMBERS, lambda x: max(x) < 0, examples=50) is None


def drawn(count: int = 60) -> list[list[int]]:
    seen: list[list[int]] = []
    simplest(NUMBERS, lambda x: bool(seen.append(x)), examples=count)
    return seen


def test_the_same_examples_are_drawn_each_time() -> None:
    first = drawn()
    assert len(first) > 50
    original = providers._get_local_constants
    try:
        # as if a module with these numbers had been imported
        numbers = type(original())(integers={123456789 + i for i in range(50)})
        providers._get_local_constants = lambda: numbers
        assert drawn() == first
    finally:
        providers._get_local_constants = original
    assert providers._get_local_constants is original


def test_other_searches_have_their_constants_back() -> None:
    before = providers._get_local_constants
    simplest(NUMBERS, lambda x: max(x) >= 5, examples=10)
    assert providers._get_local_constants is before
