"""Answers about terms, kept as long as the symbols that the terms are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from pysmt.environment import Environment, get_env

P = ParamSpec("P")
T = TypeVar("T")


def cached_with_symbols(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keeps the last ``most`` answers of a function of terms, in a table for each environment.

    pySMT hashes a term by its number, and every environment numbers from 0: in one table, the terms of a thousand
    proofs would collide a thousandfold, and be kept alive.
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        tables: WeakKeyDictionary[Environment, Callable[P, T]] = WeakKeyDictionary()

        @wraps(function)
        def cached(*args: P.args, **kwargs: P.kwargs) -> T:
            environment = get_env()
            if environment not in tables:
                tables[environment] = lru_cache(maxsize=most)(function)  # type: ignore[assignment]
            return tables[environment](*args, **kwargs)

        return cached

    return decorated
