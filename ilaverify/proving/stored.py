"""What the proof store holds of claims: looked up, and compared with the claims as they are now.

A claim counts as proved or refuted only where the store has an answer to it with the semantics, the words, the prover
and the solvers as they are now, and the answer stands up to checking.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

from ila_lang.extensions import ExtensionError
from ilaverify.identity import prover_identity, read_provers
from reports.binding import binding_problems
from reports.certificate import CertificateError, claim_json, parse_certificate
from reports.checker import SOLVERS, replay
from reports.outcomes import ProofOutcome
from reports.store import COUNTEREXAMPLE, ProofStore, StoreError, certificate_problems, key_of
from reports.subjects import Entry, Subject
from smt_encodings.claims import Status

from .workers import Ended, Task, run_tasks

QUESTION_SECONDS = 60.0
"""Most seconds for one question to one solver, as in ``ilaverify mapping``."""

_BUILD_SECONDS, _BUILD_MEGABYTES = 120.0, 4096
"""Limits for building claims and looking them up."""


@dataclass(frozen=True)
class LookedUp:
    """The result of looking a claim up.

    ``outcome`` has the status PROVED or REFUTED where the store has an answer that stands, ERROR where the claim
    itself cannot be built, and is None where it must be proved; ``note`` says what was wrong with an answer.  ``words``
    is then the claim with everything that is known before it is proved, ``key`` is the one that its answer will have,
    and ``semantics`` are the digests of what it refers to.
    """

    name: str
    outcome: ProofOutcome | None
    words: ProofOutcome | None = None
    note: str = ""
    key: str = ""
    semantics: Mapping[str, str] = field(default_factory=dict)


def base_outcome(name: str, entry: Entry, subject: Subject) -> ProofOutcome:
    """What is known of a claim before it is proved."""
    file, line = subject.place()
    return ProofOutcome(
        name,
        Status.ERROR.value,
        expected=entry.expected.value,
        summary=entry.summary,
        kind=entry.kind,
        method=subject.method,
        claim=subject.question(),
        trust=subject.trust(subject.words()),
        file=file,
        line=line,
    )


def look_up(
    entries: Mapping[str, Entry],
    store: ProofStore | None,
    *,
    jobs: int = 0,
    recheck: float = 0.0,
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[LookedUp]:
    """Looks claims up, many in one process, and yields the results; where a process fails, one by one.

    Without a store all must be proved, as far as they can be built.

    With ``recheck``, seconds for each, a stored certificate counts only after its obligations were generated and put to
    both solvers again.
    """
    processes = jobs or os.cpu_count() or 1
    read_provers()
    limits = {"jobs": processes, "timeout": recheck or _BUILD_SECONDS, "memory": _BUILD_MEGABYTES, "stopped": stopped}
    left: list[Sequence[str]] = [[name] for name in entries] if recheck else list(_batches(entries, processes))
    while left:
        batches, left = left, []
        tasks = [
            Task(str(k), partial(_answers, names, entries, store, bool(recheck))) for k, names in enumerate(batches)
        ]
        with closing(run_tasks(tasks, **limits)) as ends:  # type: ignore[arg-type]
            for end in ends:
                names = batches[int(end.name)]
                if end.text is None and len(names) > 1:
                    left += ([name] for name in names)
                else:
                    yield from _looked_up(end, names)


def _batches(entries: Mapping[str, Entry], processes: int) -> Iterator[Sequence[str]]:
    """The names, a batch for each process, where models are built once; mappings are dealt first: they take longest."""
    ordered = sorted(entries, key=lambda name: entries[name].kind != "mapping")
    count = min(processes, len(ordered))
    yield from (ordered[k::count] for k in range(count))


def _looked_up(end: Ended, names: Sequence[str]) -> Iterator[LookedUp]:
    """The answers of a process; where it failed, all of its claims are still to be proved."""
    if end.text is None:
        yield from (LookedUp(name, None, None, f"not looked up in the store: {end.failure}") for name in names)
        return
    head, _, documents = end.text.partition("\n")
    at = 0
    for name, outcome, words, note, key, semantics, length in json.loads(head):
        read = [None if content is None else ProofOutcome.from_json(content) for content in (outcome, words)]
        if read[0] is not None:
            read[0] = replace(read[0], document=documents[at : at + length])
        at += length
        yield LookedUp(name, read[0], read[1], note, key, semantics)


def _answers(
    names: Sequence[str],
    entries: Mapping[str, Entry],
    store: ProofStore | None,
    recheck: bool,
) -> str:
    """In the process: the results of looking claims up as one line of JSON, then all documents.

    These are most of the text, which takes long to quote; the line has their lengths.
    """
    records: list[tuple[str, object, object, str, str, Mapping[str, str], int]] = []
    documents: list[str] = []
    for name in names:
        entry = entries[name]
        try:
            subject = entry.build()
            words = base_outcome(name, entry, subject)
            semantics = subject.semantics()
            key = key_of(subject, prover_identity(subject), semantics)
        except Exception as error:  # any error is what the report says of this claim
            broken = ProofOutcome(name, Status.ERROR.value, entry.expected.value, entry.summary, kind=entry.kind)
            refused = isinstance(error, ExtensionError)
            reason = str(error) if refused else f"{type(error).__name__}: {error}"
            broken = replace(broken, reason=reason, refused=refused)
            records.append((name, broken.to_json(), None, "", "", {}, 0))
            continue
        outcome, note = _answer(replace(words, key=key), subject, semantics, store, recheck)
        if outcome is None:
            records.append((name, None, words.to_json(), note, key, semantics, 0))
            continue
        documents.append(outcome.document)
        records.append((name, replace(outcome, document="").to_json(), None, note, "", {}, len(outcome.document)))
    return "\n".join([json.dumps(records), "".join(documents)])


def _answer(
    words: ProofOutcome,
    subject: Subject,
    semantics: Mapping[str, str],
    store: ProofStore | None,
    recheck: bool,
) -> tuple[ProofOutcome | None, str]:
    """The outcome that the store holds, if it stands up to checking; and what was wrong with it, if anything."""
    if store is None:
        return None, ""
    try:
        entry, questions = store.get(words.key), store.questions(words.key)
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
        certificate, semantics, claim_json(claim), subject.method, certificate["parameters"], questions
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
        runs=certificate["runs"]["count"],
        solvers=tuple(sorted({a["solver"] for o in obligations for a in o["answers"]})),
        document=text,
    )
    return outcome, ""


def _counterexample(words: ProofOutcome, subject: Subject, text: str) -> tuple[ProofOutcome | None, str]:
    """A stored counterexample counts once it is replayed, which asks nothing of the store but the data."""
    refused = "the stored counterexample was refused: "
    try:
        refutation = subject.replayed(text)
    except ValueError as error:
        return None, refused + str(error)
    if refutation is None:
        return None, refused + "it does not replay"
    outcome = replace(
        words,
        status=Status.REFUTED.value,
        reason=refutation.summary,
        counterexample=refutation.summary,
        document=refutation.document,
        program=refutation.program,
        notes=refutation.notes,
        shown=refutation.shown,
        from_store=True,
    )
    return outcome, ""
