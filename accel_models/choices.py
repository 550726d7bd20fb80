"""Options of a model: each field takes one of a few values, which its annotation lists."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints


def require_choices(options: Any) -> None:
    """Raises ValueError unless fields that are a Literal or a bool have one of their values."""
    hints = get_type_hints(type(options))
    for field in fields(options):
        hint, value = hints[field.name], getattr(options, field.name)
        allowed = (False, True) if hint is bool else get_args(hint) if get_origin(hint) is Literal else (value,)
        # True is 1 and 5.0 is 5 to Python, but models are kept by their options
        if not any(value == choice and type(value) is type(choice) for choice in allowed):
            raise ValueError(f"{field.name} must be {' or '.join(map(str, allowed))}, not {value!r}")
