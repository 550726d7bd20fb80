"""A command of the CLI in this process, as a process of its own would end."""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from ilaverify.cli import main


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str | Path, cwd: Path) -> Done:
    """What one command in ``cwd`` prints and returns; a traceback is a failure whatever the command."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.dict(os.environ, XDG_CACHE_HOME=str(cwd / "cache")),
    ):
        try:
            code = main([*map(str, arguments)])
        except SystemExit as end:  # --help and --version
            code = int(end.code or 0)
    done = Done(code, out.getvalue(), err.getvalue())
    assert "Traceback" not in done.stdout + done.stderr, done
    return done
