"""The error of all that reads or writes artefacts, and the checks of values in untrusted documents.

Every value is checked before it is used, and messages say where it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from ila_lang.errors import InputError

T = TypeVar("T")


class ArtefactError(InputError):
    """A compiled model that must not be used, or a place where none can be written; the message says why."""


class NotInstalled(ArtefactError):
    """A compiled model that names what no package offers here: nothing is known of it."""


def field(where: str, value: object, kind: type[T], what: str) -> T:
    """A value of exactly this JSON type; raises ArtefactError otherwise."""
    if type(value) is not kind:
        raise ArtefactError(f"{where} must be {what}, not {value!r:.60}")
    return value


def record(where: str, value: object, keys: Iterable[str]) -> dict[str, Any]:
    """An object with exactly these keys; raises ArtefactError otherwise."""
    content = field(where, value, dict, "an object")
    expected = set(keys)
    if set(content) != expected:
        present = ", ".join(sorted(content)) or "none"
        raise ArtefactError(f"{where} must have exactly the keys {', '.join(sorted(expected))}, not {present}")
    return content


def items(where: str, value: object) -> list[Any]:
    """A list; raises ArtefactError otherwise."""
    return field(where, value, list, "a list")


def parts(where: str, value: object, count: int, form: str) -> list[Any]:
    """A list of so many values, which must ``form`` in words; raises ArtefactError otherwise."""
    if len(items(where, value)) != count:
        raise ArtefactError(f"{where} must {form}, not {value!r:.60}")
    return items(where, value)


def text(where: str, value: object) -> str:
    """A text; raises ArtefactError otherwise."""
    return field(where, value, str, "a text")


def natural(where: str, value: object, below: int) -> int:
    """A natural number below a limit; raises ArtefactError otherwise."""
    number = field(where, value, int, "a natural number")
    if not 0 <= number < below:
        raise ArtefactError(f"{where} must be a natural number below {below}, not {number}")
    return number
