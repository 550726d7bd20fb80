"""The verb ``check``: certificates against the claims as they are now, several at once; and compiled models.

Exit codes: 0 all accepted, 1 one is rejected, 2 one is undecided and none rejected, 64 bad usage.

REJECTED means that something is wrong with a certificate; UNDECIDED, that solvers gave no answer in time, that the
process which asked them ended, or that the claim is one of a module that is not in use: then nothing is known.  A file
that is named and cannot be read, or a compiled model for a target that is not known, is bad usage.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ilaverify.errors import EXIT_PROVED, EXIT_REFUTED, EXIT_UNPROVED, UsageError

from .arguments import count, megabytes, note_large, seconds, source
from .outcomes import print_json

if TYPE_CHECKING:
    from ilaverify.checking import Checked

_MANY = 10
"""From this number of certificates on, all code is read once; that is faster than reading it for each certificate."""


def add_parser(verbs: Any) -> None:
    """Adds the verb to the subparsers of the command line; ``options.run`` runs it."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "check",
        help="check proof certificates, and compiled models, against the models and rules in use",
        description="Generates the obligations of each certificate's claim anew, compares them, and has solvers answer "
        "them from their text.  Of a compiled model, the certificates that it rests on are checked likewise, and "
        "everything else is made again and compared.",
        epilog="exit codes: 0 all accepted, 1 one is rejected, 2 one is undecided (no answer came), 64 bad usage, a "
        "file that cannot be read included: nothing is checked then",
    )
    parser.add_argument(
        "certificates",
        nargs="+",
        type=source,
        metavar="CERT",
        help="a certificate, the data of a counterexample (*.counterexample-data.json), which is replayed, a directory "
        "of these, or the directory of a compiled model",
    )
    parser.add_argument(
        "--proofs",
        type=source,
        default=Path("proofs"),
        metavar="DIR",
        help="for compiled models; default: proofs",
    )
    parser.add_argument("--solver", default="both", choices=("cvc5", "z3", "both"))
    parser.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help="seconds per obligation")
    parser.add_argument("--jobs", type=count, default=os.cpu_count() or 1, metavar="N", help="default: processors")
    parser.add_argument("--memory", type=megabytes, default=4096, metavar="MB", help="for each process; default: 4096")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> int:
    from ilaverify.checking import check_model

    results: list[Checked] = []
    models = [path for path in options.certificates if (path / "model.json").exists()]
    files = list(_files([path for path in options.certificates if path not in models]))
    needed = []
    for path in models:
        result, certificates = check_model(path, options.proofs)
        results.append(result)
        needed += [c for c in certificates if c not in files and c not in needed]
        if not options.json:
            _show(result)
    checked: dict[int, Checked] = {}
    for number, result in _results([*files, *needed], options):
        checked[number] = result
        if not options.json:
            _show(result)
    results += (checked[number] for number in sorted(checked))
    if options.json:
        print_json([result.as_json() for result in results])
    else:
        words = [result.verdict for result in results]
        undecided = words.count("UNDECIDED")
        more = f", {undecided} undecided" if undecided else ""
        print(f"{words.count('ACCEPTED')} accepted, {words.count('REJECTED')} rejected{more}")
    if any(result.problems for result in results):
        return EXIT_REFUTED
    return EXIT_UNPROVED if any(result.undecided for result in results) else EXIT_PROVED


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files named, which can be read, and what directories hold of certificates and data of counterexamples."""
    from ilaverify.checking import files_in, require_readable

    statements = [path for path in paths if path.name.endswith(".intoto.json")]
    if statements and len(statements) == len(paths):
        raise UsageError(f"{paths[0]} is a statement about certificates, which proves nothing; check their directory")
    for path in paths:
        if path in statements:
            continue  # DIR/*.json names it, too
        if not path.is_dir():
            note_large(path)
            require_readable(path)
            yield path
            continue
        yield from files_in(path)


def _show(result: Checked) -> None:
    from rewrites.compiler.artefact.origins import printable

    print(f"{result.verdict:<9} {printable(result.file)}")
    if result.claim is not None:
        subject, statement, domain = (result.claim[key] for key in ("subject", "statement", "size_domain"))
        print(printable(f"  {subject}: {statement}: {domain}"))
    for line in (*result.replays, *result.trusted, *result.problems, *result.undecided):
        print(printable(f"  {line}"), flush=True)


def _results(paths: Sequence[Path], options: argparse.Namespace) -> Iterator[tuple[int, Checked]]:
    """The result for each certificate as it completes, with its index in ``paths``; each has a process of its own.

    Those whose proofs took longest begin first.  A process reuses the answers that solvers gave in processes that ended
    before it began.
    """
    from functools import partial

    from ilaverify.catalogue import all_entries
    from ilaverify.checking import SOLVERS, Checked, check_file
    from ilaverify.identity import read_provers
    from ilaverify.proving.workers import Task, run_tasks
    from reports.binding import binding_problems

    if len(paths) > 1:
        _ = all_entries(), binding_problems  # what all processes need is loaded once, before they begin
    if len(paths) >= _MANY:
        read_provers()
    answered: dict[str, str] = {}

    def run(path: Path) -> str:
        known = dict(answered)
        solvers = SOLVERS if options.solver == "both" else (options.solver,)
        result = check_file(path, solvers, options.timeout, known)
        return json.dumps([asdict(result), {key: status for key, status in known.items() if key not in answered}])

    longest = list(range(len(paths)))
    if len(paths) > 1:
        longest.sort(key=lambda number: -_seconds_of_proof(paths[number]))
    tasks = [Task(str(number), partial(run, paths[number])) for number in longest]
    with closing(run_tasks(tasks, jobs=options.jobs, timeout=3600.0, memory=options.memory)) as ends:
        for end in ends:
            number = int(end.name)
            if end.text is None:
                yield number, Checked(str(paths[number]), undecided=[end.failure])
                continue
            result, new = json.loads(end.text)
            answered.update(new)
            yield number, Checked(**result)


def _seconds_of_proof(path: Path) -> float:
    """How long a certificate says that its proof took: unchecked, and a hint only; 0 where it says nothing."""
    from ila_lang.text.files import read_at_most
    from reports.certificate import MOST_BYTES

    if path.is_fifo():
        return 0.0  # it can be read once
    try:
        seconds = json.loads(read_at_most(path, "a certificate", MOST_BYTES))["seconds"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0.0  # what is wrong with the file is reported when it is checked
    return float(seconds) if isinstance(seconds, int | float) and abs(seconds) < 1e9 else 0.0
