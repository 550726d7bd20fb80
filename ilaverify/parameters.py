"""Arguments of the public functions, read as their annotations say: one way, and one form of message, for all."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from numbers import Real
from pathlib import Path
from reprlib import Repr
from typing import Any, ParamSpec, TypeVar

from .errors import ArgumentError

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Kind:
    """What an argument must be, in words, and how it is read; ``read`` raises TypeError where it is another thing."""

    words: str
    read: Callable[[Any], Any]


def checked(**kinds: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that reads its arguments by the kinds of their annotations: those of ``kinds``, or of KINDS.

    Calling it raises ArgumentError where an argument is of another kind, and defining it KeyError where an annotation
    has none.  Other parameters than those with a name get numbers and arrays of NumPy as Python's.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        declared = signature(function)
        known = {
            name: {**KINDS, **kinds}[parameter.annotation.removesuffix(" | None")]
            for name, parameter in declared.parameters.items()
        }

        @wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> R:
            bound = declared.bind(*args, **named)
            for name, value in bound.arguments.items():
                absent = value is None and declared.parameters[name].annotation.endswith(" | None")
                bound.arguments[name] = None if absent else _read(name, value, known[name])
            return function(*bound.args, **bound.kwargs)

        return call

    return decorated


def instance(words: str, *types: type) -> Kind:
    """Objects of some types, taken as they are."""

    def read(value: Any) -> Any:
        if not isinstance(value, types):
            raise TypeError
        return value

    return Kind(words, read)


def _read(name: str, value: object, kind: Kind) -> object:
    try:
        return kind.read(value)
    except TypeError as error:
        raise ArgumentError(f"{name} must be {kind.words}, not {_SHOWN.repr(value)}") from error


_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = 60


def _path(value: Any) -> Path:
    path = os.fspath(value)
    if not isinstance(path, str) or not path:
        raise TypeError
    return Path(path)


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError
    return float(value)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise TypeError
    return tuple(value)


def _by_name(read: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    def all_of(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise TypeError
        return {name: read(one) for name, one in value.items()}

    return all_of


def _extent(value: Any) -> int:
    if (extent := _integer(value)) < 0:
        raise TypeError
    return extent


def _array(value: Any) -> Any:
    import numpy as np  # late, for not every function needs it

    if not isinstance(value, np.ndarray):
        raise TypeError
    return value


def _plain(value: Any) -> Any:
    """The value with numbers and arrays of NumPy as those of Python."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value.tolist() if hasattr(value, "tolist") else value


KINDS = {
    "str": instance("a text", str),
    "bool": instance("True or False", bool),
    "int": Kind("an integer", _integer),
    "float": Kind("a number", _number),
    "Path | str": Kind("a path", _path),
    "Sequence[str]": Kind("a list of names", _names),
    "Mapping[str, int]": Kind("natural numbers by name", _by_name(_extent)),
    "Array": Kind("an array of NumPy", _array),
    "Mapping[str, Array]": Kind("arrays of NumPy by name", _by_name(_array)),
    "Any": Kind("anything", lambda values: {name: _plain(value) for name, value in values.items()}),
}
"""Kinds by annotation."""
