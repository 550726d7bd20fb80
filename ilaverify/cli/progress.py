"""A line on a terminal that is written over, for commands that take long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


class Line:
    """The line on standard error; where that is no terminal, lines of their own every ``seconds``, or none."""

    def __init__(self, seconds: float | None = None) -> None:
        self._on, self._seconds = sys.stderr.isatty(), seconds
        self._began = time.monotonic()
        self._shown = float("-inf") if self._on else self._began  # a terminal shows the first text at once

    def show(self, text: Callable[[], str], *, often: bool = False) -> None:
        """Shows a text in place of the last one; without ``often`` at most ten times a second."""
        now = time.monotonic()
        if self._on:
            if often or now >= self._shown + 0.1:
                self._shown = now
                print(f"\r\x1b[K{text()}", end="", file=sys.stderr, flush=True)
        elif self._seconds is not None and now >= self._shown + self._seconds:
            self._shown = now
            print(f"ilaverify: {now - self._began:6.1f} s  {text()}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Takes the line away."""
        if self._on:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
