"""The verb ``tv``: translation validation of MLIR, of two files or of one before and after each pass.

Exit codes: 0 every function is proved, 1 one is refuted, 2 one is neither, 64 bad usage (a file that cannot be read,
too), 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ilaverify.errors import EXIT_INTERRUPTED, UsageError
from ilaverify.modules import SUFFIX

from . import prove as cli_prove
from . import report as cli_report
from .arguments import count, megabytes, place, require_store, require_writable, seconds, source
from .outcomes import RESULT_SCHEMA, exit_code_of, outcome_json, print_json

if TYPE_CHECKING:
    from ilaverify.mlir.translation import Claims
    from reports.outcomes import ProofOutcome

REPORTS = {
    "junit": "JUnit XML: a test case for each function",
    "sarif": "SARIF 2.1.0: a result at each function's line in the source",
    "markdown": "a summary for a pull request",
    "html": "one HTML page for people: each function after each pass, with inputs that show what is wrong",
}


def add_parser(verbs: Any) -> None:
    """Adds the verb to the subparsers of the command line; ``options.run`` runs it."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "tv",
        help="translation validation of MLIR: does one program refine another, or does each pass keep what it gets",
        description="For each function of SRC: does the function of that name in TGT refine it, for all inputs of "
        "every size?  With --passes: does the function after each pass refine the one before it?  Files in other than "
        "the generic form are converted by an mlir-opt.",
        epilog="exit codes: 0 every function is proved, 1 one is refuted, 2 one is neither, 64 bad usage, 130 "
        "interrupted",
    )
    parser.add_argument("source", metavar="SRC", type=source, help="an MLIR file; with --passes also a folder of them")
    parser.add_argument("target", metavar="TGT", type=source, nargs="?", help="an MLIR file; not with --passes")
    parser.add_argument(
        "--passes", metavar="PASS[,PASS...]", help="passes of mlir-opt, options in braces: cse,tile{x=4}"
    )
    parser.add_argument("--function", type=_symbol, metavar="NAME", help="only the function of this name")
    parser.add_argument(
        "--use-neg-zero", action="store_true", help="read +0.0 as -0.0 where tensors are filled with it"
    )
    parser.add_argument(
        "--sums-start-at-minus-zero", action="store_true", help="read TOSA's sums so; default: they start at +0.0"
    )
    parser.add_argument(
        "--no-dynamic-broadcast", action="store_true", help="TOSA's operators do not broadcast a dynamic size of 1"
    )
    parser.add_argument(
        "--associative", action="store_true", help="floats are added in any order; counterexamples are over the reals"
    )
    parser.add_argument(
        "--buffers-apart",
        action="store_true",
        help="arguments that are buffers are blocks of their own, and do not overlap",
    )
    parser.add_argument(
        "--no-unwritten-reads", action="store_true", help="to read what was never written is undefined behaviour"
    )
    parser.add_argument("--mlir-opt", metavar="PROGRAM", help="default: the first that is found")
    parser.add_argument(
        "-o", dest="directory", type=place, metavar="DIR", help="write certificates and data of counterexamples"
    )
    parser.add_argument("--jobs", type=count, default=os.cpu_count() or 1, metavar="N", help="default: processors")
    parser.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help="for each function; default: 60")
    parser.add_argument("--memory", type=megabytes, default=4096, metavar="MB", help="for each process; default: 4096")
    parser.add_argument("--store", type=place, metavar="FILE", help="proof store; default: none is used")
    parser.add_argument("--recheck", action="store_true", help="put stored proofs to both solvers again")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    for name, what in REPORTS.items():
        parser.add_argument(f"--{name}", type=place, metavar="FILE", help=f"write {what}")
    parser.add_argument(
        "--rules",
        type=place,
        metavar="FILE.mlir",
        help="write proved pairs as rules on tensors, to be proved as such",
    )
    parser.set_defaults(run=_tv, trust=None)


def _symbol(text: str) -> str:
    """The name of a function; MLIR writes @ before it, which is no part of it."""
    return text.removeprefix("@")


def _tv(options: argparse.Namespace) -> int:
    if (options.target is None) == (options.passes is None):
        raise UsageError("tv must be given either two files, SRC and TGT, or one (or a folder) with --passes")
    _check_places(options)

    from ilaverify.proving.workers import Limits
    from ilaverify.text import show_written
    from reports.outcomes import tally
    from reports.store import ProofStore
    from rewrites.compiler.artefact.origins import printable

    claims = _claims(options)
    if not options.json:
        for name in claims.unchanged:
            print(f"same     {name}: the pass changed nothing")
    written: list[Path] = []
    failure: OSError | None = None

    def keep(outcome: ProofOutcome) -> None:
        nonlocal failure
        try:
            if failure is None:
                cli_prove.write_outcome(outcome, options.directory, written)
        except OSError as error:
            failure = error  # the others are still proved and shown

    store = None if options.store is None else ProofStore(options.store)
    limits = Limits(options.jobs, options.timeout, options.memory)
    for outcome in claims.broken:
        cli_prove.tell(outcome, 0, set(), options)
    proved, interrupted = cli_prove.run_entries(claims.entries, limits, store, options, keep)
    outcomes = [*claims.broken, *_with_first_wrong(proved)]
    try:
        if failure is None:
            cli_prove.write_reports(outcomes, options, written, cli_report.PageInputs())
            outcomes = _with_rules(claims, outcomes, options.rules, written)
    except OSError as error:
        failure = error
    if options.json:
        document = {"schema": RESULT_SCHEMA, "claims": [outcome_json(o) for o in outcomes], "same": claims.unchanged}
        print_json(document, written)
    else:
        print(show_written(written), end="")
        for outcome in outcomes:
            for note in outcome.notes:
                print(printable(f"{outcome.name}: {note}"))
        changed = "a function" if options.function is None else f"the function @{options.function}"
        print(tally(outcomes) if outcomes else f"nothing to prove: no pass changed {changed}")
    if failure is not None:
        raise failure
    if interrupted:
        return EXIT_INTERRUPTED
    return exit_code_of(outcomes) if outcomes else 0


