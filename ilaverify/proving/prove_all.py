"""Proving many claims: each one in a process of its own, with what was proved before taken from a store.

What runs in a claim's process is :func:`prove_entry`; it never writes the store.  :func:`prove_all` does, with the
text that the process left, so that a process that dies leaves nothing behind.  What solvers answered there is known in
the processes that are forked later, which ask each question once in a run.  On a cluster the process is one of
another machine; its proof counts once the certificate has been compared with the claim as it is here, and nothing that
solvers answered there is taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ila_lang.extensions import ExtensionError
from ilaverify.catalogue import find_entry
from ilaverify.identity import method_files, prover_identity, read_provers, sources_stamp
from reports.certificate import (
    CertificateError,
    certificate_of,
    certificate_text,
    claim_json,
    parse_certificate,
    questions_digest,
    written_by,
)
from reports.outcomes import ProofOutcome
from reports.store import CERTIFICATE, COUNTEREXAMPLE, ProofStore, StoreError, certificate_problems, key_of
from reports.subjects import Entry
from smt_encodings.answers import believe, told
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger

from .stored import QUESTION_SECONDS, LookedUp, base_outcome, look_up
from .workers import Ended, Limits, Task, begun, note, run_within


def prove_all(
    entries: Mapping[str, Entry],
    *,
    limits: Limits,
    store: ProofStore | None,
    recheck: bool = False,
    started: Callable[[str], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[ProofOutcome]:
    """The outcomes of all entries, as they come: first what the store holds, then what has to be proved.

    With ``recheck`` a stored certificate counts only after its obligations were generated and put to both solvers
    again.  Closing the iterator ends what still runs.  On a cluster, entries must be those of the catalogue; raises
    MachinesError.
    """
    looked_up: dict[str, LookedUp] = {}
    left = list(entries)
    keeper = None if store is None else _Keeper(store)  # before the files of provers are read
    remote = limits.cluster is not None
    if store is not None or remote:
        answers = look_up(entries, store, jobs=limits.jobs, recheck=limits.timeout if recheck else 0.0, stopped=stopped)
        with closing(answers):
            for answer in answers:
                if answer.outcome is not None:
                    yield answer.outcome
                else:
                    looked_up[answer.name] = answer
        left = [name for name in entries if name in looked_up]
    if len(left) > 1 and not remote:
        read_provers()  # here, and not in each claim's process
    if remote:
        tasks = [Task(name, partial(prove_named, name, limits.timeout)) for name in left]
    else:
        tasks = [Task(name, partial(prove_entry, name, entries[name], limits.timeout, tell=True)) for name in left]
    with closing(run_within(limits, tasks, started=started, stopped=stopped)) as ends:
        for end in ends:
            outcome, kept_as = _outcome_of(end, entries[end.name])
            if remote:
                outcome = _compared(outcome, kept_as, entries[end.name], looked_up[end.name])
            else:
                believe(kept_as.answers)
            if end.name in looked_up and looked_up[end.name].note:
                outcome = replace(outcome, notes=(looked_up[end.name].note, *outcome.notes))
            kept = outcome.document and outcome.status != Status.ERROR.value
            yield keeper.kept(kept_as, outcome) if keeper is not None and kept else outcome


@dataclass(frozen=True)
class _KeptAs:
    """The store's key of an answer, the digest of a proof's questions, and the files of the prover that gave it.

    ``answers`` are those of solvers, where the process was to tell them.
    """

    key: str = ""
    questions: str = ""
    files: tuple[str, ...] = ()
    answers: tuple[Any, ...] = ()


def _outcome_of(end: Ended, entry: Entry) -> tuple[ProofOutcome, _KeptAs]:
    """What a claim's process said, and how to keep it; a process that failed is an error of its claim."""
    if end.text is None:
        unbuilt = ProofOutcome(end.name, Status.ERROR.value, entry.expected.value, entry.summary, kind=entry.kind)
        known = ProofOutcome.from_text(end.begun) if end.begun else unbuilt
        return replace(known, reason=end.failure, seconds=round(end.seconds, 3)), _KeptAs()
    try:
        answer = json.loads(end.text)
        outcome = replace(ProofOutcome.from_json(answer["outcome"]), seconds=round(end.seconds, 3))
        return outcome, _KeptAs(answer["key"], answer["questions"], tuple(answer["files"]), tuple(answer["answers"]))
    except (TypeError, ValueError, KeyError) as error:  # it may come from another machine
        return _outcome_of(replace(end, text=None, failure=f"its answer cannot be read: {error}"), entry)


