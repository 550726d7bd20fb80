"""Bounds on numeric error as subjects: theorems of derivations that the kernel replays."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from ila_lang.text.portable import digest
from reports.subjects import Refutation, Required
from rewrites.bounds.bound_runs import Data, beyond, require_data, survey_bound
from rewrites.bounds.catalogue import LEMMAS
from rewrites.bounds.derivations.calculus import Operator
from rewrites.bounds.derivations.names import Unread
from rewrites.bounds.derivations.writer import derivation_of
from rewrites.bounds.kernel.judgements import Rejected, Step, Theorem, text_of
from rewrites.bounds.kernel.replay import replay
from rewrites.bounds.kernel_runs import NotRun, differing
from rewrites.bounds.lemmas.real_rules import RULES, ask_rule
from rewrites.claims.documents import document, read_document, value_json, value_of
from rewrites.claims.sources import meaning_digest, place_of, text_digest
from rewrites.claims.theorems import flexasr, machines
from smt_encodings.claims import Claim, Equality, Interpretation, Runs, Status, Verdict
from smt_encodings.discharge import Discharger, NotDischarged, Requirements
from smt_encodings.environment import fresh_symbols
from smt_encodings.runs import surviving
from smt_encodings.values import lemma_obligation

from .stated import StatedSubject

_KEYS = ("law", "of", "lemmas", "names")


def written_steps(steps: tuple[Step, ...]) -> list[list[Any]]:
    """Steps as they stand in a certificate: law, numbers of steps, lemmas, names."""
    return [[s.law, list(s.of), list(s.lemmas), list(s.names)] for s in steps]


def read_steps(content: object) -> tuple[Step, ...]:
    """What :func:`written_steps` wrote; raises Rejected on anything else."""
    steps = content["steps"] if isinstance(content, dict) and set(content) == {"steps"} else None
    if not isinstance(steps, list) or not all(isinstance(s, list) and len(s) == len(_KEYS) for s in steps):
        raise Rejected("a derivation must be steps alone, each with law, steps, lemmas and names")
    for law, of, *texts in steps:
        lists = [of, *texts]
        if not isinstance(law, str) or not all(isinstance(part, list) for part in lists):
            raise Rejected("a step must have the name of a law and three lists")
        if not all(type(n) is int for n in of) or not all(isinstance(t, str) for part in texts for t in part):
            raise Rejected("a step must be of numbers, and its lemmas and names must be texts")
    return tuple(Step(law, tuple(of), tuple(lemmas), tuple(names)) for law, of, lemmas, names in steps)


def _statement(theorem: Theorem) -> tuple[str, str]:
    """What a theorem states, and under which conditions."""
    result = theorem.result
    statement = f"|{text_of(result.device)} - {text_of(result.real)}| <= {result.error}"
    return statement, "; ".join(map(str, theorem.conditions)) or "all sizes and ranges"


def _assumptions(theorem: Theorem) -> list[str]:
    """What a theorem assumes of leaves and ranges, and what it rests on."""
    assumptions = []
    for leaf, (_, _, error, magnitude) in theorem.leaves.items():
        assumptions.append(f"{leaf}: |.| <= {magnitude}" + (f", off by at most {error}" if error != "0" else ""))
    assumptions += (f"values of {index}: {count}" for index, count in theorem.counts.items())
    for name, terms in theorem.ranges.items():
        default = f"; by default {theorem.defaults[name]}" if name in theorem.defaults else ""
        assumptions.append(f"{name} {'is' if name == '0' else 'bounds'} {' and '.join(map(text_of, terms))}{default}")
    assumptions += (f"{n} is 1 + {q} + {q}^2 + .., a term for each step" for n, q in theorem.series.items())
    assumptions.append(f"lemmas, claims of their own: {', '.join(theorem.lemmas)}")
    if theorem.axioms:
        assumptions.append(f"axioms: {', '.join(theorem.axioms)} (docs/reference/numerics.md)")
    return assumptions


def _other_primitive(operator: Operator, theorem: Theorem) -> str:
    """Why lemmas are not about the kernel's primitives, which have their names; empty where they are."""
    about = {LEMMAS[name].function.name: digest(LEMMAS[name].function) for name in theorem.lemmas}
    other = [f.name for f in operator.written.functions if about.get(f.name) != digest(f)]
    return f"lemmas are about other primitives than {', '.join(other)} of the kernel" if other else ""


