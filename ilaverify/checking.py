"""Checking a file: a certificate, the data of a counterexample, or a compiled model."""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ila_lang.extensions import command_line

from .errors import UsageError, require_proofs

if TYPE_CHECKING:
    from reports.subjects import Entry
    from smt_encodings.claims import Runs

SOLVERS = ("cvc5", "z3")


@dataclass
class Checked:
    """The result of checking a file.

    It is accepted where something was checked and nothing is wrong or undecided.  ``problems`` say what is wrong,
    ``undecided`` which questions got no answer, or that the claim is not known here, ``replays`` what was done, and
    ``trusted`` what other packages and declarations are relied on. ``claim`` is the certificate's.
    """

    file: str
    replays: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    claim: Mapping[str, Any] | None = None
    trusted: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        """Whether everything was checked, and is right."""
        return bool(self.replays) and not self.problems and not self.undecided

    @property
    def verdict(self) -> str:
        """ACCEPTED, REJECTED (something is wrong) or UNDECIDED (nothing is known)."""
        return "ACCEPTED" if self.accepted else "REJECTED" if self.problems else "UNDECIDED"

    def as_json(self) -> dict[str, Any]:
        """The same as JSON."""
        parts = {name: value for name, value in asdict(self).items() if value is not None}
        return {**parts, "accepted": self.accepted, "verdict": self.verdict}


def files_in(directory: Path) -> list[Path]:
    """The certificates and the data of counterexamples in a directory; raises UsageError where there are none."""
    from .refutations import is_counterexample

    files = [p for p in sorted(directory.glob("*.json")) if p.name.endswith(".cert.json") or is_counterexample(p)]
    if not files:
        raise UsageError(
            f"{directory} must hold certificates (*.cert.json) or data of counterexamples "
            "(*.counterexample-data.json), and it holds none"
        )
    return files


def require_readable(path: Path) -> None:
    """Raises UsageError where a file cannot be read, or is the program of a counterexample and not its data."""
    from ila_lang.text.files import FileRefused, read_at_most
    from reports.certificate import MOST_BYTES

    from .refutations import data_of_program

    data = data_of_program(path)
    if data is not None:
        raise UsageError(
            f"{path} is the program of a counterexample, which {command_line('simulate', 'MODEL', path)} runs; "
            f"to replay the counterexample: {command_line('check', data)}"
        )
    if path.is_fifo():
        return  # it can be read once
    try:
        read_at_most(path, "a certificate", MOST_BYTES)
    except FileRefused as error:
        raise UsageError(str(error)) from error


def check_model(path: Path, proofs: Path) -> tuple[Checked, list[Path]]:
    """The result for a compiled model, and the files of the certificates that it rests on, which must be checked, too.

    Raises UsageError where ``proofs`` is no directory, or a package is missing that the model names or needs.
    """
    from reports.certificate import certificate_name
    from rewrites.compiler.artefact.checking import check_compiled
    from rewrites.compiler.artefact.errors import ArtefactError, NotInstalled
    from rewrites.compiler.artefact.model import read_compiled
    from rewrites.compiler.artefact.sources.front_end import FRONT_ENDS
    from rewrites.compiler.codegen import declared
    from rewrites.targets.target import TARGETS

    from .catalogue import all_entries, backends

    require_proofs(proofs)
    result = Checked(str(path))
    try:
        compiled = read_compiled(path, backends())
    except NotInstalled as error:
        raise UsageError(str(error)) from error
    except ArtefactError as error:
        result.problems.append(str(error))
        return result, []
    guests = {
        f"front end {compiled.model.front_end}": FRONT_ENDS.guest(compiled.model.front_end),
        **{f"target {name}": TARGETS.guest(name) for name in compiled.targets},
    }
    result.trusted += [
        f"{what} is of {guest}, and trusted for what it means" for what, guest in guests.items() if guest
    ]
    result.trusted += [
        f"{what} is declared, not proved: {reason}"
        for what, reason in declared(compiled.implementations.values()).items()
    ]
    entries = all_entries()
    try:
        for check in check_compiled(compiled, entries, proofs):
            if check.problems:
                result.problems += [f"{check.what}: {problem}" for problem in check.problems]
            else:
                result.replays.append(f"{check.what}: {check.summary}")
    except ImportError as error:
        raise UsageError(
            f"to check a compiled model needs the package {error.name}, which is not installed; "
            "pip install ilaverify[onnx]"
        ) from error
    known = {name: entries[name].build() for name in compiled.proof.certificates if name in entries}
    files = [proofs / certificate_name(name, subject.method) for name, subject in known.items()]
    return result, [file for file in files if file.exists()]


