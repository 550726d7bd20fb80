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

import bmc.prove
import chc.prove
from ila_lang.mapping import SizeError, TensorMapping
from reports.certificate import claim_json, semantics_of
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Requirements

__all__ = ["binding_problems"]


def binding_problems(certificate: Mapping[str, Any], mapping: TensorMapping) -> list[str]:
    """What keeps a certificate from proving its claim about ``mapping`` as it is now; empty where nothing does."""
    problems = []
    for part, digest in semantics_of(mapping).items():
        if certificate["semantics"].get(part) != digest:
            problems.append(f"the {part} side of {mapping.name} is not the one that was proved (its digest differs)")
    if problems:
        return problems
    requirements = Requirements(second=False)
    verdict = _regenerate(certificate, mapping, requirements)
    if isinstance(verdict, str):
        return [f"the obligations of the claim cannot be generated: {verdict}"]
    if claim_json(verdict.claim) != certificate["claim"]:
        problems.append("the claim's words are not those of the proof that the obligations belong to")
    given = {(o["group"], o["name"]): o for o in certificate["obligations"]}
    if len(given) < len(certificate["obligations"]):
        problems.append("two obligations have one name; the claim has no such obligation twice")
    for required in requirements.required:
        where = f"{required.group}: {required.name}"
        obligation = given.pop((required.group, required.name), None)
        if obligation is None:
            problems.append(f"{where}: this obligation is missing")
        elif obligation["expected"] != required.expected or not required.met_by(obligation["smtlib"]):
            problems.append(f"{where}: this is not the obligation that the claim needs")
        elif obligation["meaning"] != required.meaning:
            problems.append(f"{where}: its meaning is not put in the words of the proof")
    problems += [f"{group}: {name}: the claim has no such obligation" for group, name in given]
    return problems + _level_problems(certificate["invariants"], verdict)


def _level_problems(levels: Mapping[str, Any], verdict: Verdict) -> list[str]:
    """What a certificate shows of the loop levels beside their invariants, against the levels of the claim."""
    needed: Any = verdict.details.get("levels", {})
    problems = [f"{name}: the claim has no such loop level" for name in levels if name not in needed]
    for name, level in needed.items():
        for part in ("horn", "names"):
            if levels[name][part] != level[part]:
                problems.append(f"{name}: its {part} are not those of the claim")
    return problems


def _regenerate(certificate: Mapping[str, Any], mapping: TensorMapping, requirements: Requirements) -> Verdict | str:
    """The claim's verdict with its obligations noted in ``requirements``, or why there is none."""
    try:
        if certificate["method"] == "chc":
            if certificate["parameters"]:
                return "a proof of every size has no parameters"
            levels = certificate["invariants"]
            invariants = {name: [str(t) for t in level["invariant"]] for name, level in levels.items()}
            verdict = chc.prove.prove(mapping, discharger=requirements, invariants=invariants)
        elif certificate["method"] == "bmc":
            parameters = certificate["parameters"]
            shape = tuple(int(n) for n in parameters["shape"])
            verdict = bmc.prove.prove(
                mapping,
                shape,
                data=parameters["data"],
                memory=parameters["memory"],
                discharger=requirements,
                search_seconds=0,
            )
        else:
            return f"method {certificate['method']!r} is not known"
    except (KeyError, TypeError, ValueError, SizeError) as error:
        return f"its parameters are malformed: {error}"
    return verdict if verdict.status is Status.PROVED else verdict.reason
