"""Certificates: records of proofs, as canonical JSON.

A certificate holds the claim, digests of what its words mean, every obligation as a complete SMT-LIB script with its
expected answer and the answers given, the inferred invariants, and solver names, versions and times.  What was proved
by running a function on every argument is recorded as an enumeration.  The file is the canonical text of its content
and nothing else: any other byte makes :func:`read_certificate` refuse it.

The self-digest finds accidents.  What finds forgeries is that checking asks solvers again and compares the
obligations with the ones that the claim needs (:mod:`reports.binding`).
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ila_lang import Expr, Function, canonical_text, digest, free_variables, substitute
from ila_lang.errors import InputError
from ila_lang.mapping import TensorMapping
from ila_lang.text.files import read_at_most
from smt_encodings.claims import Claim, Obligation, Runs, Status, Verdict

MOST = 10**12
"""Numbers of a certificate, such as seconds, are at most this."""
MOST_BYTES = 1 << 28
"""Bytes of a certificate's file, and of an entry of a store."""

SCHEMA = "ilaverify-certificate-4"
"""Version of the format; the published schema is ``reports/certificate.schema.json``."""

_TOP = {
    "schema": str, "tool": str, "method": str, "parameters": dict, "claim": dict, "semantics": dict,
    "obligations": list, "enumerations": list, "invariants": dict, "derivation": dict, "runs": dict,
    "seconds": (int, float), "digest": str,
}  # fmt: skip
_OBLIGATION = {"group": str, "name": str, "meaning": str, "expected": str, "smtlib": str, "answers": list}
_ANSWER = {"solver": str, "status": str, "seconds": (int, float)}
_CLAIM = {
    "subject": str, "statement": str, "size_domain": str, "compared": str, "equality": str, "interpretations": list,
    "assumptions": list,
}  # fmt: skip
_ENUMERATION = {"name": str, "meaning": str, "arguments": int, "largest": (int, float)}
_RUNS = {"count": int, "at": list, "notes": list}
_LEVEL = {"found_by": str, "seconds": (int, float), "horn": str, "invariant": list, "names": dict}


class CertificateError(InputError):
    """A file that is not an intact certificate."""


def semantics_of(mapping: TensorMapping) -> dict[str, str]:
    """Digests (SHA-256) of what a mapping means: both fragments with their models, and the relation between them."""
    relation = [_as_function(f"size.{name}", size) for name, size in mapping.parameters.items()]
    relation += [_as_function(f"domain{i}", condition) for i, (_, condition) in enumerate(mapping.domain)]
    relation += [_as_function("rows", mapping.rows), _as_function("columns", mapping.columns)]
    for i, lemma in enumerate(mapping.lemmas):
        relation += [_as_function(f"lemma{i}.left", lemma.left), _as_function(f"lemma{i}.right", lemma.right)]
    ends = canonical_text(
        {
            "inputs": [list(p) for p in mapping.inputs],
            "output": list(mapping.output),
            "abstract": sorted(mapping.abstract),
            "sums": [[digest(r.operator), r.unit] for r in mapping.sums],
            "relation": digest(*relation),
        }
    )
    return {
        "device": digest(mapping.device),
        "ir": digest(mapping.ir),
        "relation": hashlib.sha256(ends.encode()).hexdigest(),
    }


def _as_function(name: str, term: Expr) -> Function:
    """A closed function with the term as body, so that it has a digest."""
    variables = free_variables(term)
    shell = Function(name, {n: v.sort for n, v in variables.items()}, term.sort, None)
    shell.body = substitute(term, dict(zip(variables.values(), shell.params, strict=True)))
    return shell


def certificate_of(
    semantics: Mapping[str, str], verdict: Verdict, parameters: Mapping[str, Any], tool: str
) -> dict[str, Any]:
    """The certificate of a proof.

    ``semantics`` are digests of what the claim's words mean, ``parameters`` what the method was asked for (shape, data,
    ...).  Raises CertificateError unless the verdict is PROVED, all its obligations are discharged, and it has runs.
    """
    if verdict.status is not Status.PROVED:
        raise CertificateError(f"a certificate must be of a PROVED claim, not {verdict.status.value}")
    enumerations: Any = verdict.details.get("enumerations", [])
    if not (verdict.obligations or enumerations) or not all(o.discharged for o in verdict.obligations):
        raise CertificateError("a certificate must be of a proof whose obligations are all discharged")
    if verdict.runs is None or not (verdict.runs.count or verdict.runs.notes):
        raise CertificateError("a certificate must be of a proof that survived concrete runs, and this one saw none")
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "tool": tool,
        "method": verdict.method,
        "parameters": dict(parameters),
        "claim": claim_json(verdict.claim),
        "semantics": dict(semantics),
        "obligations": [_obligation(o) for o in verdict.obligations],
        "enumerations": [dict(e) for e in enumerations],
        "invariants": verdict.details.get("levels", {}),
        "derivation": verdict.details.get("derivation", {}),
        "runs": runs_json(verdict.runs),
        "seconds": round(verdict.seconds, 3),
    }
    content["digest"] = content_digest(content)
    return content