def check_file(
    path: Path,
    solvers: Sequence[str] = SOLVERS,
    timeout: float = 60.0,
    answered: MutableMapping[str, str] | None = None,
) -> Checked:
    """The result for a certificate, or for the data of a counterexample.

    ``solvers`` are some of SOLVERS, and ``timeout`` is in seconds for each obligation.  ``answered`` has answers that
    solvers gave to the same questions in this run, and gets new ones.
    """
    from ila_lang.text.files import FileRefused
    from reports.binding import binding_problems
    from reports.certificate import AGAIN, CertificateError, read_certificate
    from reports.checker import replay
    from rewrites.claims.method import METHODS
    from smt_encodings.claims import Status

    from .catalogue import OWN_CLAIM
    from .refutations import is_counterexample, replayed_file

    if isinstance(solvers, str) or not solvers or not set(solvers) <= set(SOLVERS):
        raise UsageError(f"solvers must be one or more of {', '.join(SOLVERS)}, not {solvers!r:.60}")
    result = Checked(str(path))
    if is_counterexample(path):
        try:
            replayed = replayed_file(path)
        except UsageError as error:
            result.undecided.append(str(error))
            return result
        if isinstance(replayed, str):
            result.problems.append(replayed)
        else:
            document = json.loads(replayed.document)
            name = document.get("subject", document.get("mapping"))
            result.replays.append(f"{name}: the sides differ, replayed: {replayed.summary}")
            if replayed.shown is not None:  # of two programs, which the document has in it
                reading = "; ".join(replayed.shown["reading"]) or "the usual one"
                result.replays.append(f"it is of {replayed.shown['programs']}; the reading is: {reading}")
        return result
    try:
        certificate = read_certificate(path)
        entry = _entry(certificate)
        subject = entry.build()
    except FileRefused as error:
        result.undecided.append(str(error))
        return result
    except CertificateError as error:
        advice = "" if AGAIN in str(error) else f"; {AGAIN} to have a certificate that is intact"
        result.problems.append(f"{error}{advice}")
        return result
    except UsageError as error:  # its claim is not known here
        result.undecided.append(f"{error}; {OWN_CLAIM}")
        return result
    result.claim = certificate["claim"]
    result.problems += binding_problems(certificate, subject)
    if entry.expected is Status.REFUTED:
        result.problems.append(f"{subject.name} is known to be false, so that this is no proof of it")
    if not result.problems:
        method = str(certificate["method"])
        guest = METHODS.guest(method) if subject.kind == "mapping" else ""
        if guest:
            result.trusted.append(f"method {method} of {guest} says what must be proved, and is trusted for that")
        for enumeration in certificate["enumerations"]:
            result.replays.append(f"{enumeration['name']}: run again on {enumeration['arguments']:,} arguments")
        for name in solvers if certificate["obligations"] else ():
            outcome = replay(certificate, name, timeout, {} if answered is None else answered)
            right = outcome.obligations - len(outcome.problems)
            result.replays.append(
                f"{outcome.solver}: {right} of {outcome.obligations} obligations hold "
                f"({outcome.asked} asked, each text once in a run), {outcome.seconds:.1f} s"
            )
            result.problems += outcome.wrong
            result.undecided += outcome.undecided
        _check_runs(certificate["runs"], subject.survey(), result)
    return result


def _entry(certificate: Mapping[str, Any]) -> Entry:
    """The claim of a certificate: one of the catalogue, or that of the programs in it."""
    from reports.certificate import CertificateError
    from reports.subjects import Entry
    from rewrites.claims.subjects.translation import TranslationSubject

    from .catalogue import find_entry

    if certificate["method"] != TranslationSubject.method:
        return find_entry(str(certificate["claim"].get("subject")))
    try:
        subject = TranslationSubject.of_certificate(certificate)
        _ = subject.pair.functions
    except ValueError as error:
        raise CertificateError(f"its programs cannot be read: {error}") from error
    return Entry("", lambda: subject, subject.kind)


def _check_runs(runs: Mapping[str, Any], again: Runs | None, result: Checked) -> None:
    """Compares the runs that a proof survived with those that were made ``again``, where there are such."""
    from reports.certificate import runs_json
    from reports.outcomes import counted

    points = f" at {counted(len(runs['at']), 'point')}" if runs["at"] else ""
    survived, aside = f"survived {counted(runs['count'], 'concrete run')}{points}", "; check does not repeat them"
    if not runs["count"]:
        survived, aside = f"saw no concrete run: {'; '.join(runs['notes'])}", ""
    if again is None:
        result.replays.append(f"it says that its proof {survived}{aside}")
    elif again.difference is not None:
        result.problems.append(f"the claim does not survive concrete runs: {again.shown or again.difference}")
    elif runs_json(again) != runs:
        result.problems.append("its concrete runs are not those that its claim survives now; prove the claim again")
    else:
        result.replays.append(f"it {survived}, made again")
