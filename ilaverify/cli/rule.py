"""The verb ``rule``: one rule, lemma or theorem, proved with its certificate or refuted with its counterexample."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ila_lang.extensions import command_line
from ilaverify.errors import UsageError

from .arguments import place, require_writable, seconds
from .outcomes import print_json

if TYPE_CHECKING:
    from reports.subjects import Subject
    from smt_encodings.claims import Verdict


def add_parser(verbs: Any) -> None:
    """Adds the verb to the subparsers of the command line; ``options.run`` runs it."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "rule",
        help="prove or refute a rewrite rule, a lemma or a theorem",
        description="Shows the proof of a rule with what it assumes, or a counterexample on which both sides were "
        "evaluated.",
        epilog="exit codes: 0 proved, 1 refuted, 2 neither, 64 bad usage",
    )
    parser.add_argument("name", metavar="NAME", help="as in ilaverify list; a mapping has a verb of its own")
    parser.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help="seconds per question to a solver")
    parser.add_argument("--full", action="store_true", help="a line for every obligation")
    parser.add_argument("-o", dest="directory", type=place, metavar="DIR", help="write certificate or counterexample")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.set_defaults(run=_rule)


def _rule(options: argparse.Namespace) -> int:
    from ilaverify.catalogue import find_subject, mappings

    if options.name in mappings():
        raise UsageError(f"{options.name} is a mapping; use {command_line('mapping', options.name)}")
    if options.directory is not None:
        require_writable("-o", options.directory, directory=True)
    subject = find_subject(options.name)

    from ilaverify.errors import exit_code
    from ilaverify.text import show_verdict, show_written, verdict_json
    from smt_encodings.claims import Status
    from smt_encodings.discharge import Discharger

    verdict = subject.prove(Discharger(timeout=options.timeout))
    keep = options.directory is not None or verdict.status is Status.ERROR
    written = _write(subject, verdict, options.directory) if keep else []
    refutation = subject.refutation(verdict)
    if options.json:
        summary = None if refutation is None else refutation.summary
        print_json(verdict_json(verdict) | {"counterexample": summary}, written)
    else:
        print(show_verdict(verdict, full=options.full))
        file, line = subject.place()
        if file:
            print(f"source    {file}:{line}")
        print(show_written(written), end="")
    return exit_code(verdict.status)


def _write(subject: Subject, verdict: Verdict, directory: Path | None) -> list[Path]:
    """Writes the certificate of a proof, or the data of a counterexample."""
    from ilaverify.identity import certified
    from ilaverify.refutations import write_refutation
    from reports.certificate import certificate_name, write_atomically
    from smt_encodings.claims import Status

    if verdict.status is Status.PROVED and directory is not None:
        path = directory / certificate_name(subject.name, verdict.method)
        write_atomically(path, certified(subject, verdict, subject.parameters(verdict)))
        return [path]
    refutation = subject.refutation(verdict)
    return [] if refutation is None else write_refutation(refutation, subject.name, directory)