def _compared(outcome: ProofOutcome, kept_as: _KeptAs, entry: Entry, asked: LookedUp) -> ProofOutcome:
    """The outcome from another machine; an error where it is no answer to the claim as it is here."""
    if outcome.status == Status.ERROR.value:
        return outcome
    words = asked.words
    problem = "the claim could not be looked up here" if words is None else ""
    if words is not None and kept_as.key != asked.key:
        problem = "its key must be that of the claim"
    elif words is not None and outcome != replace(outcome, **{name: getattr(words, name) for name in _SAME}):
        problem = f"its {', '.join(_SAME)} must be those of the claim"
    elif words is not None and outcome.status == Status.PROVED.value:
        try:
            certificate = parse_certificate(outcome.document, Path("its certificate"))
            parameters = certificate["parameters"]
            # a mapping is built in a process of its own only; all proofs of it that are kept have the same words
            claim = words.claim if entry.kind == "mapping" else claim_json(entry.build().claim(parameters))
            known = {kept_as.questions}
            problems = certificate_problems(certificate, asked.semantics, claim or {}, words.method, parameters, known)
            problem = problems[0] if problems else ""
        except (CertificateError, ValueError) as error:
            problem = str(error)
    if not problem:
        return outcome
    base = words or ProofOutcome(asked.name, "", entry.expected.value, entry.summary, kind=entry.kind)
    return replace(base, status=Status.ERROR.value, reason=f"the answer of its worker was refused: {problem}")


_SAME = ("name", "expected", "kind", "method")
"""What an answer must have in common with the claim."""


class _Keeper:
    """Puts new answers into the store, while the files of their provers are those that the run began with."""

    def __init__(self, store: ProofStore) -> None:
        self.store, self.stamp = store, sources_stamp()

    def kept(self, kept_as: _KeptAs, outcome: ProofOutcome) -> ProofOutcome:
        """The outcome; where it cannot be kept, the proof stands and a note says so."""
        now = sources_stamp()
        if any(now.get(Path(file)) != self.stamp.get(Path(file)) for file in kept_as.files):
            note = "not put into the store: files of the prover changed while it ran"
            return replace(outcome, notes=(*outcome.notes, note))
        kind = CERTIFICATE if outcome.status == Status.PROVED.value else COUNTEREXAMPLE
        try:
            self.store.put(kept_as.key, kind, outcome.name, outcome.document, kept_as.questions)
        except StoreError as error:
            return replace(outcome, notes=(*outcome.notes, f"not put into the store: {error}"))
        return outcome


def prove_named(name: str, timeout: float) -> str:
    """As :func:`prove_entry`, of a claim of the catalogue."""
    return prove_entry(name, find_entry(name), timeout)


def _refused(outcome: ProofOutcome) -> str:
    broken = replace(outcome, refused=True)
    return json.dumps({"outcome": broken.to_json(), "key": "", "questions": "", "files": [], "answers": []})


def prove_entry(name: str, entry: Entry, timeout: float, *, tell: bool = False) -> str:
    """Proves one claim: JSON with the ``outcome``, and what :class:`_KeptAs` has; solvers' answers only to ``tell``."""
    try:
        subject = entry.build()
    except ExtensionError as error:
        broken = ProofOutcome(name, Status.ERROR.value, entry.expected.value, entry.summary, str(error))
        return _refused(replace(broken, kind=entry.kind))
    outcome = base_outcome(name, entry, subject)
    begun(outcome.to_text())
    prover = prover_identity(subject)
    key = key_of(subject, prover)
    asking = Discharger(timeout=min(QUESTION_SECONDS, timeout), asking=lambda o: note(f"{o.group}: {o.name}"))
    try:
        verdict = subject.prove(asking)
    except ExtensionError as error:
        return _refused(replace(outcome, status=Status.ERROR.value, reason=str(error)))
    outcome = replace(
        outcome,
        status=verdict.status.value,
        reason=verdict.reason,
        claim=claim_json(verdict.claim),
        trust=subject.trust(verdict.claim),
        obligations=len(verdict.obligations),
        runs=0 if verdict.runs is None else verdict.runs.count,
        solvers=tuple(sorted({a.solver for o in verdict.obligations for a in o.answers})),
    )
    questions = ""
    if verdict.status is Status.PROVED:
        parameters = subject.parameters(verdict)
        content = certificate_of(subject.semantics(), verdict, parameters, written_by(prover))
        outcome = replace(outcome, document=certificate_text(content))
        questions = questions_digest(content)
    refutation = subject.refutation(verdict)
    if verdict.status in (Status.REFUTED, Status.ERROR) and refutation is not None:
        outcome = replace(
            outcome,
            reason=refutation.summary if verdict.status is Status.REFUTED else verdict.reason,
            counterexample=refutation.summary,
            document=refutation.document,
            program=refutation.program,
            notes=refutation.notes,
            shown=refutation.shown,
        )
    files = [str(path) for path in method_files(subject)]
    answers = told() if tell else []
    return json.dumps(
        {"outcome": outcome.to_json(), "key": key, "questions": questions, "files": files, "answers": answers}
    )
