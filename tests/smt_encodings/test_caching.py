"""Answers about terms live and die with the terms' symbols."""

from __future__ import annotations

import gc
import weakref

import pysmt.shortcuts as smt
from pysmt.environment import get_env

from smt_encodings.caching import cached_with_symbols
from smt_encodings.environment import fresh_symbols


def test_each_environment_has_its_answers_and_takes_them_along() -> None:
    asked = []

    @cached_with_symbols(10)
    def text(term: object) -> str:
        asked.append(term)
        return str(term)

    gone = []
    for name in ("x", "y"):
        with fresh_symbols():
            gone.append(weakref.ref(get_env()))
            assert [text(smt.Symbol(name)) for _ in range(3)] == [name] * 3
    assert len(asked) == 2
    asked.clear()
    gc.collect()
    assert [ref() for ref in gone] == [None, None]
