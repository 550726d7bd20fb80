"""The gate: a compiler may use a rule or a mapping only with a certificate that is present, intact and current.

The gate takes certificates, not flags.  For each claim it reads the file ``NAME.METHOD.cert.json`` of a directory, as
``ilaverify prove -o`` writes it, and admits the claim only if the file

* is an intact certificate (canonical, of the published form, with its own digest);
* is of this claim, word for word, with the digests of everything that the words mean now;
* has the expected answer of two solvers to every obligation, or ran a function on every argument;
* names the prover in use as its tool, with the code of its method, where the caller says which that is: what a prover
  with a fault wrote does not outlive the fault;
* asks what a proof of the claim asked that the store knows, where the caller has a store that knows one.

Everything else is left out, with the reason.  A claim that is known to be wrong is left out whatever file there is.

This asks no solver, so that it costs milliseconds.  It finds what is missing, damaged or stale, and where the store
knows a proof, what has other obligations.  Somebody who forges a certificate with all its digests, of a claim that was
never proved here, is found by ``recheck``, which generates the obligations again and has them answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ila_lang.extensions import command_line
from reports.binding import binding_problems
from reports.certificate import CertificateError, certificate_name, claim_json, read_certificate, written_by
from reports.checker import replay
from reports.store import ProofStore, certificate_problems, key_of
from reports.subjects import Entry, Subject
from smt_encodings.claims import Claim, Status

Recheck = Iterable[str]
"""Solvers that answer all obligations again, such as ``("cvc5",)``; none by default."""


@dataclass(frozen=True)
class Admission:
    """A claim that may be used: the claim in full, and digest and parameters of the certificate that it rests on."""

    name: str
    subject: Subject
    digest: str
    claim: Claim
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Gate:
    """What passed the gate, and why everything else was left out; both by name, in the order of the claims."""

    admitted: Mapping[str, Admission]
    left_out: Mapping[str, str]

    def lines(self) -> list[str]:
        """What was left out, for people, a line each; and how many claims were admitted."""
        lines = [f"left out: {name}: {reason}" for name, reason in self.left_out.items()]
        return [*lines, f"{len(self.admitted)} admitted, {len(self.left_out)} left out"]


def open_gate(
    entries: Mapping[str, Entry],
    directory: Path,
    recheck: Recheck = (),
    *,
    prover: Callable[[Subject], Mapping[str, str]] | None = None,
    store: ProofStore | None = None,
    looking: Callable[[str], None] = lambda name: None,
) -> Gate:
    """Admits those of ``entries`` that have a live certificate in ``directory``.

    ``prover`` gives the identity of the prover in use, which certificates must be of; None admits those of all provers.
    ``store`` is asked what proofs of a claim by that prover asked.  With solvers in ``recheck`` the obligations of each
    certificate are compared with those that its claim needs, and answered again; it does not matter then who wrote it.
    ``looking`` is told the name of each claim before it is looked at.
    Raises KeyError for a solver that is not known, and StoreError as the store does.
    """
    admitted: dict[str, Admission] = {}
    left_out: dict[str, str] = {}
    for name, entry in entries.items():
        looking(name)
        admission = _admission(name, entry, directory, tuple(recheck), None if recheck else prover, store)
        if isinstance(admission, str):
            left_out[name] = admission
        else:
            admitted[name] = admission
    return Gate(admitted, left_out)


def _admission(
    name: str,
    entry: Entry,
    directory: Path,
    recheck: tuple[str, ...],
    prover: Callable[[Subject], Mapping[str, str]] | None,
    store: ProofStore | None,
) -> Admission | str:
    """The admission of a claim, or why there is none."""
    if entry.expected is not Status.PROVED:
        return "it is known to be wrong"
    subject = entry.build()
    path = directory / certificate_name(name, subject.method)
    if not path.exists():
        return f"there is no certificate ({path.name}); prove it with {command_line('prove', name, '-o', directory)}"
    try:
        certificate = read_certificate(path)
        claim = subject.claim(certificate["parameters"])
    except (CertificateError, ValueError) as error:
        return str(error)
    semantics, questions = subject.semantics(), frozenset[str]()
    problems = []
    if prover is not None:
        identity = prover(subject)
        tool = written_by(identity)
        if certificate["tool"] != tool:
            problems = [
                f"it is of another prover ({certificate['tool']}, not {tool}); prove it again, or use --recheck"
            ]
        if store is not None:
            questions = store.questions(key_of(subject, identity, semantics))
    problems = problems or certificate_problems(
        certificate, semantics, claim_json(claim), subject.method, certificate["parameters"], questions
    )
    if not problems and recheck:
        problems = binding_problems(certificate, subject)
        for solver in recheck if not problems else ():
            problems += replay(certificate, solver).problems
    if problems:
        return f"its certificate does not count: {problems[0]}"
    return Admission(name, subject, str(certificate["digest"]), claim, certificate["parameters"])