def _other_derivation(operator: Operator) -> str:
    """How the derivation differs from the one that is written from the kernel now; empty where it does not."""
    written, source = operator.written, operator.written.source
    if written.kernel is None or source is None:
        return "a bound must be derived from a kernel"
    try:
        again = derivation_of(
            written.kernel, source.operands, source.result, source.names, lemmas=source.lemmas, growth=source.growth
        )
    except (Unread, Rejected) as error:
        return f"the kernel {written.kernel.name} has no derivation: {error}"
    part = written.differs(again)
    return f"the {part} of the derivation are not those of its kernel {written.kernel.name}" if part else ""


def _said(theorem: Theorem) -> tuple[Any, ...]:
    return _statement(theorem), _assumptions(theorem)


def _ask(operator: Operator, theorem: Theorem, discharger: Discharger) -> None:
    """Puts the mapping's lemmas and the laws to both solvers; raises NotDischarged where one does not hold."""
    for lemma in operator.written.lemmas:
        discharger.ask_text(lemma_obligation(lemma))
    with fresh_symbols():
        for name in theorem.rules:
            ask_rule(RULES[name], discharger)


def prove_bound(operator: Operator, claim: Claim, discharger: Discharger) -> Verdict:
    """Replays the derivation, and asks for the laws that its theorem rests on; then both sides are run."""
    start, mark = time.perf_counter(), len(discharger.obligations)
    try:
        theorem = replay(operator.steps)
        _ask(operator, theorem, discharger)
        status, reason = discharger.conclude()
        if not theorem.rules and not operator.written.lemmas:
            status, reason = Status.UNKNOWN, "it says no more than its lemmas, and uses no law that could be asked"
        if other := _other_primitive(operator, theorem):
            status, reason = Status.UNKNOWN, other
        if _said(theorem) != _said(operator.theorem):
            status, reason = Status.UNKNOWN, "the steps prove another theorem than the operator's"
    except NotDischarged as failed:
        status, reason = Status.UNKNOWN, str(failed)
    details: dict[str, object] = {"derivation": {"steps": written_steps(operator.steps)}}
    seconds = time.perf_counter() - start
    verdict = Verdict(status, claim, BoundSubject.method, seconds, reason, discharger.obligations[mark:], {}, details)
    surviving(verdict, lambda: survey_bound(operator))
    if verdict.status is Status.PROVED and verdict.runs is not None and not verdict.runs.count:
        verdict.status, verdict.reason = Status.UNKNOWN, "; ".join(verdict.runs.notes)
    if verdict.status is Status.PROVED:
        try:
            differs = differing(operator)
        except NotRun as error:
            verdict.status, verdict.reason = Status.UNKNOWN, str(error)
        else:
            if differs:
                verdict.status, verdict.reason = Status.ERROR, f"the proof does not survive runs: {differs}"
            elif other := _other_derivation(operator):
                verdict.status, verdict.reason = Status.UNKNOWN, other
    return verdict


