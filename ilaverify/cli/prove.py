"""The verb ``prove``: every claim, in parallel, with a proof store and reports for machines.

Exit codes: 0 all as expected, 1 something refuted that should hold, 2 something unproved or broken, 64 bad usage,
130 interrupted (what was proved is kept and reported).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ilaverify.errors import EXIT_INTERRUPTED, UsageError

from . import report as cli_report
from .arguments import add_cluster, cluster_of, count, megabytes, place, require_store, require_writable, seconds, seed
from .compile import targets_of
from .outcomes import RESULT_SCHEMA, chosen_entries, exit_code_of, name_width, outcome_json, print_json, show_outcome
from .progress import Line

if TYPE_CHECKING:
    from ilaverify.proving.cluster import Cluster
    from reports.outcomes import ProofOutcome
    from reports.store import ProofStore
    from reports.subjects import Entry

STATEMENT_FILE = "proofs.intoto.json"
"""The in-toto Statement over the certificates, in the directory of ``-o``."""


def add_parser(verbs: Any) -> None:
    """Adds the verb to the subparsers of the command line; ``options.run`` runs it."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "prove",
        help="prove mappings, rules, lemmas and theorems in parallel, with a proof store and reports",
        description="Proves claims, each in a process with limits of its own.  Wrong rules, and false claims that are "
        "kept as examples, must be refuted.",
        epilog="exit codes: 0 all as expected, 1 something refuted that should hold, 2 something unproved or broken, "
        "64 bad usage, 130 interrupted; with --mutants: 0 no mutant that differs is PROVED, 1 one is, 2 none differs",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="the claims")
    parser.add_argument("--all", action="store_true", help="every claim")
    parser.add_argument(
        "--target", metavar="NAME[,NAME...]", help="every claim that compiling for these accelerators may use"
    )
    parser.add_argument("--kind", action="append", choices=_KINDS, help="every claim of a kind; may be repeated")
    parser.add_argument(
        "-o", dest="directory", type=place, metavar="DIR", help="write certificates and a statement of them"
    )
    parser.add_argument("--jobs", type=count, default=os.cpu_count() or 1, metavar="N", help="default: processors")
    add_cluster(parser)
    parser.add_argument("--timeout", type=seconds, default=300.0, metavar="S", help="for each claim; default: 300")
    parser.add_argument("--memory", type=megabytes, default=4096, metavar="MB", help="for each process; default: 4096")
    parser.add_argument("--store", type=place, metavar="FILE", help="proof store; default: in the user's cache")
    parser.add_argument("--no-store", action="store_true", help="prove everything anew and keep nothing")
    parser.add_argument("--recheck", action="store_true", help="put stored proofs to both solvers again")
    parser.add_argument(
        "--mutants",
        type=count,
        metavar="N",
        help="instead: claims with one place changed, which must not be proved",
    )
    parser.add_argument("--seed", type=seed, metavar="S", help="of --mutants; default: 0")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    for name, what in _REPORTS.items():
        parser.add_argument(f"--{name}", type=place, metavar="FILE", help=f"write {what}")
    cli_report.add_inputs(parser)
    parser.set_defaults(run=_prove)


_KINDS = ("mapping", "joint", "rule", "lemma", "theorem")

_REPORTS = {
    "junit": "JUnit XML: a test case for each claim",
    "sarif": "SARIF 2.1.0: a result at each claim's source line",
    "markdown": "a summary for a pull request",
    "trust": "what each theorem rests on",
    "html": "one HTML page for people: what is proved, for which sizes, under which assumptions",
}


def _prove(options: argparse.Namespace) -> int:
    if options.mutants is not None:
        return _mutants(options)
    if options.seed is not None:
        raise UsageError("--seed draws mutants; give --mutants N as well, or leave --seed out")
    if options.recheck and options.no_store:
        raise UsageError("--recheck is about stored proofs, and --no-store uses none; leave one of them out")
    with cluster_of(options) as cluster:
        return _prove_on(cluster, options)


