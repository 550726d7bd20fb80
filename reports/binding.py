"""Does a certificate prove what it claims?  Its obligations against the ones that the claim needs, today.

Replaying a certificate shows that its questions have the expected answers; it does not show that they are the right
questions.  So the obligations of the claim are generated again from the models in use, with the certificate's
invariants as untrusted hints and without asking for their truth, and compared one by one.  A certificate may use fewer
hypotheses than needed, never others.  A certificate of another model, an invented obligation, a missing one or a
weaker claim is found here, whatever its digest says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .certificate import claim_json
from .subjects import Subject


def binding_problems(certificate: Mapping[str, Any], subject: Subject) -> list[str]:
    """The reasons why a certificate does not prove its claim about ``subject`` as it is now; empty where it does."""
    problems = []
    semantics = subject.semantics()
    for part, digest in semantics.items():
        if certificate["semantics"].get(part) != digest:
            problems.append(f"the {part} side of {subject.name} is not the one that was proved (its digest differs)")
    problems += [f"{subject.name} has no part {part}" for part in certificate["semantics"] if part not in semantics]
    if certificate["method"] not in subject.methods:
        problems.append(f"{subject.name} is not proved by the method {certificate['method']!r}")
    if problems:
        return problems
    try:
        required = subject.required(certificate)
    except ValueError as error:
        required = str(error)
    if isinstance(required, str):
        return [f"the obligations of the claim cannot be generated: {required}"]
    if claim_json(required.claim) != certificate["claim"]:
        problems.append("the claim's words are not those of the proof that the obligations belong to")
    obligations = {(o["group"], o["name"]): o for o in certificate["obligations"]}
    if len(obligations) < len(certificate["obligations"]):
        problems.append("two obligations have one name; the claim has no such obligation twice")
    for needed in required.obligations:
        where = f"{needed.group}: {needed.name}"
        obligation = obligations.pop((needed.group, needed.name), None)
        if obligation is None:
            problems.append(f"{where}: this obligation is missing")
        elif obligation["expected"] != needed.expected or not needed.met_by(obligation["smtlib"]):
            problems.append(f"{where}: this is not the obligation that the claim needs")
        elif {a["status"] for a in obligation["answers"]} != {needed.expected}:
            problems.append(f"{where}: its answers must be {needed.expected}, and there must be one")
        elif obligation["meaning"] != needed.meaning:
            problems.append(f"{where}: its meaning is not put in the words of the proof")
    problems += [f"{group}: {name}: the claim has no such obligation" for group, name in obligations]
    if certificate["enumerations"] != [dict(e) for e in required.enumerations]:
        problems.append("what was run on every argument is not what the claim needs, or it came out differently now")
    if bool(certificate["derivation"]) is not required.derived:
        problems.append("the claim has no derivation")
    return problems + _level_problems(certificate["invariants"], required.levels)


def _level_problems(levels: Mapping[str, Any], needed: Mapping[str, Any]) -> list[str]:
    """Differences between the loop levels in a certificate, invariants aside, and those of the claim."""
    problems = [f"{name}: the claim has no such loop level" for name in levels if name not in needed]
    for name, level in needed.items():
        if name not in levels:
            problems.append(f"{name}: this loop level is missing")
            continue
        for part in ("horn", "names"):
            if levels[name][part] != level[part]:
                problems.append(f"{name}: its {part} are not those of the claim")
    return problems
