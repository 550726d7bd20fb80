"""Exit codes, and the error that a user's input causes."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from ila_lang.errors import InputError
from smt_encodings.claims import Status

EXIT_PROVED = 0
"""Everything asked for was proved (or done)."""
EXIT_REFUTED = 1
"""Something was refuted."""
EXIT_UNPROVED = 2
"""Something is unproved or broken."""
EXIT_BAD_USAGE = 64
"""The command or its input is wrong; nothing was written."""

EXIT_INTERRUPTED = 130
"""Ctrl-C or SIGTERM came; what was found before was kept where the verb keeps something."""


class UsageError(InputError):
    """What a command or function is called with cannot be worked with."""


class ArgumentError(UsageError, TypeError):
    """An argument of a function is of another type than it declares."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The close names in brackets after a blank, or what is said ``otherwise``.

    >>> did_you_mean("maping", ["mapping", "model"])
    ' (did you mean mapping?)'
    """
    close = get_close_matches(name, list(known), 1)
    return f" (did you mean {close[0]}?)" if close else otherwise


def exit_code(status: Status) -> int:
    """The exit code of a verdict."""
    if status is Status.PROVED:
        return EXIT_PROVED
    return EXIT_REFUTED if status is Status.REFUTED else EXIT_UNPROVED


def require_proofs(proofs: Path) -> None:
    """Raises UsageError where certificates are looked for in what is no directory."""
    if not proofs.is_dir():
        raise UsageError(
            f"proofs must be a directory of certificates, and {proofs} is none; ilaverify prove -o DIR makes one"
        )