def _prove_on(cluster: Cluster | None, options: argparse.Namespace) -> int:
    from reports.store import ProofStore, default_store

    store = None if options.no_store else ProofStore(options.store or default_store())
    targets = () if options.target is None else targets_of(options.target)
    entries = chosen_entries(options.names, every=options.all, kinds=options.kind or (), targets=targets)
    _check_places(options)
    inputs = cli_report.read_inputs(options)
    failure: OSError | None = None
    written: list[Path] = []

    def keep(outcome: ProofOutcome) -> None:
        nonlocal failure
        if failure is not None:
            return
        try:
            write_outcome(outcome, options.directory, written)
        except OSError as error:
            failure = error  # proofs take long: the others are still made and shown

    from ilaverify.proving.workers import Limits

    limits = Limits(options.jobs, options.timeout, options.memory, cluster)
    outcomes, interrupted = run_entries(entries, limits, store, options, keep)
    try:
        if failure is None:
            write_reports(outcomes, options, written, inputs)
    except OSError as error:
        failure = error
    if options.json:
        print_json({"schema": RESULT_SCHEMA, "claims": [outcome_json(o) for o in outcomes]}, written)
    else:
        from ilaverify.text import show_written
        from reports.outcomes import tally

        print(show_written(written), end="")
        print(tally(outcomes))
    if failure is not None:
        raise failure
    return EXIT_INTERRUPTED if interrupted else exit_code_of(outcomes)


def _mutants(options: argparse.Namespace) -> int:
    from .campaigns.mutants import try_mutants

    if options.cluster is not None:
        raise UsageError("--mutants are tried on this machine; leave --cluster out")
    unused = (*_REPORTS, "store", "no_store", "recheck", "campaigns", "scaling")
    asked = [name.replace("_", "-") for name in unused if getattr(options, name)]
    if asked:
        raise UsageError(f"--mutants keeps no proofs and writes no reports; leave --{asked[0]} out")
    targets = () if options.target is None else targets_of(options.target)
    entries = chosen_entries(options.names, every=options.all, kinds=options.kind or (), targets=targets)
    return try_mutants(entries, options)


def _check_places(options: argparse.Namespace) -> None:
    """Refuses, before minutes of proving, places that cannot be written."""
    if options.directory is not None:
        require_writable("-o", options.directory, directory=True)
    if options.store is not None:
        if options.no_store:
            raise UsageError("--store and --no-store exclude each other; leave one of them out")
        require_store(options.store)
    for name in _REPORTS:
        path: Path | None = getattr(options, name)
        if path is not None:
            require_writable(f"--{name}", path)
    for name in ("campaigns", "scaling"):
        if getattr(options, name) is not None and options.html is None:
            raise UsageError(f"--{name} is shown on the HTML page; give --html FILE as well")


# -- running ------------------------------------------------------------------------------------------


def run_entries(
    entries: dict[str, Entry],
    limits: Any,
    store: ProofStore | None,
    options: argparse.Namespace,
    keep: Callable[[ProofOutcome], None],
) -> tuple[list[ProofOutcome], bool]:
    """Outcomes in the order of ``entries``, and whether the run was interrupted (by Ctrl-C or SIGTERM).

    ``keep`` gets each outcome as it comes.  It is shown then, too; steps of passes are shown in their order.
    """
    from ilaverify.proving.prove_all import prove_all
    from ilaverify.proving.workers import MachinesError
    from reports.outcomes import NOT_RUN, ProofOutcome

    progress = _Progress(list(entries))
    width = name_width(entries)
    done: dict[str, ProofOutcome] = {}
    notes: set[str] = set()
    interrupted, stopped_by = False, "the run was interrupted"
    asked: list[int] = []
    held: dict[str, ProofOutcome] = {}
    order = list(entries) if getattr(options, "passes", None) is not None else []

    def interrupt(number: int, _: FrameType | None) -> None:
        asked.append(number)
        # an exception raised here may be lost while Python cleans up; so the run polls a flag, and only the second
        # signal forces its way
        if len(asked) > 1:
            raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        run = prove_all(
            entries,
            limits=limits,
            store=store,
            recheck=options.recheck,
            started=progress.started,
            stopped=lambda: bool(asked),
        )
        with closing(run) as outcomes:
            for outcome in outcomes:
                done[outcome.name] = outcome
                progress.clear()
                keep(outcome)
                held[outcome.name] = outcome
                for shown in _due(held, order):
                    tell(shown, width, notes, options)
                progress.ended(outcome.name)
                if asked:
                    raise KeyboardInterrupt
    except (KeyboardInterrupt, MachinesError) as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        progress.clear()
        keeps = store is not None or options.directory is not None
        kept = "nothing was proved" if not done else f"what was proved is {'kept' if keeps else 'shown, and not kept'}"
        stopped_by = stopped_by if interrupted else str(error)
        print(f"ilaverify: {'interrupted' if interrupted else stopped_by}; {kept}", file=sys.stderr)
    finally:
        progress.clear()
        for number, handler in before.items():
            signal.signal(number, handler)
    for shown in _due(held, []):
        tell(shown, width, notes, options)
    for name, entry in entries.items():
        if name not in done:
            done[name] = ProofOutcome(name, NOT_RUN, entry.expected.value, entry.summary, stopped_by, kind=entry.kind)
    return [done[name] for name in entries], interrupted


