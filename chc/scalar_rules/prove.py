"""Deciding rules on scalars: refuted by values that are evaluated, proved by two solvers, or neither.

The interpretations of data form a ladder from coarse to fine; the next one is tried only where the last one does not
prove the rule:

* symbols: uninterpreted functions with the rule's lemmas;
* for floats, abstract floats, then IEEE arithmetic; for machine numbers, bits; for exact numbers, their arithmetic.

All of them are sound: what one proves holds for the values themselves.  Only the finest can refute, by a model, and
only if its values are evaluated (:func:`chc.scalar_rules.search.replay`) and the sides differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

from ir_semantics.scalars.floats import decode
from ir_semantics.scalars.formats import BOOLEAN, NUMBER, Format, Value
from ir_semantics.scalars.machine import MACHINE_FAMILIES, MachineExpressions, from_code
from ir_semantics.scalars.terms import NotInterpreted, Scalar, interpret, postorder
from smt_encodings.claims import Claim, Interpretation, Obligation, Status, Verdict, conclude
from smt_encodings.discharge import Discharger, NotDischarged, Requirements
from smt_encodings.environment import fresh_symbols
from smt_encodings.interpretations import (
    AbstractFloats,
    CannotInterpret,
    ExactNumbers,
    IeeeFloats,
    MachineBits,
    Symbols,
)
from smt_encodings.runs import surviving

from .enclosures import replay_enclosed
from .formats import CODES
from .mutants import mutants
from .rule import Counterexample, ScalarRule
from .runs import survey
from .search import find_among_all, find_counterexample, holds_at, points, refutes_change, replay

_SEARCHED = 5000
"""Values at which a rule is evaluated before solvers are asked."""
_DISAGREE = "the solvers disagree"
_KEPT = 300
"""Values at which changed rules are evaluated, and rules in intervals."""
_VARIABLE = "v."
"""Stands before the names of a rule's variables in scripts.  No word of a solver and no symbol of an encoding begins
with it, and names have no dots, so no name can be taken for another thing."""

LADDERS: Mapping[str, tuple[Interpretation, ...]] = {
    "float": (Interpretation.UNINTERPRETED, Interpretation.ABSTRACT_FLOAT, Interpretation.IEEE),
    "machine": (Interpretation.UNINTERPRETED, Interpretation.BITS),
    "real": (Interpretation.UNINTERPRETED, Interpretation.REALS),
    "int": (Interpretation.UNINTERPRETED, Interpretation.INTEGERS),
}
"""The interpretations of each kind of number, from coarse to fine."""


def interpretations_of(rule: ScalarRule) -> tuple[Interpretation, ...]:
    """The ladder of a rule, or the one interpretation that it names."""
    if rule.interpretation is not None:
        return (rule.interpretation,)
    formats = {rule.number, *rule.variables.values(), *(t.format for t in postorder(rule.terms))} - {NUMBER}
    families = {k.family for k in formats}
    if "float" in families:
        return LADDERS["float"]
    if families <= MACHINE_FAMILIES:
        return LADDERS["machine"]
    return LADDERS["real" if "real" in families else "int"]


def prove_rule(rule: ScalarRule, discharger: Discharger | None = None) -> Verdict:
    """Decides a rule.

    REFUTED: ``details["counterexample"]`` has values at which both sides were evaluated and differ.  PROVED: z3 and
    cvc5 agree; the claim names the interpretation that sufficed (``details["used"]`` also that of each lemma),
    ``details["ladder"]`` has the outcomes of the coarser ones, and ``details["health"]`` at what values the rule says
    something and where changed rules fail.  VACUOUS: nothing satisfies the condition.  UNKNOWN: the reason names what
    each interpretation lacked.  ERROR: the solvers disagree, or values that refute the rule do not replay.
    """
    start = time.perf_counter()
    attempt = _Attempt(rule, discharger or Discharger())
    status, reason = attempt.decide()
    verdict = Verdict(status, attempt.claim(), "rule", time.perf_counter() - start, reason, attempt.obligations)
    verdict.details |= attempt.details
    return surviving(verdict, lambda: survey(rule))


def proof_of(rule: ScalarRule, discharger: Discharger) -> tuple[Status, str]:
    """What solvers say of a rule in the first interpretation that proves it; else UNKNOWN.

    No values are tried before, and no health check follows.  Its lemmas are taken as proved.
    """
    for interpretation in interpretations_of(rule):
        attempt = _Attempt(rule, discharger)
        if attempt.climb(interpretation)[0]:
            return conclude(attempt.obligations)
    return Status.UNKNOWN, "no interpretation proves it"


def require_rule(rule: ScalarRule, used: Mapping[str, Any], requirements: Requirements) -> Claim:
    """Writes down what a proof with given interpretations needs, without asking; the claim of such a proof.

    ``used`` is as in the details of :func:`prove_rule`; raises ValueError where it is not one of this rule.
    """
    if set(used) != {"interpretation", "lemmas"} or not isinstance(used["lemmas"], list):
        raise ValueError(f"a proof of {rule.name} must name its interpretation and those of its lemmas")
    interpretations = [i for i in interpretations_of(rule) if i.value == used["interpretation"]]
    if not interpretations or len(used["lemmas"]) != len(rule.lemmas):
        raise ValueError(f"a proof of {rule.name} must have one of its interpretations, not {used['interpretation']!r}")
    attempt = _Attempt(rule, requirements)
    for lemma, of_lemma in zip(rule.lemmas, used["lemmas"], strict=True):
        attempt.of_lemmas |= dict.fromkeys(require_rule(lemma, of_lemma, requirements).assumptions)
    proved, reason = attempt.climb(interpretations[0])
    if not proved:
        raise ValueError(f"{rule.name} cannot be put in that interpretation: {reason}")
    attempt.used = (interpretations[0],)
    return attempt.claim()


@dataclass
class _Encoded:
    """A question about a rule in one interpretation, and what is assumed of its symbols."""

    script: str
    assumptions: tuple[str, ...]
    exact: bool


class _Attempt:
    """One proof attempt and what is known so far."""

    def __init__(self, rule: ScalarRule, discharger: Discharger) -> None:
        self.rule = rule
        self.discharger = discharger
        self.obligations: list[Obligation] = []
        self.details: dict[str, object] = {}
        self.used: tuple[Interpretation, ...] = interpretations_of(rule)
        self.assumptions: tuple[str, ...] = ()
        self.of_lemmas: dict[str, None] = {}
        self.lemmas_used: list[object] = []

    def claim(self) -> Claim:
        rule = self.rule
        return Claim(
            rule.name,
            rule.text,
            f"all values of {', '.join(f'{n} ({k})' for n, k in rule.variables.items()) or 'no variable'}",
            rule.equality,
            self.used,
            self.assumptions,
        )

    def decide(self) -> tuple[Status, str]:
        tried = list(islice(points(self.rule), _SEARCHED))
        counterexample = find_counterexample(self.rule, tried) or find_among_all(self.rule)
        if counterexample is not None:
            return self._refuted(counterexample)
        witness = self._witness(tried)
        if witness is None:
            return Status.VACUOUS, "no values satisfy the condition"
        lemmas = self._prove_lemmas()
        if lemmas:
            return lemmas
        reasons = []
        for interpretation in interpretations_of(self.rule):
            proved, reason = self.climb(interpretation)
            if "counterexample" in self.details:
                return self._refuted_by_model()
            if reason == _DISAGREE:
                return Status.ERROR, f"{interpretation.value}: {reason}"
            if proved:
                self.used = (interpretation,)
                self.details["used"] = {"interpretation": interpretation.value, "lemmas": self.lemmas_used}
                return self._healthy(witness, tried)
            reasons.append(f"{interpretation.value}: {reason}")
            self.details["ladder"] = list(reasons)
        enclosed = self._enclosed(tried) if self.rule.number.family == "real" else None
        return (Status.UNKNOWN, "; ".join(reasons)) if enclosed is None else self._refuted(enclosed)

    def _enclosed(self, tried: Sequence[Mapping[str, Value]]) -> Counterexample | None:
        """Where the sides differ by intervals: roots, exponentials and logarithms have no exact value."""
        for values in tried[:_KEPT]:
            try:
                counterexample = replay_enclosed(self.rule, values)
            except NotInterpreted:
                continue
            if counterexample is not None:
                return counterexample
        return None

    def _refuted(self, counterexample: Counterexample) -> tuple[Status, str]:
        again = replay_enclosed(self.rule, counterexample.values)
        if str(again) != str(counterexample):
            return Status.ERROR, f"the counterexample must replay as {counterexample}, not as {again}"
        self.details["counterexample"] = counterexample
        return Status.REFUTED, str(counterexample)

    def _refuted_by_model(self) -> tuple[Status, str]:
        counterexample = self.details["counterexample"]
        assert isinstance(counterexample, Counterexample)
        return self._refuted(counterexample)

    # -- health ----------------------------------------------------------------------------------------------

    def _witness(self, tried: Sequence[Mapping[str, Value]]) -> str | None:
        """Where the condition holds, in words; None where solvers agree that it holds nowhere."""
        for values in tried:
            try:
                if holds_at(self.rule, values):
                    return ", ".join(f"{n} = {v}" for n, v in values.items()) or "always"
            except NotInterpreted:
                continue
        for interpretation in reversed(interpretations_of(self.rule)):
            encoded = self._encode(interpretation, [self.rule.condition, self.rule.left_has_value], "condition")
            if isinstance(encoded, str):
                continue
            asked = self._ask(encoded, "condition", "no values satisfy the condition")
            if asked is None:
                return None
            if encoded.exact and asked.obligation.answers[-1].status == "sat":
                return f"a model of {interpretation.value}"
        return "not known"

    def _healthy(self, witness: str, tried: Sequence[Mapping[str, Value]]) -> tuple[Status, str]:
        """Whether the proved rule is not vacuous, and fails when it is changed."""
        at = list(tried[:: max(1, len(tried) // _KEPT)])
        fails = {c.text: refutes_change(self.rule, c, at) for c in mutants(self.rule)}
        refuted = {text: where for text, where in fails.items() if where is not None}
        self.details["health"] = {"condition holds at": witness, "changed rules refuted": refuted, "of": len(fails)}
        if witness == "not known":
            return Status.UNKNOWN, "no values are known that satisfy the condition"
        if not refuted:
            return Status.UNKNOWN, "no changed form of the rule was refuted: it may not depend on its right side"
        status, reason = conclude(self.obligations)
        return status, reason or ("" if self.discharger.second else "only z3 was asked")

    def _prove_lemmas(self) -> tuple[Status, str] | None:
        for lemma in self.rule.lemmas:
            verdict = prove_rule(lemma, self.discharger)
            if verdict.status is not Status.PROVED:
                return Status.UNKNOWN, f"the lemma {lemma.name} is {verdict.status.value}: {verdict.reason}"
            self.obligations += verdict.obligations
            self.lemmas_used.append(verdict.details["used"])
            self.of_lemmas |= dict.fromkeys(verdict.claim.assumptions)
        return None

    # -- solvers ---------------------------------------------------------------------------------------------

    def climb(self, interpretation: Interpretation) -> tuple[bool, str]:
        """Whether one interpretation proves the rule, and what it says otherwise; notes a replayed counterexample."""
        rule = self.rule
        assertions = [rule.condition, rule.left_has_value, ~rule.goal]
        encoded = self._encode(interpretation, assertions, "rule")
        if isinstance(encoded, str):
            return False, encoded
        failed = self._ask(encoded, interpretation.value, "the condition holds and the sides differ")
        if failed is None:
            used = self.of_lemmas if interpretation is Interpretation.UNINTERPRETED else ()
            self.assumptions = (*encoded.assumptions, *used)
            return True, ""
        answer = failed.obligation.answers[-1]
        if answer.status != "sat":
            return False, f"{answer.solver} does not know{': ' + answer.reason if answer.reason else ''}"
        if len(failed.obligation.answers) == 2:
            return False, _DISAGREE
        if encoded.exact and answer.model is not None:
            self._replay_model(answer.model)
        return False, "not implied"

    def _replay_model(self, model: Mapping[str, int]) -> None:
        formats = self.rule.variables
        if any(k.family == "real" for k in formats.values()):
            return  # the solver's interface reads integers and bits only
        values = {n: _value(model.get(f"{_VARIABLE}{n}", 0), k) for n, k in formats.items()}
        try:
            counterexample = replay(self.rule, values)
        except NotInterpreted:
            return
        if counterexample is not None:
            self.details["counterexample"] = counterexample

    def _ask(self, encoded: _Encoded, name: str, meaning: str) -> NotDischarged | None:
        """None where both solvers say that the question has no answer; else what they say."""
        asked = replace(self.discharger, obligations=[], _pending=[])
        obligation = Obligation(f"{self.rule.name}: {name}", "rules", encoded.script, "unsat", meaning)
        try:
            asked.ask_text(obligation)
        except NotDischarged as failed:
            return failed
        self.obligations += asked.obligations
        self.discharger.obligations += asked.obligations
        return None

    def _encode(self, interpretation: Interpretation, roots: Sequence[Scalar], what: str) -> _Encoded | str:
        """The question in an interpretation, or why it cannot be asked there."""
        comment = f"{self.rule.name}: {what} ({interpretation.value})\n{self.rule.text}"
        with fresh_symbols():
            try:
                return _ENCODERS[interpretation](self.rule, roots, comment)
            except (CannotInterpret, NotInterpreted) as error:
                return f"not applicable: {error}"


def _value(code: int, kind: Format) -> Value:
    if kind == BOOLEAN:
        return bool(code)
    if kind.family == "float":
        return decode(code, kind)
    return code if kind.family == "int" else from_code(code, kind)


# -- one encoder for each interpretation -------------------------------------------------------------------


def _symbols(rule: ScalarRule, roots: Sequence[Scalar], comment: str) -> _Encoded:
    encoding = Symbols()
    terms = interpret(roots, encoding, rule.number, _VARIABLE)
    for lemma in rule.lemmas:
        left, right = lemma.sides
        encoding.lemma(interpret([left.same(right)], encoding, lemma.number, _VARIABLE)[0], lemma.text)
    return _Encoded(encoding.script(terms, comment), encoding.assumptions, False)


def _abstract(rule: ScalarRule, roots: Sequence[Scalar], comment: str) -> _Encoded:
    machine = MachineExpressions(CODES)
    first = AbstractFloats(machine)
    interpret(roots, first, rule.number, _VARIABLE)
    encoding = AbstractFloats(machine, first.bits_needed)
    terms = interpret(roots, encoding, rule.number, _VARIABLE)
    return _Encoded(encoding.script(terms, comment), encoding.assumptions, False)


def _ieee(rule: ScalarRule, roots: Sequence[Scalar], comment: str) -> _Encoded:
    encoding = IeeeFloats(MachineExpressions(CODES))
    terms = interpret(roots, encoding, rule.number, _VARIABLE)
    return _Encoded(encoding.script(terms, comment), encoding.assumptions, encoding.exact)


def _bits(rule: ScalarRule, roots: Sequence[Scalar], comment: str) -> _Encoded:
    encoding = MachineBits(MachineExpressions(CODES))
    terms = interpret(roots, encoding, rule.number, _VARIABLE)
    return _Encoded(encoding.script(terms, comment), (), True)


def _exact(rule: ScalarRule, roots: Sequence[Scalar], comment: str) -> _Encoded:
    encoding = ExactNumbers()
    terms = interpret(roots, encoding, rule.number, _VARIABLE)
    if rule.left.format != BOOLEAN:
        for side in interpret(rule.sides, encoding, rule.number, _VARIABLE):
            encoding.observe(side)
    return _Encoded(encoding.script(terms, comment), encoding.assumptions, encoding.exact)


_Encoder: TypeAlias = Callable[[ScalarRule, Sequence[Scalar], str], _Encoded]

_ENCODERS: Mapping[Interpretation, _Encoder] = {
    Interpretation.UNINTERPRETED: _symbols,
    Interpretation.ABSTRACT_FLOAT: _abstract,
    Interpretation.IEEE: _ieee,
    Interpretation.BITS: _bits,
    Interpretation.REALS: _exact,
    Interpretation.INTEGERS: _exact,
}
