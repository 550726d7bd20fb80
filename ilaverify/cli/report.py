"""The verb ``report``: the HTML page of what the proof store holds, without proving anything; and the page of a run.

A claim counts as proved only where the store has a proof of it with the semantics, the words, the prover and the
solvers as they are now.  Everything else is shown as not proved with these semantics.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ila_lang.extensions import command_line
from ilaverify.errors import UsageError

from .arguments import place, require_writable, source
from .outcomes import RESULT_SCHEMA, chosen_entries, exit_code_of, name_width, outcome_json, print_json, show_outcome

if TYPE_CHECKING:
    from bmc.counterexample import Counterexample
    from bmc.unroll import Cell
    from ila_lang.mapping import TensorMapping
    from reports.html.claims import Comparison
    from reports.html.inputs import CampaignRecord, Scaling
    from reports.outcomes import ProofOutcome
    from reports.store import ProofStore
    from reports.subjects import Entry

FEW = 3
"""Up to this number of claims missing for one reason have lines of their own; more are only counted."""


def add_parser(verbs: Any) -> None:
    """Adds the verb to the subparsers of the command line; ``options.run`` runs it."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "report",
        help="write the HTML page of what the proof store holds, without proving",
        description="Writes one self-contained HTML page from the proof store.  Nothing is proved: a claim whose proof "
        "is missing, or is of other semantics, is shown as not proved.",
        epilog="exit codes, with the page written: 0 all as expected, 1 something refuted that should hold, "
        "2 something unproved or broken; 64 bad usage, and no page",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="the claims; default: all")
    parser.add_argument("-o", dest="page", type=place, metavar="FILE", required=True, help="the page")
    parser.add_argument("--store", type=source, metavar="FILE", help="proof store; default: in the user's cache")
    add_inputs(parser)
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.set_defaults(run=_report)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Adds the options that name what the page shows beside proofs; :func:`read_inputs` reads them."""
    parser.add_argument(
        "--campaigns", type=source, metavar="DIR", help="show campaigns of this directory on the HTML page"
    )
    parser.add_argument(
        "--scaling", type=source, metavar="FILE", help="show times against sizes (benchmarks.table3) on the HTML page"
    )


@dataclass(frozen=True)
class PageInputs:
    """What the page shows beside proofs."""

    campaigns: Sequence[CampaignRecord] = ()
    scaling: Scaling | None = None


def read_inputs(options: argparse.Namespace) -> PageInputs:
    """The files that the options name; raises UsageError where one cannot be shown."""
    from reports.html.inputs import InputError, read_campaigns, read_scaling

    try:
        return PageInputs(
            read_campaigns(options.campaigns) if options.campaigns is not None else (),
            read_scaling(options.scaling) if options.scaling is not None else None,
        )
    except InputError as error:
        raise UsageError(str(error)) from error


def _report(options: argparse.Namespace) -> int:
    entries = chosen_entries(options.names, every=not options.names)
    require_writable("-o", options.page)
    if options.store is not None and not options.store.is_file():
        raise UsageError(f"--store must name a proof store, not {options.store}; make one with ilaverify prove --store")
    inputs = read_inputs(options)

    from reports.certificate import write_atomically
    from reports.outcomes import NOT_RUN, tally
    from reports.store import ProofStore, StoreError, default_store

    store = ProofStore(options.store or default_store())
    try:
        outcomes = stored_outcomes(entries, store)
    except StoreError as error:
        raise UsageError(str(error)) from error
    source = "From the proof store; nothing was proved to write this page."
    write_atomically(options.page, page_of(outcomes, inputs, source))
    if options.json:
        print_json({"schema": RESULT_SCHEMA, "claims": [outcome_json(o) for o in outcomes]}, [options.page])
    else:
        alike = Counter((o.status, o.reason) for o in outcomes if o.status == NOT_RUN)
        width = name_width(o.name for o in outcomes)
        for outcome in outcomes:
            if alike[outcome.status, outcome.reason] <= FEW:
                print(show_outcome(outcome, width))
        for (status, reason), number in alike.items():
            if number > FEW:
                print(f"{status:<8} {number} claims: {reason}")
        print(f"written   {options.page}")
        print(tally(outcomes))
    return exit_code_of(outcomes)


# -- what the store holds -------------------------------------------------------------------------------


def stored_outcomes(entries: Mapping[str, Entry], store: ProofStore) -> list[ProofOutcome]:
    """What the store says of each claim, in the order of ``entries``.

    The status is NOT_RUN where it says nothing of the claim as it is now.  Raises StoreError where the store cannot be
    used.
    """
    from ilaverify.proving.stored import look_up
    from reports.outcomes import NOT_RUN, ProofOutcome

    known = Counter(subject for _, _, subject in store.entries())
    outcomes: dict[str, ProofOutcome] = {}
    with closing(look_up(entries, store)) as answers:
        for answer in answers:
            entry = entries[answer.name]
            missing = ProofOutcome(answer.name, NOT_RUN, entry.expected.value, entry.summary, kind=entry.kind)
            reason = _missing(answer.note, known[answer.name])
            outcomes[answer.name] = answer.outcome or replace(answer.words or missing, status=NOT_RUN, reason=reason)
    return [outcomes[name] for name in entries]


def _missing(problem: str, held: int) -> str:
    """Why a claim is not proved, for people."""
    prefix = "not proved with these semantics: "
    if problem:
        return prefix + problem
    if held:
        entries = "one answer" if held == 1 else f"{held} answers"
        return (
            f"{prefix}the store holds {entries} for other semantics, words, prover or solvers, and none for these; "
            f"prove the claim with {command_line('prove')}"
        )
    return prefix + f"the store holds nothing of this claim; prove it with {command_line('prove')}"


# -- the page -------------------------------------------------------------------------------------------


def page_of(outcomes: Sequence[ProofOutcome], inputs: PageInputs, source: str = "") -> str:
    """The HTML page of outcomes; counterexamples to mappings are run once more."""
    import platform
    from importlib.metadata import version

    from ilaverify.version import VERSION
    from reports.html.page import Beside, html_page
    from rewrites.claims.method import METHODS
    from smt_encodings.solvers import cvc5 as solver_cvc5
    from smt_encodings.solvers import z3 as solver_z3

    versions = {
        "ilaverify": VERSION,
        "z3": solver_z3.version().removeprefix("z3 "),
        "cvc5": solver_cvc5.version().removeprefix("cvc5 "),
        "pySMT": version("pysmt"),
        "Python": platform.python_version(),
    }
    beside = Beside(
        comparisons={o.name: _comparison(o) for o in outcomes if o.counterexample and o.kind == "mapping"},
        invariants={o.name: _invariants(o.document) for o in outcomes if o.status == "PROVED" and o.document},
        methods={method.name: (method.summary, method.unsaid) for method in METHODS.all().values()},
        campaigns=inputs.campaigns,
        scaling=inputs.scaling,
        source=source,
        versions=versions,
    )
    return html_page(outcomes, beside)


def _comparison(outcome: ProofOutcome) -> Comparison | str:
    """Both sides' outputs on the counterexample's data; or why there are none."""
    from bmc.counterexample import foreign
    from ilaverify.catalogue import mappings
    from rewrites.claims.counterexamples import counterexample_from_text

    known = mappings().get(outcome.name)
    if known is None:
        return "the catalogue has no mapping of that name"
    try:
        counterexample = counterexample_from_text(outcome.document)
    except ValueError as error:
        return f"its data cannot be read ({error})"
    if counterexample.error:
        return "one side does not accept its program"
    mapping = known.instantiate()
    if not mapping.holds(counterexample.sizes) or foreign(mapping, counterexample.initial) is not None:
        return "its sizes or cells are not those of the mapping as it is now"
    return _run(mapping, counterexample)


def _run(mapping: TensorMapping, counterexample: Counterexample) -> Comparison | str:
    """The outputs of a run from the counterexample's data, if it shows the same first difference."""
    from bmc.runner import Runner
    from bmc.unroll import owners
    from ila_lang import MemSort
    from reports.html.claims import Comparison

    run = Runner(mapping).run_from(counterexample.sizes, counterexample.initial)
    if run.error or not run.failed:
        return "a run of the mapping as it is now shows no difference"
    _, columns = mapping.output_extents(counterexample.sizes)
    pairs = list(zip(run.device, run.ir, strict=True))
    first = next(place for place, (device, ir) in enumerate(pairs) if device != ir)
    if (*divmod(first, columns), *pairs[first]) != (
        counterexample.row,
        counterexample.column,
        counterexample.device,
        counterexample.ir,
    ):
        return "a run of the mapping as it is now shows another difference"
    sort = mapping.device.tensor(mapping.output[0]).sort
    assert isinstance(sort, MemSort)
    digits = -(-sort.data_width // 4)

    def code(value: int) -> str:
        return f"0x{value:0{digits}x}"

    own = {cell for side in ("device", "ir") for named in owners(mapping, side) for cell in named.values()}
    called = Counter(cell.owner for cell in own)

    def name(cell: Cell) -> str:
        plain = cell.owner if called[cell.owner] == 1 else f"{cell.side} {cell.owner}"
        return plain if cell.address is None else f"{plain}[{cell.address}]"

    cells = tuple((name(cell), hex(value)) for cell, value in counterexample.initial.items())
    return Comparison(columns, tuple(map(code, run.device)), tuple(map(code, run.ir)), cells)


_PARAMETER = re.compile(r"\(([^\s()]+) (Int|Bool)\)")
"""A bound variable of a level's Horn clauses, with its sort."""


def _invariants(document: str) -> dict[str, list[str]]:
    """Readable lines of a certificate's invariants, by loop level; levels that cannot be read are left out.

    (They are then shown as they stand in the certificate.)
    """
    import pysmt.shortcuts as smt
    from pysmt.environment import pop_env, push_env
    from pysmt.exceptions import PysmtException

    from chc.mapping.horn.invariants import parse_term, show_invariant
    from reports.certificate import CertificateError, parse_certificate

    try:
        levels: Mapping[str, Any] = parse_certificate(document, Path("certificate"))["invariants"]
    except CertificateError:
        return {}  # the page itself says what is wrong with it
    shown: dict[str, list[str]] = {}
    for name, level in levels.items():
        push_env()  # names of one level are symbols of one sort; another level's may have another
        try:
            sorts = dict(_PARAMETER.findall(level["horn"]))
            symbols = {n: smt.Symbol(n, smt.BOOL if sort == "Bool" else smt.INT) for n, sort in sorts.items()}
            conjuncts = tuple(parse_term(text, symbols) for text in level["invariant"])
            shown[name] = show_invariant(conjuncts, level["names"])
        except PysmtException as error:
            print(f"ilaverify: invariant of {name} is shown as SMT-LIB text: {error}", file=sys.stderr)
        finally:
            pop_env()
    return shown
