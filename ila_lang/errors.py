"""The class of all errors that bad input causes."""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be worked with; the message names it, says what must hold, and what was given."""
