"""``python -m rewrites.bounds``: proves all lemmas and rules.

Exit codes: 0 all proved, 1 one is not, 64 bad usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger

from .catalogue import LEMMAS
from .lemmas.lemma import prove_lemma
from .lemmas.real_rules import RULES, prove_rule

_UNPROVED, _BAD_USAGE = 1, 64


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        """Says what is wrong with the command line, and exits with 64."""
        self.exit(_BAD_USAGE, f"error: {message}\n       see {self.prog} --help\n")


def _verdicts(names: list[str], timeout: float) -> Iterator[tuple[str, Verdict]]:
    """Lemmas first, then rules; some lemmas and rules share a name, which stands for both."""
    for name in [n for n in LEMMAS if n in names]:
        yield f"lemma {name}", prove_lemma(LEMMAS[name], Discharger(timeout=timeout))
    for name in [n for n in RULES if n in names]:
        yield f"rule {name}", prove_rule(RULES[name], Discharger(timeout=timeout))


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = _Parser(
        prog="python -m rewrites.bounds",
        description="Proves the lemmas on the accelerators' primitives, and the rules by which errors compose.",
        epilog="exit codes: 0 all proved, 1 one is not, 64 bad usage",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="lemmas or rules; default: all")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help="per solver and question; default: 60")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options = parser.parse_args(arguments)
    known = list(dict.fromkeys([*LEMMAS, *RULES]))
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"NAME must be one of {', '.join(known)}, not {unknown[0]!r}")
    failed = 0
    for name, verdict in _verdicts(options.names or known, options.timeout):
        failed += verdict.status is not Status.PROVED
        print(json.dumps(_record(name, verdict), sort_keys=True) if options.json else _line(name, verdict), flush=True)
    if failed:
        print(f"{failed} not proved", file=sys.stderr)
    return _UNPROVED if failed else 0


def _record(name: str, verdict: Verdict) -> dict[str, object]:
    return {
        "name": name,
        "status": verdict.status.value,
        "statement": verdict.claim.statement,
        "domain": verdict.claim.size_domain,
        "seconds": round(verdict.seconds, 3),
        "reason": verdict.reason,
        "obligations": len(verdict.obligations),
        **verdict.details,
    }


def _line(name: str, verdict: Verdict) -> str:
    how = str(verdict.details.get("method", "two solvers"))
    if "arguments" in verdict.details:
        how += f", {verdict.details['arguments']} of them"
    text = f"{verdict.status.value:8} {verdict.seconds:7.2f} s  {name}  ({how})"
    return text + (f": {verdict.reason}" if verdict.reason else "")


if __name__ == "__main__":
    sys.exit(main())