def _due(held: dict[str, ProofOutcome], order: list[str]) -> Iterator[ProofOutcome]:
    """Takes out what is to be shown now: what comes next in the order, or all where there is none."""
    while held and (not order or order[0] in held):
        yield held.pop(order.pop(0) if order else next(iter(held)))


def tell(outcome: ProofOutcome, width: int, notes: set[str], options: argparse.Namespace) -> None:
    """Prints an outcome, and those of its notes that were not printed yet; they are added to ``notes``."""
    from rewrites.compiler.artefact.origins import printable

    for note in outcome.notes:
        if note not in notes:
            print(printable(f"ilaverify: {outcome.name}: {note}"), file=sys.stderr)
        notes.add(note)
    if not options.json:
        print(show_outcome(outcome, width), flush=True)


class _Progress(Line):
    """One line on a terminal: how many are done, and what runs."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.total, self.done = len(names), 0
        self.running: dict[str, float] = {}

    def started(self, name: str) -> None:
        self.running[name] = time.monotonic()
        self._draw()

    def ended(self, name: str) -> None:
        self.running.pop(name, None)
        self.done += 1
        self._draw()

    def _draw(self) -> None:
        text = f"{self.done}/{self.total} done; running: {', '.join(self.running)}"
        self.show(lambda: text[:100], often=True)


# -- what is written ----------------------------------------------------------------------------------


def write_outcome(outcome: ProofOutcome, directory: Path | None, written: list[Path]) -> None:
    """Writes the certificate of a proof, or what shows a counterexample; each path is added to ``written``.

    Without a directory only the run that a proof did not survive is written, to a temporary one.
    """
    from ilaverify.refutations import write_refutation
    from reports.certificate import certificate_name, write_atomically
    from reports.subjects import Refutation

    kept = outcome.document and (directory is not None or outcome.status == "ERROR")
    if kept and outcome.status in ("REFUTED", "ERROR"):
        refutation = Refutation(outcome.counterexample, outcome.document, outcome.program)
        written += write_refutation(refutation, outcome.name, directory)
    elif kept and outcome.status == "PROVED" and directory is not None:
        path = directory / certificate_name(outcome.name, outcome.method)
        write_atomically(path, outcome.document)
        written.append(path)


def write_reports(
    outcomes: list[ProofOutcome],
    options: argparse.Namespace,
    written: list[Path],
    inputs: cli_report.PageInputs | None = None,
) -> None:
    """Writes the reports over all claims that the options ask for; each path is added to ``written`` once it exists.

    ``inputs`` are shown on the HTML page beside the proofs.
    """
    from ilaverify.version import VERSION
    from reports.certificate import certificate_name, write_atomically
    from reports.formats.intoto import statement_text
    from reports.formats.junit import junit_text
    from reports.formats.sarif import sarif_text
    from reports.formats.summary import summary_text
    from reports.formats.trust import trust_report

    def put(path: Path, text: str) -> None:
        write_atomically(path, text)
        written.append(path)

    if options.directory is not None:
        certificates = {
            certificate_name(o.name, o.method): o.document for o in outcomes if o.document and o.status == "PROVED"
        }
        if certificates:
            put(options.directory / STATEMENT_FILE, statement_text(certificates, f"ilaverify {VERSION}"))
    reports: dict[str, Callable[[], str]] = {
        "junit": lambda: junit_text(outcomes),
        "sarif": lambda: sarif_text(outcomes, VERSION),
        "markdown": lambda: summary_text(outcomes),
        "trust": lambda: trust_report({o.name: o.trust for o in outcomes if o.trust and o.status != "REFUTED"}),
        "html": lambda: cli_report.page_of(outcomes, inputs or cli_report.PageInputs()),
    }
    for name, report in reports.items():
        path: Path | None = getattr(options, name)
        if path is not None:
            put(path, report())