def _check_places(options: argparse.Namespace) -> None:
    if options.directory is not None:
        require_writable("-o", options.directory, directory=True)
    if options.store is not None:
        require_store(options.store)
    elif options.recheck:
        raise UsageError("--recheck is about stored proofs; name their store with --store FILE")
    if options.rules is not None and options.rules.suffix != SUFFIX:
        raise UsageError(
            f"--rules must name a file with the suffix {SUFFIX}, which --module takes, not {options.rules}"
        )
    for name in (*REPORTS, "rules"):
        path: Path | None = getattr(options, name)
        if path is not None:
            require_writable(f"--{name}", path)


def _claims(options: argparse.Namespace) -> Claims:
    """All that is to be proved."""
    from chc.translation.refine import Options
    from ilaverify.mlir.translation import (
        Claims,
        Step,
        add_pairs,
        add_steps,
        broken,
        converter_for,
        listed,
        passes_of,
        read_program,
    )
    from ir_semantics.mlir.semantics.program import Reading

    claims = Claims()
    reading = Options(
        Reading(
            options.use_neg_zero,
            options.sums_start_at_minus_zero,
            not options.no_dynamic_broadcast,
            options.buffers_apart,
            not options.no_unwritten_reads,
        ),
        options.associative,
    )
    if options.target is not None:
        programs = read_program(options.source, options.mlir_opt), read_program(options.target, options.mlir_opt)
        add_pairs(claims, Step("", str(options.source), *programs, str(options.target)), reading, options.function)
        return claims
    passes, converter = passes_of(options.passes), converter_for(options.mlir_opt)
    for path in _files(options.source):
        try:
            add_steps(claims, path, passes, converter, reading, options.function)
        except UsageError as error:
            if not options.source.is_dir():
                raise
            claims.broken.append(broken(path.stem, str(path), str(error)))
    if options.function is not None and options.function not in claims.known and not claims.broken:
        raise UsageError(
            f"{options.source} must have the function @{options.function} with a body; it has {listed(claims.known)}"
        )
    return claims


def _files(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob(f"*{SUFFIX}") if not file.is_fifo())  # which would be waited for
    if not files:
        raise UsageError(f"{path} must hold MLIR files (*{SUFFIX}), and it holds none")
    return files


def _with_first_wrong(outcomes: Sequence[ProofOutcome]) -> list[ProofOutcome]:
    """The outcomes, with a note at each file's first refuted step: the first wrong one, if all before are proved."""
    marked: set[str] = set()
    unproved: dict[str, str] = {}
    result = []
    for outcome in outcomes:
        step, file = outcome.name.rpartition(".")[0], outcome.file
        if outcome.status == "REFUTED" and step and file not in marked:
            marked.add(file)
            note = f"this is the first wrong step of {file}"
            if unproved.get(file, step) != step:
                note = f"this is the first step of {file} that is refuted; {unproved[file]}, before it, is not proved"
            outcome = replace(outcome, notes=(*outcome.notes, note))
        elif outcome.status not in ("PROVED", "VACUOUS"):
            unproved.setdefault(file, step)
        result.append(outcome)
    return result


def _with_rules(
    claims: Claims, outcomes: Sequence[ProofOutcome], path: Path | None, written: list[Path]
) -> list[ProofOutcome]:
    """Writes a file with what is proved as rules; the outcomes, with notes which are among them, and why others not."""
    if path is None:
        return list(outcomes)
    from ilaverify.mlir.translation import pairs_as_rules
    from reports.certificate import write_atomically

    proved = [o.name for o in outcomes if o.status == "PROVED"]
    text, names, reasons = pairs_as_rules({name: claims.entries[name] for name in proved})
    if names:
        write_atomically(path, text)
        written.append(path)
    notes = {}
    for name, rule in names.items():
        command = shlex.join(["ilaverify", "rule", rule, "--module", str(path)])
        notes[name] = f"it is written as the rule {rule}; {command} says whether that is proved"
    notes |= {name: f"it is no rule on tensors: {reason}" for name, reason in reasons.items()}
    return [replace(o, notes=(*o.notes, notes[o.name])) if o.name in notes else o for o in outcomes]
