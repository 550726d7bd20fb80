"""What the proof store holds of claims: looked up, and compared with the claims as they are now.

A claim counts as proved or refuted only where the store has an answer to it with the semantics, the words, the prover
and the solvers as they are now, and the answer stands up to checking.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from reports.binding import binding_problems
from reports.certificate import CertificateError, claim_json, parse_certificate
from reports.checker import SOLVERS, replay
from reports.outcomes import ProofOutcome
from reports.store import COUNTEREXAMPLE, ProofStore, StoreError, certificate_problems, proof_key
from reports.subjects import Entry, Subject
from smt_encodings.claims import Status

from .identity import prover_identity
from .workers import Ended, Task, run_tasks

__all__ = ["LookedUp", "base_outcome", "key_of", "look_up"]

QUESTION_SECONDS = 60.0
"""Most seconds for one question to one solver, as in ``ilaverify mapping``."""

_AT_ONCE = 40
"""So many claims are looked up by one process; mappings, whose certificates are long, one by one."""

_BUILD_SECONDS, _BUILD_MEGABYTES = 120.0, 4096
"""Limits for building claims and looking them up."""


@dataclass(frozen=True)
class LookedUp:
    """What came of looking a claim up.

    ``outcome`` has the status PROVED or REFUTED where the store has an answer that stands, ERROR where the claim
    itself cannot be built, and is None where it must be proved; ``note`` says what was wrong with an answer.  ``words``
    is the claim with everything that is known before it is proved.
    """

    name: str
    outcome: ProofOutcome | None
    words: ProofOutcome | None = None
    note: str = ""


def key_of(subject: Subject, prover: Mapping[str, str]) -> str:
    """The key under which the store has the answer to a claim."""
    return proof_key(subject.semantics(), subject.question(), subject.method, {}, prover)


def base_outcome(name: str, entry: Entry, subject: Subject) -> ProofOutcome:
    """What is known of a claim before it is proved."""
    return ProofOutcome(
        name,
        Status.ERROR.value,
        expected=entry.expected.value,
        summary=entry.summary,
        kind=entry.kind,
        method=subject.method,
        claim=subject.question(),
        trust=subject.trust(subject.words()),
        file=subject.file,
        line=subject.line,
    )


def look_up(
    entries: Mapping[str, Entry],
    store: ProofStore,
    *,
    jobs: int = 0,
    recheck: float = 0.0,
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[LookedUp]:
    """Looks claims up, many in one process, and yields what came of it.

    With ``recheck``, seconds for each, a stored certificate counts only after its obligations were generated and put to
    both solvers again.
    """
    batches = list(_batches(entries, 1 if recheck else _AT_ONCE))
    tasks = [
        Task(str(number), lambda names=names: _answers(names, entries, store, bool(recheck)))  # type: ignore[misc]
        for number, names in enumerate(batches)
    ]
    run = run_tasks(
        tasks,
        jobs=jobs or os.cpu_count() or 1,
        timeout=recheck or _BUILD_SECONDS,
        memory=_BUILD_MEGABYTES,
        stopped=stopped,
    )
    with closing(run) as ends:
        for end in ends:
            yield from _told(end, batches[int(end.name)])


def _batches(entries: Mapping[str, Entry], most: int) -> Iterator[Sequence[str]]:
    alone = [name for name, entry in entries.items() if entry.kind == "mapping"]
    others = [name for name, entry in entries.items() if entry.kind != "mapping"]
    yield from ([name] for name in alone)
    yield from (others[i : i + most] for i in range(0, len(others), most))


def _told(end: Ended, names: Sequence[str]) -> Iterator[LookedUp]:
    """The answers of a process; where it failed, all of its claims are still to be proved."""
    if end.text is None:
        yield from (LookedUp(name, None, None, f"not looked up in the store: {end.failure}") for name in names)
        return
    for name, outcome, words, note in json.loads(end.text):
        read = [None if text is None else ProofOutcome.from_text(text) for text in (outcome, words)]
        yield LookedUp(name, read[0], read[1], note)


def _answers(names: Sequence[str], entries: Mapping[str, Entry], store: ProofStore, recheck: bool) -> str:
    """In the process: JSON of what came of looking each claim up."""
    provers = {kind: prover_identity(kind) for kind in {entries[name].kind for name in names}}
    found: list[tuple[str, str | None, str | None, str]] = []
    for name in names:
        entry = entries[name]
        try:
            subject = entry.build()
            words = base_outcome(name, entry, subject)
            key = key_of(subject, provers[entry.kind])
        except Exception as error:  # whatever it was, it is what the report says of this claim
            broken = ProofOutcome(name, Status.ERROR.value, entry.expected.value, entry.summary, kind=entry.kind)
            broken = replace(broken, reason=f"{type(error).__name__}: {error}")
            found.append((name, broken.to_text(), None, ""))
            continue
        outcome, note = _answer(words, subject, store, key, recheck)
        found.append((name, None if outcome is None else outcome.to_text(), words.to_text(), note))
    return json.dumps(found)


def _answer(
    words: ProofOutcome, subject: Subject, store: ProofStore, key: str, recheck: bool
) -> tuple[ProofOutcome | None, str]:
    """The outcome that the store holds, if it stands up to checking; and what was wrong with it, if anything."""
    try:
        entry = store.get(key)
    except StoreError as error:
        return None, str(error)
    if entry is None:
        return None, ""
    kind, text = entry
    if kind == COUNTEREXAMPLE:
        return _counterexample(words, subject, text)
    refused = "the stored proof was refused: "
    try:
        certificate = parse_certificate(text, store.path)
        claim = subject.claim(certificate["parameters"])
    except (CertificateError, ValueError) as error:
        return None, refused + str(error)
    problems = certificate_problems(
        certificate, subject.semantics(), claim_json(claim), subject.method, certificate["parameters"]
    )
    if not problems and recheck:
        problems = binding_problems(certificate, subject)
        for solver in SOLVERS if not problems else ():
            problems += replay(certificate, solver, QUESTION_SECONDS).problems
    if problems:
        return None, refused + problems[0]
    obligations = certificate["obligations"]
    outcome = replace(
        words,
        status=Status.PROVED.value,
        claim=claim_json(claim),
        trust=subject.trust(claim),
        from_store=True,
        obligations=len(obligations),
        solvers=tuple(sorted({a["solver"] for o in obligations for a in o["answers"]})),
        document=text,
    )
    return outcome, ""


def _counterexample(words: ProofOutcome, subject: Subject, text: str) -> tuple[ProofOutcome | None, str]:
    """A stored counterexample counts once it is replayed, which asks nothing of the store but the data."""
    refused = "the stored counterexample was refused: "
    try:
        found = subject.replayed(text)
    except ValueError as error:
        return None, refused + str(error)
    if found is None:
        return None, refused + "it does not replay"
    outcome = replace(
        words,
        status=Status.REFUTED.value,
        reason=found.summary,
        counterexample=found.summary,
        document=found.document,
        program=found.program,
        notes=found.notes,
        from_store=True,
    )
    return outcome, ""