def certificate_name(name: str, method: str) -> str:
    """The file name of a claim's certificate."""
    return f"{name}.{method.replace(' ', '-')}.cert.json"


def claim_json(claim: Claim) -> dict[str, Any]:
    """A claim as it stands in certificates and machine-readable output."""
    return {
        "subject": claim.subject,
        "statement": claim.statement,
        "size_domain": claim.size_domain,
        "compared": claim.compared,
        "equality": claim.equality.value,
        "interpretations": [i.value for i in claim.interpretations],
        "assumptions": list(claim.assumptions),
    }


def runs_json(runs: Runs) -> dict[str, Any]:
    """Concrete runs as they stand in certificates and machine-readable output."""
    return {"count": runs.count, "at": list(runs.at), "notes": list(runs.notes)}


def _obligation(obligation: Obligation) -> dict[str, Any]:
    return {
        "group": obligation.group,
        "name": obligation.name,
        "meaning": obligation.meaning,
        "expected": obligation.expected,
        "smtlib": obligation.smtlib,
        "answers": [
            {"solver": a.solver, "status": a.status, "seconds": round(a.seconds, 4)} for a in obligation.answers
        ],
    }


def content_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical text of a certificate without its ``digest``."""
    return _digest_of(_members(content))


def questions_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of the claim and questions of a certificate, without its prover, answers, hints, runs and times.

    Of an obligation it covers the script and the expected answer.
    """
    aside = ("tool", "digest", "seconds", "invariants", "runs")
    asked = {key: value for key, value in content.items() if key not in aside}
    asked["obligations"] = [{k: v for k, v in o.items() if k != "answers"} for o in content["obligations"]]
    return hashlib.sha256(canonical_text(asked).encode()).hexdigest()


def written_by(prover: Mapping[str, str]) -> str:
    """The ``tool`` of certificates by a prover with this identity: version and digest of its method's code."""
    package = f" of {prover['package']}" if "package" in prover else ""
    return f"ilaverify {prover['tool']}, method {prover['method'][:16]}{package}"


def _members(content: Mapping[str, Any]) -> dict[str, str]:
    """The canonical text of each part."""
    return {key: canonical_text(value) for key, value in content.items()}


def _joined(members: Mapping[str, str]) -> str:
    """The canonical text of the whole."""
    return "{" + ",".join(f"{canonical_text(key)}:{members[key]}" for key in sorted(members)) + "}"


def _digest_of(members: Mapping[str, str]) -> str:
    body = {key: text for key, text in members.items() if key != "digest"}
    return hashlib.sha256(_joined(body).encode()).hexdigest()


def certificate_text(content: Mapping[str, Any]) -> str:
    """The file's text: canonical JSON and a line end."""
    return canonical_text(dict(content)) + "\n"


AGAIN = "prove the claim again"
"""What helps where a certificate is not intact."""
_AGAIN = f"{AGAIN} (ilaverify prove NAME -o DIR)"


class _Unreadable(CertificateError):
    """A text that is not a certificate of this version."""


def read_certificate(path: Path) -> dict[str, Any]:
    """The certificate in a file.

    Raises FileRefused where the file cannot be read, and CertificateError where what it holds is not canonical, has
    another form, or was changed.
    """
    try:
        text = read_at_most(path, "a certificate", MOST_BYTES).decode("ascii")
    except UnicodeDecodeError as error:
        raise CertificateError(
            f"{path}: a certificate must be JSON text in ASCII, and byte {error.start} is "
            f"{error.object[error.start]:#x}; {_AGAIN}"
        ) from error
    try:
        return parse_certificate(text, path, "file")
    except _Unreadable as error:
        raise CertificateError(f"{error}; {_AGAIN}") from error


