"""What the HTML page says of one claim: its verdict with all that belongs to it, in words for newcomers.

Nothing is PROVED here because a record says so: the word is kept only where the record carries an intact certificate of
the same claim, in which two solvers gave every obligation's expected answer.  REFUTED is kept only with a
counterexample.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from reports.certificate import CertificateError, parse_certificate
from reports.outcomes import NOT_RUN, ProofOutcome
from reports.store import certificate_problems

VERDICTS: Mapping[str, tuple[str, str]] = {
    "PROVED": (
        "Holds for all sizes in the claim's size domain, all inputs and all initial states: every obligation got its "
        "expected answer from two independent solvers.",
        "that the models are right, or anything beyond the claim's words",
    ),
    "REFUTED": (
        "False: there is a concrete input on which the two sides differ, and running both showed the difference again.",
        "that other sizes or other inputs differ, too",
    ),
    "UNKNOWN": ("Neither proved nor refuted; the reason is given.", "that the claim is wrong, or that it is right"),
    "VACUOUS": (
        "No size satisfies the claim's precondition, or the source is never defined: the claim says nothing.",
        "anything about the programs",
    ),
    "ERROR": ("The attempt itself failed, or its proof is not intact.", "anything at all about the claim"),
    NOT_RUN: (
        "There is no answer: no proof was made, or none with these semantics.",
        "anything at all about the claim",
    ),
}
"""The verdicts that the page counts: what each one says, and what it does not say."""

MOST_OBLIGATIONS = 300
"""The most obligations of a claim that are listed one by one; the certificate has all."""

MOST_INPUTS = 16
"""The most input elements and registers of a counterexample that are listed."""

MOST_PARAMETER = 300
"""The most characters of a parameter that are shown; those of translations are whole programs."""

MOST_PROGRAM = 20_000
"""The most characters of a counterexample's device program that are shown."""

WINDOW_ROWS, WINDOW_COLUMNS = 8, 8
"""The part of the output tensors that is shown of a counterexample; eight columns fit a phone."""

METHODS: Mapping[str, tuple[str, str]] = {
    "rule": (
        "a rewrite rule on scalars, as a formula over all values of its variables",
        "anything about other number formats than those above",
    ),
    "tensor": (
        "a rewrite rule on tensors, for every size: one arbitrary element of the result stands for all",
        "anything about sizes outside the size domain above",
    ),
    "lemma": (
        "a statement on numbers, as a formula over all values of its variables",
        "anything about other numbers than those above",
    ),
    "enumeration": (
        "a function run on every argument, compared with exact numbers; no solver is involved",
        "anything about other arguments than those above",
    ),
    "bound": (
        "a derivation that a kernel replays, from lemmas and laws on real numbers that solvers prove",
        "anything about inputs as they were before they were quantised, or about expected errors",
    ),
    "refinement": (
        "a function of MLIR and what it was translated to: one arbitrary element of each result stands for all",
        "that the pass which made the one of the other is right for other programs",
    ),
    "token order": (
        "an inductive invariant of all schedules of the accelerator's modules",
        "anything about programs that the claim does not name",
    ),
}
"""How other claims than mappings are proved: what each method does, and what a proof by it does not say."""
_OTHER_METHOD = ("a method of this version of the prover", "anything about sizes other than those above")

EQUALITIES: Mapping[str, tuple[str, str]] = {
    "bit_exact": (
        "both sides leave the same bits in every element of the output",
        "that results are close to the operator on real numbers: equal codes say nothing about rounding",
    ),
    "over_reals": (
        "both sides are equal as real numbers, as if nothing were rounded",
        "that the bits are equal: rounding is left out",
    ),
    "up_to_reduction_order": (
        "both sides add the same summands; the order may differ",
        "that the bits are equal: rounding depends on the order of a sum",
    ),
    "refines": (
        "wherever the source's behaviour is defined, the target's is, and values that the source defines are the same",
        "that the target is undefined where the source is, or that other programs keep their meaning",
    ),
    "within": (
        "both sides differ by no more than the stated bound",
        "that the bits are equal, or that the bound is the smallest one",
    ),
}
"""Equality notions, by the beginning of their words in claims: what each means, and what it does not say."""
_OTHER_EQUALITY = ("in the sense that the claim's words define", "equality in any other sense")