class BoundSubject(StatedSubject):
    """That an accelerator's result lies within a bound of the real operator on its operands."""

    kind = "theorem"
    method = "bound"
    evidence = dict

    def __init__(self, name: str, operator: Operator) -> None:
        self.name, self.operator = name, operator

    def place(self) -> tuple[str, int]:
        """Where the derivation stands."""
        return place_of((flexasr, machines), self.operator.name)

    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """The kernel with its laws, and the runs."""
        return prove_bound, differing

    def stated(self) -> Claim:
        """The theorem in words."""
        theorem = self.operator.theorem
        statement, conditions = _statement(theorem)
        interpretations = (Interpretation.BITS, Interpretation.REALS)
        symbols = "; ".join(f"{name}: {text}" for name, text in self.operator.symbols.items())
        assumptions = (*_assumptions(theorem), *self.operator.written.assumptions, symbols)
        return Claim(self.name, statement, conditions, Equality.WITHIN, interpretations, assumptions)

    def semantics(self) -> dict[str, str]:
        """Digests of both terms with the bound, and of the primitives and lemmas that they speak of."""
        theorem = self.operator.theorem
        lemmas = [LEMMAS[name] for name in theorem.lemmas]
        return {
            "kernel": "" if (kernel := self.operator.written.kernel) is None else digest(kernel),
            "theorem": text_digest(*_statement(theorem), *_assumptions(theorem), *self.operator.written.assumptions),
            "lemmas": text_digest(
                *(t for m in lemmas for t in (m.name, m.statement, m.domain, digest(m.function))),
                *(lemma_obligation(lemma).smtlib for lemma in self.operator.written.lemmas),
            ),
            "readings": meaning_digest([replay], "rewrites.bounds"),
        }

    def prove(self, discharger: Discharger) -> Verdict:
        """As :func:`prove_bound`."""
        return prove_bound(self.operator, self.claim({}), discharger)

    def survey(self) -> Runs:
        """Both sides on data of which the bound is stated."""
        return survey_bound(self.operator)

    def required(self, certificate: Mapping[str, Any]) -> Required | str:
        """The laws of the certificate's derivation, which must prove what the claim says."""
        try:
            theorem = replay(read_steps(certificate["derivation"]))
        except Rejected as error:
            return f"the kernel does not accept the derivation: {error}"
        if other := _other_primitive(self.operator, theorem):
            return other
        if _said(theorem) != _said(self.operator.theorem):
            return "the derivation proves another bound, or under other assumptions"
        if self.differs:
            return self.differs
        requirements = Requirements(second=False)
        _ask(self.operator, theorem, requirements)
        return Required(self.claim(certificate["parameters"]), requirements.required, derived=True)

    @cached_property
    def differs(self) -> str:
        """How runs of the kernel, or what is written from it, differ from the theorem; empty where they do not."""
        try:
            return differing(self.operator) or _other_derivation(self.operator)
        except NotRun as error:
            return str(error)

    def shown(self, evidence: Mapping[str, Any]) -> Refutation:
        """The data of a run that a proof did not survive."""
        return self._shown(evidence["data"], evidence["seen"])

    def replayed(self, document: str) -> Refutation | None:
        """Both sides run again on the document's data."""
        content = read_document(document, self.name, {"extents", "biases", "words", "reals"})
        values = {key: {leaf: _table(t) for leaf, t in content[key].items()} for key in ("words", "reals")}
        data = Data(content["extents"], content["biases"], values["words"], values["reals"])
        require_data(self.operator.theorem, data)
        seen = beyond(self.operator, data)
        return self._shown(data, seen) if seen else None

    def _shown(self, data: Data, seen: str) -> Refutation:
        tables = {
            key: {leaf: [[list(at), value_json(v)] for at, v in t.items()] for leaf, t in part.items()}
            for key, part in (("words", data.words), ("reals", data.reals))
        }
        return Refutation(seen, document(self.name, {"extents": data.extents, "biases": data.biases, **tables}))


def _table(content: Any) -> dict[tuple[int, ...], Any]:
    """Values by index; raises ValueError on what is no such list."""
    if not isinstance(content, list) or not all(isinstance(row, list) and len(row) == 2 for row in content):
        raise ValueError("data of a counterexample must be pairs of an index and a value")
    if not all(isinstance(at, list) and all(type(n) is int for n in at) for at, _ in content):
        raise ValueError("an index of data of a counterexample must be a list of integers")
    return {tuple(at): value_of(value) for at, value in content}
