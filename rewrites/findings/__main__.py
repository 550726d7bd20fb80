"""``python -m rewrites.findings``: finds and shows them.

Exit codes: 0 every finding was found, 1 one was not, 64 bad usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from . import FINDERS, Finding, NotFound, section, updated

_NOT_FOUND, _BAD_USAGE, _INTERRUPTED = 1, 64, 130


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        """Says what is wrong with the command line, and exits with 64."""
        self.exit(_BAD_USAGE, f"error: {message}\n       see {self.prog} --help\n")


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = _Parser(
        prog="python -m rewrites.findings",
        description="Finds faults and surprises of published accelerators, and prints them with counterexamples.",
        epilog=f"findings: {', '.join(FINDERS)}.  Exit codes: 0 all found, 1 one not found, 64 bad usage, "
        "130 interrupted",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="default: all")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write all of them into a document between its marks"
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in FINDERS]
    if unknown:
        parser.error(f"NAME must be one of {', '.join(FINDERS)}, not {unknown[0]!r}")
    if options.write is not None and options.names:
        parser.error("--write takes all findings; leave out the names")
    if options.write is not None and not options.write.is_file():
        parser.error(f"--write must name a document with the marks of this command, not {options.write}")
    findings: list[Finding] = []
    missing = 0
    for name in options.names or FINDERS:
        start = time.perf_counter()
        try:
            finding = FINDERS[name]()
        except NotFound as error:
            missing += 1
            print(f"{name}: NOT FOUND: {error}", file=sys.stderr, flush=True)
            continue
        except KeyboardInterrupt:
            print(f"{name}: interrupted{'; nothing was written' if options.write else ''}", file=sys.stderr)
            return _INTERRUPTED
        findings.append(finding)
        seconds = time.perf_counter() - start
        print(f"{name}: found in {seconds:.1f} s" if options.write else section(finding) + "\n", flush=True)
    if options.write is not None and not missing:
        try:
            text = updated(options.write.read_text(encoding="utf-8"), findings)
        except ValueError as error:
            parser.error(str(error))
        options.write.write_text(text, encoding="utf-8")
    if missing:
        print(f"{missing} of {missing + len(findings)} findings were not found", file=sys.stderr)
    return _NOT_FOUND if missing else 0


if __name__ == "__main__":
    sys.exit(main())