INTERPRETATIONS: Mapping[str, tuple[str, str]] = {
    "uninterpreted": (
        "operations on data are symbols; the result holds for all operations that satisfy the lemmas",
        "that other operations have the laws by which sums are put into another order, or padding is left out",
    ),
    "bits": ("operations on data are their closed forms, bit by bit", ""),
    "reals": ("data are real numbers", "that rounded or bounded numbers behave like real ones"),
    "integers": ("data are integers without bound", "that integers which wrap or saturate behave like these"),
    "abstract_float": (
        "data are floats of which order, signs and special values are exact, and a few laws are known",
        "",
    ),
    "ieee": (
        "data are IEEE 754 floats, with the solvers' arithmetic",
        "that hardware which deviates from IEEE 754 agrees",
    ),
}
"""Data interpretations: what each means, and (where there is something) what it does not say."""
_OTHER_INTERPRETATION = ("a data interpretation of this version of the prover", "")

_PROGRAMS = "that what follows (other passes, a chip) keeps it: two programs are compared, nothing else"
_MODELS = (
    "that an accelerator's chip or RTL, or a compiler's IR, behaves like the model of it: two models are compared, "
    "nothing else"
)
_TIME = "anything about run time, or about uses that break the assumptions"


@dataclass(frozen=True)
class Comparison:
    """Both sides' outputs of a counterexample's run, row-major, as texts of codes.

    ``inputs`` are the cells of the data (name and code) that are not zero or at their reset value.
    """

    columns: int
    device: tuple[str, ...]
    ir: tuple[str, ...]
    inputs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Window:
    """A part of both output tensors around the first differing element, with indices of its rows and columns.

    ``part`` says in words which part it is, ``differing`` how many elements differ in all.
    ``sides`` are the device's and the IR's rows; a cell is its text and a mark: ``first``, ``differs`` or empty.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    part: str
    differing: int
    sides: tuple[tuple[str, tuple[tuple[tuple[str, str], ...], ...]], ...]
    inputs: tuple[tuple[str, str], ...]
    more_inputs: int


@dataclass(frozen=True)
class ObligationGroup:
    """Obligations of one purpose: their number, and the seconds of each solver, per obligation and in all."""

    name: str
    meaning: str
    count: int
    seconds: tuple[float | None, ...]
    obligations: tuple[tuple[str, str, tuple[float | None, ...]], ...]


@dataclass(frozen=True)
class InvariantView:
    """The invariant of one loop level, line by line, and how it was found."""

    level: str
    found_by: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class CertificateView:
    """An intact certificate's ``content``, and what else the page shows of it; ``sha256`` is of the file's text."""

    content: Mapping[str, Any]
    sha256: str
    solvers: tuple[str, ...]
    unlisted: int
    groups: tuple[ObligationGroup, ...]
    invariants: tuple[InvariantView, ...]
    lemmas: tuple[tuple[str, str], ...]
    parameters: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ClaimView:
    """Everything that the page shows of one claim; ``anchor`` is unique on the page and fit for an address."""

    anchor: str
    outcome: ProofOutcome
    verdict: str
    as_expected: bool
    reason: str
    statement: str
    size_domain: str
    compared: str
    equality: tuple[str, str]
    data: tuple[tuple[str, str], ...]
    method: tuple[str, str]
    assumptions: tuple[str, ...]
    not_said: tuple[str, ...]
    certificate: CertificateView | None
    window: Window | None
    unseen: str
    program: str
    program_cut: bool

    @property
    def proved(self) -> bool:
        """Whether the page says PROVED."""
        return self.verdict == "PROVED"


def claim_view(
    outcome: ProofOutcome,
    anchor: str,
    comparison: Comparison | str | None = None,
    invariants: Mapping[str, Sequence[str]] | None = None,
    methods: Mapping[str, tuple[str, str]] | None = None,
) -> ClaimView:
    """The view of one outcome.

    ``comparison`` are a counterexample's outputs, or why they cannot be shown; ``invariants`` are readable lines by
    loop level, in place of the certificate's SMT-LIB terms; ``methods`` are those of mappings, in words as in METHODS.
    """
    verdict, reason, certificate = outcome.status, outcome.reason, None
    if verdict == "PROVED":
        try:
            certificate = _certificate(outcome, invariants or {})
        except CertificateError as error:
            verdict, reason = "ERROR", f"It was said to be PROVED, but it has no intact certificate: {error}"
    elif verdict == "REFUTED" and not (outcome.counterexample and outcome.document):
        verdict, reason = "ERROR", "It was said to be REFUTED, but it has no counterexample"
    elif verdict not in VERDICTS:
        verdict, reason = "ERROR", f"The record must have a verdict, not '{outcome.status}'"
    claim: Mapping[str, Any] = outcome.claim or {}
    equality = str(claim.get("equality", ""))
    known = next((words for name, words in EQUALITIES.items() if equality.startswith(name)), _OTHER_EQUALITY)
    known_methods = (methods or {}) if outcome.kind == "mapping" else METHODS
    method = known_methods.get(outcome.method, _OTHER_METHOD)
    about = _PROGRAMS if outcome.kind == "translation" else _MODELS
    data = [(name, INTERPRETATIONS.get(name, _OTHER_INTERPRETATION)) for name in claim.get("interpretations", ())]
    window = window_of(comparison) if isinstance(comparison, Comparison) else None
    return ClaimView(
        anchor=anchor,
        outcome=outcome,
        verdict=verdict,
        as_expected=outcome.as_expected and verdict == outcome.status,
        reason=reason,
        statement=str(claim.get("statement", outcome.summary)),
        size_domain=str(claim.get("size_domain", "")),
        compared=str(claim.get("compared", "")),
        equality=(equality, known[0]) if equality else ("", ""),
        data=tuple((str(name), meaning) for name, (meaning, _) in data),
        method=(outcome.method, method[0]),
        assumptions=tuple(map(str, claim.get("assumptions", ()))),
        not_said=(
            (method[1], known[1], *(text for _, (_, text) in data if text), about, _TIME)
            if verdict == "PROVED"
            else (VERDICTS[verdict][1],)
        ),
        certificate=certificate,
        window=window,
        unseen=comparison if isinstance(comparison, str) else "",
        program=outcome.program[:MOST_PROGRAM],
        program_cut=len(outcome.program) > MOST_PROGRAM,
    )


# -- certificates ---------------------------------------------------------------------------------------


def _certificate(outcome: ProofOutcome, invariants: Mapping[str, Sequence[str]]) -> CertificateView:
    """The certificate of a proof; raises CertificateError where it is missing or not one of this claim."""
    if not outcome.document:
        raise CertificateError("there is none")
    content = parse_certificate(outcome.document, Path(outcome.name))
    problems = certificate_problems(
        content, content["semantics"], outcome.claim or {}, outcome.method, content["parameters"]
    )
    if problems:
        raise CertificateError(problems[0])
    obligations = content["obligations"]
    solvers = sorted({answer["solver"] for o in obligations for answer in o["answers"]}, reverse=True)
    return CertificateView(
        content=content,
        sha256=hashlib.sha256(outcome.document.encode("ascii")).hexdigest(),
        solvers=tuple(solvers),
        unlisted=max(0, len(obligations) - MOST_OBLIGATIONS),
        groups=tuple(_groups(obligations, solvers)),
        invariants=tuple(
            InvariantView(name, level["found_by"], tuple(invariants.get(name, level["invariant"])))
            for name, level in content["invariants"].items()
        ),
        lemmas=tuple((o["name"], o["meaning"]) for o in obligations if o["group"] == "lemmas"),
        parameters=tuple(
            (name, _cut(json.dumps(value)))
            for name, value in content["parameters"].items()
            if outcome.kind != "translation"  # the programs, and answers that only a checker reads
        ),
    )


def _cut(text: str) -> str:
    return text if len(text) <= MOST_PARAMETER else f"{text[:MOST_PARAMETER]} ..., {len(text):,} characters"


def _groups(obligations: list[dict[str, Any]], solvers: Sequence[str]) -> Iterator[ObligationGroup]:
    """The obligations by group, in the order of the proof; the first MOST_OBLIGATIONS of them one by one."""
    left = MOST_OBLIGATIONS
    order = {o["group"]: number for number, o in reversed(list(enumerate(obligations)))}
    for name, group in groupby(sorted(obligations, key=lambda o: order[o["group"]]), lambda o: o["group"]):
        members = list(group)
        times = [_seconds(o, solvers) for o in members]
        meanings = list(dict.fromkeys(o["meaning"] for o in members))
        listed = list(zip(members, times, strict=True))[:left]
        left -= len(listed)
        yield ObligationGroup(
            name,
            meanings[0] if len(meanings) == 1 else "",
            len(members),
            tuple(_total(column) for column in zip(*times, strict=True)),
            tuple((o["name"], o["expected"], seconds) for o, seconds in listed),
        )


def _seconds(obligation: Mapping[str, Any], solvers: Sequence[str]) -> tuple[float | None, ...]:
    """The time of each solver, None where it was not asked."""
    times = {answer["solver"]: float(answer["seconds"]) for answer in obligation["answers"]}
    return tuple(times.get(solver) for solver in solvers)


def _total(column: Sequence[float | None]) -> float | None:
    known = [seconds for seconds in column if seconds is not None]
    return sum(known) if known else None


# -- counterexamples ------------------------------------------------------------------------------------


def window_of(comparison: Comparison) -> Window | None:
    """The part of the outputs around the first differing element, None where the outputs are equal.

    Raises ValueError where the outputs are no tensors of one shape.
    """
    device, ir, width = comparison.device, comparison.ir, comparison.columns
    if len(device) != len(ir) or width < 1 or len(ir) % width:
        raise ValueError(
            f"Outputs of both sides must be tensors of {width} columns, not {len(device)} and {len(ir)} elements"
        )
    differing = [i for i, (a, b) in enumerate(zip(device, ir, strict=True)) if a != b]
    if not differing:
        return None
    first, different = differing[0], set(differing)
    rows = _span(first // width, len(ir) // width, WINDOW_ROWS)
    columns = _span(first % width, width, WINDOW_COLUMNS)

    def cell(values: Sequence[str], index: int) -> tuple[str, str]:
        return values[index], "first" if index == first else "differs" if index in different else ""

    return Window(
        tuple(rows),
        tuple(columns),
        f"{_part('row', rows, len(ir) // width)}, {_part('column', columns, width)}",
        len(differing),
        tuple(
            (name, tuple(tuple(cell(values, row * width + column) for column in columns) for row in rows))
            for name, values in (("device", device), ("IR", ir))
        ),
        comparison.inputs[:MOST_INPUTS],
        max(0, len(comparison.inputs) - MOST_INPUTS),
    )


def _span(index: int, extent: int, most: int) -> range:
    """At most ``most`` indices below ``extent``, among them ``index`` and those before it.

    >>> _span(7, 16, 8), _span(0, 3, 8), _span(63, 64, 8)
    (range(4, 12), range(0, 3), range(56, 64))
    """
    start = max(0, min(index - most // 2 + 1, extent - most))
    return range(start, min(extent, start + most))


def _part(word: str, shown: range, extent: int) -> str:
    """Which rows or columns are shown, in words.

    >>> _part("row", range(1), 1), _part("row", range(2), 2), _part("column", range(4, 12), 16)
    ('the only row', 'all 2 rows', 'columns 4 to 11 of 16')
    """
    if len(shown) == extent:
        return f"the only {word}" if extent == 1 else f"all {extent} {word}s"
    return f"{word}s {shown[0]} to {shown[-1]} of {extent}"
