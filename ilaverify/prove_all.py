"""Proving many mappings: each one in a process of its own, with what was proved before taken from a store.

What runs in a mapping's process is :func:`prove_entry`; it never writes the store.  :func:`prove_all` does, with the
text that the process left, so that a process that dies leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

import bmc
import chc
import ila_lang
import reports
import smt_encodings
from bmc.counterexample import Counterexample, replays
from bmc.programs import write_program_file
from bmc.unroll import Cell
from chc.prove import claim_of
from ila_lang import canonical_text
from ila_lang.mapping import TensorMapping
from reports.certificate import (
    CertificateError,
    certificate_of,
    certificate_text,
    claim_json,
    parse_certificate,
    semantics_of,
)
from reports.checker import SOLVERS, replay
from reports.outcomes import ProofOutcome
from reports.store import (
    CERTIFICATE,
    COUNTEREXAMPLE,
    ProofStore,
    StoreError,
    certificate_problems,
    proof_key,
)
from reports.trust import trust_entry
from smt_encodings import solver_cvc5, solver_z3
from smt_encodings.claims import Status

from . import __version__
from .binding import binding_problems
from .verify import counterexample_of, verify
from .workers import Task, run_tasks

__all__ = [
    "FALSE_CLAIMS",
    "Builder",
    "Limits",
    "counterexample_from_text",
    "counterexample_text",
    "prove_all",
    "prove_entry",
    "prover_identity",
]

FALSE_CLAIMS: Mapping[str, str] = {
    "flexasr_maxpool_select": "the 2020 checker assumes it; LayerReduce canonicalises -0",
}
"""Mappings that are false and kept as examples, with a word on why: they are fine if and only if they are REFUTED."""

METHOD = "chc"
QUESTION_SECONDS = 60.0
"""Most seconds for one question to one solver, as in ``ilaverify mapping``."""

Builder = Callable[[], TensorMapping]


@dataclass(frozen=True)
class Limits:
    """What a run may use: processes at once, and seconds and megabytes of address space for each mapping."""

    jobs: int = 1
    timeout: float = 300.0
    memory: int = 4096


def prover_identity() -> dict[str, str]:
    """What a proof depends on beside the mapping: versions, and a digest of the source files of provers and encodings.

    Models and mappings are not in it: their semantics have digests of their own.
    """
    here = Path(__file__).parent
    files = [here / "verify.py", here / "prove_all.py", Path(str(reports.__file__)).parent / "certificate.py"]
    for package in (ila_lang, smt_encodings, bmc, chc):
        files += sorted(Path(str(package.__file__)).parent.rglob("*.py"))
    sources = hashlib.sha256()
    for path in files:
        data = path.read_bytes()
        sources.update(f"{path.parent.name}/{path.name} {len(data)}\n".encode() + data)
    return {
        "tool": __version__,
        "sources": sources.hexdigest(),
        "solvers": f"{solver_z3.version()}, {solver_cvc5.version()}",
        "pysmt": version("pysmt"),
    }


# -- a run --------------------------------------------------------------------------------------------


def prove_all(
    entries: Mapping[str, tuple[str, Builder]],
    *,
    limits: Limits,
    store: ProofStore | None,
    recheck: bool = False,
    false_claims: Mapping[str, str] = FALSE_CLAIMS,
    started: Callable[[str], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[ProofOutcome]:
    """The outcomes of all entries (a line about each, and how to build it), as they come.

    With ``recheck`` a stored certificate counts only after its obligations were generated and put to both solvers
    again.  Closing the iterator ends what still runs.
    """
    prover = prover_identity()

    def task(name: str, build: Builder) -> Task:
        return Task(name, lambda: prove_entry(name, build, prover, store, limits.timeout, recheck))

    tasks = [task(name, build) for name, (_, build) in entries.items()]
    limited = run_tasks(
        tasks, jobs=limits.jobs, timeout=limits.timeout, memory=limits.memory, started=started, stopped=stopped
    )
    with closing(limited) as ends:
        for end in ends:
            outcome, key = ProofOutcome(end.name, Status.ERROR.value, reason=end.failure), ""
            if end.text is not None:
                answer = json.loads(end.text)
                outcome, key = ProofOutcome.from_text(answer["outcome"]), answer["key"]
            outcome = replace(
                outcome,
                summary=entries[end.name][0],
                expected="REFUTED" if end.name in false_claims else "PROVED",
                seconds=round(end.seconds, 3),
            )
            if store is not None and outcome.document and not outcome.from_store:
                outcome = _keep(store, key, outcome, prover)
            yield outcome


def _keep(store: ProofStore, key: str, outcome: ProofOutcome, prover: Mapping[str, str]) -> ProofOutcome:
    """Puts a new proof into the store; where that fails, the proof stands and a note says so."""
    if prover_identity() != prover:
        note = "not put into the store: files of the prover changed while it ran"
        return replace(outcome, notes=(*outcome.notes, note))
    kind = CERTIFICATE if outcome.status == Status.PROVED.value else COUNTEREXAMPLE
    try:
        store.put(key, kind, outcome.name, outcome.document)
    except StoreError as error:
        return replace(outcome, notes=(*outcome.notes, f"not put into the store: {error}"))
    return outcome


# -- one mapping, in its process ----------------------------------------------------------------------


def prove_entry(
    name: str, build: Builder, prover: Mapping[str, str], store: ProofStore | None, timeout: float, recheck: bool
) -> str:
    """Proves one mapping, or finds it proved in the store: JSON with the ``outcome`` and the store's ``key``."""
    mapping, file, line = _built(build)
    claim = claim_json(claim_of(mapping))
    key = proof_key(semantics_of(mapping), claim, METHOD, {}, prover)
    base = ProofOutcome(
        name, Status.ERROR.value, method=METHOD, claim=claim, trust=trust_entry(mapping), file=file, line=line
    )
    outcome, note = _from_store(base, mapping, store, key, recheck)
    if outcome is None:
        outcome = _proved_now(base, mapping, timeout)
    if note:
        outcome = replace(outcome, notes=(note, *outcome.notes))
    return json.dumps({"outcome": outcome.to_text(), "key": key})