def parse_certificate(text: str, where: Path, medium: str = "text") -> dict[str, Any]:
    """The certificate in a text; messages begin with ``where`` and call the text ``medium``.

    Raises CertificateError where it is not canonical, has another form, or was changed.
    """
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise _Unreadable(
            f"{where}: a certificate must be JSON text, not one that breaks at line {error.lineno}, "
            f"column {error.colno}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise _Unreadable(
            f"{where}: a certificate must be JSON text without numbers of thousands of digits or as deep nesting"
        ) from error
    _check_form(where, content)
    try:
        members = _members(content)  # written once, for both comparisons: they are most of the time of reading
    except ValueError as error:
        raise CertificateError(f"{where}: numbers of a certificate must be finite: {error}") from error
    if _joined(members) + "\n" != text:
        raise CertificateError(
            f"{where}: a certificate must be in canonical form; the {medium} was edited or reformatted"
        )
    if content["digest"] != _digest_of(members):
        raise CertificateError(
            f"{where}: the digest must match the content; the {medium} was changed after it was written"
        )
    return dict(content)


def _check_form(path: Path, content: object) -> None:
    def has(value: object, kind: Any) -> bool:
        number = isinstance(value, int | float)
        return isinstance(value, kind) and not (number and (isinstance(value, bool) or value < 0 or value > MOST))

    def need(what: str, value: object, kind: Any) -> None:
        if not has(value, kind):
            raise CertificateError(f"{path}: {what} must be present and of the published form, not {value!r:.60}")

    def record(what: str, value: object, form: Mapping[str, Any]) -> None:
        need(what, value, dict)
        assert isinstance(value, dict)
        for key, kind in form.items():
            part = value.get(key)
            if not has(part, kind):  # inline, because there are thousands of parts
                need(f"{what}: {key}", part, kind)
        if set(value) != set(form):
            raise CertificateError(f"{path}: keys of {what} must be exactly {', '.join(sorted(form))}")

    def texts(what: str, values: Iterable[object]) -> None:
        for value in values:
            need(what, value, str)

    need("the certificate", content, dict)
    assert isinstance(content, dict)
    if content.get("schema") != SCHEMA:
        raise _Unreadable(f"{path}: schema must be {SCHEMA}, not {content.get('schema', 'missing')!r:.60}")
    for key, kind in _TOP.items():
        need(key, content.get(key), kind)
    if set(content) != set(_TOP):
        raise CertificateError(f"{path}: keys must be exactly {', '.join(sorted(_TOP))}")
    if not (content["obligations"] or content["enumerations"]):
        raise CertificateError(f"{path}: obligations must not be empty where there is no enumeration")
    for number, obligation in enumerate(content["obligations"]):
        record(f"obligation {number}", obligation, _OBLIGATION)
        if obligation["expected"] not in ("sat", "unsat"):
            raise CertificateError(f"{path}: obligation {number}: expected must be sat or unsat")
        for answer in obligation["answers"]:
            record(f"an answer to obligation {number}", answer, _ANSWER)
    record("the claim", content["claim"], _CLAIM)
    texts("an interpretation", content["claim"]["interpretations"])
    texts("an assumption", content["claim"]["assumptions"])
    for number, enumeration in enumerate(content["enumerations"]):
        record(f"enumeration {number}", enumeration, _ENUMERATION)
        if enumeration["arguments"] < 1:
            raise CertificateError(f"{path}: enumeration {number}: it must be over one argument at least")
    if not content["semantics"]:
        raise CertificateError(f"{path}: semantics must name what was proved, by digests")
    texts("a digest of the semantics", content["semantics"].values())
    record("the runs", content["runs"], _RUNS)
    texts("a place of the runs", content["runs"]["at"])
    texts("a note on the runs", content["runs"]["notes"])
    if not (content["runs"]["count"] or content["runs"]["notes"]):
        raise CertificateError(f"{path}: the proof must have survived concrete runs, or a note say why there were none")
    for name, level in content["invariants"].items():
        record(f"level {name}", level, _LEVEL)
        texts(f"a conjunct of level {name}", level["invariant"])
        texts(f"a name in level {name}", level["names"].values())


def write_atomically(path: Path, content: str | bytes | memoryview) -> None:
    """Writes a file through a temporary one next to it, so that a reader never sees half of it.

    Raises OSError with the file's name as the file system does; the temporary file is then removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, OSError) and error.strerror:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
