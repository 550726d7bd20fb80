"""The error of everything that reads or writes artefacts, and what documents of unknown origin are asked for.

A reader believes nothing: every value is looked at before it is used, and what is wrong is named with its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

__all__ = ["ArtefactError", "field", "items", "natural", "record", "text"]

T = TypeVar("T")


class ArtefactError(ValueError):
    """A compiled model that must not be used, or a place where none can be written; the message says why."""


def field(where: str, value: object, kind: type[T], what: str) -> T:
    """A value of exactly this JSON type; raises ArtefactError otherwise."""
    if type(value) is not kind:
        raise ArtefactError(f"{where} must be {what}, not {value!r:.60}")
    return value


def record(where: str, value: object, keys: Iterable[str]) -> dict[str, Any]:
    """An object with exactly these keys; raises ArtefactError otherwise."""
    found = field(where, value, dict, "an object")
    wanted = set(keys)
    if set(found) != wanted:
        raise ArtefactError(
            f"{where} must have exactly the keys {', '.join(sorted(wanted))}, not {', '.join(sorted(found)) or 'none'}"
        )
    return found


def items(where: str, value: object) -> list[Any]:
    """A list; raises ArtefactError otherwise."""
    return field(where, value, list, "a list")


def text(where: str, value: object) -> str:
    """A text; raises ArtefactError otherwise."""
    return field(where, value, str, "a text")


def natural(where: str, value: object, below: int) -> int:
    """A natural number below a limit; raises ArtefactError otherwise."""
    found = field(where, value, int, "a natural number")
    if not 0 <= found < below:
        raise ArtefactError(f"{where} must be a natural number below {below}, not {found}")
    return found