def _proved_now(base: ProofOutcome, mapping: TensorMapping, timeout: float) -> ProofOutcome:
    verdict = verify(mapping, METHOD, timeout=min(QUESTION_SECONDS, timeout))
    base = replace(
        base,
        status=verdict.status.value,
        reason=verdict.reason,
        claim=claim_json(verdict.claim),
        obligations=len(verdict.obligations),
        solvers=tuple(sorted({a.solver for o in verdict.obligations for a in o.answers})),
    )
    if verdict.status is Status.PROVED:
        content = certificate_of(mapping, verdict, {}, f"ilaverify {__version__}")
        return replace(base, document=certificate_text(content))
    found = counterexample_of(verdict)
    if found is not None:
        return _with_counterexample(base, mapping, found)
    return base


def _with_counterexample(base: ProofOutcome, mapping: TensorMapping, found: Counterexample) -> ProofOutcome:
    """The outcome that tells a replayed counterexample."""
    program, notes = "", base.notes
    try:
        program = write_program_file(mapping, found)
    except ValueError as error:
        notes = (*notes, f"no program file: {error}")
    return replace(
        base,
        status=Status.REFUTED.value,
        reason=found.summary(),
        counterexample=found.summary(),
        document=counterexample_text(found),
        program=program,
        notes=notes,
    )


def _from_store(
    base: ProofOutcome, mapping: TensorMapping, store: ProofStore | None, key: str, recheck: bool
) -> tuple[ProofOutcome | None, str]:
    """The outcome that the store holds, if it stands up to checking; and what was wrong with it, if anything."""
    if store is None:
        return None, ""
    try:
        entry = store.get(key)
    except StoreError as error:
        return None, str(error)
    if entry is None:
        return None, ""
    kind, text = entry
    if kind == COUNTEREXAMPLE:
        return _stored_counterexample(base, mapping, text)
    try:
        certificate = parse_certificate(text, store.path)
    except CertificateError as error:
        return None, f"the stored proof was refused, and the mapping proved again: {error}"
    claim: Mapping[str, Any] = base.claim or {}
    problems = certificate_problems(certificate, semantics_of(mapping), claim, METHOD, {})
    if not problems and recheck:
        problems = binding_problems(certificate, mapping)
        for solver in SOLVERS if not problems else ():
            problems += replay(certificate, solver, QUESTION_SECONDS).problems
    if problems:
        return None, f"the stored proof was refused, and the mapping proved again: {problems[0]}"
    obligations = certificate["obligations"]
    outcome = replace(
        base,
        status=Status.PROVED.value,
        from_store=True,
        obligations=len(obligations),
        solvers=tuple(sorted({a["solver"] for o in obligations for a in o["answers"]})),
        document=text,
    )
    return outcome, ""


def _stored_counterexample(base: ProofOutcome, mapping: TensorMapping, text: str) -> tuple[ProofOutcome | None, str]:
    """A stored counterexample counts once it is replayed, which asks nothing of the store but the data."""
    refused = "the stored counterexample was refused, and the search made again: "
    try:
        found = counterexample_from_text(text)
    except ValueError as error:
        return None, refused + str(error)
    codes = mapping.show_element(found.device), mapping.show_element(found.ir)
    inside = set(found.sizes) == set(mapping.parameters) and mapping.holds(found.sizes)
    if not inside or not replays(mapping, found) or not (found.error or found.shown == codes):
        return None, refused + "it does not replay"
    found = replace(found, sizes={name: found.sizes[name] for name in mapping.parameters})  # in the order of words
    return replace(_with_counterexample(base, mapping, found), from_store=True), ""


# -- counterexamples as text --------------------------------------------------------------------------

_FIELDS: Mapping[str, Any] = {
    "mapping": str, "sizes": dict, "shape": (list, type(None)), "initial": list, "row": int, "column": int,
    "device": int, "ir": int, "shown": list, "differing": int, "elements": int, "error": str,
}  # fmt: skip


def counterexample_text(found: Counterexample) -> str:
    """A counterexample as canonical JSON, with every cell of its initial contents."""
    cells = [[c.side, c.owner, c.address, value] for c, value in found.initial.items()]
    content = {name: getattr(found, name) for name in _FIELDS}
    return canonical_text({**content, "initial": cells}) + "\n"


def counterexample_from_text(text: str) -> Counterexample:
    """The counterexample in a text of :func:`counterexample_text`; raises ValueError on anything else."""
    content = json.loads(text)
    if not isinstance(content, dict) or set(content) != set(_FIELDS):
        raise ValueError(f"keys of a counterexample must be exactly {', '.join(_FIELDS)}")
    for name, kind in _FIELDS.items():
        if not isinstance(content[name], kind):
            raise ValueError(f"{name} of a counterexample must have its form, not {content[name]!r:.60}")
    try:
        content["initial"] = {Cell(side, owner, address): int(v) for side, owner, address, v in content["initial"]}
        content["sizes"] = {str(name): int(value) for name, value in content["sizes"].items()}
        content["shape"] = None if content["shape"] is None else tuple(content["shape"])
        content["shown"] = tuple(content["shown"])
    except TypeError as error:
        raise ValueError(f"a counterexample must have its form: {error}") from error
    return Counterexample(**content)


# -- where a mapping is built -------------------------------------------------------------------------


def _built(build: Builder) -> tuple[TensorMapping, str, int]:
    """The mapping, with the source file (relative to the source root) and line of the call that made it."""
    with _noting_places() as places:
        mapping = build()
    file, line = places.get(id(mapping), ("", 0))
    if not file:
        code = getattr(build, "__code__", None)
        file, line = (_source_name(build.__module__, code.co_filename), code.co_firstlineno) if code else ("", 0)
    return mapping, file, line


@contextmanager
def _noting_places() -> Iterator[dict[int, tuple[str, int]]]:
    """Notes, by identity, where mappings are constructed meanwhile.  It replaces a method: for a process of its own."""

    places: dict[int, tuple[str, int]] = {}
    original = TensorMapping.__post_init__

    def noted(self: TensorMapping) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") in ("dataclasses", TensorMapping.__module__):
            frame = frame.f_back
        if frame is not None:
            module = str(frame.f_globals.get("__name__", ""))
            places[id(self)] = (_source_name(module, frame.f_code.co_filename), frame.f_lineno)
        original(self)

    TensorMapping.__post_init__ = noted  # type: ignore[method-assign]
    try:
        yield places
    finally:
        TensorMapping.__post_init__ = original  # type: ignore[method-assign]


def _source_name(module: str, filename: str) -> str:
    """A module's file relative to its source root, with ``/``; the bare file name where the module's is another."""
    path = Path(filename)
    parts = module.split(".")
    if path.stem == "__init__":
        parts.append("__init__")
    matching = path.with_suffix("").parts[-len(parts) :] == tuple(parts)
    return "/".join(path.parts[-len(parts) :]) if matching else path.name
